// SPDX-License-Identifier: Apache-2.0
// What a policy costs grows with the work that it is given, not with what lies around: every policy of the registry,
// with each number of its world doubled apart. Operations are counted, so that the same program gives the same figures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/policies/throughput/linear_program.hpp"
#include "tests/growth/growth_exceptions.hpp"
#include "tests/growth/growth_world.hpp"
#include "tests/growth/operation_count.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {
namespace {

/// A number of the world that is doubled, from what to twice that, and what the operations of a run may grow by.
struct Doubling {
  std::string_view what;
  std::uint32_t WorldSize::*number = nullptr;
  WorldSize from;
  double most = 0;
};

// More jobs are more work, and their queue is longer: O(log n) of that shows. Nothing else is more work. A virtual
// cluster has a queue of its own, of which most policies try the first job wherever room appears, and a shape that does
// not fit tells nothing of those that ask for less of something: these two show, but less than they grow.
const std::vector<Doubling>& doublings() {
  static const std::vector<Doubling> all{
      {"jobs", &WorldSize::jobs, {.jobs = 1000}, 2.55},
      {"nodes", &WorldSize::nodes, {.jobs = 1000, .nodes = 24}, 1.3},
      {"users", &WorldSize::users, {.jobs = 1500, .users = 200}, 1.15},
      {"virtual clusters", &WorldSize::vcs, {.jobs = 1500, .nodes = 40, .vcs = 16}, 1.6},
      {"shapes", &WorldSize::shapes, {.jobs = 1500, .shapes = 64}, 1.5},
  };
  return all;
}

/// What the runs are of: a policy as the command line takes it, on jobs that have deadlines or not, on all of them or
/// the first of so many parts, where it is slow.
struct Subject {
  std::string policy;
  bool deadlines = true;
  std::uint32_t parts = 1;

  /// As growth_exceptions() calls it.
  [[nodiscard]] std::string name() const { return policy.substr(0, policy.find('{')) + (deadlines ? "" : "-"); }

  friend std::ostream& operator<<(std::ostream& out, const Subject& subject) {
    return out << subject.policy << (subject.deadlines ? "" : " without deadlines");
  }
};

const PolicyRegistry& policies() {
  static const PolicyRegistry all = PolicyRegistry::standard();
  return all;
}

// All rows of the registry, and the ways of backfilling.
std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const PolicyInfo& info : policies().rows()) {
    if (info.name == "gavel" && !has_lp_solver()) continue;  // it cannot be made then
    // Users' parts, or equal ones, would be too small for some jobs.
    all.push_back({info.name == "static-partition" ? "static-partition{by=vc,parts=demand}" : info.name});
  }
  for (Subject& subject : all) {
    const bool is_slow =
        subject.policy == "elasticflow" || subject.policy == "allox@gavel" || subject.policy.starts_with("rl:");
    subject.parts = is_slow ? 4 : 1;
  }
  for (const char* policy : {"fifo+easy", "sjf+easy", "fifo+sc20"}) all.push_back({policy});
  for (const char* policy : {"fifo+conservative", "slurm+easy"}) all.push_back({.policy = policy, .parts = 4});
  all.push_back({.policy = "elasticflow", .deadlines = false});
  return all;
}

Result<AnyPolicy> made(const std::string& text, const JobTable& jobs, const Cluster& cluster) {
  const auto specs = parse_policies(policies(), text);
  if (!specs) return Unexpected{specs.error()};
  return make_policy(policies(), specs->front(),
                     {.jobs = &jobs, .cluster = &cluster, .seed = 1, .power = &signals_of_tests()});
}

/// Operations of a run, or what it was refused with.
template <class Make>
Result<std::uint64_t> operations_of(const WorldSize& size, bool deadlines, Make make) {
  const JobTable jobs = jobs_of(size, deadlines);
  const Cluster cluster = cluster_of(size);
  Result<AnyPolicy> policy = make(jobs, cluster);
  if (!policy) return Unexpected{policy.error()};
  Engine engine(jobs, cluster);
  const std::uint64_t before = operations();
  EXPECT_TRUE(simulate(engine, *policy));
  return operations() - before;
}

/// By what the operations grow when that number is doubled; 0 where the policy refuses the world.
template <class Make>
double growth_of(const Doubling& doubling, const Subject& subject, Make make) {
  WorldSize size = doubling.from;
  size.jobs /= subject.parts;
  const Result<std::uint64_t> once = operations_of(size, subject.deadlines, make);
  size.*doubling.number *= 2;
  const Result<std::uint64_t> twice = operations_of(size, subject.deadlines, make);
  if (!once || !twice) return 0;
  return static_cast<double>(*twice) / static_cast<double>(*once);
}

class Growth : public testing::TestWithParam<Subject> {};

std::string test_name(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.policy.substr(0, info.param.policy.find('{'));
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name + (info.param.deadlines ? "" : "_without_deadlines");
}

INSTANTIATE_TEST_SUITE_P(Policies, Growth, testing::ValuesIn(subjects()), test_name);

TEST_P(Growth, StaysWithinTheWork) {
#ifdef GPUSCHED_VALIDATE
  GTEST_SKIP() << "this build looks at all jobs after every event";
#endif
  const Subject& subject = GetParam();
  for (const Doubling& doubling : doublings()) {
    const double growth = growth_of(doubling, subject, [&](const JobTable& jobs, const Cluster& cluster) {
      return made(subject.policy, jobs, cluster);
    });
    const auto is_of = [&](const GrowthException& row) {
      return row.policy == subject.name() && row.what == doubling.what;
    };
    const auto exception = std::ranges::find_if(growth_exceptions(), is_of);
    const std::string said =
        std::string("twice the ") + std::string(doubling.what) + ": operations grew by " + std::to_string(growth);
    RecordProperty(std::string(doubling.what), std::to_string(growth));
    if (exception == growth_exceptions().end()) {
      EXPECT_GT(growth, 0) << doubling.what << ": refused";
      EXPECT_LE(growth, doubling.most) << said;
    } else if (exception->most == 0) {
      EXPECT_EQ(growth, 0) << said << ", and its exception says that it refuses them";
    } else {
      EXPECT_LE(growth, exception->most) << said << ", in spite of its exception";
      EXPECT_GT(growth, 0.9 * doubling.most) << said << ", and needs no exception any more";
    }
  }
}

TEST(GrowthExceptions, AreOfPoliciesThatThereAre) {
  const std::vector<Subject> all = subjects();
  for (const GrowthException& row : growth_exceptions()) {
    const bool known = std::ranges::any_of(all, [&](const Subject& subject) { return subject.name() == row.policy; });
    EXPECT_TRUE(known || row.policy == "gavel") << row.policy;
    EXPECT_FALSE(row.reason.empty()) << row.policy;
  }
}

// Each node has a cap that slows the jobs below it or, where nobody is slowed, is reached by them.
PowerModel caps_of_nodes(const WorldSize& size, CapRule rule) {
  PowerModel model;
  GpuPower gpu{.load = {.idle_w = 50, .full_w = 250}, .limits = {}};
  gpu.limits = {{.limit_w = 150, .draw = 0.5, .speed = 800'000}, {.limit_w = 250}};
  model.gpus = {gpu};
  model.kinds = {{.base_w = 150}};
  model.kind_of.assign(size.nodes, 0);
  model.rule = rule;
  for (std::uint32_t node = 0; node < size.nodes; ++node) {
    model.caps.push_back({.watts = Signal(rule == CapRule::admit ? 2150 : 1700), .nodes = {node}});
  }
  return model;
}

TEST(GrowthOfCaps, IsTheirJobs) {
#ifdef GPUSCHED_VALIDATE
  GTEST_SKIP() << "this build looks at all jobs after every event";
#endif
  const auto operations_with = [](const WorldSize& size, CapRule rule) {
    const JobTable jobs = jobs_of(size, false);
    const Cluster cluster = cluster_of(size);
    const PowerModel model = caps_of_nodes(size, rule);
    AnyPolicy policy = *made("fifo", jobs, cluster);
    Engine engine(jobs, cluster, {}, {.power = &model});
    const std::uint64_t before = operations();
    EXPECT_TRUE(simulate(engine, policy));
    return static_cast<double>(operations() - before);
  };
  for (const CapRule rule : {CapRule::admit, CapRule::uniform, CapRule::priority, CapRule::efficiency}) {
    const double growth =
        operations_with({.jobs = 600, .nodes = 128}, rule) / operations_with({.jobs = 600, .nodes = 64}, rule);
    EXPECT_LE(growth, 1.3) << static_cast<int>(rule);
  }
}

// ---- the gate sees what it is for -----------------------------------------------------------------------------------

/// FIFO that looks at something at every event, in vain.
class Scanning {
 public:
  enum class What { nothing, waiting, nodes, users, queues, shapes };
  Scanning(What what, AnyPolicy fifo) : what_(what), fifo_(std::move(fifo)) {}

  [[nodiscard]] static std::string_view name() { return "scanning"; }
  void decide(const OracleView& view, Decision& decision) {
    std::uint32_t numbers = 0;
    if (what_ == What::nodes) numbers = view.cluster().node_count();
    if (what_ == What::users) numbers = static_cast<std::uint32_t>(view.users().names().size());
    if (what_ == What::shapes) numbers = view.shape_count();
    if (what_ == What::queues) numbers = view.queue_count() * view.queue_count();  // once for each is what many do
    // As much as a few look-ups in a map cost.
    for (std::uint32_t i = 0; i < numbers; ++i) {
      for (std::uint32_t bits = i + 1024; bits > 0; bits /= 2) sum_ += bits;
    }
    for (std::uint32_t queue = 0; queue < view.queue_count() && what_ == What::waiting; ++queue) {
      for (const JobId job : view.queue(queue)) sum_ += index(job);
    }
    fifo_.decide(view, decision);
  }

 private:
  What what_;
  AnyPolicy fifo_;
  std::uint64_t sum_ = 0;
};

double growth_of_scanning(Scanning::What what, std::size_t doubling) {
  return growth_of(doublings()[doubling], {}, [&](const JobTable& jobs, const Cluster& cluster) -> Result<AnyPolicy> {
    return AnyPolicy(Scanning(what, *made("fifo", jobs, cluster)));
  });
}

TEST(GrowthGate, RefusesScans) {
#ifdef GPUSCHED_VALIDATE
  GTEST_SKIP() << "this build looks at all jobs after every event";
#endif
  using enum Scanning::What;
  const std::pair<Scanning::What, std::size_t> scans[] = {
      {waiting, 0}, {nodes, 1}, {users, 2}, {queues, 3}, {shapes, 4}};
  for (const auto& [what, doubling] : scans) {
    EXPECT_LE(growth_of_scanning(nothing, doubling), doublings()[doubling].most) << doublings()[doubling].what;
    EXPECT_GT(growth_of_scanning(what, doubling), doublings()[doubling].most) << doublings()[doubling].what;
  }
}

TEST(GrowthGate, CountsTheSameAgain) {
  const auto count = [] {
    return *operations_of({.jobs = 300}, true,
                          [](const JobTable& jobs, const Cluster& cluster) { return made("srtf", jobs, cluster); });
  };
  const std::uint64_t first = count();
  EXPECT_GT(first, 300'000u);  // else nothing is instrumented
  EXPECT_EQ(count(), first);
}

// Moving memory counts too: a flat vector that grows in its middle has no loop of its own.
TEST(GrowthGate, CountsMemoryThatMoves) {
  std::vector<std::uint64_t> numbers(1 << 16, 1);
  numbers.reserve(numbers.size() + 1);
  const std::uint64_t before = operations();
  numbers.insert(numbers.begin(), 2);
  EXPECT_GE(operations() - before, std::uint64_t{1} << 16);
}

}  // namespace
}  // namespace gpusched::test
