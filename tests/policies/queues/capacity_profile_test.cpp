// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/capacity_profile.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpusched/engine/cluster_state.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

using Parts = std::vector<CapacityProfile::Part>;
constexpr std::int64_t last = 30;  // nothing is taken from then on

struct Booking {
  std::int64_t start = 0;
  std::int64_t end = 0;
  Shape shape;
  std::uint32_t queue = 0;
  Parts parts;
};

/// A list of bookings; what is free at a time is worked out from all of them.
class PlainProfile {
 public:
  PlainProfile(const Cluster& cluster, bool by_node) : cells_(by_node ? cluster.nodes.size() : 1) {
    for (std::size_t node = 0; node < cluster.nodes.size(); ++node) {
      const Node& from = cluster.nodes[node];
      Cell& cell = cells_[by_node ? node : 0];
      cell[0] += from.gpus * whole_gpu;
      cell[1] = by_node ? from.cpu_milli : unlimited;
      cell[2] = by_node ? from.memory_mib : unlimited;
    }
    for (const VirtualCluster& vc : cluster.vcs) quotas_.push_back(vc.quota);
  }

  std::vector<Booking> bookings;

  [[nodiscard]] bool overdrawn(std::int64_t start, std::int64_t end) const {
    return some(start, end, [](const Row& row) {
      const auto negative = [](std::int64_t free) { return free < 0; };
      return std::ranges::any_of(row.quotas, negative) ||
             std::ranges::any_of(row.cells, [&](const Cell& cell) { return std::ranges::any_of(cell, negative); });
    });
  }

  /// Is each part free at all these times?
  [[nodiscard]] bool is_free(const Booking& wanted) const {
    return !some(wanted.start, wanted.end, [&](const Row& row) {
      if (!quota_holds(row, wanted.shape, wanted.queue)) return true;
      if (wanted.parts.empty()) return row.cells[0][0] < wanted.shape.gpu_milli();
      return std::ranges::any_of(wanted.parts,
                                 [&](auto& part) { return room(row.cells[part.cell], wanted.shape) < part.tasks; });
    });
  }

  /// The earliest time from `from` on and before `before` from which so many tasks find room for `length`, or until
  /// `before`, without moving.
  [[nodiscard]] std::optional<std::int64_t> earliest(std::int64_t from, std::int64_t before, std::int64_t length,
                                                     const Shape& shape, std::uint32_t queue) const {
    for (std::int64_t start = from; start < std::min(before, std::max(from, last) + 1); ++start) {
      std::vector<std::int64_t> tasks(cells_.size(), shape.tasks);
      const bool refused = some(start, std::min(start + length, before), [&](const Row& row) {
        for (std::size_t i = 0; i < tasks.size(); ++i) tasks[i] = std::min(tasks[i], room(row.cells[i], shape));
        return !quota_holds(row, shape, queue);
      });
      std::int64_t sum = 0;
      for (const std::int64_t in_cell : tasks) sum += in_cell;
      if (!refused && sum >= shape.tasks) return start;
    }
    return {};
  }

 private:
  using Cell = std::array<std::int64_t, 3>;  // GPU thousandths, CPU thousandths, MiB
  struct Row {
    std::vector<Cell> cells;
    std::vector<std::int64_t> quotas;
  };

  static std::int64_t room(const Cell& cell, const Shape& shape) {
    const Cell wanted{shape.gpu_milli_per_task, shape.cpu_milli_per_task, shape.memory_mib_per_task};
    std::int64_t tasks = shape.tasks;
    for (std::size_t lane = 0; lane < cell.size(); ++lane) {
      if (wanted[lane] > 0) tasks = std::min(tasks, cell[lane] / wanted[lane]);
    }
    return std::max<std::int64_t>(tasks, 0);
  }

  static bool quota_holds(const Row& row, const Shape& shape, std::uint32_t queue) {
    return queue >= row.quotas.size() || row.quotas[queue] >= shape.gpu_milli();
  }

  [[nodiscard]] Row at(std::int64_t time) const {
    Row row{cells_, quotas_};
    for (const Booking& booking : bookings) {
      if (time < booking.start || time >= booking.end) continue;
      if (booking.queue < row.quotas.size()) row.quotas[booking.queue] -= booking.shape.gpu_milli();
      if (booking.parts.empty()) row.cells[0][0] -= booking.shape.gpu_milli();
      for (const CapacityProfile::Part& part : booking.parts) {
        row.cells[part.cell][0] -= part.tasks * booking.shape.gpu_milli_per_task;
        row.cells[part.cell][1] -= part.tasks * booking.shape.cpu_milli_per_task;
        row.cells[part.cell][2] -= part.tasks * booking.shape.memory_mib_per_task;
      }
    }
    return row;
  }

  // Is `test` true at one of these times? All from `last` on are alike.
  template <class Test>
  [[nodiscard]] bool some(std::int64_t start, std::int64_t end, Test test) const {
    for (std::int64_t time = start; time < std::min(end, std::max(start, last) + 1); ++time) {
      if (test(at(time))) return true;
    }
    return false;
  }

  std::vector<Cell> cells_;
  std::vector<std::int64_t> quotas_;
};

struct Setting {
  Cluster cluster;
  std::vector<Shape> shapes;
};

Setting any_setting() {
  Setting made{Cluster::homogeneous(*rc::gen::inRange(1u, 4u), *rc::gen::inRange(1u, 5u)), {}};
  const bool cores = *rc::gen::arbitrary<bool>();
  if (*rc::gen::arbitrary<bool>()) made.cluster.vcs = {{.name = "a", .quota = *rc::gen::inRange(1, 6) * whole_gpu}};
  if (cores) {
    for (Node& node : made.cluster.nodes) node.cpu_milli = *rc::gen::inRange<std::int64_t>(1, 9) * 1000;
  }
  for ([[maybe_unused]] const int i : {0, 1, 2}) {
    made.shapes.push_back({.tasks = *rc::gen::inRange(1u, 5u),
                           .gpu_milli_per_task = *rc::gen::element(whole_gpu, cores ? 2 * whole_gpu : whole_gpu),
                           .cpu_milli_per_task = cores ? *rc::gen::element(0, 1000, 2000) : 0});
  }
  return made;
}

// Tasks dealt out to any cells; none where gangs have no place of their own.
Parts any_parts(const Shape& shape, const CapacityProfile& profile, const Cluster& cluster) {
  Parts parts;
  for (std::uint32_t task = 0; profile.by_node() && task < shape.tasks; ++task) {
    const auto cell = *rc::gen::inRange(0u, static_cast<std::uint32_t>(cluster.nodes.size()));
    const auto same = std::ranges::find(parts, cell, &CapacityProfile::Part::cell);
    if (same == parts.end()) {
      parts.push_back({cell, 1});
    } else {
      ++same->tasks;
    }
  }
  return parts;
}

// Whatever is taken, given back and forgotten, it answers as a list of bookings that is gone through time by time.
TEST(CapacityProfile, AnswersAsAListOfBookingsDoes) {
  test::check_many(1500, [] {
    const Setting setting = any_setting();
    std::vector<test::Row> rows;
    for (const Shape& shape : setting.shapes) rows.push_back({.shape = shape});
    const JobTable jobs = test::table_of(rows);
    const ClusterState state(setting.cluster, jobs.gpu_specs(), Rng{});
    CapacityProfile profile(setting.cluster, jobs);
    PlainProfile plain(setting.cluster, profile.by_node());
    const auto queues = static_cast<std::uint32_t>(setting.cluster.vcs.size() + 1);
    std::int64_t now = 0;
    const int steps = *rc::gen::inRange(1, 20);
    for (int step = 0; step < steps; ++step) {
      now = std::min(now + *rc::gen::weightedElement<std::int64_t>({{5, 0}, {1, 1}, {1, 4}}), last / 2);
      profile.drop_before(Time{now});
      const std::int64_t start = now + *rc::gen::inRange(0, 12), end = start + *rc::gen::inRange(1, 12);
      Booking booking{
          start, std::min(end, last), *rc::gen::elementOf(setting.shapes), *rc::gen::inRange(0u, queues), {}};
      booking.parts = any_parts(booking.shape, profile, setting.cluster);
      const CapacityProfile::Gang gang{booking.shape, booking.queue, booking.parts};
      const std::int64_t length = *rc::gen::inRange(1, 12);
      RC_ASSERT(profile.is_free(Time{start}, Time{booking.end}, gang) == plain.is_free(booking));
      RC_ASSERT(profile.is_overdrawn(Time{start}, Time{end}) == plain.overdrawn(start, end));
      const auto hole = profile.find(Time{now}, Time{length}, booking.shape, booking.queue, state);
      const auto expected = plain.earliest(now, last + 100, length, booking.shape, booking.queue);
      RC_ASSERT(hole.has_value() == expected.has_value());
      if (hole) {
        RC_ASSERT(hole->start.us == *expected);
        RC_ASSERT(plain.is_free({*expected, *expected + length, booking.shape, booking.queue, hole->parts}));
      }
      if (!profile.by_node()) {
        const auto found = profile.earliest(Time{start}, Time{end}, Time{length}, booking.shape, booking.queue);
        const auto wanted = plain.earliest(start, end, length, booking.shape, booking.queue);
        RC_ASSERT(found.has_value() == wanted.has_value());
        RC_ASSERT(!found || found->us == *wanted);
      }
      if (plain.bookings.empty() || *rc::gen::inRange(0, 3) > 0) {
        profile.change(Time{start}, Time{booking.end}, gang, -1);
        plain.bookings.push_back(booking);
      } else {
        const auto gone = plain.bookings.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, std::ssize(plain.bookings));
        profile.change(Time{gone->start}, Time{gone->end}, {gone->shape, gone->queue, gone->parts}, +1);
        plain.bookings.erase(gone);
      }
    }
  });
}

}  // namespace
}  // namespace gpusched
