// SPDX-License-Identifier: Apache-2.0
// Reservations on GPUs that are cut into MIG instances.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/policies/backfill/mig_reference.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

// One A100 of 40 GiB, cut as jobs come, in no time.
Cluster dynamic_card() {
  Cluster cluster = Cluster::homogeneous(1, 1);
  cluster.migs = {{.model = find_mig_model("A100-40GB"), .layout = MigLayout::dynamic, .reconfigure = {}}};
  cluster.nodes[0].mig = 0;
  return cluster;
}

Row task(std::int64_t submit, std::int64_t work, MilliGpu milli) {
  return {.submit = submit, .work = work, .shape = {.gpu_milli_per_task = milli}, .estimate = work};
}

Result<AnyPolicy> backfilled(const std::string& policy, const std::string& backfill, const JobTable& jobs,
                             const Cluster& cluster) {
  const PolicyContext context{.jobs = &jobs, .cluster = &cluster};
  return make_backfilled(PolicyRegistry::standard(), parse_policy_list(policy)->front(), *parse_backfill(backfill),
                         context);
}
Result<AnyPolicy> fifo_with(const std::string& backfill, const JobTable& jobs, const Cluster& cluster) {
  return backfilled("fifo", backfill, jobs, cluster);
}

// The 3g (a) stands at slice 4, so that b's 1g stands in the way of a 4g, which c waits for. d's 1g would stand there
// too, although slices 4 to 7 will be free by then; e ends in time.
TEST(MigBackfill, EasyKeepsTheSlicesOfTheReservedJob) {
  const Cluster cluster = dynamic_card();
  const JobTable jobs =
      table_of({task(0, 100, 428), task(0, 100, 142), task(1, 50, 571), task(2, 300, 142), task(3, 20, 142)});
  const auto policy = fifo_with("easy{estimate=user}", jobs, cluster);
  ASSERT_TRUE(policy);
  EXPECT_EQ(run(jobs, cluster, *policy), (std::vector<Span>{{0, 100}, {0, 100}, {100, 150}, {100, 400}, {3, 23}}));
}

// The same for every waiting job: b's 1g ends at 100, so that c's 4g is planned for then, at slices 0 to 3. d's 1g has
// slices beside the plan, from 100 on: before that, none is free that stays so.
TEST(MigBackfill, ConservativeKeepsTheSlicesOfEveryReservedJob) {
  const Cluster cluster = dynamic_card();
  const JobTable jobs = table_of({task(0, 100, 428), task(0, 100, 142), task(1, 50, 571), task(2, 300, 142),
                                  task(3, 20, 142), task(4, 500, 1000)});
  const auto policy = fifo_with("conservative{estimate=user}", jobs, cluster);
  ASSERT_TRUE(policy);
  EXPECT_EQ(run(jobs, cluster, *policy),
            (std::vector<Span>{{0, 100}, {0, 100}, {100, 150}, {100, 400}, {3, 23}, {400, 900}}));
}

// ---- against a reference that looks at every second ----

Cluster random_cluster(Rng& rng, std::uint64_t most_nodes) {
  const MigModel& a100 = mig_models[find_mig_model("A100-40GB")];
  const auto layout = [&](const std::vector<const char*>& names) {
    std::vector<std::uint32_t> profiles;
    for (const char* name : names) profiles.push_back(a100.find(name));
    return place_mig_instances(a100, profiles);
  };
  const auto model = find_mig_model("A100-40GB");
  Cluster cluster = Cluster::homogeneous(static_cast<std::uint32_t>(1 + rng.below(most_nodes)), 2);
  cluster.migs = {{.model = model, .layout = MigLayout::dynamic, .reconfigure = {}},
                  {.model = model, .layout = MigLayout::first_fit, .reconfigure = {}},
                  {.model = model, .cards = {layout({"3g.20gb", "2g.10gb", "1g.5gb", "1g.5gb"}), layout({"7g.40gb"})}},
                  {.model = model, .cards = {{}, layout({"4g.20gb", "1g.5gb", "1g.10gb"})}}};
  for (Node& node : cluster.nodes) {
    node.gpus = 1 + static_cast<std::uint32_t>(rng.below(2));
    node.mig = static_cast<std::uint32_t>(rng.below(cluster.migs.size()));
  }
  return cluster;
}

std::vector<MigJob> random_jobs(const Cluster& cluster, Rng& rng) {
  constexpr std::int64_t milli[] = {100, 142, 200, 285, 428, 571, 900, 1000, 1000, 2000};
  const JobTable any = test::table_of({{.work = 1}});  // for its names of GPU types
  std::vector<MigJob> jobs;
  std::int64_t submit = 0;
  for (std::uint64_t i = 3 + rng.below(12); i > 0; --i) {
    submit += static_cast<std::int64_t>(rng.below(6));
    MigJob job{.submit = submit, .work = 1 + static_cast<std::int64_t>(rng.below(15))};
    job.estimate = job.work + (rng.below(2) == 0 ? static_cast<std::int64_t>(rng.below(8)) : 0);
    job.milli = milli[rng.below(10)];
    job.tasks = 1 + static_cast<std::int64_t>(rng.below(3));
    const Shape shape{.tasks = static_cast<std::uint32_t>(job.tasks), .gpu_milli_per_task = job.milli};
    if (ClusterState::fits_when_empty(cluster, any.gpu_specs(), shape, 0)) jobs.push_back(job);
  }
  return jobs;
}

JobTable table_of_jobs(const std::vector<MigJob>& jobs) {
  std::vector<Row> rows;
  for (const MigJob& job : jobs) {
    rows.push_back({.submit = job.submit,
                    .work = job.work,
                    .user = "u",
                    .shape = {.tasks = static_cast<std::uint32_t>(job.tasks), .gpu_milli_per_task = job.milli},
                    .estimate = job.estimate});
  }
  return test::table_of(rows);
}

std::vector<Span> spans_of(const MigBoard& board) {
  std::vector<Span> spans;
  for (const MigJob& job : board.jobs) spans.push_back({static_cast<double>(job.start), static_cast<double>(job.end)});
  return spans;
}

// Ends of this second; true when one was not expected now.
bool end_jobs(MigBoard& board, std::int64_t now) {
  bool surprised = false;
  std::erase_if(board.running, [&](const MigBooking& run) {
    if (board.jobs[run.job].end != now) return false;
    surprised = surprised || run.end != now;
    return true;
  });
  return surprised;
}

// Every job has a reservation when it comes; after an early end each, in order, gets the earliest there is.
std::vector<std::int64_t> run_conservative(MigBoard& board, bool shortest_first) {
  std::vector<std::int64_t> first_plan(board.jobs.size(), -1);
  std::size_t come = 0;
  for (std::int64_t now = 0; come < board.jobs.size() || !board.plans.empty() || !board.running.empty(); ++now) {
    if (end_jobs(board, now)) {
      std::stable_sort(board.plans.begin(), board.plans.end(), [&](const MigBooking& a, const MigBooking& b) {
        const auto key = [&](const MigBooking& plan) {
          return std::pair(shortest_first ? board.jobs[plan.job].estimate : 0, plan.job);
        };
        return key(a) < key(b);
      });
      for (std::size_t i = 0; i < board.plans.size(); ++i) {
        const std::size_t job = board.plans[i].job;
        board.plans[i].pieces.clear();
        board.plans[i] = board.hole(job, now);
      }
    }
    for (; come < board.jobs.size() && board.jobs[come].submit == now; ++come) {
      const MigBooking plan = board.hole(come, now);
      first_plan[come] = plan.begin;
      board.plans.push_back(plan);
    }
    std::erase_if(board.plans, [&](const MigBooking& plan) {
      if (plan.begin > now) return false;
      board.start(plan, now);
      return true;
    });
    board.cut_cards();
  }
  return first_plan;
}

// Jobs start in order until one does not fit; then each waiting one, in order, gets the earliest hole, for this event.
void run_slurm(MigBoard& board) {
  std::vector<std::size_t> waiting;
  std::size_t come = 0;
  for (std::int64_t now = 0; come < board.jobs.size() || !waiting.empty() || !board.running.empty(); ++now) {
    const std::size_t before = board.running.size(), had_come = come;
    end_jobs(board, now);
    for (; come < board.jobs.size() && board.jobs[come].submit == now; ++come) waiting.push_back(come);
    if (board.running.size() == before && come == had_come) continue;
    while (!waiting.empty()) {
      const auto place = board.place_now(waiting.front(), now);
      if (!place) break;
      board.start(*place, now);
      waiting.erase(waiting.begin());
    }
    std::erase_if(waiting, [&](std::size_t job) {
      const MigBooking hole = board.hole(job, now);
      if (hole.begin > now) {
        board.plans.push_back(hole);
        return false;
      }
      board.start(hole, now);
      return true;
    });
    board.plans.clear();
    board.cut_cards();
  }
}

TEST(MigBackfill, ConservativeAgreesWithTheReference) {
  std::uint64_t waited = 0;
  for (std::uint64_t seed = 1; seed <= random_runs(1500); ++seed) {
    Rng rng(seed);
    const Cluster cluster = random_cluster(rng, 3);
    MigBoard board(cluster);
    board.jobs = random_jobs(cluster, rng);
    if (board.jobs.empty()) continue;
    const bool shortest_first = rng.below(2) == 0;
    const JobTable jobs = table_of_jobs(board.jobs);
    auto policy =
        backfilled(shortest_first ? "sjf{estimate=user}" : "fifo", "conservative{estimate=user}", jobs, cluster);
    ASSERT_TRUE(policy);
    const std::vector<Span> found = run(jobs, cluster, *policy);
    const auto promised = run_conservative(board, shortest_first);
    ASSERT_EQ(found, spans_of(board)) << "seed " << seed;
    for (std::size_t i = 0; i < promised.size(); ++i) {
      waited += promised[i] > board.jobs[i].submit ? 1 : 0;
      ASSERT_LE(found[i].start, static_cast<double>(promised[i])) << "seed " << seed << ", job " << i;
    }
  }
  EXPECT_GT(waited, 3000u);
}

TEST(MigBackfill, SlurmAgreesWithTheReference) {
  for (std::uint64_t seed = 1; seed <= random_runs(1500); ++seed) {
    Rng rng(seed);
    const Cluster cluster = random_cluster(rng, 1);
    MigBoard board(cluster);
    board.jobs = random_jobs(cluster, rng);
    if (board.jobs.empty()) continue;
    const JobTable jobs = table_of_jobs(board.jobs);
    auto policy = backfilled(
        "slurm{weight_age=0,weight_fair_share=0,weight_size=0,weight_partition=0,weight_qos=0,bf_interval_s=0}",
        "easy{estimate=user}", jobs, cluster);
    ASSERT_TRUE(policy);
    const std::vector<Span> found = run(jobs, cluster, *policy);
    run_slurm(board);
    ASSERT_EQ(found, spans_of(board)) << "seed " << seed;
  }
}

// Cutting cards takes time, nodes fail, shares and whole cards mix: nothing is lost, and every job ends.
TEST(MigBackfill, ReservationsOutliveFailuresAndReconfigurations) {
  for (std::uint64_t seed = 1; seed <= random_runs(300); ++seed) {
    Rng rng(seed);
    Cluster cluster = random_cluster(rng, 3);
    for (MigNode& mig : cluster.migs) mig.reconfigure = whole_seconds(static_cast<std::int64_t>(rng.below(5)));
    const auto plain = random_jobs(cluster, rng);
    if (plain.empty()) continue;
    const JobTable jobs = table_of_jobs(plain);
    NodeFailures failures;
    const std::uint32_t law = failures.add_law({.mean_up_s = 60, .detect_s = 2, .mean_repair_s = 5});
    for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
      const NodeId node{i};
      failures.add_unit(law, {&node, 1});
    }
    for (const char* name : {"fifo", "slurm"}) {
      auto policy =
          backfilled(name, name[0] == 's' ? "easy{estimate=user}" : "conservative{estimate=user}", jobs, cluster);
      ASSERT_TRUE(policy);
      Engine engine(jobs, cluster, {.seed = seed}, {.failures = &failures});
      Decision decision = engine.decision();
      for (int instants = 0; engine.advance(); ++instants) {
        ASSERT_LT(instants, 100'000) << name << " seed " << seed;
        policy->decide(engine.view(), decision);
        engine.apply();
        ASSERT_TRUE(engine.consistent()) << name << " seed " << seed;
      }
      ASSERT_TRUE(engine.all_finished()) << name << " seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gpusched::test
