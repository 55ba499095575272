// SPDX-License-Identifier: Apache-2.0
// Every policy takes the order of arrival from View::queue_place(): a job that waited for the end of others comes in
// when these have ended, as if it were submitted then, and one that comes back keeps its place.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/policies/contestants.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/policies/random_world.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint64_t usual_worlds = 200;  // 2,000 in scripts/deep_test.sh

struct Course {
  Time start = Time::max(), end = Time::max();
  friend bool operator==(const Course&, const Course&) = default;
};

// When each job started and ended, by its id in the trace; nothing when the policy does not take these jobs or left
// some.
std::vector<Course> courses(const Contestant& contestant, const JobTable& jobs, const RandomWorld& world,
                            const RunInputs& inputs = {}, std::vector<Time>* eligible = nullptr) {
  auto policy = make(contestant, jobs, world.cluster);
  if (!policy) return {};
  Engine engine(jobs, world.cluster, world.options, inputs);
  if (!simulate(engine, *policy)) return {};
  std::vector<Course> by_id(jobs.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const auto id = static_cast<std::size_t>(std::stoul(std::string(jobs.external_id(JobId{i})).substr(1)));
    by_id[id] = {engine.first_start(JobId{i}), engine.end(JobId{i})};
    if (eligible != nullptr) (*eligible)[id] = engine.submit(JobId{i});
  }
  return by_id;
}

// The first job, by time, that took two courses.
void expect_same(const std::vector<Course>& first, const std::vector<Course>& second, const std::string& run) {
  std::vector<std::size_t> by_time(first.size());
  std::iota(by_time.begin(), by_time.end(), std::size_t{0});
  const auto earliest = [&](std::size_t i) { return std::min(first[i].start, second[i].start); };
  std::stable_sort(by_time.begin(), by_time.end(), [&](auto a, auto b) { return earliest(a) < earliest(b); });
  for (const std::size_t i : by_time) {
    ASSERT_TRUE(first[i] == second[i]) << run << ", job " << i << ": started at " << to_seconds(first[i].start)
                                       << " and " << to_seconds(second[i].start);
  }
}

// Adds the job under an id of its own, with everything that the table knows of it.
void add_copy(JobTableBuilder& builder, const JobTable& jobs, JobId job, const std::string& id, Time submit,
              std::span<const std::string> after) {
  std::vector<Time> attempts;
  for (std::uint32_t attempt = 0; attempt < jobs.attempts(job); ++attempt) {
    attempts.push_back(jobs.attempt_work(job, attempt));
  }
  builder.add({.id = id,
               .submit = submit,
               .work = jobs.work(job),
               .estimate = jobs.estimate(job),
               .shape = jobs.shape(job),
               .user = jobs.users()[jobs.user(job)],
               .group = jobs.groups()[jobs.group(job)],
               .vc = jobs.vcs()[jobs.vc(job)],
               .name = jobs.names()[jobs.name(job)],
               .gpu_spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec],
               .family = jobs.families()[jobs.family(job)],
               .priority = jobs.priority(job),
               .deadline = jobs.deadline(job),
               .attempts = attempts.size() > 1 ? std::span<const Time>(attempts) : std::span<const Time>{},
               .after = after,
               .after_delay = after.empty() ? Time{} : jobs.dependencies().delay(job)});
}

JobTable built(JobTableBuilder builder) {
  auto table = std::move(builder).build();
  EXPECT_TRUE(table.has_value());
  return *std::move(table);
}

// These jobs under ids that tell their rows, submitted at other times if some are given, and then without dependencies.
JobTable resubmitted(const JobTable& jobs, const std::vector<Time>& submits) {
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::string> after;
    for (const JobId other : jobs.dependencies().of(JobId{i})) after.push_back("j" + std::to_string(index(other)));
    if (!submits.empty()) after.clear();
    add_copy(builder, jobs, JobId{i}, "j" + std::to_string(i), submits.empty() ? jobs.submit(JobId{i}) : submits[i],
             after);
  }
  return built(std::move(builder));
}

class QueuePlaces : public testing::TestWithParam<Contestant> {
 protected:
  // Such a program knows no jobs that come back.
  [[nodiscard]] static bool is_published_program() { return GetParam().policy.find('@') != std::string::npos; }
};

INSTANTIATE_TEST_SUITE_P(Policies, QueuePlaces, testing::ValuesIn(contestants()),
                         [](const auto& instance) { return name_of(instance.param); });

TEST_P(QueuePlaces, AReleasedJobIsAsIfSubmittedThen) {
  if (is_published_program()) GTEST_SKIP() << "it does what a published program does";
  if (GetParam().policy.starts_with("portfolio")) GTEST_SKIP() << "it looks ahead of jobs that wait for others";
  if (GetParam().policy.starts_with("guarded")) GTEST_SKIP() << "it replays what jobs waited for";
  for (std::uint64_t seed = 1; seed <= random_runs(usual_worlds) / 4; ++seed) {
    const RandomWorld world = random_world(seed, kind_for(GetParam().policy), true);
    if (world.jobs.size() == 0) continue;
    const JobTable linked = resubmitted(world.jobs, {});
    std::vector<Time> eligible(linked.size());
    const std::vector<Course> first = courses(GetParam(), linked, world, {}, &eligible);
    // What is released and ends at one instant releases others in a second decision of that instant.
    const auto instantly = [](const Course& course) { return course.start == course.end; };
    if (first.empty() || std::any_of(first.begin(), first.end(), instantly)) continue;
    const std::vector<Course> second = courses(GetParam(), resubmitted(world.jobs, eligible), world);
    if (second.empty()) continue;
    ASSERT_NO_FATAL_FAILURE(expect_same(first, second, "seed " + std::to_string(seed)));
  }
}

// Every job twice, one right behind the other.
JobTable twins_of(const JobTable& jobs) {
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    std::vector<std::string> after;
    for (const JobId other : jobs.dependencies().of(JobId{i})) after.push_back("j" + std::to_string(2 * index(other)));
    for (const std::uint32_t id : {2 * i, 2 * i + 1}) {
      add_copy(builder, jobs, JobId{i}, "j" + std::to_string(id), jobs.submit(JobId{i}), after);
    }
  }
  return built(std::move(builder));
}

// All nodes go down at once, some times, the last of them first: the jobs on them are told of in that order.
NodeFailures outages(const Cluster& cluster, Time from, std::uint64_t seed) {
  detail::WorldDraws draw(seed ^ 0x0FF);
  std::vector<NodeChange> changes;
  Time at = from;
  for (std::uint64_t i = draw.below(4); i > 0; --i) {
    at += whole_seconds(static_cast<std::int64_t>(1 + draw.below(200)));
    const Time back = at + whole_seconds(static_cast<std::int64_t>(draw.below(20)));
    for (auto node = static_cast<std::uint32_t>(cluster.nodes.size()); node-- > 0;) {
      changes.push_back({at, NodeId{node}, false});
      changes.push_back({back, NodeId{node}, true});
    }
    at = back;
  }
  NodeFailures failures;
  failures.add_changes(changes);
  return failures;
}

// The same changes for both of a pair.
JobChanges twin_changes(const JobTable& jobs, const JobChanges& of_jobs, JobTable& twins) {
  std::vector<JobChange> changes;
  for (JobChange change : of_jobs.all()) {
    if (change.shape != no_index) change.shape = twins.number_of_shape(jobs.shapes()[change.shape]);
    const std::uint32_t first = 2 * index(change.job);
    for (const std::uint32_t job : {first, first + 1}) {
      change.job = JobId{job};
      changes.push_back(change);
    }
  }
  return {std::move(changes), twins.size()};
}

// What a policy may know of a job that waits, but for its id and place.
class Histories {
 public:
  explicit Histories(std::uint32_t jobs) : of_job_(jobs) {}
  void observe(const OracleView& view, std::span<const Event> events) {
    for (const Event& event : events) {
      if (event.job != no_job) of_job_[index(event.job)].emplace_back(view.now().us, event.kind);
    }
  }
  [[nodiscard]] bool equal(const OracleView& view, JobId a, JobId b) const {
    return of_job_[index(a)] == of_job_[index(b)] && view.ran(a) == view.ran(b) &&
           view.remaining(a) == view.remaining(b) && view.attempt(a) == view.attempt(b) &&
           view.kills(a) == view.kills(b);
  }

 private:
  std::vector<std::vector<std::pair<std::int64_t, EventKind>>> of_job_;
};

// Of two jobs that are alike in all but their places, the one behind is not started while the other waits. Counts the
// pairs that came back and of which the first was started.
std::uint64_t pairs_served(const Contestant& contestant, const JobTable& jobs, const RandomWorld& world,
                           const RunInputs& inputs, const std::string& run) {
  auto policy = make(contestant, jobs, world.cluster);
  if (!policy) return 0;
  std::uint64_t pairs = 0;
  Engine engine(jobs, world.cluster, world.options, inputs);
  Decision decision = engine.decision();
  Histories histories(jobs.size());
  gpusched::detail::ProgressWatch progress(engine.view());
  std::vector<std::uint32_t> equals;  // the first of each pair
  while (engine.advance()) {
    const OracleView view = engine.view();
    histories.observe(view, engine.events());
    progress.observe(view, engine.events());
    if (progress.endless()) break;
    equals.clear();
    for (std::uint32_t i = 0; i < jobs.size(); i += 2) {
      const JobId a{i}, b{i + 1};
      const bool wait = view.phase(a) == JobPhase::pending && view.phase(b) == JobPhase::pending;
      if (wait && histories.equal(view, a, b)) equals.push_back(i);
    }
    policy->decide(view, decision);
    engine.apply();
    for (const std::uint32_t i : equals) {
      const bool first = view.phase(JobId{i}) != JobPhase::pending,
                 second = view.phase(JobId{i + 1}) != JobPhase::pending;
      if (second && !first) {
        ADD_FAILURE() << contestant << ", " << run << ", at " << to_seconds(view.now()) << ": job " << i + 1
                      << " is started, and job " << i << ", which is its like and came before, waits";
        return pairs;
      }
      pairs += first && view.ran(JobId{i}) > Time{} ? 1 : 0;
    }
    histories.observe(view, engine.events());
    progress.observe(view, engine.events());
  }
  return pairs;
}

// Why a job may overtake its like; nothing: it may not.
std::string_view why_places_do_not_decide(const std::string& policy, const std::string& backfill) {
  if (policy == "as-recorded") return "jobs start when the record says";
  if (policy.starts_with("carbon")) return "each job has a plan of its own";
  if (policy.starts_with("allox") || policy.starts_with("gavel")) return "a job may wait for faster machines";
  if (policy.starts_with("agenda") || policy.starts_with("rl:")) return "equals go by when they began to wait";
  if (policy.find("youngest_first") != std::string::npos) return "the run that began last stops, whoever came first";
  if (backfill == "conservative") return "a reservation that still holds is kept";
  return {};
}

TEST_P(QueuePlaces, WhoComesBackStandsBeforeHisLikesBehindHim) {
  if (is_published_program()) GTEST_SKIP() << "it does what a published program does";
  const std::string_view why = why_places_do_not_decide(GetParam().policy, GetParam().backfill);
  if (!why.empty()) GTEST_SKIP() << why;
  const WorldKind kind = kind_for(GetParam().policy);
  std::uint64_t pairs = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(usual_worlds) / 8; ++seed) {
    RandomWorld world = random_world(seed, kind, seed % 3 == 0);
    if (world.jobs.size() == 0) continue;
    world.jobs = resubmitted(world.jobs, {});
    const JobChanges of_jobs = random_changes(world, seed, kind);
    JobTable twins = twins_of(world.jobs);
    const JobChanges changes = twin_changes(world.jobs, of_jobs, twins);
    const NodeFailures failures = outages(world.cluster, world.jobs.submit(JobId{0}), seed);
    pairs +=
        pairs_served(GetParam(), twins, world, {.failures = &failures, .changes = seed % 2 == 0 ? &changes : nullptr},
                     "seed " + std::to_string(seed));
    if (HasFailure()) return;
  }
  EXPECT_GT(pairs, 0u);
}

std::vector<Span> under(const std::string& policy, const JobTable& jobs, const RunInputs& inputs,
                        const EngineOptions& options = {}) {
  const Cluster cluster = Cluster::homogeneous(1, 1);
  const std::size_t plus = policy.find('+');
  auto made = make({policy.substr(0, plus), plus == std::string::npos ? "" : policy.substr(plus + 1)}, jobs, cluster);
  EXPECT_TRUE(made.has_value()) << policy;
  Engine engine(jobs, cluster, options, inputs);
  EXPECT_TRUE(simulate(engine, *made)) << policy;
  return spans_of(engine);
}

// D runs until 100,000; A waits for it, B for nobody since 50,000: B has waited for longer.
TEST(QueuePlaces, AReleasedJobStandsBehindThoseThatWaited) {
  const JobTable jobs = table_of({{.submit = 0, .work = 100'000, .user = "u", .vc = "v"},
                                  {.submit = 2, .work = 100, .user = "u", .vc = "v", .after = {"0"}},
                                  {.submit = 50'000, .work = 100, .user = "u", .vc = "v"}});
  for (const char* policy : {"fifo", "fifo-skip", "slurm{weight_age=1000000}", "slurm+easy", "k8s", "drf", "lsf",
                             "longest-waiting-user", "fifo+easy", "fifo+conservative", "max-min", "volcano"}) {
    EXPECT_EQ(under(policy, jobs, {})[2].start, 100'000) << policy;
    EXPECT_EQ(under(policy, jobs, {})[1].start, 100'100) << policy;
  }
}

// Of 100 s each: one is killed at 50, when its node goes down, which is back at 60; the other waits since 10.
std::vector<Span> killed_at_50(const std::string& policy) {
  const JobTable jobs = table_of(
      {{.submit = 0, .work = 100, .user = "u", .vc = "v"}, {.submit = 10, .work = 100, .user = "u", .vc = "v"}});
  NodeFailures failures;
  const std::vector<NodeChange> changes{{whole_seconds(50), NodeId{0}, false}, {whole_seconds(60), NodeId{0}, true}};
  failures.add_changes(changes);
  return under(policy, jobs, {.failures = &failures});
}

// It comes back at 60 before the second.
TEST(QueuePlaces, AKilledJobKeepsItsPlace) {
  for (const char* policy : {"fifo", "fifo-skip", "slurm{weight_age=1000000}", "k8s", "drf", "lsf",
                             "longest-waiting-user", "fifo+easy", "max-min", "volcano"}) {
    const std::vector<Span> spans = killed_at_50(policy);
    EXPECT_EQ(spans[0].end, 160) << policy;
    EXPECT_EQ(spans[1].start, 160) << policy;
  }
}

// It is done, and the second one waits for the node alone.
TEST(QueuePlaces, ALostJobHasNoPlaceWhereSlurmRequeuesNone) {
  for (const char* policy : {"slurm{requeues=false}", "slurm{requeues=false,bf_interval_s=0}+easy"}) {
    const std::vector<Span> spans = killed_at_50(policy);
    EXPECT_EQ(spans[0].end, 50) << policy;
    EXPECT_EQ(spans[1].start, 60) << policy;
  }
}

TEST(QueuePlaces, ARetriedJobKeepsItsPlace) {
  const JobTable jobs = table_of({{.submit = 0, .work = 20, .attempts = {10, 10}}, {.submit = 5, .work = 10}});
  for (const char* policy : {"fifo", "fifo-skip", "fifo+easy"}) {
    EXPECT_EQ(under(policy, jobs, {})[0].end, 20) << policy;
  }
}

}  // namespace
}  // namespace gpusched::test
