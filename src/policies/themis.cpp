// SPDX-License-Identifier: Apache-2.0
#include "src/policies/themis.hpp"

#include <algorithm>

namespace gpusched {

void Themis::decide(const OracleView& view, Decision& decision) {
  note_arrivals(view);
  if (view.pending_count() == 0) return;
  if (view.now().us % lease_.us == 0) {
    lease_all(view, decision);
  } else if (view.cluster().free_gpu_milli() > 0 || cpu_only_jobs_) {
    collect(view, false);
    start_in_order(view, decision);
  }
  if (view.pending_count() == 0) return;
  const Time next{(view.now().us / lease_.us + 1) * lease_.us};
  if (next != next_wake_ && decision.wake(next) == Verdict::ok) next_wake_ = next;
}

void Themis::note_arrivals(const OracleView& view) {
  if (ideal_s_.empty()) ideal_s_.resize(view.job_count());
  for (const Event& event : view.events()) {
    if (event.kind != EventKind::submit) continue;
    cpu_only_jobs_ = cpu_only_jobs_ || view.shape(event.job).gpu_milli() == 0;
    const auto jobs = static_cast<double>(view.arrived() - view.finished());
    const double share = static_cast<double>(view.cluster().total_gpus() * whole_gpu) / jobs;
    const double slowdown = std::max(1.0, static_cast<double>(view.shape(event.job).gpu_milli()) / share);
    // A microsecond is the least time there is: it keeps rho finite.
    ideal_s_[index(event.job)] = std::max(to_seconds(view.work(event.job)), 1e-6) * slowdown;
  }
}

double Themis::rho(const OracleView& view, JobId job) const {
  return to_seconds(view.now() - view.submit(job) + view.remaining(job)) / ideal_s_[index(job)];
}

// In falling order of rho; ties go to the earlier submitted.
void Themis::collect(const OracleView& view, bool with_running) {
  candidates_.clear();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) candidates_.push_back({rho(view, job), job, false});
  }
  if (with_running) {
    for (const JobId job : view.running()) candidates_.push_back({rho(view, job), job, true});
  }
  std::sort(candidates_.begin(), candidates_.end(), [](const Candidate& a, const Candidate& b) {
    return a.rho != b.rho ? a.rho > b.rho : index(a.job) < index(b.job);
  });
}

// Who holds a lease is a matter of count; all that lose theirs leave before anyone starts.
void Themis::lease_all(const OracleView& view, Decision& decision) {
  collect(view, true);
  MilliGpu free = view.cluster().total_gpus() * whole_gpu;
  for (const Candidate& candidate : candidates_) {
    const MilliGpu wanted = view.shape(candidate.job).gpu_milli();
    if (wanted <= free) {
      free -= wanted;
    } else if (candidate.running) {
      decision.preempt(candidate.job);
    }
  }
  start_in_order(view, decision);
}

void Themis::start_in_order(const OracleView& view, Decision& decision) {
  blocked_.assign(view.queue_count() * view.shape_count(), 0);
  for (const Candidate& candidate : candidates_) {
    if (view.phase(candidate.job) != JobPhase::pending) continue;
    auto& blocked = blocked_[view.queue_of(candidate.job) * view.shape_count() + view.shape_id(candidate.job)];
    if (blocked) continue;
    const bool placed = (candidate.running && decision.restore(candidate.job) == Verdict::ok) ||
                        decision.start(candidate.job) == Verdict::ok;
    if (!placed) blocked = 1;
  }
}

PolicyInfo themis_info() {
  return {.name = "themis",
          .summary = "finish-time fairness: leases GPUs to the jobs that sharing slows most",
          .source = "Themis (NSDI'20), section 3; rho from true run times, N as of the submission, no auction",
          .complexity = "O(n log n) a lease, O(waiting) an event",
          .parameters = {{.name = "lease_s",
                          .fallback = 1200.0,
                          .meaning = "seconds for which GPUs are leased",
                          .least = 1e-3,
                          .most = 1e9}},
          .make = [](const PolicyParameters& parameters, const PolicyContext&) -> Result<AnyPolicy> {
            return AnyPolicy(Themis(from_seconds(parameters.number("lease_s"))));
          },
          .preemptive = true,
          .work_conserving = true};
}

}  // namespace gpusched
