// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/slurm_backfill.hpp"

#include <algorithm>
#include <vector>

namespace gpusched {

void SlurmBackfill::decide(const OracleView& view, Decision& decision) {
  ends_.observe(view);
  for (const Event& event : view.events()) changed_ = changed_ || event.kind != EventKind::wake;
  slurm_.decide(view, decision, [&](JobId job) { ends_.start(view, job); });
  if (!changed_ || view.pending_count() == 0) return;
  if (view.now() < next_pass_) {
    decision.wake(next_pass_);
    return;
  }
  backfill(view, decision);
  changed_ = false;
  next_pass_ = view.now() + options_.interval;
}

void SlurmBackfill::backfill(const View& view, Decision& decision) {
  CapacityProfile profile = profile_of_running(view);
  const Time now = view.now();
  for (const JobId job : slurm_.waiting_in_order(view, options_.most_jobs)) {
    const Shape& shape = view.shape(job);
    const Time length = std::max(ends_.estimate(job), Time{1});
    auto hole = profile.find(now, length, shape, view.queue_of(job), view.cluster());
    if (!hole || hole->start - now > options_.window) continue;
    if (hole->start == now) {
      // No room: shares of GPUs that are free, but not on one device.
      if (empty_.start(view, decision, job, hole->parts) == CapacityProfile::Started::no) continue;
      slurm_.started(view, job);
      ends_.start(view, job);
    }
    profile.change(hole->start, hole->start + length, {shape, view.queue_of(job), hole->parts}, -1);
  }
}

CapacityProfile SlurmBackfill::profile_of_running(const View& view) const {
  std::vector<std::vector<CapacityProfile::Part>> parts;
  std::vector<CapacityProfile::Holder> holders;
  parts.reserve(ends_.ends().size());
  for (const EstimatedEnds::End& end : ends_.ends()) {
    parts.push_back(empty_.parts_of(view, end.job));
    const Time until = std::max(end.time, view.now() + Time{1});
    holders.push_back({until, {view.shape(end.job), view.queue_of(end.job), parts.back()}});
  }
  CapacityProfile profile = empty_;
  profile.take_from(view.now(), holders);
  return profile;
}

}  // namespace gpusched
