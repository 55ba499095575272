// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/openb_inflation.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "gpusched/engine/engine.hpp"

namespace gpusched {
namespace {

constexpr Time for_ever = whole_seconds(1'000'000'000);

MilliGpu demand_of(const JobTable& pods, const std::vector<JobId>& order) {
  return std::accumulate(order.begin(), order.end(), MilliGpu{0},
                         [&](MilliGpu sum, JobId pod) { return sum + pods.shape(pod).gpu_milli(); });
}

void lose_random_pods(const JobTable& pods, MilliGpu target, Rng& rng, std::vector<JobId>& order) {
  for (MilliGpu demand = demand_of(pods, order); demand > target;) {
    const auto at = order.begin() + static_cast<std::ptrdiff_t>(rng.below(order.size()));
    demand -= pods.shape(*at).gpu_milli();
    order.erase(at);
  }
}

void append_random_pods(const JobTable& pods, MilliGpu target, Rng& rng, std::vector<JobId>& order) {
  for (MilliGpu demand = demand_of(pods, order);;) {
    const JobId drawn{static_cast<std::uint32_t>(rng.below(pods.size()))};
    const MilliGpu asked = pods.shape(drawn).gpu_milli();
    if (demand + std::min(asked, whole_gpu) > target) return;
    order.push_back(drawn);
    demand += asked;
  }
}

}  // namespace

JobTable inflate_pods(const JobTable& pods, MilliGpu capacity, double percent, Rng rng) {
  std::vector<JobId> order;
  for (std::uint32_t i = 0; i < pods.size(); ++i) order.push_back(JobId{i});
  rng.shuffle(order.data(), order.size());
  const auto target = static_cast<MilliGpu>(static_cast<double>(capacity) * percent / 100);
  lose_random_pods(pods, target, rng, order);
  append_random_pods(pods, target, rng, order);
  JobTableBuilder builder(pods);
  builder.reserve(order.size());
  for (const JobId pod : order) {
    const Shape& shape = pods.shape(pod);
    builder.add({.submit = whole_seconds(builder.size()),
                 .work = for_ever,
                 .shape = shape,
                 .gpu_spec = pods.gpu_specs()[shape.gpu_spec]});
  }
  return *std::move(builder).build();
}

std::vector<double> allocation_at_marks(const JobTable& pods, const Cluster& cluster, Packing policy,
                                        std::span<const int> marks) {
  const auto capacity = static_cast<double>(cluster.total_gpus() * whole_gpu);
  std::vector<double> sums(marks.size(), 0);
  std::vector<double> counts(marks.size(), 0);
  MilliGpu arrived = 0;
  Engine engine(pods, cluster);
  Decision decision = engine.decision();
  while (engine.view().arrived() < pods.size() && engine.advance()) {
    const OracleView view = engine.view();
    for (const Event& event : view.events()) arrived += view.shape(event.job).gpu_milli();
    policy.decide(view, decision);
    engine.apply();
    const auto rounded = std::lround(100 * static_cast<double>(arrived) / capacity);
    const double allocated = 100 * (1 - static_cast<double>(engine.view().cluster().free_gpu_milli()) / capacity);
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (marks[i] != rounded) continue;
      sums[i] += allocated;
      counts[i] += 1;
    }
  }
  std::vector<double> means;
  for (std::size_t i = 0; i < marks.size(); ++i) means.push_back(sums[i] / counts[i]);  // 0 / 0 is NaN
  return means;
}

}  // namespace gpusched
