// SPDX-License-Identifier: Apache-2.0
/// Random small traces and clusters for rapidcheck, which shrinks them when a property fails.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {

inline std::ostream& operator<<(std::ostream& out, const Row& row) {
  const Shape& shape = row.shape;
  out << "\n  {.submit = " << row.submit << ", .work = " << row.work << ", .gpus = " << row.gpus << ", .user = \""
      << row.user << "\", .vc = \"" << row.vc << "\", .estimate = " << row.estimate << ", .priority = " << row.priority
      << ", .deadline = " << row.deadline << ", .start = " << row.start;
  if (shape != Shape{}) {
    out << ", .shape = {" << shape.tasks << ", " << shape.gpu_milli_per_task << ", " << shape.cpu_milli_per_task << ", "
        << shape.memory_mib_per_task << "}";
  }
  for (const std::int64_t work : row.attempts) out << ", attempt " << work;
  return out << '}';
}

/// Jobs that ask for whole GPUs and nothing else, in order of submission; instants and run times collide often.
inline rc::Gen<std::vector<Row>> gpu_rows(std::uint32_t most_gpus, bool with_attempts = true) {
  using rc::gen::inRange;
  const auto attempts =
      with_attempts ? rc::gen::weightedOneOf<std::vector<std::int64_t>>(
                          {{5, rc::gen::just(std::vector<std::int64_t>{})},
                           {1, rc::gen::resize(3, rc::gen::container<std::vector<std::int64_t>>(inRange(0, 8)))}})
                    : rc::gen::just(std::vector<std::int64_t>{});
  const auto row = rc::gen::build<Row>(
      rc::gen::set(&Row::submit, inRange<std::int64_t>(0, 30)), rc::gen::set(&Row::work, inRange<std::int64_t>(0, 16)),
      rc::gen::set(&Row::gpus, inRange<std::uint32_t>(1, most_gpus + 1)),
      rc::gen::set(&Row::user, rc::gen::element<std::string_view>("ann", "bob", "cid")),
      rc::gen::set(&Row::vc, rc::gen::element<std::string_view>("a", "b", "c")),
      rc::gen::set(&Row::estimate, inRange<std::int64_t>(1, 40)),
      rc::gen::set(&Row::priority, rc::gen::element<std::int32_t>(1, 2, 3)),
      rc::gen::set(&Row::deadline, inRange<std::int64_t>(0, 90)),
      rc::gen::set(&Row::start, inRange<std::int64_t>(0, 60)), rc::gen::set(&Row::attempts, attempts));
  return rc::gen::map(rc::gen::container<std::vector<Row>>(row), [](std::vector<Row> rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.submit < b.submit; });
    return rows;
  });
}

/// The same jobs with every kind of shape among them: gangs of larger tasks, GPU shares, CPU and memory, CPU only.
inline rc::Gen<std::vector<Row>> mixed_rows() {
  const auto shape = rc::gen::build<Shape>(
      rc::gen::set(&Shape::tasks, rc::gen::inRange<std::uint32_t>(1, 4)),
      rc::gen::set(&Shape::gpu_milli_per_task, rc::gen::element<MilliGpu>(0, 300, 500, 1000, 1000, 2000, 4000)),
      rc::gen::set(&Shape::cpu_milli_per_task, rc::gen::element<std::int64_t>(500, 1000, 4000)),
      rc::gen::set(&Shape::memory_mib_per_task, rc::gen::element<std::int64_t>(0, 64, 512)));
  return rc::gen::mapcat(gpu_rows(8), [shape](const std::vector<Row>& rows) {
    const auto shapes = rc::gen::container<std::vector<Shape>>(rows.size(), shape);
    return rc::gen::map(shapes, [rows](const std::vector<Shape>& chosen) {
      std::vector<Row> mixed = rows;
      for (std::size_t i = 0; i < mixed.size(); ++i) {
        if (i % 2 == 0) mixed[i].shape = chosen[i];
      }
      return mixed;
    });
  });
}

/// Pools, equal and unequal nodes, with bounded CPU and memory, and with virtual clusters that own nodes or have
/// quotas.
inline rc::Gen<Cluster> clusters() {
  return rc::gen::exec([] {
    Cluster cluster = *rc::gen::arbitrary<bool>() ? Cluster::pool(*rc::gen::inRange<std::uint32_t>(1, 17))
                                                  : Cluster::homogeneous(*rc::gen::inRange<std::uint32_t>(1, 5),
                                                                         *rc::gen::inRange<std::uint32_t>(1, 9));
    if (*rc::gen::arbitrary<bool>()) cluster.nodes.front().gpus = *rc::gen::inRange<std::uint32_t>(1, 9);
    if (*rc::gen::arbitrary<bool>()) {
      for (Node& node : cluster.nodes) {
        node.cpu_milli = *rc::gen::inRange<std::int64_t>(1, 20) * 1000;
        node.memory_mib = *rc::gen::inRange<std::int64_t>(1, 20) * 128;
      }
    }
    if (*rc::gen::arbitrary<bool>()) {
      cluster.vcs = {{.name = "a"}, {.name = "b", .quota = *rc::gen::inRange<MilliGpu>(1, 9) * whole_gpu}};
      if (*rc::gen::arbitrary<bool>()) cluster.nodes.back().vc = 0;
    }
    return cluster;
  });
}

/// The rows whose jobs fit the empty cluster; the others would wait for ever under any policy.
inline std::vector<Row> rows_that_fit(const std::vector<Row>& rows, const Cluster& cluster) {
  const JobTable jobs = table_of(rows);
  const Engine engine(jobs, cluster);
  std::vector<Row> fitting;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const std::uint32_t vc = engine.view().queue_of(JobId{i});
    if (ClusterState::fits_when_empty(cluster, jobs.gpu_specs(), jobs.shape(JobId{i}), vc)) fitting.push_back(rows[i]);
  }
  return fitting;
}

}  // namespace gpusched::test
