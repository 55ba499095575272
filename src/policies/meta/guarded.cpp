// SPDX-License-Identifier: Apache-2.0
#include "src/policies/meta/guarded.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/meta/believed_left.hpp"
#include "src/policies/meta/notes_log.hpp"

namespace gpusched {
namespace {

// Gives up after so many events.
class Bounded {
 public:
  Bounded(AnyPolicy policy, std::uint64_t most) : policy_(std::move(policy)), most_(most) {}
  [[nodiscard]] std::string_view name() const { return policy_.name(); }
  [[nodiscard]] bool stopped() const { return events_ > most_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }
  void decide(const OracleView& view, Decision& decision) {
    events_ += view.events().size();
    policy_.decide(view, decision);
  }

 private:
  AnyPolicy policy_;
  std::uint64_t most_, events_ = 0;
};

}  // namespace

Guarded::Guarded(Members members, std::size_t plain, WeightedFigure figure, AnyDurationEstimator estimator,
                 const GuardOptions& options, Cluster cluster, const RuntimeModel* runtime)
    : members_(std::move(members)),
      plain_(plain),
      figure_(std::move(figure)),
      estimator_(std::move(estimator)),
      options_(options),
      cluster_(std::move(cluster)),
      runtime_(runtime),
      next_(options.first_jobs),
      was_clear_(members_.size()) {}

void Guarded::decide(const OracleView& view, Decision& decision) {
  members_.observe(view);
  estimator_.observe(view);
  const bool is_due = members_.size() > 1 && view.arrived() >= next_;
  members_.decide(is_due ? evaluate(view) : members_.active(), view, decision);
  decision.for_each_cancel([&](JobId job) { given_up_[job] = view.ran(job) + believed_left(estimator_, view, job); });
}

BelievedJobs Guarded::past(const OracleView& view) {
  BelievedJobs jobs(view.jobs().slice(0, view.arrived()));
  for (std::uint32_t i = 0; i < view.arrived(); ++i) {
    const JobId job{i};
    const bool is_done = view.phase(job) == JobPhase::done;
    const auto given_up = given_up_.find(job);
    if (given_up != given_up_.end()) {
      jobs.believe(job, given_up->second);
      continue;
    }
    jobs.believe(job, is_done ? known_work(view, job) : view.ran(job) + believed_left(estimator_, view, job));
  }
  return jobs;
}

std::size_t Guarded::evaluate(const OracleView& view) {
  const BelievedJobs jobs = past(view);
  Evaluation evaluation{.time = view.now(), .jobs = view.arrived(), .chosen = 0, .members = {}};
  for (std::size_t i = 0; i < members_.size(); ++i) {
    evaluation.members.push_back(replay(i, jobs.table(), view.options()));
  }
  evaluation.chosen = choose(evaluation.members);
  const double next = std::ceil(static_cast<double>(view.arrived()) * options_.growth);
  next_ = static_cast<std::uint32_t>(std::min(next, static_cast<double>(no_index)));
  evaluations_.push_back(std::move(evaluation));
  return evaluations_.back().chosen;
}

Guarded::Estimate Guarded::replay(std::size_t member, const JobTable& jobs, const EngineOptions& options) const {
  Engine engine(jobs, cluster_, options, {.runtime = runtime_});
  Bounded policy(members_.made(member), options_.budget_events);
  const bool ended = simulate(engine, policy);
  Estimate estimate;
  estimate.events = policy.events();
  if (!ended) return estimate;
  std::vector<JobResult> results;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Time end =
        engine.is_cancelled_by_policy(job) ? engine.view().now() : engine.end(job);  // what it gave up waits on
    const Time age = end - engine.submit(job);
    results.push_back(
        {.age = age, .waited = std::max(age - engine.ran(job), Time{}), .length = detail::length_of(engine, job)});
  }
  estimate.figures = figures_of_past(results, figure_, options_.stretches);
  return estimate;
}

std::size_t Guarded::choose(std::vector<Estimate>& members) {
  const auto better = [&](std::size_t i, std::size_t j) {
    return members[i].figures && (!members[j].figures || members[i].figures->value < members[j].figures->value);
  };
  const auto replaces = [&](std::size_t i, std::size_t j) {
    return members[i].figures && members[j].figures &&
           may_replace(*members[i].figures, *members[j].figures, options_.margin);
  };
  std::size_t best = 0, plain = in_charge_;
  for (std::size_t i = 1; i < plain_; ++i) best = better(i, best) ? i : best;
  if (!members[plain].figures) plain = best;
  std::vector<bool> clear(members.size());
  for (std::size_t i = 0; i < plain_; ++i) {
    clear[i] = replaces(i, in_charge_);
    if (clear[i] && was_clear_[i] && better(i, plain)) plain = i;
  }
  in_charge_ = plain;
  std::size_t chosen = plain;
  for (std::size_t i = plain_; i < members.size(); ++i) {
    clear[i] = replaces(i, plain) && better(i, best);
    if (clear[i] && was_clear_[i] && better(i, chosen)) chosen = i;
  }
  was_clear_ = std::move(clear);
  for (Estimate& estimate : members) {
    if (!estimate.figures || !members[plain].figures) continue;
    estimate.difference = highest_difference(estimate.figures->stretches, members[plain].figures->stretches);
  }
  return chosen;
}

std::string Guarded::notes() const {
  std::string text =
      "from_s,until_s,jobs,policy,value,avg_jct_s,p99_wait_s,avg_bounded_slowdown,highest_difference,events,active\n";
  for (std::size_t i = 0; i < evaluations_.size(); ++i) {
    const Evaluation& evaluation = evaluations_[i];
    for (std::size_t member = 0; member < members_.size(); ++member) {
      const Estimate& estimate = evaluation.members[member];
      append_seconds(text, evaluation.time);
      append_seconds(text += ',', i + 1 < evaluations_.size() ? evaluations_[i + 1].time : members_.last());
      append_integer(text += ',', std::int64_t{evaluation.jobs});
      append_csv_field(text += ',', members_.name(member));
      text += ',';
      if (estimate.figures) text += exact_number(estimate.figures->value);
      for (std::size_t figure = 0; figure < limited_figures().size(); ++figure) {
        text += ',';
        if (estimate.figures) text += exact_number(estimate.figures->limited[figure]);
      }
      text += ',';
      if (estimate.difference) text += exact_number(*estimate.difference);
      append_integer(text += ',', static_cast<std::int64_t>(estimate.events));
      text += member == evaluation.chosen ? ",1\n" : ",0\n";
    }
  }
  return text;
}

namespace {

Result<AnyPolicy> make_guarded(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto fail = [](const std::string& parameter, const std::string& why) {
    return Unexpected{Error{.message = why, .field = "policy guarded, parameter " + parameter}};
  };
  if (context.jobs->in_front() > 0) {
    return unexpected(
        "policy guarded replays jobs alone, and knows neither requests nor results to come: run it without --services "
        "and --trials");
  }
  std::vector<std::string> names = parameters.policies("policies");
  const std::size_t plain = names.size();
  const std::vector<std::string>& agents = parameters.policies("agents");
  names.insert(names.end(), agents.begin(), agents.end());
  auto members = Members::make("guarded", names, context, {.most = 65'536, .enough = context.past.jobs.size()});
  if (!members) return Unexpected{members.error()};
  auto figure = WeightedFigure::parse(parameters.word("figure"));
  if (!figure) return fail("figure", figure.error().message);
  auto estimator = make_duration_estimator(parameters, context);
  if (!estimator) return unexpected("policy guarded, " + estimator.error().to_string());
  const GuardOptions options{.first_jobs = static_cast<std::uint32_t>(parameters.number("first_jobs")),
                             .growth = parameters.number("growth"),
                             .stretches = static_cast<std::size_t>(parameters.number("stretches")),
                             .margin = parameters.number("margin"),
                             .budget_events = static_cast<std::uint64_t>(parameters.number("budget_events"))};
  if (options.first_jobs < options.stretches) return fail("first_jobs", "expected as many as stretches, or more");
  return AnyPolicy(Guarded(*std::move(members), plain, *std::move(figure), *std::move(estimator), options,
                           *context.cluster, context.runtime));
}

}  // namespace

PolicyInfo guarded_info() {
  PolicyInfo info{
      .name = "guarded",
      .summary =
          "leaves its first policy only for one that was clearly better on the log so far: for agents that may fail",
      .source =
          "own rule: another policy takes over where at two evaluations in succession the 95 % interval of its "
          "difference (Student's t over stretches of the log so far) lies more than the margin below 0, and no mean "
          "completion time, p99 wait or mean bounded slowdown is more than the margin above",
      .complexity =
          "an evaluation: the log so far, replayed under each policy; all of them together growth / (growth "
          "- 1) replays of the log for each",
      .parameters =
          {members_parameter({"fifo", "saf", "sjf{estimate=requested}"}),
           {.name = "agents",
            .fallback = std::vector<std::string>{},
            .meaning =
                "trained schedulers, such as rl:builtin/philly: they have to be better than every one of the policies"},
           figure_parameter(),
           {.name = "first_jobs",
            .fallback = 1000.0,
            .meaning = "jobs submitted at the first evaluation",
            .least = 2,
            .most = 1e9,
            .is_count = true},
           {.name = "growth",
            .fallback = 1.5,
            .meaning = "the next comes when this many times as many jobs have been submitted",
            .least = 1.01,
            .most = 1e6},
           {.name = "stretches",
            .fallback = 10.0,
            .meaning = "into which the log so far is cut for the interval of differences",
            .least = 2,
            .most = 1000,
            .is_count = true},
           {.name = "margin",
            .fallback = 0.02,
            .meaning = "share by which another policy has to be better in the figure, and may be worse in others",
            .most = 1e6},
           {.name = "budget_events",
            .fallback = 2e7,
            .meaning = "events of a replay of one policy, which is given up then",
            .least = 1,
            .most = 1e12,
            .is_count = true}},
      .make = make_guarded,
      .preemptive = true};
  for (ParameterInfo& parameter : estimate_parameters("requested")) info.parameters.push_back(std::move(parameter));
  info.holds_policies = true;
  info.files = [](const PolicySpec& spec) {
    std::vector<std::string> files = files_of_members(spec);
    for (std::string& file : files_of_policies(spec, "agents")) files.push_back(std::move(file));
    return files;
  };
  info.asymmetries = {{Symmetry::time_scale, "run times are an hour where nothing is known of them"}};
  info.log = [](const PolicyParameters&, const PolicyContext&) -> Result<std::unique_ptr<PolicyLog>> {
    return std::unique_ptr<PolicyLog>(std::make_unique<NotesLog>("guarded.csv"));
  };
  return info;
}

}  // namespace gpusched
