// SPDX-License-Identifier: Apache-2.0
// Agents that preempt, with random models, against the reference world.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "src/policies/learned/rl_policy.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/differential_support.hpp"
#include "tests/differential/reference_ranking.hpp"
#include "tests/learn/learning_support.hpp"

namespace gpusched::test {
namespace {

// Demands of which a whole number of seconds makes 15 GPU-seconds, so that levels are entered on a second.
constexpr Shape demands[] = {{.tasks = 1, .gpu_milli_per_task = 1000}, {.tasks = 3, .gpu_milli_per_task = 1000},
                             {.tasks = 5, .gpu_milli_per_task = 1000}, {.tasks = 1, .gpu_milli_per_task = 3000},
                             {.tasks = 1, .gpu_milli_per_task = 500},  {.tasks = 3, .gpu_milli_per_task = 500},
                             {.tasks = 2, .gpu_milli_per_task = 300},  {.tasks = 1, .gpu_milli_per_task = 0}};

// Jobs that run through several levels and crowd each other out.
std::vector<Row> ranked_rows(const Cluster& cluster) {
  auto rows = random_rows(cluster);
  const auto spread = *rc::gen::element<std::int64_t>(1, 5, 20);
  for (Row& row : rows) {
    const auto stretch = *rc::gen::element<std::int64_t>(1, 10, 10, 40);
    row.submit *= spread;
    row.work *= stretch;
    for (std::int64_t& attempt : row.attempts) attempt *= stretch;
    row.estimate = *rc::gen::inRange<std::int64_t>(1, 600);
    const std::int64_t cpu = row.shape.cpu_milli_per_task, memory = row.shape.memory_mib_per_task;
    row.shape = *rc::gen::elementOf(std::vector<Shape>(std::begin(demands), std::end(demands)));
    row.shape.cpu_milli_per_task = cpu;
    row.shape.memory_mib_per_task = memory;
  }
  return rows_that_fit(rows, cluster);
}

TrainedModel random_model() {
  TrainedModel model;
  model.agenda.mode = ActionMode::preempt;
  model.agenda.knowledge = *rc::gen::element(RuntimeKnowledge::none, RuntimeKnowledge::user, RuntimeKnowledge::oracle);
  model.agenda.heuristic = (*rc::gen::elementOf(heuristic_names)).value;
  model.network = {.kind = NetworkKind::rank};
  Rng rng(*rc::gen::inRange<std::uint64_t>(0, 1'000'000));
  model.parameters = random_parameters(model.network, rng.state()[0]);
  // From the order alone to a few terms alone. With large weights a running job may even lose to itself.
  const float weight = *rc::gen::element(0.0f, 1.0f, 10.0f);
  const double kept = *rc::gen::element(1.0, 0.5, 0.15);
  for (std::size_t i = 1; i < model.parameters.size(); ++i) model.parameters[i] *= rng.uniform() < kept ? weight : 0;
  if (*rc::gen::inRange(0, 3) == 0) model.parameters[0] = 0;
  for (std::size_t i = 0; i < rank_features; ++i) {
    model.normaliser.job_mean[i] = static_cast<float>(0.3 * rng.normal());
    model.normaliser.job_scale[i] = static_cast<float>(0.5 + rng.uniform());
  }
  return model;
}

std::vector<double> known_run_times(RuntimeKnowledge knowledge, const std::vector<Row>& rows, const JobTable& jobs) {
  std::vector<double> known;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    known.push_back(knowledge == RuntimeKnowledge::user     ? static_cast<double>(rows[i].estimate)
                    : knowledge == RuntimeKnowledge::oracle ? to_seconds(jobs.works()[i])
                                                            : 0.0);
  }
  return known;
}

TEST(DifferentialRanking, RandomAgents) {
  check_many(4000, [] {
    const Cluster cluster = random_cluster();
    const auto rows = ranked_rows(cluster);
    RC_PRE(!rows.empty());
    const TrainedModel model = random_model();
    const WorldCosts costs = random_costs();
    const JobTable jobs = table_of(rows);
    log_case("rl", rows, cluster);
    RC_LOG() << "heuristic " << name_of(heuristic_names, model.agenda.heuristic) << ", knowledge "
             << name_of(runtime_knowledge_names, model.agenda.knowledge) << '\n';
    constexpr std::int64_t horizon_s = 20'000;
    const History engine = history_of(jobs, cluster, AnyPolicy(RlPolicy("rl", model, jobs.works(), false, 0)),
                                      options_of(costs), horizon_s);
    const ReferenceRanking rule(model, known_run_times(model.agenda.knowledge, rows, jobs), cluster);
    RC_ASSERT(engine == history_of(World(rows, cluster, costs), rule, horizon_s));
  });
}

}  // namespace
}  // namespace gpusched::test
