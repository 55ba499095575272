// SPDX-License-Identifier: Apache-2.0
#include "tests/growth/growth_world.hpp"

#include <string>
#include <utility>

#include "gpusched/core/rng.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint32_t gpus_a_node = 8;
constexpr std::uint32_t gangs = 4;  // of 1, 2, 4 and 8 GPUs
constexpr double mean_gpus = 3.75, mean_s = 600, load = 1.2;
constexpr std::int64_t node_cpu_milli = 128'000, node_memory_mib = std::int64_t{1} << 20;

// Amounts in no order of one another; eight tasks of any of them fit a node.
Shape shape_of(std::uint32_t kind, std::uint32_t kinds) {
  Shape shape{.tasks = std::uint32_t{1} << kind % gangs, .gpu_milli_per_task = whole_gpu};
  if (kinds <= gangs) return shape;
  const std::int64_t amounts = kinds / gangs, nth = kind / gangs;
  shape.cpu_milli_per_task = node_cpu_milli / gpus_a_node * (1 + nth) / amounts;
  shape.memory_mib_per_task = node_memory_mib / gpus_a_node * (1 + nth * 7919 % amounts) / amounts;
  return shape;
}

}  // namespace

JobTable jobs_of(const WorldSize& size, bool deadlines) {
  Rng rng = Rng(37).split("growth");
  const double gap_s = mean_gpus * mean_s / (load * size.nodes * gpus_a_node);
  JobTableBuilder builder;
  builder.reserve(size.jobs);
  double submit_s = 0;
  for (std::uint32_t i = 0; i < size.jobs; ++i) {
    submit_s += rng.exponential(gap_s);
    const Time submit = whole_seconds(static_cast<std::int64_t>(submit_s));
    const Time work = whole_seconds(1 + static_cast<std::int64_t>(rng.exponential(mean_s)));
    Time estimate = work;
    for (std::uint64_t more = rng.below(4); more > 0; --more) estimate += work;
    const auto user = static_cast<std::uint32_t>(rng.below(size.users));
    const auto kind = static_cast<std::uint32_t>(rng.below(size.shapes));
    const std::uint32_t vc = size.vcs == 0 ? 0 : static_cast<std::uint32_t>(rng.below(size.vcs));
    const std::string name = "user" + std::to_string(user), group = "account" + std::to_string(user);
    const std::string queue = "vc" + std::to_string(vc);
    builder.add({.submit = submit,
                 .work = work,
                 .estimate = estimate,
                 .start = submit,
                 .shape = shape_of(kind, size.shapes),
                 .user = name,
                 .group = group,
                 .vc = queue,
                 .name = name,
                 .priority = static_cast<std::int32_t>(1 + rng.below(3)),
                 .deadline = deadlines ? submit + estimate + estimate : Time::max()});
  }
  return *std::move(builder).build();
}

Cluster cluster_of(const WorldSize& size) {
  Cluster cluster = Cluster::homogeneous(size.nodes, gpus_a_node);
  if (size.shapes > gangs) {
    for (Node& node : cluster.nodes) {
      node.cpu_milli = node_cpu_milli;
      node.memory_mib = node_memory_mib;
    }
  }
  for (std::uint32_t vc = 0; vc < size.vcs; ++vc) cluster.vcs.push_back({.name = "vc" + std::to_string(vc)});
  return cluster;
}

}  // namespace gpusched::test
