// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_runs.hpp"

#include <cstdint>
#include <string>

#include "gpusched/engine/engine.hpp"
#include "tests/fuzz/fuzz_targets.hpp"
#include "tests/support/changing_signals.hpp"

namespace gpusched::test {
namespace {

constexpr std::uint32_t small_world_jobs = 12;

// Jobs of all kinds of demand, a `step` apart, of 1 to 12 times `work`.
JobTable some_jobs(Time first, Time step, Time work) {
  constexpr MilliGpu demands[] = {whole_gpu, 500, 2 * whole_gpu, 0, 333};
  JobTableBuilder jobs;
  for (std::uint32_t i = 0; i < small_world_jobs; ++i) {
    const std::int64_t length = 1 + i * 5 % small_world_jobs;
    JobRecord job{.submit = first + Time{step.us * i},
                  .work = Time{work.us * length},
                  .estimate = i % 3 == 0 ? Time::max() : Time{work.us * (length + i % 4)},
                  .start = later_by(first + Time{step.us * i}, work),
                  .user = i % 2 == 0 ? "ann" : "bob",
                  .group = i % 3 == 0 ? "a" : "",
                  .vc = i % 4 == 0 ? "left" : "right",
                  .name = "train",
                  .family = i % 2 == 0 ? "resnet50" : "",
                  .priority = static_cast<std::int32_t>(i % 5)};
    job.shape = {.tasks = 1 + i % 3, .gpu_milli_per_task = demands[i % 5], .cpu_milli_per_task = i % 2 * 1000};
    if (i % 4 == 1) job.deadline = later_by(job.submit, Time{work.us * 4});
    jobs.add(job);
  }
  return *std::move(jobs).build();
}

const JobTable& usual_jobs() {
  static const JobTable jobs = some_jobs(whole_seconds(0), whole_seconds(40), whole_seconds(100));
  return jobs;
}

Cluster small_cluster() {
  Cluster cluster = Cluster::homogeneous(3, 4);
  cluster.vcs = {{.name = "left"}, {.name = "right", .quota = 8 * whole_gpu}};
  for (Node& node : cluster.nodes) node.cpu_milli = 8000;
  return cluster;
}

// Engines with GPUSCHED_VALIDATE check themselves at every instant.
void run(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options, const PolicyMaker& make,
         const RunInputs& inputs = {}) {
  constexpr int most_instants = 100;  // jobs may take turns for ever
  auto policy = make({.jobs = &jobs, .cluster = &cluster, .seed = 1, .power = &signals_of_tests()});
  if (!policy) return;
  Engine engine(jobs, cluster, options, inputs);
  Decision decision = engine.decision();
  for (int i = 0; i < most_instants && engine.advance(); ++i) {
    policy->decide(engine.view(), decision);
    engine.apply();
  }
  must_hold(engine.consistent(), "capacity and jobs are conserved");
}

PolicyMaker maker_of(const char* name) {
  return [name](const PolicyContext& context) {
    static const PolicyRegistry policies = PolicyRegistry::standard();
    return policies.make({.text = name, .name = name, .given = {}}, context);
  };
}

Result<AnyPolicy> make_fifo(const PolicyContext& context) { return maker_of("fifo")(context); }

}  // namespace

void run_in_small_world(const PolicyMaker& make) {
  EngineOptions options;
  options.preemption = {.checkpoint = whole_seconds(2), .restart = whole_seconds(5)};
  run(usual_jobs(), small_cluster(), options, make);
}

void run_at_extreme_times(const PolicyMaker& make) {
  // The last submission and all work together are just below the end of time.
  static const JobTable late =
      some_jobs(whole_seconds(4'500'000'000'000), whole_seconds(8'000'000'000), whole_seconds(10));
  static const JobTable early = some_jobs(Time{} - whole_seconds(4'500'000'000'000), whole_seconds(800'000'000'000),
                                          whole_seconds(1'000'000'000));
  static const JobTable large = some_jobs(whole_seconds(0), whole_seconds(1), whole_seconds(58'000'000'000));
  EngineOptions costly;
  costly.preemption = {.checkpoint = whole_seconds(1'000'000'000'000), .restart = whole_seconds(2'000'000'000'000)};
  for (const JobTable* jobs : {&late, &early, &large}) run(*jobs, small_cluster(), {}, make);
  run(large, small_cluster(), costly, make);
}

void run_on(const Cluster& cluster) { run(usual_jobs(), cluster, {}, make_fifo); }

void run_with_failures(const FailuresMaker& make) {
  const Cluster cluster = small_cluster();
  const auto failures = make(cluster);
  if (!failures) return;
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(5), .checkpoint_interval = whole_seconds(60)};
  run(usual_jobs(), cluster, options, make_fifo, {.failures = &*failures});
}

void run_with_stages(const StagesMaker& make) {
  const auto stages = make(usual_jobs());
  if (!stages) return;
  EngineOptions options;
  options.preemption = {.checkpoint_interval = whole_seconds(60)};
  run(usual_jobs(), small_cluster(), options, make_fifo, {.stages = &*stages});
}

void run_with_changes(const ChangesMaker& make) {
  JobTable jobs = usual_jobs();
  const auto changes = make(jobs, small_cluster());
  if (!changes) return;
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(5)};
  for (const char* policy : {"fifo", "sjf", "las", "srtf", "priority", "k8s", "drf"}) {
    run(jobs, small_cluster(), options, maker_of(policy), {.changes = &*changes});
  }
}

void run_with_elastic_jobs(const ElasticMaker& make) {
  const auto elastic = make(usual_jobs());
  if (!elastic) return;
  EngineOptions options;
  options.preemption = {.restart = whole_seconds(5)};
  for (const char* policy : {"optimus", "pollux", "elasticflow"}) {
    run(usual_jobs(), small_cluster(), options, maker_of(policy), {.elastic = &*elastic});
  }
}

}  // namespace gpusched::test
