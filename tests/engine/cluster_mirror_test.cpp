// SPDX-License-Identifier: Apache-2.0
#include "gpusched/engine/cluster_mirror.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/data/mig.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched {
namespace {

constexpr std::uint32_t needs_memory = 3;  // the demand "@6GiB" of ClusterInUse

// Everything that a search of nodes or an account of the cluster can be asked.
std::string account(const ClusterState& state) {
  std::string text;
  const auto add = [&text](auto value) { text += std::to_string(value) + ' '; };
  for (std::uint32_t i = 0; i < state.node_count(); ++i) {
    const NodeId id{i};
    add(state.node_idle_gpus(id));
    add(state.node_free_gpu_milli(id));
    add(state.node_free_cpu_milli(id));
    add(state.node_free_memory_mib(id));
    add(state.node(id).idle_devices);
    add(state.is_up(id));
    add(state.tasks_that_fit(id, {.tasks = 99, .gpu_milli_per_task = 100, .gpu_spec = needs_memory}));
    for (std::uint32_t d = 0; state.node_has_devices(id) && d < state.node_gpus(id); ++d) {
      add(state.node_device_left(id, d));
      const std::uint32_t card = state.card(id, d);
      if (state.mig().model(card) == nullptr) continue;
      add(state.mig().held(card));
      for (const MigInstance& one : state.mig().instances(card)) add(mig_slice(one));
    }
  }
  state.for_each_idle_level([&add](std::uint32_t type, std::uint32_t gpus, std::uint32_t idle, std::uint32_t nodes) {
    for (const std::uint32_t value : {type, gpus, idle, nodes}) add(value);
  });
  for (const std::uint32_t vc : {0u, 1u}) add(state.vc_free(vc));
  add(state.up_gpus());
  add(state.withheld_gpu_milli());
  add(state.free_gpu_milli());
  add(state.idle_gpus());
  return text;
}

// Types in racks, nodes of one owner, and what else is drawn: bounded cores, device memory, cards that are cut.
Cluster drawn_cluster(Rng& rng) {
  const auto below = [&rng](std::uint64_t n) { return static_cast<std::uint32_t>(rng.below(n)); };
  Cluster cluster;
  cluster.gpu_types = {"A100-40GB", "T4", "P100"};
  cluster.vcs = {{.name = "a", .quota = 90 * whole_gpu}, {.name = "b"}};
  cluster.rack_sites = {0, 0, 1};
  const bool bounds_cores = below(2) == 0, cuts = below(2) == 0, counts_memory = below(2) == 0;
  if (counts_memory) cluster.devices = {{.memory_mib = 40 * 1024}, {.memory_mib = 16 * 1024}, {}};
  if (cuts) cluster.migs = {{.model = find_mig_model("A100-40GB"), .layout = MigLayout::dynamic}};
  for (std::uint32_t i = 0, count = 64 + below(100); i < count; ++i) {
    Node node{.gpus = 1 + below(4), .gpu_type = below(3), .rack = below(3), .counts_only = below(9) == 0};
    if (bounds_cores) node.cpu_milli = 1000 + 1000 * below(16);
    if (cuts && node.gpu_type == 0 && !node.counts_only) node.mig = 0;
    if (below(6) == 0) node.vc = 1;
    cluster.nodes.push_back(node);
  }
  return cluster;
}

struct HeldGrants {
  Shape shape;
  std::uint32_t vc = 0, grants = no_index;
};

// A cluster in use, and the demands that come to it.
class ClusterInUse {
 public:
  explicit ClusterInUse(std::uint64_t seed) : rng_(seed) {
    for (const std::string_view demand : {"", "T4", "A100-40GB|P100", "@6GiB"}) demands_.intern(demand);
    const Cluster cluster = drawn_cluster(rng_);
    state_ = ClusterState(cluster, demands_, Rng(seed));
    is_out_.resize(cluster.nodes.size());
  }

  [[nodiscard]] const ClusterState& state() const { return state_; }
  [[nodiscard]] const std::vector<HeldGrants>& held() const { return held_; }
  [[nodiscard]] std::uint32_t below(std::uint64_t n) { return static_cast<std::uint32_t>(rng_.below(n)); }

  [[nodiscard]] HeldGrants drawn_demand() {
    constexpr std::array<MilliGpu, 7> amounts{0, 100, 300, 500, 1000, 1000, 2000};
    HeldGrants demand{.shape = {.tasks = below(3) > 0 ? 1 : 1 + below(12),
                                .gpu_milli_per_task = amounts[below(amounts.size())],
                                .cpu_milli_per_task = 1000 * below(3),
                                .gpu_spec = below(4)},
                      .vc = below(3)};
    if (demand.vc == 2) demand.vc = no_index;
    return demand;
  }
  [[nodiscard]] Placement drawn_rule() {
    constexpr std::array rules{Placement::consolidate, Placement::rack, Placement::worst_fit, Placement::random};
    return rules[below(rules.size())];
  }

  // Something is placed or given back, or a node goes out of service or comes back.
  void step() {
    if (below(8) == 0) {
      const std::uint32_t node = below(is_out_.size());
      is_out_[node] ? state_.reinstate(NodeId{node}) : state_.withhold(NodeId{node});
      is_out_[node] = !is_out_[node];
    } else if (!held_.empty() && below(3) == 0) {
      std::swap(held_[below(held_.size())], held_.back());
      state_.release(held_.back().grants, held_.back().shape, held_.back().vc);
      state_.free_grants(held_.back().grants);
      held_.pop_back();
    } else {
      HeldGrants job = drawn_demand();
      job.grants = state_.place(job.shape, job.vc, drawn_rule());
      if (job.grants == no_index) return;
      held_.push_back(job);
    }
  }

  // Cards of the last that was placed are cut as it needs them, which the engine does after the decision.
  void cut_cards() {
    if (held_.empty()) return;
    for (std::uint32_t at = held_.back().grants; at != no_index; at = state_.grant(at).next) {
      state_.configure(state_.grant(at));
    }
  }

 private:
  Rng rng_;
  NameTable demands_;
  ClusterState state_;
  std::vector<bool> is_out_;
  std::vector<HeldGrants> held_;
};

// Where a gang goes: (node, tasks, devices, slice) of each grant.
std::string places(const ClusterState& state, std::uint32_t grants) {
  std::string text;
  for (; grants != no_index; grants = state.grant(grants).next) {
    const Grant& grant = state.grant(grants);
    text += std::to_string(index(grant.node)) + 'x' + std::to_string(grant.tasks) + ':' +
            std::to_string(grant.devices) + '/' + std::to_string(grant.slice) + ' ';
  }
  return text;
}

// A future is played on the mirror, and on a fresh copy alike: some running jobs end, others start and are gone again.
void play_future(ClusterInUse& cluster, ClusterState& mirror, ClusterState& copy) {
  const std::size_t ends = cluster.below(1 + cluster.held().size());
  for (std::size_t i = 0; i < ends; ++i) {
    const HeldGrants& job = cluster.held()[i];
    mirror.release_same(cluster.state(), job.grants, job.shape, job.vc);
    copy.release(job.grants, job.shape, job.vc);
  }
  ASSERT_EQ(account(mirror), account(copy));
  for (std::uint32_t i = 0; i < 3; ++i) {
    const HeldGrants job = cluster.drawn_demand();
    const Placement rule = cluster.drawn_rule();
    const std::uint32_t here = mirror.place(job.shape, job.vc, rule), there = copy.place(job.shape, job.vc, rule);
    ASSERT_EQ(places(mirror, here), places(copy, there));
    if (i > 0) mirror.release(here, job.shape, job.vc);
    if (i > 0) copy.release(there, job.shape, job.vc);
    mirror.free_grants(here);
  }
  const NodeId node{cluster.below(mirror.node_count())};
  for (ClusterState* state : {&mirror, &copy}) state->is_up(node) ? state->withhold(node) : state->reinstate(node);
  ASSERT_EQ(account(mirror), account(copy));
}

TEST(ClusterMirror, EqualsACopyWhateverWasDoneToEither) {
  constexpr std::uint64_t usual_clusters = 40, instants = 60;
  for (std::uint64_t seed = 1; seed <= test::random_runs(usual_clusters); ++seed) {
    SCOPED_TRACE(seed);
    ClusterInUse cluster(seed);
    ClusterMirror mirror;
    for (std::uint64_t instant = 0; instant < instants; ++instant) {
      cluster.cut_cards();
      for (std::uint32_t left = cluster.below(6); left > 0; --left) cluster.step();
      mirror.follow(cluster.state());
      ClusterState copy = cluster.state();
      ASSERT_EQ(account(mirror.state()), account(copy));
      if (cluster.below(3) > 0) play_future(cluster, mirror.state(), copy);
      if (HasFatalFailure()) return;
    }
  }
}

// A policy that takes over has rehearsed on another cluster; one that is copied with its run goes on with a copy.
TEST(ClusterMirror, KnowsAnotherClusterFromTheOneItFollows) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    ClusterInUse first(seed);
    ClusterMirror mirror;
    mirror.follow(first.state());
    for (int i = 0; i < 3; ++i) first.step();
    mirror.follow(first.state());
    ClusterInUse one = first, other = first;
    one.step();
    for (int i = 0; i < 2; ++i) static_cast<void>(other.below(3));  // what it draws is another future
    for (int i = 0; i < 3; ++i) other.step();
    mirror.follow(one.state());
    EXPECT_EQ(account(mirror.state()), account(one.state()));
    mirror.follow(other.state());
    EXPECT_EQ(account(mirror.state()), account(other.state()));
  }
}

TEST(ClusterMirror, LooksAtNoNodeThatDidNotChange) {
  const Cluster cluster = Cluster::homogeneous(100'000, 8);
  NameTable demands;
  demands.intern("");
  ClusterState state(cluster, demands, Rng(1));
  ClusterMirror mirror;
  mirror.follow(state);
  const detail::ChangedNodes::Mark before = state.changes().mark();
  const Shape shape{.tasks = 3, .gpu_milli_per_task = 8 * whole_gpu};
  EXPECT_NE(state.place(shape, no_index, Placement::consolidate), no_index);
  std::uint32_t changes = 0;
  ASSERT_TRUE(state.changes().remembers(before));
  state.changes().for_each_since(before, [&changes](std::uint32_t) { ++changes; });
  EXPECT_EQ(changes, 3u);
}

}  // namespace
}  // namespace gpusched
