// SPDX-License-Identifier: Apache-2.0
/// What a learning scheduler may choose, what it is told and which order it is measured against: the options of an
/// Agenda (agenda.hpp), with the names they have in files and on the command line.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "gpusched/core/config.hpp"
#include "gpusched/core/named_value.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/signal.hpp"
#include "gpusched/policy/f1_score.hpp"

namespace gpusched {

/// What the agent chooses.
enum class ActionMode : std::uint8_t {
  fit_or_wait,      ///< a waiting job that fits, or WAIT for the next event
  select_blocking,  ///< any waiting job; it is then waited for until it fits (RLScheduler, SC'20); no WAIT
  backfill,         ///< the heuristic's first job holds a reservation (EASY); choose a job to backfill, or WAIT
  reserve,          ///< any waiting job; one that does not fit holds EASY's reservation at this instant, and the next
                    ///< choices are jobs to backfill, or WAIT
  inspect,          ///< accept or reject (WAIT) the heuristic's first fitting job (SchedInspector, HPDC'22)
  preempt,          ///< not a choice but an order of all jobs, waiting and running (ranking.hpp)
};

/// What the agent is told about run times. Printed beside every result.
enum class RuntimeKnowledge : std::uint8_t {
  none,       ///< nothing
  user,       ///< the user's estimate; jobs without one are predicted
  predicted,  ///< RuntimePredictor, from jobs that have finished
  oracle,     ///< the true run time
};

/// Static orders of waiting jobs, smallest key first, ties by submission. "r" is the known run time in seconds (1 when
/// nothing is known), "n" the GPUs, "s" the submission in seconds.
enum class Heuristic : std::uint8_t {
  fcfs,     ///< s
  sjf,      ///< r
  saf,      ///< r n
  f1,       ///< f1_score(r, n, s) (f1_score.hpp)
  las,      ///< mode preempt: level of GPU service attained (Ranking)
  srtf,     ///< mode preempt: known run time left, as of the job's last level
  gittins,  ///< mode preempt: falling Gittins index by ServiceLife; that of a running job counts e times
};

/// The name of each mode.
inline constexpr std::array<NamedValue<ActionMode>, 6> action_mode_names{{
    {"fit_or_wait", ActionMode::fit_or_wait},
    {"select_blocking", ActionMode::select_blocking},
    {"backfill", ActionMode::backfill},
    {"reserve", ActionMode::reserve},
    {"inspect", ActionMode::inspect},
    {"preempt", ActionMode::preempt},
}};
/// The name of each kind of knowledge.
inline constexpr std::array<NamedValue<RuntimeKnowledge>, 4> runtime_knowledge_names{{
    {"none", RuntimeKnowledge::none},
    {"user", RuntimeKnowledge::user},
    {"predicted", RuntimeKnowledge::predicted},
    {"oracle", RuntimeKnowledge::oracle},
}};
/// The name of each order.
inline constexpr std::array<NamedValue<Heuristic>, 7> heuristic_names{{
    {"fcfs", Heuristic::fcfs},
    {"sjf", Heuristic::sjf},
    {"saf", Heuristic::saf},
    {"f1", Heuristic::f1},
    {"las", Heuristic::las},
    {"srtf", Heuristic::srtf},
    {"gittins", Heuristic::gittins},
}};

/// A waiting job's key. Precondition: not an order of mode preempt.
inline double heuristic_key(Heuristic heuristic, float known_s, float gpu_count, std::int64_t submit_us) {
  const double run = known_s > 0 ? static_cast<double>(known_s) : 1.0;
  const double gpus = static_cast<double>(gpu_count);
  switch (heuristic) {
    case Heuristic::fcfs: return static_cast<double>(submit_us);
    case Heuristic::sjf: return run;
    case Heuristic::saf: return run * gpus;
    case Heuristic::las:
    case Heuristic::srtf:
    case Heuristic::gittins: GPUSCHED_ASSERT(false, "an order of mode preempt"); [[fallthrough]];
    case Heuristic::f1: break;
  }
  return f1_score(run, gpus, static_cast<double>(submit_us) / static_cast<double>(microseconds_per_second));
}

/// The decision process that an Agenda offers. The defaults contradict nothing.
struct AgendaOptions {
  ActionMode mode = ActionMode::fit_or_wait;                 ///< what the agent chooses
  RuntimeKnowledge knowledge = RuntimeKnowledge::predicted;  ///< what it is told about run times
  Heuristic heuristic = Heuristic::sjf;  ///< of the residual logits, of backfill's head and of inspect
  std::uint32_t max_jobs = 128;          ///< tokens at most, >= 4; above it, the union of four orders
  bool choose_nodes = false;      ///< a job that starts on one node: choose the kind of node too (Agenda::placing())
  bool node_speeds = false;       ///< choose_nodes: choose the GPU type, told how fast the job is there, or WAIT
  bool sc20_backfill = false;     ///< select_blocking: RLScheduler's backfilling while the chosen job waits
  Time starvation = Time::max();  ///< fit_or_wait: once the oldest job waited this long, nothing else starts
  /// The agent is told of carbon, prices, draw and caps (SignalFeature), and WAIT lasts until the next event or until
  /// one of these signals changes. The run must have a power model.
  bool signals = false;
  Forecast forecast = {};  ///< signals: how their future is told

  /// It knows what nobody can know: true run times, or a future that is not guessed from the past.
  [[nodiscard]] bool clairvoyant() const {
    return knowledge == RuntimeKnowledge::oracle || (signals && forecast.kind != Forecast::Kind::persistence);
  }

  friend bool operator==(const AgendaOptions&, const AgendaOptions&) = default;  ///< every option alike
};

/// What is wrong with a combination of options, or nothing.
constexpr std::optional<std::string_view> contradiction(const AgendaOptions& options) {
  if (options.node_speeds && !options.choose_nodes)
    return "node_speeds tells of a choice of nodes: it needs choose_nodes";
  if (options.node_speeds && options.mode != ActionMode::fit_or_wait) {
    return "node_speeds lets a chosen job wait for another GPU type: it needs mode fit_or_wait";
  }
  const bool follows = options.heuristic == Heuristic::las || options.heuristic == Heuristic::srtf ||
                       options.heuristic == Heuristic::gittins;
  if (options.mode != ActionMode::preempt) {
    if (follows) return "the heuristics las, srtf and gittins rank running jobs: they need mode preempt";
    return std::nullopt;
  }
  if (options.choose_nodes) return "mode preempt has no choice of nodes";
  if (options.sc20_backfill) return "mode preempt has no backfilling";
  if (options.starvation != Time::max()) return "mode preempt has no starvation guard";
  return std::nullopt;
}

}  // namespace gpusched
