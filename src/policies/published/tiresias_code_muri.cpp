// SPDX-License-Identifier: Apache-2.0
#include "src/policies/published/tiresias_code_muri.hpp"

#include <algorithm>

#include "src/policies/queues/gang_nodes.hpp"

namespace gpusched {

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::decide(const RunView& view, Decision& decision) {
  // A wake-up that is out of date: a later event planned another check, or none.
  const bool only_wake = view.events().size() == 1 && view.events().front().kind == EventKind::wake;
  if (only_wake && view.now() != next_check_) return;
  if (jobs_.empty()) jobs_.resize(view.job_count());
  drop_ended(view);
  progress(view.now());
  demote(view.now());
  admit(view);
  promote_starved(view);
  place_all(view, decision);
  start_chosen(view, decision);
  if constexpr (is_muri) overhead_.plan(view.now(), decision, running_, 0);
  put_back_refused();
  plan_check(view, decision);
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::drop_ended(const RunView& view) {
  for (const Event& event : view.events()) {
    if (leaves_cluster(event.kind)) running_.erase(find_running(event.job));
  }
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::progress(Time now) {
  if constexpr (is_muri) {
    for (Run& run : running_) run.account.progress(now - last_event_);
  }
  last_event_ = now;
}

// Takes jobs that reach their limit out of running_ into demoted_, by the queue that they enter.
template <TiresiasQueuesForm form>
void TiresiasQueues<form>::demote(Time now) {
  for (auto& entered : demoted_) entered.clear();
  if (now < next_limit_) return;
  std::erase_if(running_, [&](Run run) {
    if (now < run.limit) return false;
    enter(run, run.queue + 1);
    demoted_[run.queue].push_back(run);
    return true;
  });
  for (auto& entered : demoted_) {
    std::sort(entered.begin(), entered.end(), [](const Run& a, const Run& b) { return a.admission < b.admission; });
  }
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::enter(Run& run, std::uint32_t queue) const {
  run.queue = queue;
  run.limit = queue == limits_.size() ? Time::max()
                                      : run.begun + Time{mul_div_up(limits_[queue], microseconds_per_second, run.gpus)};
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::admit(const RunView& view) {
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::withdraw) withdraw(event.job, view.at(event).shape(event.job).tasks);
    if (!enters_queue(event.kind)) continue;
    (*this)[event.job] = {.admission = admissions_++};
    if constexpr (is_muri) overhead_.admit(view, event.job);
    append_pending(event.job, view.at(event).shape(event.job).tasks);
  }
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::withdraw(JobId id, std::uint32_t gpus) {
  const Job& job = (*this)[id];
  pending_[job.queue].erase(gpus, {job.place, id});
  promotions_.erase({job.promotion, id});
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::insert_pending(JobId job, std::uint32_t gpus, std::int64_t place) {
  (*this)[job].place = place;
  pending_[(*this)[job].queue].insert(gpus, {place, job});
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::promote_starved(const RunView& view) {
  promoted_.clear();
  while (!promotions_.empty() && promotions_.begin()->time <= view.now()) {
    promoted_.push_back(promotions_.extract(promotions_.begin()).value().job);
  }
  std::sort(promoted_.begin(), promoted_.end(),
            [this](JobId a, JobId b) { return (*this)[a].admission < (*this)[b].admission; });
  for (const JobId id : promoted_) {
    Job& job = (*this)[id];
    const std::uint32_t gpus = view.shape(id).tasks;
    pending_[job.queue].erase(gpus, {job.place, id});
    job.executed = {};
    job.promotion = Time::max();
    job.queue = 0;
    append_pending(id, gpus);
  }
}

// Afterwards running_ holds the jobs that stay and those that are to start.
template <TiresiasQueuesForm form>
void TiresiasQueues<form>::place_all(const RunView& view, Decision& decision) {
  std::int64_t free = view.cluster().up_gpus();
  std::swap(ran_, running_);
  running_.clear();
  started_.clear();
  auto run = ran_.begin();
  for (std::uint32_t queue = 0; queue < pending_.size(); ++queue) {
    const auto end = std::partition_point(run, ran_.end(), [&](const Run& other) { return other.queue == queue; });
    preempted_.clear();
    keep_or_preempt({run, end}, decision, free);
    run = end;
    const std::size_t ahead = preempted_.size();
    choose_pending(queue, view.now(), free);
    keep_or_preempt(demoted_[queue], decision, free);
    // The last event left running jobs before pending ones, and this one put demoted jobs last; preempted jobs keep
    // these places.
    first_place_ -= static_cast<std::int64_t>(ahead);
    for (std::size_t i = 0; i < preempted_.size(); ++i) {
      wait_again(view, preempted_[i], i < ahead ? first_place_ + static_cast<std::int64_t>(i) : last_place_++);
    }
  }
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::keep_or_preempt(std::span<const Run> runs, Decision& decision, std::int64_t& free) {
  std::int64_t gpus = 0;
  for (const Run& run : runs) gpus += run.gpus;
  if (gpus <= free) {  // the usual case
    free -= gpus;
    running_.insert(running_.end(), runs.begin(), runs.end());
    return;
  }
  for (const Run& run : runs) {
    if (run.gpus <= free) {
      free -= run.gpus;
      running_.push_back(run);
    } else {
      decision.preempt(run.job);
      preempted_.push_back(run);
    }
  }
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::choose_pending(std::uint32_t queue, Time now, std::int64_t& free) {
  pending_[queue].begin_walk();
  pending_[queue].walk_to(last_place_, [&](const Pending::Entry& next, std::int64_t gpus) {
    if (gpus > free) return false;
    free -= gpus;
    const Job& job = (*this)[next.job];
    Run run{.begun = now - job.executed,
            .job = next.job,
            .gpus = static_cast<std::uint32_t>(gpus),
            .admission = job.admission};
    enter(run, queue);
    started_.push_back(running_.size());
    running_.push_back(run);
    return true;
  });
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::wait_again(const RunView& view, const Run& run, std::int64_t place) {
  if constexpr (is_muri) overhead_.preempt(run.job, run.account);
  Job& job = (*this)[run.job];
  job.executed = view.now() - run.begun;
  job.queue = run.queue;
  insert_pending(run.job, run.gpus, place);
  if (promote_knob_ == 0 || job.queue == 0 || job.executed.us == 0) return;
  job.promotion = later_by(view.now(), Time{mul_div(job.executed.us, promote_knob_, 1)});
  promotions_.insert({job.promotion, run.job});
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::start_chosen(const RunView& view, Decision& decision) {
  refused_.clear();
  for (const std::size_t i : started_) {
    Run& run = running_[i];
    if constexpr (is_muri) run.account = overhead_.start(view, run.job);
    if (decision.start(run.job) != Verdict::ok) {  // CPU or memory, which the authors' program does not count
      refused_.push_back(run.job);
      continue;
    }
    promotions_.erase({(*this)[run.job].promotion, run.job});
    (*this)[run.job].promotion = Time::max();
  }
}

template <TiresiasQueuesForm form>
void TiresiasQueues<form>::put_back_refused() {
  for (const JobId job : refused_) {
    const auto run = find_running(job);
    insert_pending(job, run->gpus, (*this)[job].place);
    running_.erase(run);
  }
}

// Wakes for the next demotion or promotion, which no other event may bring.
template <TiresiasQueuesForm form>
void TiresiasQueues<form>::plan_check(const RunView& view, Decision& decision) {
  Time next = promotions_.empty() ? Time::max() : promotions_.begin()->time;
  next_limit_ = Time::max();
  for (const Run& run : running_) {
    if (run.queue == limits_.size()) break;
    next_limit_ = std::min(next_limit_, run.limit, earlier);
    // A check may come late, and less than a second early.
    if (run.limit - whole_seconds(1) < next) next = std::min(next, demotion_check(run, view.now()), earlier);
  }
  if (next != Time::max() && next != next_check_) decision.wake(next);
  next_check_ = next;
}

template <TiresiasQueuesForm form>
Time TiresiasQueues<form>::demotion_check(const Run& run, Time now) const {
  const std::int64_t limit = limits_[run.queue];
  if constexpr (is_muri) return run.begun + whole_seconds((limit + run.gpus - 1) / run.gpus);
  const std::int64_t executed_s = (now - run.begun).us / microseconds_per_second;
  // The simulator's time is in whole seconds, and it waits for at least one.
  return now + whole_seconds(std::max<std::int64_t>((limit - executed_s) / run.gpus, 1));
}

template <TiresiasQueuesForm form>
typename std::vector<typename TiresiasQueues<form>::Run>::iterator TiresiasQueues<form>::find_running(JobId job) {
  return std::find_if(running_.begin(), running_.end(), [&](const Run& run) { return run.job == job; });
}

template class TiresiasQueues<TiresiasQueuesForm::tiresias>;
template class TiresiasQueues<TiresiasQueuesForm::muri>;

namespace {

constexpr std::int64_t first_limit_gpu_s = 3250;  // of the Tiresias artifact
constexpr std::int64_t second_limit_gpu_s = 7200;

}  // namespace

PolicyInfo tiresias_code_info() {
  return {.name = "tiresias@code",
          .summary = "2D-LAS as the Tiresias simulator runs it, quirk by quirk",
          .source =
              "schedule 'dlas-gpu' of the Tiresias simulator (NSDI'19 artifact): counts GPUs; floors the delay of a "
              "demotion check; reorders queues after placing",
          .complexity = "O(running jobs + log waiting)",
          .parameters = {{.name = "promote_knob",
                          .fallback = 0.0,
                          .meaning = "a job pending this many times what it executed returns to queue 0; 0 = never",
                          .most = 1e6,
                          .is_count = true}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            if (auto checked = check_one_gpu_tasks("tiresias@code", context); !checked) {
              return Unexpected{checked.error()};
            }
            const auto knob = static_cast<std::int64_t>(parameters.number("promote_knob"));
            return AnyPolicy(TiresiasCode({first_limit_gpu_s, second_limit_gpu_s}, knob));
          },
          .preemptive = true,
          .aliases = {"dlas-gpu"},
          .asymmetries = {{Symmetry::time_scale, "limits of queues, and delays in whole seconds"}}};
}

PolicyInfo tiresias_muri_info() {
  return {.name = "tiresias@muri",
          .summary = "Tiresias-L as the Muri artifact runs it, quirk by quirk",
          .source =
              "Muri artifact (SIGCOMM'22): counts GPUs; overhead at every event, which counts as executed; reorders "
              "queues after placing",
          .complexity = "O(running jobs + log waiting)",
          .make = [](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            if (auto checked = check_one_gpu_tasks("tiresias@muri", context); !checked) {
              return Unexpected{checked.error()};
            }
            return AnyPolicy(TiresiasMuri({first_limit_gpu_s, second_limit_gpu_s}, 0));
          },
          .preemptive = true,
          .aliases = {"tiresias-l"},
          .asymmetries = {{Symmetry::time_scale, "limits of queues, and an overhead of 10 s at every event"}}};
}

}  // namespace gpusched
