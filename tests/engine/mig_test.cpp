// SPDX-License-Identifier: Apache-2.0
// MIG: the legal layouts of the tables, instances as capacity, and what it takes to change a layout.
#include "gpusched/data/mig.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/data/node_failures.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/preemptive/srtf.hpp"
#include "tests/engine/stays.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

const MigModel& model_named(std::string_view name) { return mig_models[find_mig_model(name)]; }
const MigModel& a100() { return model_named("A100-40GB"); }

// ---- the tables ----

using Layout = std::vector<std::pair<std::uint32_t, std::uint32_t>>;  // (profile, start)

// Every set of instances of which no two share a memory slice, by trying all subsets in order of (profile, start).
void extend(const MigModel& model, const std::set<std::string_view>& without, Layout& layout, std::uint32_t held,
            std::vector<Layout>& all) {
  all.push_back(layout);
  for (std::uint32_t p = 0; p < model.profiles().size(); ++p) {
    const MigProfile& profile = model.profiles()[p];
    for (std::uint32_t start = 0; start < 8 && !without.contains(profile.name); ++start) {
      const std::pair<std::uint32_t, std::uint32_t> one{p, start};
      const bool is_later = layout.empty() || layout.back() < one;
      if (!is_later || (profile.starts >> start & 1) == 0 || (profile.slices(start) & held) != 0) continue;
      layout.push_back(one);
      extend(model, without, layout, held | profile.slices(start), all);
      layout.pop_back();
    }
  }
}
std::vector<Layout> all_layouts(const MigModel& model, const std::set<std::string_view>& without = {}) {
  std::vector<Layout> all;
  Layout layout;
  extend(model, without, layout, 0, all);
  return all;
}
std::multiset<std::uint32_t> profiles_of(const Layout& layout) {
  std::multiset<std::uint32_t> profiles;
  for (const auto& [profile, start] : layout) profiles.insert(profile);
  return profiles;
}

// NVIDIA's table for a card of seven slices, without 1g on two memory slices: 298 layouts (the empty one is one), of
// which 19 leave no room for another instance; as multisets of profiles these are 14.
TEST(MigTable, HasAsManyLayoutsAsTheUserGuideAllows) {
  const std::vector<Layout> layouts = all_layouts(a100(), {"1g.10gb"});
  EXPECT_EQ(layouts.size(), 298u);
  std::set<Layout> known(layouts.begin(), layouts.end());
  std::set<std::multiset<std::uint32_t>> multisets;
  std::uint32_t maximal = 0;
  for (const Layout& layout : layouts) {
    const bool can_grow = std::any_of(layouts.begin(), layouts.end(), [&](const Layout& other) {
      return other.size() == layout.size() + 1 &&
             std::includes(other.begin(), other.end(), layout.begin(), layout.end());
    });
    if (can_grow) continue;
    ++maximal;
    multisets.insert(profiles_of(layout));
  }
  EXPECT_EQ(maximal, 19u);
  EXPECT_EQ(multisets.size(), 14u);
}

std::vector<std::uint32_t> profiles(const MigModel& model, std::initializer_list<std::string_view> names) {
  std::vector<std::uint32_t> list;
  for (const std::string_view name : names) list.push_back(model.find(name));
  return list;
}

TEST(MigTable, RefusesThreeThreeOneAndAcceptsFourTwoOne) {
  EXPECT_TRUE(place_mig_instances(a100(), profiles(a100(), {"3g.20gb", "3g.20gb", "1g.5gb"})).empty());
  const auto placed = place_mig_instances(a100(), profiles(a100(), {"1g.5gb", "4g.20gb", "2g.10gb"}));
  EXPECT_EQ(placed, (std::vector<MigInstance>{{4, 0}, {2, 4}, {0, 6}}));
}

// A list of profiles can stand together exactly when some layout of the enumeration has these profiles.
TEST(MigTable, PlacesWhateverCanStandTogether) {
  for (const MigModel& model : mig_models) {
    std::set<std::multiset<std::uint32_t>> legal;
    for (const Layout& layout : all_layouts(model)) legal.insert(profiles_of(layout));
    std::vector<std::uint32_t> list;
    std::uint32_t checked = 0;
    const auto check_from = [&](const auto& self, std::uint32_t least) -> void {
      if (!list.empty()) {
        const auto placed = place_mig_instances(model, list);
        ASSERT_EQ(!placed.empty(), legal.contains({list.begin(), list.end()})) << model.name;
        ++checked;
        MigSlices held = 0;
        for (const MigInstance& one : placed) {
          const MigProfile& profile = model.profiles()[one.profile];
          ASSERT_TRUE((profile.starts >> one.start & 1) != 0 && (held & profile.slices(one.start)) == 0);
          held = static_cast<MigSlices>(held | profile.slices(one.start));
        }
        ASSERT_EQ(held & ~model.whole(), 0);
      }
      if (list.size() == model.compute_slices + 1u) return;
      for (std::uint32_t p = least; p < model.profile_count; ++p) {
        list.push_back(p);
        self(self, p);
        list.pop_back();
      }
    };
    check_from(check_from, 0);
    EXPECT_GT(checked, 50u);
  }
}

TEST(MigTable, NoLayoutHasMoreThanTheCard) {
  for (const MigModel& model : mig_models) {
    for (const Layout& layout : all_layouts(model)) {
      std::uint32_t compute = 0, memory = 0;
      for (const auto& [p, start] : layout) {
        compute += model.profiles()[p].compute;
        memory += model.profiles()[p].memory;
      }
      ASSERT_LE(compute, model.compute_slices);
      ASSERT_LE(memory, model.memory_slices);
    }
  }
}

TEST(MigName, SplitsACardFromItsProfile) {
  EXPECT_EQ(mig_name("a100_1g.5gb").card, "a100");
  EXPECT_EQ(mig_name("a100_1g.5gb").profile, "1g.5gb");
  EXPECT_EQ(mig_name("3g.20gb").card, "");
  EXPECT_EQ(mig_name("1g.10gb+me").profile, "1g.10gb");
  EXPECT_EQ(mig_name("nvidia_a100-sxm4-80gb_7g.80gb").card, "nvidia_a100-sxm4-80gb");
  for (const char* none : {"", "a100", "A100-40GB", "0g.5gb", "1g.gb", "1g.5gbx", "1g.5", "x1g.5gb"}) {
    EXPECT_EQ(mig_name(none).profile, "") << none;
  }
}

// ---- capacity ----

// `nodes` nodes of `gpus` A100 of 40 GiB, cut like this: a layout, or none for dynamic ones.
Cluster cut_cluster(std::uint32_t nodes, std::uint32_t gpus, std::initializer_list<std::string_view> layout,
                    MigLayout dynamic = MigLayout::dynamic) {
  Cluster cluster = Cluster::homogeneous(nodes, gpus);
  cluster.gpu_types = {"A100-40GB"};
  MigNode mig{.model = find_mig_model("A100-40GB"), .layout = dynamic};
  if (layout.size() > 0) {
    mig.layout = MigLayout::fixed;
    mig.cards.assign(gpus, place_mig_instances(a100(), profiles(a100(), layout)));
  }
  cluster.migs = {mig};
  for (Node& node : cluster.nodes) node.mig = 0;
  return cluster;
}

constexpr std::uint32_t anyone = no_index;

struct Demands {
  NameTable names;
  explicit Demands(std::initializer_list<std::string_view> more = {}) {
    names.intern("");
    for (const std::string_view name : more) names.intern(name);
  }
  Shape shape(MilliGpu milli, std::string_view demand = "", std::uint32_t tasks = 1) const {
    return {.tasks = tasks, .gpu_milli_per_task = milli, .gpu_spec = names.find(demand)};
  }
};

// The profile of the instance that a task of the shape gets, "" when it gets none.
std::string got(ClusterState& state, const Shape& shape) {
  const std::uint32_t grants = state.place(shape, anyone, Placement::consolidate);
  if (grants == no_index) return "";
  const Grant& grant = state.grant(grants);
  return grant.slice == 0 ? "whole" : std::string(a100().profiles()[mig_instance(grant.slice).profile].name);
}

TEST(MigCapacity, AFixedCardGivesTheLeastInstanceThatHolds) {
  const Demands demands{"@8GiB", "A100-40GB_3g.20gb", "1g.10gb", "@21GiB"};
  ClusterState state(cut_cluster(1, 1, {"3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"}), demands.names, Rng(1));
  EXPECT_EQ(state.idle_gpus(), 0);  // nobody can have the whole card
  EXPECT_EQ(got(state, demands.shape(1000)), "");
  EXPECT_EQ(got(state, demands.shape(142, "@8GiB")), "2g.10gb");  // memory
  EXPECT_EQ(got(state, demands.shape(142, "1g.10gb")), "");       // the layout has none
  EXPECT_EQ(got(state, demands.shape(142, "@21GiB")), "");
  EXPECT_EQ(got(state, demands.shape(143)), "3g.20gb");  // more than a seventh, and 2g is held
  EXPECT_EQ(got(state, demands.shape(428, "A100-40GB_3g.20gb")), "");
  EXPECT_EQ(got(state, demands.shape(1)), "1g.5gb");
  EXPECT_EQ(got(state, demands.shape(142)), "1g.5gb");
  EXPECT_EQ(got(state, demands.shape(1)), "");  // most of the card is free as a number, and no instance is
}

TEST(MigCapacity, AnInstanceOfTheNamedProfileHasTheMemoryThatIsAsked) {
  const Demands demands{"2g.10gb@16GiB", "3g.20gb@16GiB"};
  ClusterState state(cut_cluster(1, 1, {"3g.20gb", "2g.10gb", "1g.5gb"}), demands.names, Rng(1));
  EXPECT_EQ(got(state, demands.shape(285, "2g.10gb@16GiB")), "");
  EXPECT_EQ(got(state, demands.shape(285, "3g.20gb@16GiB")), "3g.20gb");
}

TEST(MigCapacity, ADynamicCardIsCutAsJobsCome) {
  const Demands demands{"@8GiB", "4g.20gb"};
  ClusterState state(cut_cluster(1, 1, {}), demands.names, Rng(1));
  EXPECT_EQ(state.idle_gpus(), 1);
  EXPECT_EQ(got(state, demands.shape(142, "@8GiB")), "1g.10gb");
  EXPECT_EQ(state.idle_gpus(), 0);
  EXPECT_EQ(got(state, demands.shape(571, "4g.20gb")), "4g.20gb");
  EXPECT_EQ(got(state, demands.shape(142)), "1g.5gb");
  EXPECT_EQ(got(state, demands.shape(285)), "");
  EXPECT_EQ(got(state, demands.shape(1000)), "");
}

TEST(MigCapacity, TheBestStartLeavesTheMostPlaces) {
  const Demands demands{};
  // A first 1g at start 6 leaves 4g + 2g possible; at start 0 it would not.
  ClusterState best(cut_cluster(1, 1, {}), demands.names, Rng(1));
  EXPECT_EQ(got(best, demands.shape(142)), "1g.5gb");
  EXPECT_EQ(got(best, demands.shape(571)), "4g.20gb");
  EXPECT_EQ(got(best, demands.shape(285)), "2g.10gb");
  ClusterState earliest(cut_cluster(1, 1, {}, MigLayout::first_fit), demands.names, Rng(1));
  EXPECT_EQ(got(earliest, demands.shape(142)), "1g.5gb");
  EXPECT_EQ(got(earliest, demands.shape(571)), "");
}

TEST(MigCapacity, GangsFillWholeCardsAndSlicesAtOnce) {
  const Demands demands{};
  ClusterState state(cut_cluster(2, 2, {}), demands.names, Rng(1));
  EXPECT_EQ(got(state, demands.shape(1000, "", 2)), "whole");
  EXPECT_EQ(got(state, demands.shape(142, "", 14)), "1g.5gb");
  EXPECT_EQ(got(state, demands.shape(1)), "");
}

TEST(MigCapacity, CardsThatAreNotCutAreShared) {
  Cluster cluster = cut_cluster(1, 2, {"7g.40gb"});
  cluster.migs[0].cards[1].clear();
  const Demands demands{"1g.5gb"};
  ClusterState state(cluster, demands.names, Rng(1));
  EXPECT_EQ(state.idle_gpus(), 2);  // one instance of the whole card is as good as the card
  EXPECT_EQ(got(state, demands.shape(600)), "7g.40gb");
  EXPECT_EQ(got(state, demands.shape(600)), "whole");            // a share of the other one
  EXPECT_EQ(got(state, demands.shape(142, "1g.5gb")), "whole");  // which gives the share
}

struct Held {
  std::uint32_t grants;
  Shape shape;
};

// Whatever comes and goes: no two tasks share a slice, no card is oversubscribed, instances stand where they may.
void check_cards(const ClusterState& state, const std::vector<Held>& held, std::int64_t memory_mib) {
  std::map<std::uint32_t, MigSlices> slices;
  std::map<std::uint32_t, std::int64_t> milli;
  for (const Held& job : held) {
    for (std::uint32_t at = job.grants; at != no_index; at = state.grant(at).next) {
      const Grant& grant = state.grant(at);
      for (std::uint64_t bits = grant.devices; bits != 0; bits &= bits - 1) {
        const std::uint32_t card = state.card(grant.node, static_cast<std::uint32_t>(std::countr_zero(bits)));
        MigSlices here = a100().whole();
        if (grant.slice != 0) {
          const MigInstance one = mig_instance(grant.slice);
          const MigProfile& profile = a100().profiles()[one.profile];
          RC_ASSERT((profile.starts >> one.start & 1) == 1);
          RC_ASSERT(a100().milli(profile) >= job.shape.gpu_milli_per_task);
          RC_ASSERT(40960 * profile.memory / 8 >= memory_mib);
          here = profile.slices(one.start);
        }
        RC_ASSERT((slices[card] & here) == 0);
        slices[card] = static_cast<MigSlices>(slices[card] | here);
        milli[card] += std::min(job.shape.gpu_milli_per_task, whole_gpu);
        RC_ASSERT(milli[card] <= whole_gpu);
      }
    }
  }
  for (std::uint32_t card = 0; card < state.card_count(); ++card) {
    RC_ASSERT(state.mig().held(card) == slices[card]);
    MigSlices cut = 0;
    for (const MigInstance& one : state.mig().instances(card)) {
      const MigProfile& profile = a100().profiles()[one.profile];
      RC_ASSERT((profile.starts >> one.start & 1) == 1 && (cut & profile.slices(one.start)) == 0);
      cut = static_cast<MigSlices>(cut | profile.slices(one.start));
    }
  }
}

RC_GTEST_PROP(MigCapacityProperty, NothingIsOversubscribed, ()) {
  const auto layout = *rc::gen::element(0, 1, 2, 3);
  const Cluster cluster = layout == 0   ? cut_cluster(2, 2, {})
                          : layout == 1 ? cut_cluster(2, 2, {}, MigLayout::first_fit)
                          : layout == 2 ? cut_cluster(2, 2, {"3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"})
                                        : cut_cluster(2, 2, {"7g.40gb"});
  const bool wants_memory = *rc::gen::arbitrary<bool>();
  const Demands demands{"@9GiB"};
  ClusterState state(cluster, demands.names, Rng(1));
  const ClusterState empty = state;
  std::vector<Held> held;
  const int steps = *rc::gen::inRange(1, 60);
  for (int step = 0; step < steps; ++step) {
    if (!held.empty() && *rc::gen::inRange(0, 3) == 0) {
      const std::size_t which = *rc::gen::inRange<std::size_t>(0, held.size());
      state.release(held[which].grants, held[which].shape, anyone);
      if (*rc::gen::arbitrary<bool>()) {
        RC_ASSERT(state.retake(held[which].grants, held[which].shape, anyone));
      } else {
        state.free_grants(held[which].grants);
        held.erase(held.begin() + static_cast<std::ptrdiff_t>(which));
      }
    } else {
      const Shape shape = demands.shape(*rc::gen::element<MilliGpu>(1, 142, 143, 285, 428, 571, 572, 1000),
                                        wants_memory ? "@9GiB" : "", *rc::gen::inRange(1u, 5u));
      // What fits does so on a copy too, and trying changes no layout.
      const auto before = state.mig().instances(0);
      const std::uint32_t grants = state.place(
          shape, anyone, *rc::gen::element(Placement::consolidate, Placement::first_fit, Placement::worst_fit));
      RC_ASSERT(state.mig().instances(0) == before);
      if (grants == no_index) continue;
      for (std::uint32_t at = grants; at != no_index; at = state.grant(at).next) state.configure(state.grant(at));
      // Now every instance that somebody holds is there.
      for (std::uint32_t at = grants; at != no_index; at = state.grant(at).next) {
        RC_ASSERT(state.configure(state.grant(at)).milli == 0);
      }
      held.push_back({grants, shape});
    }
    check_cards(state, held, wants_memory ? 9 * 1024 : 0);
  }
  for (const Held& job : held) {
    state.release(job.grants, job.shape, anyone);
    state.free_grants(job.grants);
  }
  RC_ASSERT(state.all_free());
  RC_ASSERT(state.idle_gpus() == empty.idle_gpus());
}

// ---- runs ----

Row task(std::int64_t submit, std::int64_t work, MilliGpu milli, std::string_view spec = "") {
  return {.submit = submit, .work = work, .gpu_spec = spec, .shape = {.gpu_milli_per_task = milli}};
}

TEST(MigRun, AJobWaitsForItsInstanceAndTheNextFindsItThere) {
  const Cluster cluster = cut_cluster(1, 1, {});
  const JobTable jobs =
      table_of({task(0, 50, 142), task(0, 20, 285), task(100, 5, 142), task(110, 30, 1000), task(111, 1, 142)});
  Fifo policy;
  Engine engine(jobs, cluster);
  EXPECT_TRUE(simulate(engine, policy));
  // 10 s to cut the card; at 100 the 1g is there and empty; the whole card is to leave MIG mode first, and the last
  // job to enter it again.
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 60}, {0, 30}, {100, 105}, {110, 150}, {150, 161}}));
  EXPECT_EQ(engine.reconfigurations(), 4u);
  EXPECT_EQ(engine.reconfiguration_gpu_time().us, 10'000 * (142 + 285 + 1000 + 142));
}

TEST(MigRun, FixedLayoutsCostNothingAndSlicesDoNotSlowEachOther) {
  const Cluster cluster = cut_cluster(1, 1, {"2g.10gb", "2g.10gb", "3g.20gb"});
  const JobTable jobs = table_of({task(0, 10, 285), task(0, 20, 285), task(0, 30, 142), task(1, 5, 142)});
  RuntimeModel model(jobs.families().size(), 1);
  model.set_extra(0, 0, 0, 1'000'000);  // on a card that is shared: twice as long
  Fifo policy;
  Engine engine(jobs, cluster, {}, {.runtime = &model});
  EXPECT_TRUE(simulate(engine, policy));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 10}, {0, 20}, {0, 30}, {10, 15}}));
  EXPECT_EQ(engine.reconfigurations(), 0u);
}

TEST(MigRun, AnInstanceHasARateOfItsOwnWhereItIsMeasured) {
  for (const bool interference : {false, true}) {
    const Cluster cluster = cut_cluster(1, 1, {"1g.5gb", "3g.20gb"});
    const JobTable jobs = table_of({task(0, 10, 142), task(0, 10, 428)});
    RuntimeModel model(jobs.families().size(), 1);
    model.set_slice(0, 0, a100().find("1g.5gb"), reference_rate / 4);
    if (interference) model.set_extra(0, 0, 0, 1'000'000);
    Fifo policy;
    Engine engine(jobs, cluster, {}, {.runtime = &model});
    EXPECT_TRUE(simulate(engine, policy));
    EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 40}, {0, 10}}));
  }
}

// SRTF takes a card from a share, which then pays for its instance again.
TEST(MigRun, APreemptedJobPaysForItsInstanceAgain) {
  const Cluster cluster = cut_cluster(1, 1, {});
  const JobTable jobs = table_of({task(0, 100, 500), task(20, 7, 1000)});
  ShortestRemaining policy(true);
  Engine engine(jobs, cluster);
  EXPECT_TRUE(simulate(engine, policy));
  // 10 s of work by 20; 10 + 7 s until 37; 10 s again and the 90 s that are left.
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 137}, {20, 37}}));
  EXPECT_EQ(engine.reconfigurations(), 3u);
}

// One that is preempted while its cards are made ready does not wait on for them.
TEST(MigRun, AWaitEndsWithTheRun) {
  const Cluster cluster = cut_cluster(1, 1, {});
  const JobTable jobs = table_of({task(0, 100, 500), task(4, 7, 1000)});
  ShortestRemaining policy(true);
  Engine engine(jobs, cluster);
  EXPECT_TRUE(simulate(engine, policy));
  // 4 of 10 s have passed at 4; 10 + 7 s until 21; 10 s again and all of the work.
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 131}, {4, 21}}));
  EXPECT_EQ(engine.overhead(JobId{0}), whole_seconds(14));
  EXPECT_EQ(engine.reconfigurations(), 3u);
}

TEST(TimeSlicing, EqualTurnsWhateverTheModelSays) {
  Cluster cluster = Cluster::homogeneous(1, 1);
  cluster.nodes[0].sharing = SharingMode::time_slicing;
  const JobTable jobs = table_of({task(0, 10, 333), task(0, 4, 333), task(3, 2, 333)});
  for (const bool interference : {false, true}) {
    RuntimeModel model(jobs.families().size(), 1);
    if (interference) model.set_extra(0, 0, 0, 7'000'000);
    Fifo policy;
    Engine engine(jobs, cluster, {}, {.runtime = interference ? &model : nullptr});
    EXPECT_TRUE(simulate(engine, policy));
    // 1.5 s each by 3; thirds until 9, when c is done and b has 0.5 s left: b ends at 10, a had 4.0 s by then.
    const std::vector<Span> spans = spans_of(engine);
    EXPECT_NEAR(spans[0].end, 16, 1e-4);
    EXPECT_NEAR(spans[1].end, 10, 1e-4);
    EXPECT_NEAR(spans[2].end, 9, 1e-4);
  }
}

// ---- any comings and goings, everything on: against a reference that looks everything up afresh ----

// A dynamic and a fixed node of two A100, two nodes of two T4 of 16 GiB, in turns and at once.
Cluster mixed_mig_cluster() {
  Cluster cluster = cut_cluster(1, 2, {});
  cluster.gpu_types = {"A100-40GB", "T4"};
  cluster.devices = {{.memory_mib = 40 * 1024}, {.memory_mib = 16 * 1024}};
  cluster.migs.push_back({.model = find_mig_model("A100-40GB"),
                          .cards = {place_mig_instances(a100(), profiles(a100(), {"3g.20gb", "2g.10gb", "1g.5gb"})),
                                    place_mig_instances(a100(), profiles(a100(), {"7g.40gb"}))}});
  cluster.nodes.push_back({.gpus = 2, .mig = 1});
  cluster.nodes.push_back({.gpus = 2, .gpu_type = 1, .sharing = SharingMode::time_slicing});
  cluster.nodes.push_back({.gpus = 2, .gpu_type = 1});
  return cluster;
}
constexpr std::uint32_t dynamic_cards = 2, a100_cards = 4, turning_cards = 6;  // cards below are dynamic, A100, not MPS

struct MixedCase {
  std::vector<Row> rows;
  JobTable jobs;
  RuntimeModel model;
};
MixedCase mixed_case(Rng& rng) {
  MixedCase it;
  std::int64_t submit = 0;
  constexpr std::string_view families[] = {"a", "b"};
  constexpr std::string_view specs[] = {"A100-40GB", "A100-40GB@9GiB", "T4", "T4@7GiB"};
  for (int i = 0; i < 16; ++i) {
    const MilliGpu milli[] = {100, 142, 285, 400, 1000};
    it.rows.push_back(
        {.submit = submit,
         .work = 1 + static_cast<std::int64_t>(rng.below(30)),
         .gpu_spec = specs[rng.below(4)],
         .family = families[rng.below(2)],
         .shape = {.tasks = 1 + static_cast<std::uint32_t>(rng.below(2)), .gpu_milli_per_task = milli[rng.below(5)]}});
    submit += static_cast<std::int64_t>(rng.below(6));
  }
  it.jobs = table_of(it.rows);
  it.model = RuntimeModel(it.jobs.families().size(), 2);
  for (std::uint32_t family = 0; family < it.jobs.families().size(); ++family) {
    for (std::uint32_t type = 0; type < 2; ++type) {
      it.model.set(family, type, reference_rate / 2 + static_cast<RatePpm>(rng.below(reference_rate)));
      for (std::uint32_t beside = 0; beside < it.jobs.families().size(); ++beside) {
        it.model.set_extra(family, beside, type, static_cast<std::uint32_t>(rng.below(2 * reference_rate)));
      }
    }
    it.model.set_slice(family, 0, a100().find("1g.5gb"), reference_rate / 8 + static_cast<RatePpm>(rng.below(999'999)));
  }
  return it;
}

// What a task on that card does in a second, in seconds of work, while those are there.
double rate_of_task(const MixedCase& it, const Stay& own, std::size_t seat, const std::vector<const Stay*>& present) {
  const std::uint32_t family = it.jobs.family(own.job), card = own.cards[seat];
  if (own.slices[seat] != 0) {
    const std::uint32_t profile = (own.slices[seat] - 1u) / 8;
    return 1e-6 * (a100().profiles()[profile].name == "1g.5gb" ? it.model.slice_rate(family, 0, profile)
                                                               : it.model.rate(family, 0));
  }
  const double alone = 1e-6 * it.model.rate(family, card < a100_cards ? 0 : 1);
  double times = 1;
  for (const Stay* other : present) {
    for (std::size_t i = 0; i < other->cards.size(); ++i) {
      if (other->cards[i] != card || (other == &own && i == seat)) continue;
      times += card < turning_cards ? 1 : 1e-6 * it.model.extra(family, it.jobs.family(other->job), 1);
    }
  }
  return alone / times;
}

// A card of changing layout: which instances there are, as (profile, start); none: it is not in MIG mode.
using CardLayout = std::set<std::pair<std::uint32_t, std::uint32_t>>;

// Makes the layout such as the grant needs it; true when that changed it.
bool make_ready(CardLayout& layout, std::uint8_t slice) {
  if (slice == 0) return !std::exchange(layout, {}).empty();
  const std::pair wanted{(slice - 1u) / 8, (slice - 1u) % 8};
  if (layout.contains(wanted)) return false;
  const auto end = [](const auto& one) { return one.second + a100().profiles()[one.first].memory; };
  std::erase_if(layout, [&](const auto& one) { return one.second < end(wanted) && wanted.second < end(one); });
  return layout.insert(wanted).second;
}

// The waits for changed layouts as work of each job, their number, and GPU thousandths times seconds.
struct Waits {
  std::vector<double> work;
  std::uint64_t count = 0;
  double withheld_milli_s = 0;
};
Waits waits_of(const MixedCase& it, const std::vector<Stay>& stays) {
  Waits waits{.work = std::vector<double>(it.jobs.size(), 0)};
  std::vector<CardLayout> cards(dynamic_cards);
  for (const Stay& stay : stays) {  // in order of their beginning
    bool any = false;
    double slowest = 1e9;
    for (std::size_t i = 0; i < stay.cards.size(); ++i) {
      slowest = std::min(slowest, rate_of_task(it, stay, i, {}));
      if (stay.cards[i] >= dynamic_cards || !make_ready(cards[stay.cards[i]], stay.slices[i])) continue;
      any = true;
      const MilliGpu slice_milli =
          stay.slices[i] == 0 ? whole_gpu : 1000 * a100().profiles()[(stay.slices[i] - 1u) / 8].compute / 7;
      waits.withheld_milli_s += 10.0 * static_cast<double>(slice_milli);
      ++waits.count;
    }
    if (any) waits.work[index(stay.job)] += std::min(10.0, to_seconds(stay.end - stay.begin)) * slowest;
  }
  return waits;
}

// No part of a GPU and no byte of its memory has two owners at any instant.
void check_memory(const MixedCase& it, const std::vector<const Stay*>& present) {
  std::map<std::uint32_t, std::int64_t> mib;
  std::map<std::uint32_t, MigSlices> held;
  for (const Stay* stay : present) {
    const std::string_view spec = it.rows[index(stay->job)].gpu_spec;
    const std::int64_t wanted = spec.ends_with("@9GiB") ? 9 * 1024 : spec.ends_with("@7GiB") ? 7 * 1024 : 0;
    for (std::size_t i = 0; i < stay->cards.size(); ++i) {
      const std::uint8_t slice = stay->slices[i];
      mib[stay->cards[i]] += wanted;
      if (slice == 0) continue;
      const MigProfile& profile = a100().profiles()[(slice - 1u) / 8];
      const MigSlices slices = profile.slices((slice - 1u) % 8);
      ASSERT_GE(profile.memory * 5 * 1024, wanted);
      ASSERT_EQ(held[stay->cards[i]] & slices, 0);
      held[stay->cards[i]] = static_cast<MigSlices>(held[stay->cards[i]] | slices);
    }
  }
  for (const auto& [card, sum] : mib) ASSERT_LE(sum, (card < a100_cards ? 40 : 16) * 1024);
}

TEST(MigRun, EveryJobDoesItsWorkWhoeverComesAndGoes) {
  std::uint64_t reconfigurations = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(300); ++seed) {
    Rng rng(seed);
    const MixedCase it = mixed_case(rng);
    Engine engine(it.jobs, mixed_mig_cluster(), {.seed = seed}, {.runtime = &it.model});
    Restless policy{rng.split("policy")};
    StayLog log;
    Decision decision = engine.decision();
    while (engine.advance()) {
      log.observe(engine.view(), engine.events());
      policy.decide(engine.view(), decision);
      engine.apply();
      log.observe(engine.view(), engine.events());
      ASSERT_TRUE(engine.consistent()) << "seed " << seed;
    }
    ASSERT_TRUE(engine.all_finished());
    std::set<Time> instants;
    for (const Stay& stay : log.stays) instants.insert({stay.begin, stay.end});
    std::vector<double> work(it.jobs.size(), 0);
    for (auto at = instants.begin(); std::next(at) != instants.end(); ++at) {
      std::vector<const Stay*> present;
      for (const Stay& stay : log.stays) {
        if (stay.begin <= *at && *at < stay.end) present.push_back(&stay);
      }
      check_memory(it, present);
      for (const Stay* stay : present) {
        double slowest = 1e9;
        for (std::size_t i = 0; i < stay->cards.size(); ++i) {
          slowest = std::min(slowest, rate_of_task(it, *stay, i, present));
        }
        work[index(stay->job)] += slowest * to_seconds(*std::next(at) - *at);
      }
    }
    const Waits waits = waits_of(it, log.stays);
    for (std::uint32_t i = 0; i < it.jobs.size(); ++i) {
      const double expected = to_seconds(it.jobs.work(JobId{i})) + waits.work[i];
      EXPECT_NEAR(work[i], expected, 1e-3 + 1e-5 * expected) << "seed " << seed << " job " << i;
    }
    EXPECT_EQ(engine.reconfigurations(), waits.count) << "seed " << seed;
    EXPECT_NEAR(to_seconds(engine.reconfiguration_gpu_time()), waits.withheld_milli_s / 1000, 1e-3) << "seed " << seed;
    reconfigurations += waits.count;
  }
  EXPECT_GT(reconfigurations, 300U * 8);
}

// The node is away from 30 s to 40 s: 10 s of the job's first run were its wait, and 20 s of work are lost. The
// instance is still there when the node comes back.
TEST(MigRun, ANodeThatFailsComesBackWithItsLayout) {
  const Cluster cluster = cut_cluster(1, 1, {});
  const JobTable jobs = table_of({task(0, 50, 142)});
  const std::vector<NodeChange> changes{{whole_seconds(30), NodeId{0}, false}, {whole_seconds(40), NodeId{0}, true}};
  NodeFailures failures;
  failures.add_changes(changes);
  Fifo policy;
  Engine engine(jobs, cluster, {}, {.failures = &failures});
  EXPECT_TRUE(simulate(engine, policy));
  EXPECT_EQ(spans_of(engine), (std::vector<Span>{{0, 90}}));
  EXPECT_EQ(engine.overhead(JobId{0}), whole_seconds(10));
  EXPECT_EQ(engine.lost(JobId{0}), whole_seconds(20));
  EXPECT_EQ(engine.reconfigurations(), 1u);
  EXPECT_TRUE(engine.consistent());
}

TEST(MigRun, ANodeOfCutAndWholeGpusGoesOutOfServiceAsAWhole) {
  Cluster cluster = cut_cluster(2, 2, {"7g.40gb"});
  cluster.migs[0].cards[1] = place_mig_instances(a100(), profiles(a100(), {"3g.20gb", "2g.10gb"}));
  ClusterState state(cluster, Demands().names, Rng(1));
  EXPECT_EQ(state.idle_gpus(), 2);
  const Shape gang = Demands().shape(285, "", 6);
  EXPECT_NE(state.place(gang, anyone, Placement::consolidate), no_index);  // every instance
  ClusterState empty(cluster, Demands().names, Rng(1));
  empty.withhold(NodeId{0});
  EXPECT_EQ(empty.idle_gpus(), 1);
  EXPECT_EQ(empty.place(gang, anyone, Placement::consolidate), no_index);
  EXPECT_NE(empty.place(Demands().shape(285, "", 3), anyone, Placement::consolidate), no_index);
  empty.reinstate(NodeId{0});
  EXPECT_EQ(empty.idle_gpus(), 1);
  EXPECT_NE(empty.place(Demands().shape(285, "", 3), anyone, Placement::consolidate), no_index);
}

}  // namespace
}  // namespace gpusched::test
