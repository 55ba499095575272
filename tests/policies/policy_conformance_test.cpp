// SPDX-License-Identifier: Apache-2.0
// What every registered policy must keep, on random traces and clusters.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "gpusched/watch/history_hash.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/policies/throughput/linear_program.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/policies/policy_support.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {
namespace {

const PolicyInfo& row(std::string_view name) { return **registry().find(name); }

/// A random case with a fresh policy of a registry row.
struct Trial {
  Trial(const PolicyInfo& info, const JobTable& jobs, const Cluster& cluster, const EngineOptions& options)
      : engine(jobs, cluster, options), policy(make(info, jobs, cluster)) {}

  static AnyPolicy make(const PolicyInfo& info, const JobTable& jobs, const Cluster& cluster) {
    const PolicySpec spec{.text = info.name, .name = info.name, .given = {}};
    auto policy = registry().make(spec, {.jobs = &jobs, .cluster = &cluster, .seed = 1, .power = &signals_of_tests()});
    if (!policy) RC_DISCARD(policy.error().to_string());  // a trace that lacks what it needs, such as one of no jobs
    return *std::move(policy);
  }

  /// One instant: events, decision, its effects. False when nothing is left.
  bool step() {
    if (!engine.advance()) return false;
    const OracleView view = engine.view();
    history.observe(view, engine.events());
    Decision decision = engine.decision();
    policy.decide(view, decision);
    engine.apply();
    history.observe(view, engine.events());
    RC_ASSERT(++instants < most_instants);
    return true;
  }

  void finish() {
    while (step()) {
    }
  }

  Engine engine;
  AnyPolicy policy;
  HistoryHash history;
  std::uint32_t instants = 0;
};

/// Re-derives from the grants of running jobs what each node and virtual cluster gave away.
void check_capacity(const OracleView& view, const Cluster& cluster) {
  struct Used {
    MilliGpu gpu = 0;
    std::int64_t cpu = 0;
    std::int64_t memory = 0;
    std::map<std::uint32_t, MilliGpu> devices = {};
  };
  std::vector<Used> nodes(cluster.nodes.size());
  std::vector<MilliGpu> vcs(view.queue_count(), 0);
  for (const JobId job : view.running()) {
    const Shape& shape = view.shape(job);
    const std::uint32_t vc = view.queue_of(job);
    std::uint32_t tasks = 0;
    view.for_each_grant(job, [&](const Grant& grant) {
      tasks += grant.tasks;
      Used& used = nodes[index(grant.node)];
      used.gpu += grant.tasks * shape.gpu_milli_per_task;
      used.cpu += grant.tasks * shape.cpu_milli_per_task;
      used.memory += grant.tasks * shape.memory_mib_per_task;
      for (std::uint32_t d = 0; d < 64; ++d) {
        if ((grant.devices >> d & 1u) != 0) used.devices[d] += shape.is_share() ? shape.gpu_milli_per_task : whole_gpu;
      }
      const Node& node = cluster.nodes[index(grant.node)];
      RC_ASSERT(node.vc == no_index || node.vc == vc || vc == cluster.vcs.size());
    });
    RC_ASSERT(tasks == shape.tasks);  // the whole gang
    vcs[vc] += shape.gpu_milli();
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    RC_ASSERT(nodes[i].gpu <= cluster.nodes[i].gpus * whole_gpu);
    RC_ASSERT(nodes[i].cpu <= cluster.nodes[i].cpu_milli);
    RC_ASSERT(nodes[i].memory <= cluster.nodes[i].memory_mib);
    for (const auto& [device, milli] : nodes[i].devices) {
      RC_ASSERT(device < cluster.nodes[i].gpus);
      RC_ASSERT(milli <= whole_gpu);  // nobody's GPU is held twice
    }
  }
  for (std::size_t vc = 0; vc < cluster.vcs.size(); ++vc) RC_ASSERT(vcs[vc] <= cluster.vcs[vc].quota);
}

/// No waiting job would fit. Works on a copy, so that the random placement of the run is not disturbed.
bool nothing_more_fits(Engine engine) {
  const OracleView view = engine.view();
  Decision decision = engine.decision();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) {
      if (decision.fits(job)) return false;
    }
  }
  return true;
}

/// A cluster, jobs that fit it, and options. A faithful variant (policy@source) gets what its source knows: equal
/// nodes, whole GPUs, its own placement and costs.
struct Setting {
  Cluster cluster;
  JobTable jobs;
  EngineOptions options;
};

Setting random_setting(std::string_view policy) {
  Setting setting;
  if (policy.find('@') != std::string_view::npos) {
    setting.cluster = Cluster::homogeneous(*rc::gen::inRange<std::uint32_t>(1, 5), 4);
    setting.jobs = table_of(rows_that_fit(*gpu_rows(8, false), setting.cluster));
    return setting;
  }
  // Every job must fit the part of the GPUs that is its owner's.
  setting.cluster = policy == "static-partition" ? Cluster::pool(40) : *clusters();
  setting.jobs = table_of(rows_that_fit(*mixed_rows(), setting.cluster));
  setting.options.placement = (*rc::gen::elementOf(placement_names)).placement;
  setting.options.seed = *rc::gen::inRange<std::uint64_t>(0, 100);
  setting.options.preemption = {.restart = whole_seconds(*rc::gen::inRange<std::int64_t>(0, 3)),
                                .checkpoint_interval = whole_seconds(*rc::gen::element<std::int64_t>(0, 0, 2))};
  return setting;
}

class Conformance : public testing::TestWithParam<std::string> {
 protected:
  const PolicyInfo& info() const { return row(GetParam()); }
};

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const PolicyInfo& info : registry().rows()) {
    if (info.name == "gavel" && !has_lp_solver()) continue;  // it cannot be made then
    names.push_back(info.name);
  }
  return names;
}
INSTANTIATE_TEST_SUITE_P(Policies, Conformance, testing::ValuesIn(policy_names()),
                         [](const auto& instance) { return readable(instance.param); });

TEST_P(Conformance, KeepsTheRules) {
  check_many(100, [&] {
    const auto [cluster, jobs, options] = random_setting(GetParam());
    Trial run(info(), jobs, cluster, options);
    while (run.step()) {
      const OracleView view = run.engine.view();
      RC_ASSERT(run.engine.consistent());
      check_capacity(view, cluster);
      if (info().work_conserving) RC_ASSERT(nothing_more_fits(run.engine));
    }
    RC_ASSERT(run.engine.all_finished());
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const JobId job{i};
      RC_ASSERT(run.engine.first_start(job) >= jobs.submit(job));
      RC_ASSERT(run.engine.ran(job) >= jobs.work(job));
      RC_ASSERT(run.engine.end(job) >= run.engine.first_start(job) + jobs.work(job));
      if (!info().preemptive) RC_ASSERT(run.engine.preemptions(job) == 0u);
    }
  });
}

TEST_P(Conformance, DecidesTheSameAgainAndWhenCopiedInMidRun) {
  check_many(30, [&] {
    const auto [cluster, jobs, options] = random_setting(GetParam());
    Trial first(info(), jobs, cluster, options);
    first.finish();

    Trial second(info(), jobs, cluster, options);
    const auto fork_at = *rc::gen::inRange<std::uint32_t>(0, 40);
    while (second.instants < fork_at && second.step()) {
    }
    Trial fork = second;
    second.finish();
    RC_ASSERT(second.history.value() == first.history.value());
    fork.finish();
    RC_ASSERT(fork.history.value() == first.history.value());
  });
}

TEST(Fifo, StartsInOrderOfSubmissionWithinEachQueue) {
  check_many(100, [] {
    const Cluster cluster = *clusters();
    const JobTable jobs = table_of(rows_that_fit(*gpu_rows(8, false), cluster));
    Trial run(row("fifo"), jobs, cluster, {});
    run.finish();
    std::map<std::uint32_t, Time> last;
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      Time& before = last[run.engine.view().queue_of(JobId{i})];
      RC_ASSERT(before <= run.engine.first_start(JobId{i}));
      before = run.engine.first_start(JobId{i});
    }
  });
}

// Policies without constants of time see a trace a thousand times as long as the same trace.
TEST(ScaleFree, AThousandfoldTraceGivesAThousandfoldResults) {
  for (const std::string_view policy : {"fifo", "fifo-skip", "sjf", "srtf", "srsf"}) {
    check_many(50, [&] {
      std::vector<Row> rows = *gpu_rows(8);
      const Cluster cluster = Cluster::homogeneous(2, 4);
      const PolicyInfo& info = row(policy);
      EngineOptions options;
      options.preemption = {.restart = whole_seconds(2), .checkpoint_interval = whole_seconds(3)};
      const JobTable jobs = table_of(rows);
      Trial plain(info, jobs, cluster, options);
      plain.finish();

      for (Row& row : rows) {
        row.submit *= 1000;
        row.work *= 1000;
        for (std::int64_t& work : row.attempts) work *= 1000;
      }
      options.preemption = {.restart = whole_seconds(2000), .checkpoint_interval = whole_seconds(3000)};
      const JobTable long_jobs = table_of(rows);
      Trial scaled(info, long_jobs, cluster, options);
      scaled.finish();
      for (std::uint32_t i = 0; i < jobs.size(); ++i) {
        RC_ASSERT(scaled.engine.first_start(JobId{i}).us == 1000 * plain.engine.first_start(JobId{i}).us);
        RC_ASSERT(scaled.engine.end(JobId{i}).us == 1000 * plain.engine.end(JobId{i}).us);
      }
    });
  }
}

}  // namespace
}  // namespace gpusched::test
