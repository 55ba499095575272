// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/agenda_policy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

#include "tests/differential/check_many.hpp"
#include "tests/differential/random_cases.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

// What the policy is to do in the modes that it runs without an Agenda: every choice offered, one after the other.
struct ByChoices {
  Agenda agenda;

  [[nodiscard]] std::string_view name() const { return "choices"; }
  void decide(const View& view, Decision& decision) {
    agenda.observe(view);
    while (agenda.open(view, decision)) agenda.act(agenda.options().heuristic, view, decision);
  }
};

// Shares, CPU and memory, virtual clusters that share nodes, retries; equal keys are many.
TEST(AgendaPolicy, MakesTheChoicesOfAnAgenda) {
  using rc::gen::element;
  test::check_many(2000, [] {
    const Cluster cluster = *test::clusters();
    const auto rows = test::rows_that_fit(*test::mixed_rows(), cluster);
    RC_PRE(!rows.empty());
    const JobTable jobs = test::table_of(rows);
    AgendaOptions options{.mode = *element(ActionMode::fit_or_wait, ActionMode::inspect, ActionMode::select_blocking,
                                           ActionMode::backfill, ActionMode::reserve),
                          .knowledge = *element(RuntimeKnowledge::none, RuntimeKnowledge::user,
                                                RuntimeKnowledge::predicted, RuntimeKnowledge::oracle),
                          .heuristic = *element(Heuristic::fcfs, Heuristic::sjf, Heuristic::saf, Heuristic::f1),
                          .max_jobs = no_index};
    options.sc20_backfill = options.mode == ActionMode::select_blocking && *rc::gen::arbitrary<bool>();
    EngineOptions engine;
    engine.placement = *element(Placement::consolidate, Placement::best_fit, Placement::rack, Placement::yarn);
    RC_ASSERT(test::run(jobs, cluster, AgendaPolicy(options, jobs.works()), engine) ==
              test::run(jobs, cluster, ByChoices{Agenda(options, jobs.works())}, engine));
  });
}

}  // namespace
}  // namespace gpusched
