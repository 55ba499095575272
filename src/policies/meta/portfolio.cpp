// SPDX-License-Identifier: Apache-2.0
#include "src/policies/meta/portfolio.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "gpusched/policy/progress_watch.hpp"
#include "src/base/csv_text.hpp"
#include "src/base/interruption.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/meta/believed_left.hpp"
#include "src/policies/meta/notes_log.hpp"
#include "src/policies/seam/seed_parameter.hpp"

namespace gpusched {
namespace {

// A trial that takes more events goes round in circles.
constexpr std::uint64_t most_events_of_trial = 20'000'000;

MilliGpu asked_for(const View& view) {
  MilliGpu sum = 0;
  for (const JobId job : view.running()) sum += view.shape(job).gpu_milli();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) sum += view.shape(job).gpu_milli();
  }
  return sum;
}

// Some job waits since an earlier instant, or those that wait ask for more than is free.
bool is_crowded(const View& view) {
  MilliGpu asked = 0;
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) {
      if (view.submit(job) < view.now()) return true;
      asked += view.shape(job).gpu_milli();
    }
  }
  return asked > view.cluster().free_gpu_milli();
}

std::vector<JobId> present_jobs(const View& view) {
  std::vector<JobId> jobs(view.running().begin(), view.running().end());
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    jobs.insert(jobs.end(), view.queue(queue).begin(), view.queue(queue).end());
  }
  return jobs;
}

}  // namespace

Portfolio::Portfolio(Members members, WeightedFigure figure, AnyDurationEstimator estimator, PortfolioOptions options,
                     Rng rng, bool holds_jobs_back)
    : members_(std::move(members)),
      figure_(std::move(figure)),
      estimator_(std::move(estimator)),
      options_(options),
      candidates_(members_.size(), options.budget_events, options.smart_share, rng),
      rng_(rng.split("arrivals")),
      holds_jobs_back_(holds_jobs_back) {}

bool Portfolio::clairvoyant() const {
  return members_.clairvoyant() || (members_.size() > 1 && (options_.exact || estimator_.clairvoyant()));
}

void Portfolio::decide(const OracleView& view, Decision& decision) {
  members_.observe(view);
  estimator_.observe(view);
  const std::size_t member = is_due(view) ? evaluate(view) : members_.active();
  members_.decide(member, view, decision);
}

bool Portfolio::is_due(const View& view) const {
  if (members_.size() == 1 || !is_crowded(view)) return false;
  if (evaluations_.empty() || view.now() - evaluations_.back().time >= options_.every) return true;
  if (options_.load_change == 0 || view.now() == evaluations_.back().time) return false;
  const auto before = static_cast<double>(asked_), now = static_cast<double>(asked_for(view));
  return now >= before * options_.load_change || now * options_.load_change <= before;
}

std::vector<Belief> Portfolio::beliefs(const OracleView& view) {
  std::vector<Belief> beliefs;
  const auto add = [&](JobId job) {
    beliefs.push_back({job, believed_left(estimator_, view, job)});
    members_.believed().believe(job, view.ran(job) + beliefs.back().left);
  };
  for (const JobId job : present_jobs(view)) add(job);
  for (std::uint32_t i = 0; holds_jobs_back_ && i < view.arrived(); ++i) {
    if (view.phase(JobId{i}) == JobPhase::future) add(JobId{i});
  }
  return beliefs;
}

std::uint32_t Portfolio::draw_arrivals(const OracleView& view) {
  const std::uint32_t arrived = view.arrived();
  const Time span = std::min(options_.horizon, view.now() - view.submit(JobId{0}));
  std::uint32_t first = arrived;  // of the jobs that came in that span
  while (first > 0 && view.now() - view.submit(JobId{first - 1}) < span) --first;
  const std::uint32_t came = arrived - first, room = view.job_count() - arrived;
  if (came == 0) return 0;
  BelievedJobs& believed = members_.believed();
  Rng rng = rng_.split(evaluations_.size());
  std::uint32_t drawn = 0;
  for (Time begin = view.now(); begin - view.now() < options_.horizon; begin += span) {
    for (std::uint32_t i = 0; i < came && drawn < room; ++i, ++drawn) {
      const Time submit = begin + (view.submit(JobId{first + i}) - (view.now() - span));
      const JobId like{first + static_cast<std::uint32_t>(rng.below(came))};
      believed.draw(JobId{arrived + drawn}, like, submit, believed.table().work(like));
    }
  }
  return drawn;
}

std::size_t Portfolio::evaluate(const OracleView& view) {
  const std::vector<JobId> jobs = present_jobs(view);
  const std::vector<Belief> believed = options_.exact ? std::vector<Belief>{} : beliefs(view);
  Engine start = options_.exact ? Engine::known(view) : Engine::imagined(view, members_.believed().table(), believed);
  if (options_.resamples && start.draws_jobs()) {
    start = Engine::imagined(view, members_.believed().table(), believed, draw_arrivals(view));
  }
  std::vector<Time> lengths;  // alike for every member
  const OracleView imagined = start.view();
  for (const JobId job : jobs) {
    lengths.push_back(options_.exact ? view.work(job) : view.ran(job) + imagined.work_left(job));
  }
  Evaluation evaluation{.time = view.now(), .chosen = 0, .members = std::vector<Estimate>(members_.size())};
  for (std::size_t i = 0; i < members_.size(); ++i) evaluation.members[i].set = candidates_.set(i);
  candidates_.choose(members_.active(), [&](std::size_t member) {
    Estimate& estimate = evaluation.members[member];
    const Candidates::Set set = estimate.set;
    estimate = play(start, member, jobs, lengths);
    estimate.set = set;
    return std::pair(estimate.value.value_or(std::numeric_limits<double>::infinity()), estimate.events);
  });
  evaluation.chosen = best_of(evaluation.members);
  asked_ = asked_for(view);
  members_.believed().forget_drawn();
  evaluations_.push_back(std::move(evaluation));
  return evaluations_.back().chosen;
}

std::size_t Portfolio::best_of(const std::vector<Estimate>& members) const {
  const std::size_t active = members_.active();
  const auto cost = [&](std::size_t i) { return *members[i].value + (i != active ? options_.switch_cost : 0); };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!members[i].value) continue;
    if (!best || cost(i) < cost(*best)) {
      best = i;
    } else if (cost(i) == cost(*best)) {
      if (!options_.ties_stay || i == active) best = i;
    }
  }
  return best.value_or(active);
}

Portfolio::Estimate Portfolio::play(Engine engine, std::size_t member, const std::vector<JobId>& jobs,
                                    const std::vector<Time>& lengths) const {
  const bool joins = member != members_.active() && members_.began();
  AdoptedPolicy policy = member == members_.active() ? members_.policy() : members_.fresh(member);
  const Time begin = engine.view().now(), until = later_by(begin, options_.horizon);
  Estimate estimate;
  detail::ProgressWatch progress(engine.view());
  const auto goes_on = [&engine, &progress] {
    progress.observe(engine.view(), engine.events());
    return !progress.endless() && !Interruption::wanted();
  };
  Decision decision = engine.decision();
  if (joins) {
    policy.adopt(engine.view(), decision);
  } else {
    policy.decide(engine.view(), decision);
  }
  engine.apply();
  if (!goes_on()) return estimate;
  while (engine.advance_to(until)) {
    if (!goes_on()) return estimate;
    estimate.events += std::max<std::uint64_t>(engine.events().size(), 1);
    if (estimate.events > most_events_of_trial) return estimate;
    if (engine.events().empty()) continue;
    policy.decide(engine.view(), decision);
    engine.apply();
    if (!goes_on()) return estimate;
  }
  std::vector<JobResult> results;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobId job = jobs[i];
    const bool ends =
        engine.end(job) != Time::max() && !engine.is_cancelled_by_policy(job);  // what a candidate gives up waits on
    const Time end = ends ? engine.end(job) : until;
    const Time age = end - engine.submit(job);
    const Time length = engine.is_ended_at_limit(job) ? std::min(lengths[i], engine.ran(job)) : lengths[i];
    results.push_back({.age = age, .waited = std::max(age - engine.ran(job), Time{}), .length = length});
  }
  estimate.value = figure_.of(results);
  return estimate;
}

std::string Portfolio::notes() const {
  std::string text = "from_s,until_s,policy,estimate,events,set,active\n";
  for (std::size_t i = 0; i < evaluations_.size(); ++i) {
    const Evaluation& evaluation = evaluations_[i];
    const Time until = i + 1 < evaluations_.size() ? evaluations_[i + 1].time : members_.last();
    for (std::size_t member = 0; member < members_.size(); ++member) {
      const Estimate& estimate = evaluation.members[member];
      append_seconds(text, evaluation.time);
      append_seconds(text += ',', until);
      append_csv_field(text += ',', members_.name(member));
      text += ',';
      if (estimate.value) text += exact_number(*estimate.value);
      append_integer(text += ',', static_cast<std::int64_t>(estimate.events));
      text += ',';
      text += Candidates::word(estimate.set);
      text += member == evaluation.chosen ? ",1\n" : ",0\n";
    }
  }
  return text;
}

namespace {

Result<AnyPolicy> make_portfolio(const PolicyParameters& parameters, const PolicyContext& context) {
  if (context.jobs->in_front() > 0) {
    return Unexpected{Error{
        .message = "policy portfolio looks ahead of jobs alone, and knows neither requests nor results to come: run it "
                   "without --services and --trials, or take bandit or switch"}};
  }
  auto members = Members::make("portfolio", parameters, context);
  if (!members) return Unexpected{members.error()};
  auto figure = WeightedFigure::parse(parameters.word("figure"));
  if (!figure)
    return Unexpected{Error{.message = figure.error().message, .field = "policy portfolio, parameter figure"}};
  const bool exact = parameters.word("runtimes") == "exact";
  auto estimator = exact ? Result<AnyDurationEstimator>(AnyDurationEstimator(ExactDuration{}))
                         : make_duration_estimator(parameters, context);
  if (!estimator) return unexpected("policy portfolio, " + estimator.error().to_string());
  if (exact && parameters.word("arrivals") == "resampled") {
    return Unexpected{Error{.message = "expected none beside runtimes=exact, which knows no run times of jobs to come",
                            .field = "policy portfolio, parameter arrivals"}};
  }
  const double change = parameters.number("load_change");
  if (change > 0 && change <= 1) {
    return Unexpected{
        Error{.message = "expected 0, or a factor above 1", .field = "policy portfolio, parameter load_change"}};
  }
  const PortfolioOptions options{.every = from_seconds(parameters.number("every_s")),
                                 .load_change = change,
                                 .horizon = from_seconds(parameters.number("horizon_s")),
                                 .exact = exact,
                                 .resamples = parameters.word("arrivals") == "resampled",
                                 .budget_events = static_cast<std::uint64_t>(parameters.number("budget_events")),
                                 .smart_share = parameters.number("smart_share"),
                                 .switch_cost = parameters.number("switch_cost"),
                                 .ties_stay = parameters.word("ties") == "stay"};
  const Rng rng = Rng(drawing_seed(parameters.number("seed"), context)).split("portfolio");
  return AnyPolicy(Portfolio(*std::move(members), *std::move(figure), *std::move(estimator), options, rng,
                             !context.jobs->dependencies().is_empty() || !context.cluster->limits.empty()));
}

}  // namespace

PolicyInfo portfolio_info() {
  PolicyInfo info{
      .name = "portfolio",
      .summary = "plays the present state forward under each of its policies, and lets the best one have the run",
      .source =
          "Deng et al., \"Exploring Portfolio Scheduling for Long-Term Execution of Scientific Workloads in IaaS "
          "Clouds\", SC'13, with its sets smart, stale and poor; ties as in OpenDC, to the policy named last",
      .complexity = "an evaluation: O(jobs), and a simulation of the jobs that wait and run, for each policy",
      .parameters =
          {members_parameter({"fifo", "saf", "sjf{estimate=requested}"}),
           {.name = "every_s",
            .fallback = 3600.0,
            .meaning = "seconds between evaluations: the next comes at the first instant after that",
            .least = 1e-3,
            .most = 1e9},
           {.name = "load_change",
            .fallback = 0.0,
            .meaning = "also when the GPUs asked for are this many times more or fewer than at the last; 0: no",
            .most = 1e6},
           {.name = "horizon_s",
            .fallback = 86400.0,
            .meaning = "seconds that are played forward; jobs not done by then count with their age",
            .least = 1e-3,
            .most = 1e9},
           figure_parameter(),
           {.name = "runtimes",
            .fallback = std::string("predicted"),
            .meaning = "how long jobs run there: as `estimate` says, or as they truly will",
            .words = {"predicted", "exact"}},
           {.name = "arrivals",
            .fallback = std::string("none"),
            .meaning = "jobs that come there: none, or such as came in the last horizon_s, drawn anew, at the "
                       "distances at which those came; none either where users change jobs, jobs have "
                       "limits or stages, are elastic, or wait for others",
            .words = {"none", "resampled"}},
           {.name = "budget_events",
            .fallback = 0.0,
            .meaning = "events of an evaluation, in parts for the smart, stale and poor policies: each of "
                       "these sets tries no more once its part is used up; 0: no limit",
            .most = 1e12,
            .is_count = true},
           {.name = "smart_share",
            .fallback = 0.6,
            .meaning = "of the policies tried, the part that is tried first next time",
            .least = 1e-6,
            .most = 1},
           {.name = "switch_cost",
            .fallback = 0.0,
            .meaning = "in units of the figure: policies that do not have the run, in the beginning all but the first, "
                       "count so much worse",
            .most = 1e15},
           {.name = "ties",
            .fallback = std::string("later"),
            .meaning = "equal figures give the run to the policy named last, or leave it where it is",
            .words = {"later", "stay"}}},
      .make = make_portfolio,
      .preemptive = true};
  for (ParameterInfo& parameter : estimate_parameters("requested")) info.parameters.push_back(std::move(parameter));
  info.holds_policies = true;
  info.files = files_of_members;
  info.asymmetries = {{Symmetry::time_scale, "run times are an hour where nothing is known of them"}};
  info.log = [](const PolicyParameters&, const PolicyContext&) -> Result<std::unique_ptr<PolicyLog>> {
    return std::unique_ptr<PolicyLog>(std::make_unique<NotesLog>("portfolio.csv"));
  };
  return info;
}

}  // namespace gpusched
