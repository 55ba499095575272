// SPDX-License-Identifier: Apache-2.0
#include "src/policies/tiresias_rounds.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace gpusched {
namespace {

constexpr Time round_length = whole_seconds(60);

Time round_from(Time t) { return {(t.us + round_length.us - 1) / round_length.us * round_length.us}; }

}  // namespace

std::int64_t TiresiasRounds::limit_gpu_us() const {
  return whole_seconds(form_ == TiresiasRoundsForm::pollux ? 16 * 3600 : 18'000).us;
}

Time TiresiasRounds::start_cost(const Shape& shape, bool preempted) const {
  if (form_ == TiresiasRoundsForm::pollux) return whole_seconds(30);
  if (!preempted) return {};
  return whole_seconds(shape.gpu_milli() > 8 * whole_gpu ? 60 : 40);
}

void TiresiasRounds::decide(const View& view, Decision& decision) {
  for (const Event& event : view.events()) changed_ = changed_ || event.kind != EventKind::wake;
  if (view.now() == round_from(view.now()) && (changed_ || view.now() == next_limit_)) {
    schedule(view, decision);
    changed_ = false;
  }
  Time wake = Time::max();
  if (changed_) {
    wake = round_from(view.now() + Time{1});
  } else if (view.pending_count() > 0) {  // a limit reached while nobody waits changes nothing
    wake = next_limit_;
  }
  if (wake != Time::max() && wake != next_wake_ && decision.wake(wake) == Verdict::ok) next_wake_ = wake;
}

void TiresiasRounds::expect_limit(const View& view, const Candidate& winner) {
  const MilliGpu gpu_milli = view.shape(winner.job).gpu_milli();
  if (winner.demoted || gpu_milli == 0) return;
  const Time left{mul_div_up(limit_gpu_us() - winner.attained_gpu_us, whole_gpu, gpu_milli)};
  next_limit_ = std::min(next_limit_, round_from(view.now() + left), [](Time a, Time b) { return a < b; });
}

void TiresiasRounds::schedule(const View& view, Decision& decision) {
  preempted_.resize(view.job_count());
  candidates_.clear();
  const auto add = [&](JobId job, bool running) {
    const std::int64_t attained = view.attained_gpu_us(job);
    candidates_.push_back({job, attained, attained >= limit_gpu_us(), running});
  };
  for (const JobId job : view.running()) add(job, true);
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) add(job, false);
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.demoted != b.demoted ? b.demoted : index(a.job) < index(b.job);
  });
  // Who gets GPUs is a matter of count; all that lose theirs leave before anyone starts.
  MilliGpu free = view.cluster().total_gpus() * whole_gpu;
  const auto wins = [&](const Candidate& candidate) {
    const MilliGpu wanted = view.shape(candidate.job).gpu_milli();
    if (wanted > free) return false;
    free -= wanted;
    return true;
  };
  next_limit_ = Time::max();
  std::vector<JobId> started;
  for (const Candidate& candidate : candidates_) {
    const bool won = wins(candidate);
    if (won) expect_limit(view, candidate);
    if (won && !candidate.running) started.push_back(candidate.job);
    if (!won && candidate.running) {
      decision.preempt(candidate.job);
      preempted_[index(candidate.job)] = true;
    }
  }
  for (const JobId job : started) {
    if (decision.start(job) != Verdict::ok) continue;
    const Time cost = start_cost(view.shape(job), preempted_[index(job)]);
    preempted_[index(job)] = false;
    if (cost.us > 0) decision.adjust_work(job, cost);
  }
}

namespace {

PolicyInfo rounds_info(TiresiasRoundsForm form, std::string summary, std::string source) {
  return {.name = std::string(TiresiasRounds(form).name()),
          .summary = std::move(summary),
          .source = std::move(source),
          .complexity = "O(runnable log runnable) a round",
          .parameters = {},
          .make = [form](const PolicyParameters&, const PolicyContext&) -> Result<AnyPolicy> {
            return AnyPolicy(TiresiasRounds(form));
          },
          .preemptive = true};
}

}  // namespace

PolicyInfo tiresias_pollux_info() {
  return rounds_info(TiresiasRoundsForm::pollux, "Tiresias as the Pollux artifact runs it: 60 s rounds, 30 s a start",
                     "Pollux artifact (OSDI'21): two queues at 16 GPU-hours, no promotion");
}
PolicyInfo tiresias_lucid_info() {
  return rounds_info(TiresiasRoundsForm::lucid,
                     "Tiresias as the Lucid artifact runs it: 60 s rounds, costly preemption",
                     "Lucid artifact (ASPLOS'23): two queues at 18,000 GPU-seconds, no promotion");
}

}  // namespace gpusched
