// SPDX-License-Identifier: Apache-2.0
#include "src/policies/agenda_policy.hpp"

#include <string>
#include <vector>

namespace gpusched {
namespace {

template <class T, std::size_t N>
std::vector<std::string> words_of(const std::array<NamedValue<T>, N>& names) {
  std::vector<std::string> words;
  words.reserve(N);
  for (const NamedValue<T>& entry : names) words.emplace_back(entry.name);
  return words;
}

// Modes in which nothing but the key and what fits decides.
bool key_decides(const AgendaOptions& options) {
  if (options.choose_nodes || options.starvation != Time::max() || options.max_jobs != no_index) return false;
  switch (options.mode) {
    case ActionMode::fit_or_wait:
    case ActionMode::inspect: return true;
    case ActionMode::select_blocking: return !options.sc20_backfill;
    case ActionMode::backfill:
    case ActionMode::preempt: break;
  }
  return false;
}

}  // namespace

AgendaPolicy::AgendaPolicy(const AgendaOptions& options, std::span<const Time> true_runs)
    : agenda_(options, true_runs), by_key_(key_decides(options)), known_(options.knowledge, true_runs) {}

void AgendaPolicy::decide(const View& view, Decision& decision) {
  if (!by_key_) {
    agenda_.observe(view);
    while (agenda_.open(view, decision)) agenda_.act(agenda_.options().heuristic, view, decision);
    return;
  }
  observe(view);
  if (agenda_.options().mode != ActionMode::select_blocking) {
    waiting_.start_in_order(decision, true);
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
    if (event.kind == EventKind::finish) known_.finish(view, event.job);
    if (event.kind != EventKind::submit && event.kind != EventKind::retry) continue;
    const double key = heuristic_key(agenda_.options().heuristic, known_.seconds(view, event.job),
                                     gpus_of(view.shape(event.job)), view.submit(event.job).us);
    waiting_.push(view, event.job, {key, waits_++});
  }
}

PolicyInfo agenda_info() {
  return {.name = "agenda",
          .summary = "the choices of a learned scheduler (rl:DIR), made by a fixed order",
          .source =
              "gpusched/agenda.hpp; mode=select_blocking is the loop of RLScheduler (SC'20), mode=preempt "
              "preempts",
          .complexity = "O(shapes + log n) a start; mode=backfill and sc20_backfill: O(waiting jobs) a choice",
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
                          .meaning = "select_blocking: backfill while the chosen job waits"}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            AgendaOptions options;
            options.mode = *value_from_name(action_mode_names, parameters.word("mode"));
            options.heuristic = *value_from_name(heuristic_names, parameters.word("heuristic"));
            options.knowledge = *value_from_name(runtime_knowledge_names, parameters.word("knowledge"));
            options.sc20_backfill = parameters.flag("sc20_backfill");
            options.max_jobs = no_index;  // an order needs no cap
            if (const auto wrong = contradiction(options)) return unexpected("policy 'agenda': " + std::string(*wrong));
            const bool oracle = options.knowledge == RuntimeKnowledge::oracle;
            return AnyPolicy(AgendaPolicy(options, oracle ? context.jobs->works() : std::span<const Time>{}));
          },
          .preemptive = true};
}

}  // namespace gpusched
