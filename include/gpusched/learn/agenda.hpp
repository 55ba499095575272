// SPDX-License-Identifier: Apache-2.0
/// Agenda: the decision process of a learning scheduler, seen from one engine. It follows the events of a run, says
/// when there is something to choose, writes the state as a ragged observation, and turns an action into commands. The
/// training environment (env.hpp) and the trained policy share it, so that both see the same states.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "gpusched/learn/detail/choice_agenda.hpp"
#include "gpusched/learn/detail/ranking_agenda.hpp"
#include "gpusched/learn/detail/signal_reader.hpp"
#include "gpusched/learn/job_history.hpp"
#include "gpusched/learn/known_runs.hpp"
#include "gpusched/learn/observation.hpp"

namespace gpusched {

namespace detail {

using AnyAgenda = std::variant<ChoiceAgenda, RankingAgenda>;

/// What `call` gives for the agenda inside. Two branches inline better than std::visit, which may also throw.
template <class Kind, class Call>
decltype(auto) with_agenda(Kind& kind, Call call) {
  if (auto* const choice = std::get_if<ChoiceAgenda>(&kind)) return call(*choice);
  return call(*std::get_if<RankingAgenda>(&kind));
}

}  // namespace detail

/// See the head of this file. An open choice has tokens, numbered from 0: each is a job that may be chosen. Mode
/// `preempt` asks for scores instead; what only one kind of agenda has says so. A value: a copy goes on independently
/// with a copy of the engine.
class Agenda {
 public:
  /// `true_runs`: as KnownRuns; `history`: what predictions know before the run. Precondition: no
  /// contradiction(options), max_jobs >= 4.
  Agenda(const AgendaOptions& options, std::span<const Time> true_runs, JobHistory history = {})
      : options_(options), kind_(make(options, true_runs, std::move(history))), signals_(options.forecast) {
    GPUSCHED_ASSERT(options.max_jobs >= 4, "an observation needs at least four tokens");
    GPUSCHED_ASSERT(!contradiction(options), "options that contradict each other");
  }

  /// The options it was made with.
  [[nodiscard]] const AgendaOptions& options() const { return options_; }

  /// Takes note of the events of this instant. Call once after every advance(), before open().
  void observe(const View& view) {
    detail::with_agenda(kind_, [&view](auto& agenda) { agenda.observe(view); });
  }

  /// Makes the moves that need no choice (a blocked job that fits now, a single legal action) and says whether the
  /// agent must choose at this instant. After act(), call it again: false means apply() and advance().
  bool open(const View& view, Decision& decision) {
    return detail::with_agenda(kind_, [&view, &decision](auto& agenda) { return agenda.open(view, decision); });
  }

  /// Lists the tokens although nothing may be chosen: for the final observation of a truncated run.
  void show(const View& view) {
    detail::with_agenda(kind_, [&view](auto& agenda) { agenda.show(view); });
  }

  /// True when the open choice is the second one of AgendaOptions::choose_nodes: the job is chosen, and the tokens are
  /// the kinds of node (GPU type, size, idle GPUs) that it could start on, fullest first. Their features are the job's,
  /// but for gpus_over_free (of the node's idle GPUs), age_rank (the token's number), fills_nodes (it takes what is
  /// idle) and log_earliest_start, which is -1 - GPU type / 4 here and never negative elsewhere. There is no WAIT. The
  /// prior prefers the fullest node, as the placement rule `consolidate` does.
  /// With AgendaOptions::node_speeds, where known run times count as on the GPU type that is best for the job, there is
  /// a token for each GPU type that has room, the fastest first, and its features are PlaceFeature. The job starts on
  /// nodes of that type, chosen by the run's placement rule. WAIT, where something will happen, puts the job off until
  /// the next event; the other jobs remain to be chosen. So does a job that has room on several types together alone,
  /// without a choice. The prior prefers the fastest type, and WAIT as much as the second.
  [[nodiscard]] bool placing() const {
    const auto* const choice = std::get_if<detail::ChoiceAgenda>(&kind_);
    return choice != nullptr && choice->placing();
  }

  /// True in mode preempt: an open choice then asks for the scores of jobs that are new or entered another level
  /// (rank()). Its tokens are pairs, a job as it would wait and as it would run, their features RankFeature; there is
  /// no WAIT and no group; the global features are 0 but where change_hands() asked for all jobs, and log_hidden
  /// always. A score holds until the job is asked for again.
  [[nodiscard]] bool ranks() const { return std::holds_alternative<detail::RankingAgenda>(kind_); }

  /// Tokens of the open choice; WAIT is the action of that number.
  [[nodiscard]] std::uint32_t size() const {
    return detail::with_agenda(kind_, [](const auto& agenda) { return agenda.size(); });
  }
  /// Node groups of the observation (Observation::groups); none in mode preempt.
  [[nodiscard]] std::uint32_t group_count() const { return ranks() ? 0 : choice().group_count(); }

  /// The job of token `action` of the open choice.
  [[nodiscard]] JobId job(std::uint32_t action) const {
    return detail::with_agenda(kind_, [&action](const auto& agenda) { return agenda.job(action); });
  }

  /// True when the open choice allows `action`; in mode preempt none is.
  [[nodiscard]] bool allowed(std::uint32_t action) const { return !ranks() && choice().allowed(action); }

  /// The allowed action that the heuristic prefers (never WAIT while a job may be chosen). Precondition: !ranks().
  [[nodiscard]] std::uint32_t heuristic_action(Heuristic heuristic) const {
    return choice().heuristic_action(heuristic);
  }

  /// Does what a heuristic does: its preferred action or, in mode preempt, its order.
  void act(Heuristic heuristic, const View& view, Decision& decision) {
    detail::with_agenda(kind_, [&heuristic, &view, &decision](auto& agenda) { agenda.act(heuristic, view, decision); });
  }

  /// Carries out an action of the open choice. Precondition: allowed(action).
  void act(std::uint32_t action, const View& view, Decision& decision) { choice().act(action, view, decision); }

  /// Takes the scores of the tokens, larger first (Ranking::rank). Preconditions: ranks(); all are finite.
  void rank(const View& view, std::span<const float> scores) { ranking().rank(view, scores); }

  /// Does what a network's outputs for the tokens and WAIT say: the action `pick(outputs)` or, in mode preempt, their
  /// order. Preconditions: those of act() for that action, or of rank().
  template <class Pick>
  void act(std::span<const float> outputs, Pick pick, const View& view, Decision& decision) {
    if (ranks()) return rank(view, outputs);
    act(pick(outputs), view, decision);
  }

  /// From now on somebody else acts: in mode preempt the scores of all jobs are asked for again.
  void change_hands(const View& view) {
    detail::with_agenda(kind_, [&view](auto& agenda) { agenda.change_hands(view); });
  }

  /// Makes room for the open choice alone.
  void make_room(Observation& seen) const {
    seen.shape(
        1,
        [this](std::uint32_t) {
          return std::pair{size(), group_count()};
        },
        options_.signals);
  }
  /// Writes the open choice. With AgendaOptions::signals the run must have a power model (View::knows_power).
  void encode(const View& view, const ObservationSlot& slot) const {
    detail::with_agenda(kind_, [&view, &slot](const auto& agenda) { agenda.encode(view, slot); });
    if (!options_.signals) return;
    GPUSCHED_ASSERT(slot.signals != nullptr && view.knows_power(), "signals need a power model, and room");
    signals_.write(view, slot.signals);
  }

  /// Jobs that wait. Precondition: !ranks().
  [[nodiscard]] std::uint32_t waiting_count() const { return choice().waiting_count(); }

 private:
  static detail::AnyAgenda make(const AgendaOptions& options, std::span<const Time> true_runs, JobHistory history) {
    KnownRuns known(options.knowledge, true_runs, std::move(history.run_times));
    if (options.mode != ActionMode::preempt) return detail::ChoiceAgenda(options, std::move(known));
    return detail::RankingAgenda(options, std::move(known), std::move(history));
  }

  [[nodiscard]] detail::ChoiceAgenda& choice() {
    GPUSCHED_ASSERT(!ranks(), "mode preempt has no actions");
    return *std::get_if<detail::ChoiceAgenda>(&kind_);
  }
  [[nodiscard]] const detail::ChoiceAgenda& choice() const {
    GPUSCHED_ASSERT(!ranks(), "mode preempt has no actions");
    return *std::get_if<detail::ChoiceAgenda>(&kind_);
  }
  [[nodiscard]] detail::RankingAgenda& ranking() {
    GPUSCHED_ASSERT(ranks(), "only mode preempt takes scores");
    return *std::get_if<detail::RankingAgenda>(&kind_);
  }

  AgendaOptions options_;
  detail::AnyAgenda kind_;
  detail::SignalReader signals_;
};

}  // namespace gpusched
