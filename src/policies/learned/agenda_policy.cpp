// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/agenda_policy.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace gpusched {

std::string estimator_name(RuntimeKnowledge knowledge) {
  switch (knowledge) {
    case RuntimeKnowledge::none: return "";
    case RuntimeKnowledge::user: return "requested";
    case RuntimeKnowledge::predicted: return "history";
    case RuntimeKnowledge::oracle: break;
  }
  return "exact";
}

namespace {

template <class T, std::size_t N>
std::vector<std::string> words_of(const std::array<NamedValue<T>, N>& names) {
  std::vector<std::string> words;
  words.reserve(N);
  for (const NamedValue<T>& entry : names) words.emplace_back(entry.name);
  return words;
}

}  // namespace

AgendaPolicy::AgendaPolicy(const AgendaOptions& options, std::span<const Time> true_runs, const JobHistory& history)
    : agenda_(options, true_runs, history),
      way_(way_of(options)),
      known_(options.knowledge, true_runs, history.run_times),
      backfill_(options.mode == ActionMode::select_blocking) {}

AgendaPolicy::Way AgendaPolicy::way_of(const AgendaOptions& options) {
  if (options.choose_nodes || options.starvation != Time::max() || options.max_jobs != no_index) return Way::choices;
  switch (options.mode) {
    case ActionMode::fit_or_wait:
    case ActionMode::inspect: return Way::key;
    case ActionMode::select_blocking: return options.sc20_backfill ? Way::backfill : Way::key;
    case ActionMode::backfill:
    case ActionMode::reserve: return Way::backfill;  // the order's first job is the head in both
    case ActionMode::preempt: break;
  }
  return Way::choices;
}

void AgendaPolicy::decide(const View& view, Decision& decision) {
  if (way_ == Way::choices) {
    agenda_.observe(view);
    while (agenda_.open(view, decision)) agenda_.act(agenda_.options().heuristic, view, decision);
    return;
  }
  observe(view);
  if (way_ == Way::backfill) {
    backfill_.decide(view, decision);
  } else {
    start_by_key(view, decision);
  }
}

void AgendaPolicy::start_by_key(const View& view, Decision& decision) {
  if (agenda_.options().mode != ActionMode::select_blocking) {
    waiting_.start_in_order(view, decision, true);
    return;
  }
  for (;;) {
    if (chosen_ == no_job) chosen_ = waiting_.pop();
    if (chosen_ == no_job || decision.start(chosen_) != Verdict::ok) return;
    chosen_ = no_job;
  }
}

void AgendaPolicy::observe(const View& view) {
  for (const Event& event : view.events()) {
    const View then = view.at(event);
    const bool ended = leaves_cluster(event.kind);
    if (ended && way_ == Way::backfill) backfill_.end(event.job);
    if (event.kind == EventKind::finish) known_.finish(then, event.job);
    if (enters_queue(event.kind)) wait(then, event.job);
    if (event.kind == EventKind::withdraw) withdraw(then, event.job);
  }
}

void AgendaPolicy::withdraw(const View& view, JobId job) {
  if (way_ == Way::backfill) {
    backfill_.withdraw(view, job);
  } else if (job == chosen_) {
    chosen_ = no_job;
  } else {
    waiting_.erase(view, job);
  }
}

void AgendaPolicy::wait(const View& view, JobId job) {
  const float known_s = known_.seconds(view, job);
  const double key = heuristic_key(agenda_.options().heuristic, known_s, gpus_of(view.shape(job)), view.submit(job).us);
  if (way_ == Way::backfill) {
    backfill_.wait(view, job, key, from_seconds(static_cast<double>(known_s)));
  } else {
    waiting_.push(view, job, {key, waits_++});
  }
}

namespace {

// Chosen on first parts of logs (experiments/predictions).
constexpr double gittins_half_life_jobs = 10'000;

// fcfs and las look at no run time.
std::string known_of_runs(const PolicyParameters& parameters, const std::string& /*name*/) {
  const std::string& heuristic = parameters.word("heuristic");
  if (heuristic == "fcfs" || heuristic == "las") return "";
  return estimator_name(*value_from_name(runtime_knowledge_names, parameters.word("knowledge")));
}

}  // namespace

Result<void> check_limits(const std::string& agent, ActionMode mode, const PolicyContext& context) {
  if (mode != ActionMode::reserve || context.cluster == nullptr) return {};
  const std::vector<LimitRule>& limits = context.cluster->limits;
  if (std::none_of(limits.begin(), limits.end(), [](const LimitRule& rule) { return rule.holds_jobs_back(); }))
    return {};
  return unexpected("policy '" + agent + "': mode reserve does not take limits of users and others");
}

PolicyInfo agenda_info() {
  return {.name = "agenda",
          .summary = "the choices of a learned scheduler (rl:DIR), made by a fixed order",
          .source =
              "gpusched/learn/agenda.hpp; mode=select_blocking is the loop of RLScheduler (SC'20), mode=preempt "
              "preempts",
          .complexity = "O(shapes + log n) a start; where it backfills O(shapes log n + running)",
          .parameters = {{.name = "mode",
                          .fallback = std::string("fit_or_wait"),
                          .meaning = "what is chosen",
                          .words = words_of(action_mode_names)},
                         {.name = "heuristic",
                          .fallback = std::string("sjf"),
                          .meaning = "the order",
                          .words = words_of(heuristic_names)},
                         {.name = "knowledge",
                          .fallback = std::string("predicted"),
                          .meaning = "where run times come from",
                          .words = words_of(runtime_knowledge_names)},
                         {.name = "sc20_backfill",
                          .fallback = false,
                          .meaning = "select_blocking: backfill while the chosen job waits"},
                         {.name = "half_life_jobs",
                          .fallback = gittins_half_life_jobs,
                          .meaning = "heuristic=gittins: ended jobs after which one counts half as much; 0: all count "
                                     "alike, as in trained agents",
                          .most = 1e9}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            AgendaOptions options;
            options.mode = *value_from_name(action_mode_names, parameters.word("mode"));
            options.heuristic = *value_from_name(heuristic_names, parameters.word("heuristic"));
            options.knowledge = *value_from_name(runtime_knowledge_names, parameters.word("knowledge"));
            options.sc20_backfill = parameters.flag("sc20_backfill");
            options.max_jobs = no_index;  // an order needs no cap
            if (const auto wrong = contradiction(options)) return unexpected("policy 'agenda': " + std::string(*wrong));
            if (auto done = check_limits("agenda", options.mode, context); !done) return Unexpected{done.error()};
            const bool oracle = options.knowledge == RuntimeKnowledge::oracle;
            return AnyPolicy(AgendaPolicy(options, oracle ? context.jobs->works() : std::span<const Time>{},
                                          JobHistory::of(context.past, options.mode == ActionMode::preempt,
                                                         parameters.number("half_life_jobs"))));
          },
          .preemptive = true,
          .agent = true,
          .knowledge = known_of_runs,
          .asymmetries = {{Symmetry::time_scale, "of a job of which nothing is known an hour is assumed"}}};
}

}  // namespace gpusched
