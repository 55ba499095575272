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

}  // namespace

PolicyInfo agenda_info() {
  return {.name = "agenda",
          .summary = "the choices of a learned scheduler (rl:DIR), made by a fixed order",
          .source =
              "gpusched/agenda.hpp; mode=select_blocking is the loop of RLScheduler (SC'20), mode=preempt "
              "preempts",
          .complexity = "O(waiting jobs) a choice",
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
