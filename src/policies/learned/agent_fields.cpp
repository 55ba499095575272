// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/agent_fields.hpp"

namespace gpusched {

FieldTable agenda_fields(AgendaOptions& options, const std::string& prefix, std::uint32_t most_jobs) {
  return {
      word_field(
          prefix + "mode", "",
          "what the agent chooses: fit_or_wait, a waiting job that fits, or to wait; select_blocking, any waiting "
          "job, and the scheduler then waits until it fits; backfill, jobs behind the heuristic's first job; "
          "reserve, the job that holds the reservation, and those behind it; inspect, to accept or reject the "
          "heuristic's choice; preempt, an order of all jobs",
          options.mode, action_mode_names),
      word_field(
          prefix + "knowledge", "",
          "what it is told about run times: nothing, the user's estimate, what finished jobs predict, or the true "
          "run time",
          options.knowledge, runtime_knowledge_names),
      word_field(
          prefix + "heuristic", "",
          "order that the untrained agent acts by and losses are scaled by; las, srtf and gittins in mode preempt",
          options.heuristic, heuristic_names),
      {.path = prefix + "max_jobs",
       .flag = "",
       .meaning = "jobs that the agent sees at once, at most",
       .target = &options.max_jobs,
       .range = Field::Range{4, static_cast<double>(most_jobs)}},
      {.path = prefix + "choose_nodes",
       .flag = "",
       .meaning = "for a job that starts on one node the agent also chooses the kind of node",
       .target = &options.choose_nodes},
      {.path = prefix + "node_speeds",
       .flag = "",
       .meaning =
           "with choose_nodes, in mode fit_or_wait: it chooses the GPU type, told how fast the job is there, and "
           "may let the job wait for a better one",
       .target = &options.node_speeds},
      {.path = prefix + "sc20_backfill",
       .flag = "",
       .meaning = "mode select_blocking: RLScheduler's backfilling while the chosen job waits",
       .target = &options.sc20_backfill},
      {.path = prefix + "starvation_s",
       .flag = "",
       .meaning = "mode fit_or_wait: once the oldest job has waited so long no other starts; 0: never",
       .target = LimitTarget{&options.starvation},
       .range = Field::Range{0, 1e9}},
      {.path = prefix + "signals",
       .flag = "",
       .meaning =
           "the agent is told of carbon, prices, draw and caps, and may wait until they change; needs a power file",
       .target = &options.signals},
      word_field(prefix + "forecast", "",
                 "signals: how their future is told: persistence, as a day ago; perfect, the truth; noisy, the truth "
                 "and an error",
                 options.forecast.kind, forecast_names),
      {.path = prefix + "forecast_sigma",
       .flag = "",
       .meaning = "forecast noisy: standard deviation of the error, as a part of the signal's mean",
       .target = &options.forecast.sigma,
       .range = Field::Range{0, 100}},
  };
}

FieldTable network_fields(NetworkSpec& spec, const std::string& prefix) {
  const auto row = [&](const char* key, FieldTarget target, double least, double most, const char* meaning) {
    return Field{.path = prefix + key,
                 .flag = "",
                 .meaning = meaning,
                 .target = std::move(target),
                 .range = Field::Range{least, most}};
  };
  return {
      word_field(prefix + "kind", "",
                 "kernel: each job beside the state of the cluster; deepsets and attention: all jobs together; index: "
                 "linear; rank: the same for mode preempt; kernel@sc20: as RLScheduler has it",
                 spec.kind, network_kind_names),
      row("width", &spec.width, 2, 4096, "units of hidden layers, an even multiple of heads"),
      row("heads", &spec.heads, 1, 64, "of attention"),
      row("critic_width", &spec.critic_width, 1, 4096, "units of the critic's hidden layers"),
      row("alpha", &spec.alpha, 0, 100, "initial weight of the heuristic in the logits"),
      row("hidden", &spec.hidden, 0, 4096, "index and rank: hidden units that correct the linear score"),
      row("hold_s", &spec.hold_s, 0, 1e9,
          "index and rank: the action is the weights, which hold for so many seconds; 0: it is not"),
      row("hold_jobs", &spec.hold_jobs, 0, 1e9, "the same until so many more jobs were submitted"),
      row("deviation", &spec.deviation, 1e-6, 100, "initial standard deviation of each such weight"),
  };
}

std::optional<Error> network_contradiction(const NetworkSpec& spec) {
  const bool linear = spec.kind == NetworkKind::index || spec.kind == NetworkKind::rank;
  const auto wrong = [](const char* key, const char* message) {
    return std::optional(Error{.message = message, .field = key});
  };
  if (spec.steers() && !linear) {
    return wrong(spec.hold_s > 0 ? "hold_s" : "hold_jobs",
                 "expected 0 unless the kind is index or rank, whose weights can be an action");
  }
  if (spec.hold_s > 0 && spec.hold_jobs > 0) {
    return wrong("hold_jobs", "expected 0 with a hold_s: an action ends after a time or after submissions");
  }
  if (spec.width % 2 != 0 || spec.width % spec.heads != 0) return wrong("width", "expected an even multiple of heads");
  if (spec.hidden > 0 && !linear) {
    return wrong("hidden", "expected 0: only the networks index and rank have a score to correct");
  }
  return std::nullopt;
}

}  // namespace gpusched
