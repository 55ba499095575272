// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/muri_shortest.hpp"

#include <algorithm>
#include <string>

namespace gpusched {

void MuriShortest::decide(const OracleView& view, Decision& decision) {
  if (nodes_.empty()) {
    nodes_.resize(view.job_count());
    nodes_left_ = YarnPlacement(view.cluster());
  }
  ++instant_;
  drop_ended(view);
  progress(view.now() - last_event_);
  last_event_ = view.now();
  admit(view);
  place_all(view, decision);
  move_and_start(decision);
  overhead_.plan(view.now(), decision, running_, 1e-9);
  put_back_refused();
}

// It rehearsed with all nodes in service. A job that its node would hold, and that is on several, moves to one.
void MuriShortest::adopt(const View& view) {
  for (std::uint32_t node = 0; node < view.cluster().node_count() && !nodes_.empty(); ++node) {
    if (!view.cluster().is_up(NodeId{node})) nodes_left_.resize(NodeId{node}, 0);
  }
  for (Run& run : running_) {
    GangNodes& nodes = nodes_[index(run.job)];
    nodes.clear();
    view.for_each_grant(run.job,
                        [&](const Grant& grant) { nodes.push_back({.node = grant.node, .tasks = grant.tasks}); });
    const bool is_on_one = nodes.end() - nodes.begin() == 1;
    run.node = is_on_one ? index(nodes.begin()->node) : no_index;
  }
}

void MuriShortest::drop_ended(const OracleView& view) {
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::node_down) nodes_left_.resize(event.node, 0);
    if (event.kind == EventKind::node_up) nodes_left_.resize(event.node, view.cluster().node_gpus(event.node));
    if (!leaves_cluster(event.kind)) continue;
    running_.erase(find_running(event.job));
  }
}

// Running jobs move forward. They overtake each other where overheads or, under SRSF, GPU counts differ.
void MuriShortest::progress(Time span) {
  const auto before = [this](std::int64_t key, const Run& run) { return key < place_of(run).key; };
  std::int64_t last = std::numeric_limits<std::int64_t>::min();  // key of the run before
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Run& run = running_[i];
    const Time remaining = run.account.remaining;
    run.account.progress(span);
    run.tie = run.account.remaining == remaining ? run.tie : tie_of(i);
    const std::int64_t key = place_of(run).key;
    if (key >= last) {
      last = key;
      continue;
    }
    const auto at = running_.begin() + static_cast<std::ptrdiff_t>(i);
    std::rotate(std::upper_bound(running_.begin(), at, key, before), at, at + 1);
  }
}

void MuriShortest::admit(const OracleView& view) {
  std::uint64_t number = first_arrival;
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::withdraw) waiting_.erase_job(view.at(event).shape(event.job).tasks, event.job);
    if (!enters_queue(event.kind)) continue;
    overhead_.admit(view, event.job);
    const std::uint32_t gpus = view.at(event).shape(event.job).tasks;
    waiting_.insert(gpus, {{key_of(overhead_.remaining(event.job), gpus), tie_of(number++)}, event.job});
  }
}

// Goes through the list in order. running_ keeps the jobs that stay; notes which of them move and which jobs start.
void MuriShortest::place_all(const OracleView& view, Decision& decision) {
  nodes_left_.reset();
  waiting_.begin_walk();
  started_.clear();
  preempted_.clear();
  moved_.resize(running_.size());
  std::uint32_t kept = 0;
  std::size_t moves = 0;
  for (Run& run : running_) {
    start_before(place_of(run), view);
    const Found found = find_nodes(run);
    if (found == Found::nothing) {
      decision.preempt(run.job);
      preempted_.push_back(run);
      continue;
    }
    moved_[moves] = kept;
    moves += found == Found::others ? 1 : 0;
    if (&running_[kept] != &run) running_[kept] = run;
    ++kept;
  }
  start_before(last_place(), view);
  running_.resize(kept);
  moved_.resize(moves);
  for (const Run& run : preempted_) put_back(run);
}

// Finds nodes for the waiting jobs that come before `place` in the list.
inline void MuriShortest::start_before(const Place& place, const OracleView& view) {
  waiting_.walk_to(place, [&](const Waiting::Entry& next, std::int64_t gpus) {
    Run run{.tie = next.place.tie, .job = next.job, .gpus = static_cast<std::uint32_t>(gpus)};
    if (find_nodes(run) == Found::nothing) return false;
    run.account = overhead_.start(view, run.job);
    started_.push_back(run);
    return true;
  });
}

inline MuriShortest::Found MuriShortest::find_nodes(Run& run) {
  if (run.gpus <= nodes_left_.node_gpus()) {
    const std::uint32_t before = std::exchange(run.node, nodes_left_.place_on_one(run.gpus));
    return run.node == no_index ? Found::nothing : run.node == before ? Found::same : Found::others;
  }
  if (!nodes_left_.place(run.gpus, chosen_)) return Found::nothing;
  GangNodes& nodes = nodes_[index(run.job)];
  const auto same = [](const NodeTasks& a, const NodeTasks& b) { return a.node == b.node && a.tasks == b.tasks; };
  if (std::equal(nodes.begin(), nodes.end(), chosen_.begin(), chosen_.end(), same)) return Found::same;
  nodes = chosen_;
  return Found::others;
}

// All jobs that move leave their nodes before any takes new ones.
void MuriShortest::move_and_start(Decision& decision) {
  refused_.clear();
  for (const std::uint32_t i : moved_) decision.vacate(running_[i].job);
  for (const std::uint32_t i : moved_) {
    // A power cap, CPU or memory may refuse the new nodes.
    const JobId job = running_[i].job;
    on_nodes(running_[i], [&](std::span<const NodeTasks> nodes) {
      if (decision.move_on(job, nodes) == Verdict::ok) return;
      decision.preempt(job);
      refused_.push_back(job);
    });
  }
  const auto before = [this](const Run& a, const Run& b) { return place_of(a) < place_of(b); };
  for (const Run& run : started_) {
    // The artifact does not count CPU and memory; the engine does, and may refuse.
    on_nodes(run, [&](std::span<const NodeTasks> nodes) {
      if (decision.start_on(run.job, nodes) != Verdict::ok) refused_.push_back(run.job);
    });
    running_.insert(std::upper_bound(running_.begin(), running_.end(), run, before), run);
  }
}

// Afterwards, because the ends of these jobs take part in the grouping of predicted ends.
void MuriShortest::put_back_refused() {
  for (const JobId job : refused_) {
    const auto run = find_running(job);
    put_back(*run);
    running_.erase(run);
  }
}

void MuriShortest::put_back(const Run& run) {
  overhead_.preempt(run.job, run.account);
  waiting_.insert(run.gpus, {place_of(run), run.job});
}

std::vector<MuriShortest::Run>::iterator MuriShortest::find_running(JobId job) {
  return std::find_if(running_.begin(), running_.end(), [&](const Run& run) { return run.job == job; });
}

namespace {

PolicyInfo muri_info(bool by_service) {
  const std::string name = by_service ? "srsf@muri" : "srtf@muri";
  return {.name = name,
          .summary = by_service ? "SRSF as the Muri artifact runs it, quirk by quirk"
                                : "SRTF as the Muri artifact runs it, quirk by quirk",
          .source =
              "Muri artifact (SIGCOMM'22); overhead at every event, all jobs placed afresh by 'yarn', ends within "
              "1e-9 merged",
          .complexity = "O(running jobs + log waiting): each of them may move",
          .make = [by_service, name](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            if (auto checked = check_one_gpu_tasks(name, context); !checked) return Unexpected{checked.error()};
            return AnyPolicy(MuriShortest(by_service));
          },
          .preemptive = true,
          .asymmetries = {{Symmetry::node_order, "nodes count as alike, and the first of those that would do is taken"},
                          {Symmetry::time_scale, "an overhead of 10 s at every event, and other constants"}}};
}

}  // namespace

PolicyInfo srtf_muri_info() { return muri_info(false); }
PolicyInfo srsf_muri_info() { return muri_info(true); }

}  // namespace gpusched
