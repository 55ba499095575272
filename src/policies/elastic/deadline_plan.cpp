// SPDX-License-Identifier: Apache-2.0
#include "src/policies/elastic/deadline_plan.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

namespace gpusched {

std::vector<std::uint32_t> planned_sizes(const SizedJob& job) {
  std::vector<std::uint32_t> sizes{job.least};
  for (std::uint64_t tasks = std::uint64_t{job.least} * 2; tasks <= job.most; tasks *= 2) {
    if (job.rate(static_cast<std::uint32_t>(tasks)) > job.rate(sizes.back())) {
      sizes.push_back(static_cast<std::uint32_t>(tasks));
    }
  }
  return sizes;
}

std::uint32_t next_planned_size(const SizedJob& job) {
  std::uint64_t planned = job.least;
  for (std::uint64_t tasks = planned; tasks <= job.most; tasks *= 2) {
    if (tasks != planned &&
        job.rate(static_cast<std::uint32_t>(tasks)) <= job.rate(static_cast<std::uint32_t>(planned))) {
      continue;
    }
    planned = tasks;
    if (planned > job.size) return static_cast<std::uint32_t>(planned);
  }
  return job.size;
}

DeadlinePlan::Promise DeadlinePlan::promise(const SizedJob& job, Time left, Time deadline, std::uint32_t least_level) {
  const std::vector<std::uint32_t> sizes = planned_sizes(job);
  Promise promise;
  std::vector<Part> parts;
  for (promise.level = std::min(least_level, static_cast<std::uint32_t>(sizes.size() - 1));; ++promise.level) {
    parts = fill(job, std::span(sizes).first(promise.level + 1), left);
    promise.in_time = left.us == 0 || (!parts.empty() && parts.back().end <= deadline);
    if (promise.in_time || promise.level + 1 == sizes.size()) break;
  }
  for (const Part& part : parts) take(part);
  if (!parts.empty() && parts.front().begin == now_) promise.tasks = parts.front().tasks;
  return promise;
}

// The parts in which the job has GPUs, until its work is done; none where it never has enough of them.
std::vector<DeadlinePlan::Part> DeadlinePlan::fill(const SizedJob& job, std::span<const std::uint32_t> sizes,
                                                   Time left) const {
  std::vector<Part> parts;
  auto left_us = static_cast<double>(left.us);
  for (auto from = free_.begin(); from != free_.end(); ++from) {
    const auto above =
        std::find_if(sizes.begin(), sizes.end(), [&](std::uint32_t tasks) { return job.milli(tasks) > from->second; });
    if (above == sizes.begin()) continue;
    const std::uint32_t tasks = *(above - 1);
    const Time next = std::next(from) == free_.end() ? end_of_time : std::next(from)->first;
    const double needed_us = std::ceil(left_us / job.rate(tasks));
    const bool ends = needed_us <= static_cast<double>((next - from->first).us);
    const Time end = ends ? from->first + Time{static_cast<std::int64_t>(needed_us)} : next;
    if (end > from->first)
      parts.push_back({.begin = from->first, .end = end, .milli = job.milli(tasks), .tasks = tasks});
    if (ends) return parts;
    left_us -= static_cast<double>((next - from->first).us) * job.rate(tasks);
  }
  return {};
}

void DeadlinePlan::take(const Part& part) {
  const auto begin = free_.try_emplace(part.begin, std::prev(free_.upper_bound(part.begin))->second).first;
  const auto end = free_.try_emplace(part.end, std::prev(free_.upper_bound(part.end))->second).first;
  for (auto at = begin; at != end; ++at) at->second -= part.milli;
}

}  // namespace gpusched
