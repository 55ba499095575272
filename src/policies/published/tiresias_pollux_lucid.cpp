// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/tiresias_pollux_lucid.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "src/policies/queues/periods.hpp"

namespace gpusched {
namespace {

constexpr Time round_length = whole_seconds(60);

Time round_from(Time t) { return multiple_from(t, round_length); }

}  // namespace

std::int64_t TiresiasPolluxLucid::limit_gpu_us() const {
  return whole_seconds(form_ == PolluxLucidForm::pollux ? 16 * 3600 : 18'000).us;
}

Time TiresiasPolluxLucid::start_cost(const Shape& shape, bool preempted) const {
  if (form_ == PolluxLucidForm::pollux) return whole_seconds(30);
  if (!preempted) return {};
  return whole_seconds(shape.gpu_milli() > 8 * whole_gpu ? 60 : 40);
}

void TiresiasPolluxLucid::decide(const View& view, Decision& decision) {
  for (const Event& event : view.events()) {
    changed_ = changed_ || event.kind != EventKind::wake;
    if (leaves_cluster(event.kind)) {
      running_.erase(std::find_if(running_.begin(), running_.end(),
                                  [&](const Run& run) { return run.place.number == index(event.job); }));
    }
    if (enters_queue(event.kind)) joining_.push_back(event.job);
    if (event.kind == EventKind::withdraw &&
        !waiting_.erase_job(view.at(event).shape(event.job).gpu_milli(), event.job)) {
      std::erase(joining_, event.job);
    }
  }
  if (view.now() == round_from(view.now()) && (changed_ || view.now() == next_limit_)) {
    schedule(view, decision);
    changed_ = false;
  }
  Time wake = Time::max();
  if (changed_) {
    wake = round_from(view.now() + Time{1});
  } else if (view.pending_count() > 0) {  // without waiting jobs a demotion has no effect
    wake = next_limit_;
  }
  if (wake != Time::max() && wake != next_wake_ && decision.wake(wake) == Verdict::ok) next_wake_ = wake;
}

void TiresiasPolluxLucid::schedule(const View& view, Decision& decision) {
  preempted_.resize(view.job_count());
  bring_up_to_now(view);
  // Only GPUs are counted. All preemptions come before the first start.
  MilliGpu free = view.cluster().up_gpus() * whole_gpu;
  chosen_.clear();
  waiting_.begin_walk();
  std::size_t kept = 0;
  for (const Run& run : running_) {
    choose_before(run.place, free);
    if (run.gpu_milli <= free) {
      free -= run.gpu_milli;
      running_[kept++] = run;
      continue;
    }
    const JobId job{run.place.number};
    decision.preempt(job);
    preempted_[index(job)] = true;
    joining_.push_back(job);
  }
  running_.resize(kept);
  choose_before({.demoted = true, .number = no_index}, free);
  start_chosen(view, decision);
  next_limit_ = Time::max();
  for (const Run& run : running_) {
    if (run.place.demoted || run.limit == Time::max()) continue;
    next_limit_ = std::min(next_limit_, round_from(run.limit), [](Time a, Time b) { return a < b; });
  }
}

// Only running jobs can have reached the limit since the last round.
void TiresiasPolluxLucid::bring_up_to_now(const View& view) {
  for (const JobId job : joining_) {
    waiting_.insert(view.shape(job).gpu_milli(), {{limit_of(view, job) == view.now(), index(job)}, job});
  }
  joining_.clear();
  bool moved = false;
  for (Run& run : running_) {
    if (run.place.demoted || view.now() < run.limit) continue;
    run.place.demoted = moved = true;
  }
  if (moved) std::sort(running_.begin(), running_.end());
}

Time TiresiasPolluxLucid::limit_of(const View& view, JobId job) const {
  const MilliGpu gpu_milli = view.shape(job).gpu_milli();
  if (gpu_milli == 0) return Time::max();
  const Time whole{mul_div_up(limit_gpu_us(), whole_gpu, gpu_milli)};
  return view.now() + std::max(whole - view.ran(job), Time{0});
}

// Chooses among the waiting jobs that come before `place` in the order.
void TiresiasPolluxLucid::choose_before(const Place& place, MilliGpu& free) {
  waiting_.walk_to(place, [&](const Waiting::Entry& next, MilliGpu wanted) {
    if (wanted > free) return false;
    free -= wanted;
    chosen_.push_back(next);
    return true;
  });
}

void TiresiasPolluxLucid::start_chosen(const View& view, Decision& decision) {
  for (const Waiting::Entry& chosen : chosen_) {
    const Shape& shape = view.shape(chosen.job);
    const Run run{chosen.place, shape.gpu_milli(), limit_of(view, chosen.job)};
    if (decision.start(chosen.job) != Verdict::ok) {
      waiting_.insert(run.gpu_milli, chosen);
      continue;
    }
    running_.insert(std::upper_bound(running_.begin(), running_.end(), run), run);
    const Time cost = start_cost(shape, preempted_[index(chosen.job)]);
    preempted_[index(chosen.job)] = false;
    if (cost.us > 0) decision.adjust_work(chosen.job, cost);
  }
}

namespace {

PolicyInfo rounds_info(PolluxLucidForm form, std::string summary, std::string source) {
  return {.name = std::string(TiresiasPolluxLucid(form).name()),
          .summary = std::move(summary),
          .source = std::move(source),
          .complexity = "O(running + log waiting) a round",
          .make = [form](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> {
            return AnyPolicy(TiresiasPolluxLucid(form));
          },
          .preemptive = true,
          .asymmetries = {{Symmetry::time_scale, "rounds of 60 s, limits of queues and costs of starts"}}};
}

}  // namespace

PolicyInfo tiresias_pollux_info() {
  return rounds_info(PolluxLucidForm::pollux, "Tiresias as the Pollux artifact runs it: 60 s rounds, 30 s a start",
                     "Pollux artifact (OSDI'21): two queues at 16 GPU-hours, no promotion");
}
PolicyInfo tiresias_lucid_info() {
  return rounds_info(PolluxLucidForm::lucid, "Tiresias as the Lucid artifact runs it: 60 s rounds, costly preemption",
                     "Lucid artifact (ASPLOS'23): two queues at 18,000 GPU-seconds, no promotion");
}

}  // namespace gpusched
