// SPDX-License-Identifier: Apache-2.0
/// Agenda: the decision process of a learning scheduler, seen from one engine. It follows the events of a run, says
/// when there is something to choose, shows the state as a ragged observation, and turns an action into commands. The
/// training environment (env.hpp) and the trained policy share it, so that both see the same states.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/ranking.hpp"
#include "gpusched/runtime_predictor.hpp"
#include "gpusched/view.hpp"

namespace gpusched {

/// What the agent chooses.
enum class ActionMode : std::uint8_t {
  fit_or_wait,      ///< a waiting job that fits, or WAIT for the next event
  select_blocking,  ///< any waiting job; it is then waited for until it fits (RLScheduler, SC'20); no WAIT
  backfill,         ///< the heuristic's first job holds a reservation (EASY); choose a job to backfill, or WAIT
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
  fcfs,  ///< s
  sjf,   ///< r
  saf,   ///< r n
  f1,    ///< log10(r) n + 870 log10(s) (Carastan-Santos & de Camargo, SC'17)
  las,   ///< mode preempt: level of GPU service attained (Ranking)
  srtf,  ///< mode preempt: known run time left, as of the job's last level
};

template <class T>
struct NamedValue {
  std::string_view name;
  T value;
};

inline constexpr std::array<NamedValue<ActionMode>, 5> action_mode_names{{
    {"fit_or_wait", ActionMode::fit_or_wait},
    {"select_blocking", ActionMode::select_blocking},
    {"backfill", ActionMode::backfill},
    {"inspect", ActionMode::inspect},
    {"preempt", ActionMode::preempt},
}};
inline constexpr std::array<NamedValue<RuntimeKnowledge>, 4> runtime_knowledge_names{{
    {"none", RuntimeKnowledge::none},
    {"user", RuntimeKnowledge::user},
    {"predicted", RuntimeKnowledge::predicted},
    {"oracle", RuntimeKnowledge::oracle},
}};
inline constexpr std::array<NamedValue<Heuristic>, 6> heuristic_names{{
    {"fcfs", Heuristic::fcfs},
    {"sjf", Heuristic::sjf},
    {"saf", Heuristic::saf},
    {"f1", Heuristic::f1},
    {"las", Heuristic::las},
    {"srtf", Heuristic::srtf},
}};

/// The value called `name`, if any.
template <class T, std::size_t N>
constexpr std::optional<T> value_from_name(const std::array<NamedValue<T>, N>& names, std::string_view name) {
  for (const NamedValue<T>& entry : names) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

/// The name of `value`. Precondition: it is in the table.
template <class T, std::size_t N>
constexpr std::string_view name_of(const std::array<NamedValue<T>, N>& names, T value) {
  for (const NamedValue<T>& entry : names) {
    if (entry.value == value) return entry.name;
  }
  return {};
}

/// What is known of run times, from what has been seen so far.
class KnownRuns {
 public:
  /// `true_runs` (JobTable::works()) is read only with RuntimeKnowledge::oracle and may be empty otherwise; it is
  /// borrowed. `history` is what the predictor knows before the run.
  KnownRuns(RuntimeKnowledge knowledge, std::span<const Time> true_runs, RuntimePredictor history = {})
      : knowledge_(knowledge), true_runs_(true_runs), predictor_(std::move(history)) {
    GPUSCHED_ASSERT(knowledge != RuntimeKnowledge::oracle || !true_runs.empty(), "the oracle needs run times");
  }

  /// Learns a job that has just finished.
  void finish(const View& view, JobId job) {
    if (knowledge_ == RuntimeKnowledge::predicted || knowledge_ == RuntimeKnowledge::user) predictor_.learn(view, job);
  }

  /// 0 when unknown.
  [[nodiscard]] float seconds(const View& view, JobId job) const {
    switch (knowledge_) {
      case RuntimeKnowledge::none: return 0.0f;
      case RuntimeKnowledge::oracle: return static_cast<float>(to_seconds(true_runs_[index(job)]));
      case RuntimeKnowledge::user:
        if (view.estimate(job) != Time::max()) return static_cast<float>(to_seconds(view.estimate(job)));
        [[fallthrough]];
      case RuntimeKnowledge::predicted: break;
    }
    return static_cast<float>(predictor_.predict_seconds(view, job));
  }

 private:
  RuntimeKnowledge knowledge_;
  std::span<const Time> true_runs_;
  RuntimePredictor predictor_;
};

/// GPUs of a gang, a share counting as its fraction.
inline float gpus_of(const Shape& shape) {
  return static_cast<float>(shape.gpu_milli()) / static_cast<float>(whole_gpu);
}

/// A waiting job's key. Precondition: not an order of mode preempt.
inline double heuristic_key(Heuristic heuristic, float known_s, float gpu_count, std::int64_t submit_us) {
  const double run = known_s > 0 ? static_cast<double>(known_s) : 1.0;
  const double gpus = static_cast<double>(gpu_count);
  switch (heuristic) {
    case Heuristic::fcfs: return static_cast<double>(submit_us);
    case Heuristic::sjf: return run;
    case Heuristic::saf: return run * gpus;
    case Heuristic::las:
    case Heuristic::srtf: GPUSCHED_ASSERT(false, "an order of mode preempt"); [[fallthrough]];
    case Heuristic::f1: break;
  }
  const double submit = static_cast<double>(submit_us) / static_cast<double>(microseconds_per_second);
  const auto log_of = [](double x) { return std::log10(x <= 0 ? 0.1 : x); };
  return log_of(run) * gpus + 870 * log_of(submit);
}

/// One float of a token for each. Logarithms are natural, of 1 + x, times the constant named.
enum JobFeature : std::uint8_t {
  log_wait,            ///< seconds waited, / 10
  log_known,           ///< known run time in seconds, / 10; 0 when unknown
  log_gpus,            ///< / 5
  gpus_over_free,      ///< min(4, GPUs / free GPUs) / 4
  log_slowdown,        ///< wait / max(known, 10 s), / 5
  fits_now,            ///< 0 or 1
  log_area,            ///< known run time x GPUs, / 15
  age_rank,            ///< place by submission / number of tokens: 0 = oldest
  gpus_over_total,     ///< share of the cluster
  user_share,          ///< share of the cluster that the user's running jobs hold
  fills_nodes,         ///< 1 when it fits and would leave no partly used node that was idle before
  log_earliest_start,  ///< seconds until enough GPUs are free by known run times, / 10
  job_features,
};

enum GlobalFeature : std::uint8_t {
  free_fraction,
  log_queue,         ///< waiting jobs, / 5
  log_hidden,        ///< waiting jobs without a token, / 5
  log_queued_work,   ///< known GPU-seconds waiting / GPUs, / 10
  log_running,       ///< running jobs, / 5
  log_arrivals_5m,   ///< / 5
  log_arrivals_60m,  ///< / 5
  hour_sin,
  hour_cos,
  day_sin,
  day_cos,
  fragmented_fraction,  ///< free GPUs on partly used nodes / GPUs
  log_oldest_wait,      ///< seconds, / 10
  log_next_end,         ///< seconds to the next known end, / 10
  global_features,
};

/// A group of nodes alike in GPU type, size and idle GPUs.
enum GroupFeature : std::uint8_t {
  idle_fraction,    ///< of the node's GPUs
  log_nodes,        ///< nodes in the group, / 5
  log_node_gpus,    ///< GPUs a node, / 5
  group_gpu_share,  ///< of the cluster's GPUs
  group_features,
};

/// For the critic alone, never for the policy: true run times and the future of the window.
enum PrivilegedFeature : std::uint8_t {
  log_true_queued_work,   ///< GPU-seconds / GPUs, / 10
  log_true_running_work,  ///< the same, left of running jobs
  log_future_work,        ///< the same, not yet submitted
  log_future_jobs,        ///< / 10
  mean_true_urgency,      ///< sum over waiting jobs of 1 / max(run time, 10 s), log, / 5
  window_progress,        ///< submitted / jobs
  privileged_features,
};

namespace detail {

/// Natural logarithm of 1 + x for x >= 0 within 1e-4, branch-free so that the token loop vectorises; std::log would
/// cost as much as the rest of a step. The same bits everywhere: only additions, multiplications and bit operations.
inline float fast_log1p(float x) {
  const auto bits = std::bit_cast<std::int32_t>(1.0f + x);
  const auto exponent = static_cast<float>((bits >> 23) - 127);
  const auto m = std::bit_cast<float>((bits & 0x7FFFFF) | 0x3F800000) - 1.0f;
  // Least squares of log(1 + m) on [0, 1), exact at both ends so that the whole is continuous.
  const float log_mantissa = m * (0.99700858f + m * (-0.46848477f + m * (0.22052788f + m * -0.05590450f)));
  return exponent * 0.69314718f + log_mantissa;
}

/// Sine and cosine of the hour in its day, then in its week, for each hour of a week.
inline const std::array<std::array<float, 4>, 168>& hour_table() {
  static const auto table = [] {
    std::array<std::array<float, 4>, 168> hours{};
    for (std::size_t hour = 0; hour < hours.size(); ++hour) {
      constexpr double turn = 6.283185307179586;
      const double of_day = turn * static_cast<double>(hour % 24) / 24;
      const double of_week = turn * static_cast<double>(hour) / 168;
      hours[hour] = {static_cast<float>(std::sin(of_day)), static_cast<float>(std::cos(of_day)),
                     static_cast<float>(std::sin(of_week)), static_cast<float>(std::cos(of_week))};
    }
    return hours;
  }();
  return table;
}

}  // namespace detail

struct AgendaOptions {
  ActionMode mode = ActionMode::fit_or_wait;
  RuntimeKnowledge knowledge = RuntimeKnowledge::predicted;
  Heuristic heuristic = Heuristic::sjf;  ///< of the residual logits, of backfill's head and of inspect
  std::uint32_t max_jobs = 128;          ///< tokens at most, >= 4; above it, the union of four orders
  bool choose_nodes = false;      ///< a job that starts on one node: choose the kind of node too (Agenda::placing())
  bool sc20_backfill = false;     ///< select_blocking: RLScheduler's backfilling while the chosen job waits
  Time starvation = Time::max();  ///< fit_or_wait: once the oldest job waited this long, nothing else starts
};

/// What is wrong with a combination of options, or nothing.
constexpr std::optional<std::string_view> contradiction(const AgendaOptions& options) {
  const bool follows = options.heuristic == Heuristic::las || options.heuristic == Heuristic::srtf;
  if (options.mode != ActionMode::preempt) {
    if (follows) return "the heuristics las and srtf rank running jobs: they need mode preempt";
    return std::nullopt;
  }
  if (options.choose_nodes) return "mode preempt has no choice of nodes";
  if (options.sc20_backfill) return "mode preempt has no backfilling";
  if (options.starvation != Time::max()) return "mode preempt has no starvation guard";
  return std::nullopt;
}

/// Where one state's observation is written; each pointer has room for what Agenda::size() says.
struct ObservationSlot {
  float* jobs = nullptr;         ///< [jobs x job_features]
  float* prior = nullptr;        ///< [jobs + 1]: standardised heuristic preference, larger is better; the last is WAIT
  std::uint8_t* mask = nullptr;  ///< [jobs + 1]: 1 = may be chosen; the last is WAIT
  float* groups = nullptr;       ///< [groups x group_features]
  float* global = nullptr;       ///< [global_features]
};

class Agenda {
 public:
  /// `true_runs` and `history`: as KnownRuns.
  Agenda(const AgendaOptions& options, std::span<const Time> true_runs, RuntimePredictor history = {})
      : options_(options), known_(options.knowledge, true_runs, std::move(history)) {
    GPUSCHED_ASSERT(options.max_jobs >= 4, "an observation needs at least four tokens");
    GPUSCHED_ASSERT(!contradiction(options), "options that contradict each other");
  }

  [[nodiscard]] const AgendaOptions& options() const { return options_; }

  /// Folds the events of this instant. Call once after every advance(), before open().
  void observe(const View& view) {
    if (ranks()) {
      observe_ranking(view);
      return;
    }
    waited_ = false;
    backfilled_ = false;
    for (const Event& event : view.events()) {
      switch (event.kind) {
        case EventKind::submit:
        case EventKind::retry:
          if (event.kind == EventKind::retry) end_run(event.job);
          begin_wait(view, event.job);
          break;
        case EventKind::finish:
          end_run(event.job);
          known_.finish(view, event.job);
          break;
        case EventKind::wake:
        case EventKind::start:
        case EventKind::preempt:
        case EventKind::move: break;
      }
    }
  }

  /// Makes the moves that need no choice (a blocked job that fits now, a single legal action) and says whether the
  /// agent must choose at this instant. After act(), call it again: false means apply() and advance().
  bool open(const View& view, Decision& decision) {
    if (ranks()) {
      if (!ranking_.asked().empty()) return true;
      ranking_.fill(view, decision);
      return false;
    }
    if (waited_) return false;
    if (placing()) return true;
    for (;;) {
      if (!serve_blocked(view, decision)) return false;
      if (placing()) return true;
      if (waiting_.empty()) return false;
      if (options_.mode == ActionMode::select_blocking && waiting_.size() == 1) {
        choose(0, view, decision);
        continue;
      }
      list_candidates(view, decision);
      if (choices_ == 0) return false;
      if (choices_ > 1) {
        describe_all(view);
        return true;
      }
      act(only_choice_, view, decision);
      if (waited_) return false;
    }
  }

  /// Lists the tokens although nothing may be chosen: for the final observation of a truncated run.
  void show(const View& view) {
    if (ranks()) return;
    describe_all(view);
    selectable_.assign(waiting_.size(), 0);
    may_wait_ = false;
    cap_tokens();
  }

  /// True when the open choice is the second one of AgendaOptions::choose_nodes: the job is chosen, and the tokens are
  /// the kinds of node (GPU type, size, idle GPUs) that it could start on, fullest first. Their features are the job's,
  /// but for gpus_over_free (of the node's idle GPUs), age_rank (the token's number), fills_nodes (it takes what is
  /// idle) and log_earliest_start, which no other token has negative: -1 - GPU type / 4. There is no WAIT. The prior
  /// prefers the fullest node, as the placement rule `consolidate` does.
  [[nodiscard]] bool placing() const { return placing_ != no_index; }

  /// True in mode preempt: an open choice then asks for the scores of jobs that are new or entered another level
  /// (rank()). Its tokens are pairs, a job as it would wait and as it would run, their features RankFeature; there is
  /// no WAIT, no group, and the global features are 0. A score holds until the job is asked for again.
  [[nodiscard]] bool ranks() const { return options_.mode == ActionMode::preempt; }

  /// Tokens of the open choice; WAIT is the action of that number.
  [[nodiscard]] std::uint32_t size() const {
    return ranks() ? 2 * static_cast<std::uint32_t>(ranking_.asked().size()) : tokens_;
  }
  [[nodiscard]] std::uint32_t group_count() const { return static_cast<std::uint32_t>(groups_.size()); }

  /// The job of token `action` of the open choice.
  [[nodiscard]] JobId job(std::uint32_t action) const {
    if (ranks()) return ranking_.asked()[action / 2];
    return placing() ? waiting_[placing_].job : token(action).job;
  }

  /// True when the open choice allows `action`; in mode preempt none is.
  [[nodiscard]] bool allowed(std::uint32_t action) const {
    if (ranks()) return false;
    return action < size() ? selectable_[action] != 0 : action == size() && may_wait_;
  }

  /// The allowed action that the heuristic prefers (never WAIT while a job may be chosen).
  [[nodiscard]] std::uint32_t heuristic_action(Heuristic heuristic) const {
    if (placing()) return 0;
    if (heuristic == options_.heuristic) return least([](const Waiting& entry) { return entry.key; });
    return least([heuristic](const Waiting& entry) { return key_of(heuristic, entry); });
  }

  /// Mode preempt: takes the scores of the tokens, larger first (Ranking::rank). Precondition: all are finite.
  void rank(const View& view, std::span<const float> scores) { ranking_.rank(view, scores); }
  /// Mode preempt: asks for the scores of all jobs again, because somebody else will give them.
  void rank_anew(const View& view) { ranking_.rank_anew(view); }

  /// Does what a heuristic does: its preferred action or, in mode preempt, its order.
  void act(Heuristic heuristic, const View& view, Decision& decision) {
    if (!ranks()) {
      act(heuristic_action(heuristic), view, decision);
      return;
    }
    scores_.clear();
    for (const JobId job : ranking_.asked()) scores_.insert(scores_.end(), 2, rank_prior(heuristic, view, job));
    rank(view, scores_);
  }

  /// Carries out an action of the open choice. Precondition: allowed(action).
  void act(std::uint32_t action, const View& view, Decision& decision) {
    GPUSCHED_ASSERT(allowed(action), "a masked action was chosen");
    if (action == size()) {
      waited_ = true;
      return;
    }
    if (placing()) {
      start_on(kinds_[action].node, view, decision);
      return;
    }
    choose(place_of(action), view, decision);
  }

  /// Writes the open choice.
  void encode(const View& view, const ObservationSlot& slot) const {
    if (ranks()) {
      encode_ranking(view, slot);
      return;
    }
    if (placing()) {
      write_kinds(view, slot.jobs);
      for (std::uint32_t i = 0; i < size(); ++i) slot.prior[i] = -static_cast<float>(i);
      slot.prior[size()] = 0.0f;
    } else {
      write_jobs(view, slot.jobs);
      write_prior(slot.prior);
    }
    std::copy_n(selectable_.begin(), size(), slot.mask);
    slot.mask[size()] = may_wait_ ? 1 : 0;
    if (!groups_.empty()) std::copy(groups_.front().begin(), groups_.back().end(), slot.groups);
    write_global(view, slot.global);
  }

  /// Jobs that wait; modes other than preempt.
  [[nodiscard]] std::uint32_t waiting_count() const { return static_cast<std::uint32_t>(waiting_.size()); }

 private:
  struct Waiting {
    std::int64_t submit_us, known_us;
    JobId job;
    std::uint32_t slot;  // into slots_: its (queue, shape)
    std::uint32_t user;
    float known_s, per_known_s, gpus;  // per_known_s = 1 / max(known, 10 s)
    float log_known, log_gpus, log_area;
    float prior;  // its place in the prior, smaller first, where that does not change
    double key;   // of options_.heuristic
  };
  struct Running {
    std::int64_t end_us;  // by the known run time
    MilliGpu milli;
    JobId job;
    std::uint32_t user;
  };
  // What holds for all jobs of one shape in one scheduling queue, until the cluster changes.
  struct Slot {
    std::uint64_t stamp = 0;            // of fits
    std::uint64_t earliest_stamp = 0;   // of earliest_us
    std::uint64_t described_stamp = 0;  // of row, but for log_earliest_start, which is as of the last choice
    std::int64_t earliest_us = 0;
    JobId example = no_job;
    std::uint32_t waiting = 0;
    std::uint32_t room = no_index;  // into rooms_; no_index: nobody waited yet
    bool counts_suffice = false;    // ClusterState::may_fit is exact
    bool fits = false;
    float gpus = 0, log_gpus = 0;
    MilliGpu milli = 0;
    std::array<float, job_features> row{};  // a token of the shape; what differs from job to job is 0
  };

  // What all shapes of one demand (queue, GPU type, whole GPUs or shares) could draw on, until the cluster changes.
  struct Room {
    std::uint32_t queue, gpu_spec;
    bool shares;
    std::uint64_t stamp = 0;
    MilliGpu milli = 0;
  };

  // Nodes alike that the chosen job could start on.
  struct Kind {
    NodeId node;  // the first of them
    std::uint32_t gpu_type, gpus, idle;
  };

  // ---- mode preempt ----------------------------------------------------------------------------------------------

  void observe_ranking(const View& view) {
    for (const Event& event : view.events()) {
      switch (event.kind) {
        case EventKind::submit:
        case EventKind::retry: ranking_.wait(view, event.job, known_.seconds(view, event.job)); break;
        case EventKind::finish:
          ranking_.finish(view, event.job);
          known_.finish(view, event.job);
          break;
        case EventKind::wake:
        case EventKind::start:
        case EventKind::preempt:
        case EventKind::move: break;
      }
    }
    ranking_.cross(view);
  }

  void encode_ranking(const View& view, const ObservationSlot& slot) const {
    static_assert(int{rank_features} <= int{job_features}, "the tokens of both kinds share their columns");
    std::fill_n(slot.jobs, std::size_t{size()} * job_features, 0.0f);
    for (std::uint32_t i = 0; i < size(); i += 2) {
      float* const row = slot.jobs + std::size_t{i} * job_features;
      ranking_.describe(view, job(i), row);
      std::copy_n(row, int{rank_features}, row + job_features);
      (row + job_features)[rank_running] = 1.0f;
      slot.prior[i] = slot.prior[i + 1] = rank_prior(options_.heuristic, view, job(i));
    }
    std::fill_n(slot.mask, size(), std::uint8_t{1});
    slot.prior[size()] = 0.0f;
    slot.mask[size()] = 0;
    std::fill_n(slot.global, global_features, 0.0f);
  }

  // The heuristic's preference as a number that does not depend on the other jobs; larger is better. A unit of each is
  // about what a learned score moves by: an hour of submission, a logarithm of run times, a doubling of service.
  [[nodiscard]] float rank_prior(Heuristic heuristic, const View& view, JobId job) const {
    const float known = ranking_.known_seconds(job) > 0 ? ranking_.known_seconds(job) : 1.0f;
    const auto submit_s = static_cast<float>(to_seconds(view.submit(job)));
    switch (heuristic) {
      case Heuristic::fcfs: return -submit_s / 3600;
      case Heuristic::sjf: return -std::log1p(known);
      case Heuristic::saf: return -std::log1p(known * ranking_.gpus(job));
      case Heuristic::f1: return -(std::log10(known) * ranking_.gpus(job) / 870 + std::log10(std::max(submit_s, 0.1f)));
      case Heuristic::las: return -ranking_.service_doublings(view, job);
      case Heuristic::srtf: break;
    }
    return -std::log1p(ranking_.left_seconds(view, job));
  }

  // Place in waiting_ of token `i`.
  [[nodiscard]] std::uint32_t place_of(std::uint32_t i) const { return capped_ ? listed_[i] : i; }
  [[nodiscard]] const Waiting& token(std::uint32_t i) const { return waiting_[place_of(i)]; }

  // Calls visit(i, token(i)) for the tokens from `first` up to `end`, without asking for each whether they are capped.
  template <class Visit>
  void for_tokens(std::uint32_t first, std::uint32_t end, Visit visit) const {
    if (capped_) {
      const std::uint32_t* const place = listed_.data();
      for (std::size_t i = first; i < end; ++i) visit(i, waiting_[place[i]]);
    } else {
      const Waiting* entry = waiting_.data() + first;
      for (std::size_t i = first; i < end; ++i, ++entry) visit(i, *entry);
    }
  }

  // The selectable token of the least key, the first of equals; size() when nothing is selectable.
  template <class Key>
  [[nodiscard]] std::uint32_t least(Key key) const {
    std::uint32_t best = size();
    double best_key = std::numeric_limits<double>::infinity();
    const std::uint8_t* const selectable = selectable_.data();
    for_tokens(0, size(), [&](std::size_t i, const Waiting& entry) {
      if (selectable[i] == 0) return;
      const double own = key(entry);
      if (own >= best_key) return;
      best = static_cast<std::uint32_t>(i);
      best_key = own;
    });
    return best;
  }

  static float per_total(const View& view) {
    return 1.0f / static_cast<float>(std::max<std::int64_t>(1, view.cluster().total_gpus()));
  }

  void begin_wait(const View& view, JobId job) {
    const std::uint32_t shapes = view.shape_count();
    if (slots_.empty()) {
      slots_.resize(std::size_t{shapes} * view.queue_count());
      share_of_milli_ = per_total(view) / static_cast<float>(whole_gpu);
    }
    Waiting& entry = waiting_.emplace_back();
    entry.submit_us = view.submit(job).us;
    entry.job = job;
    entry.slot = view.queue_of(job) * shapes + view.shape_id(job);
    Slot& slot = slots_[entry.slot];
    if (slot.room == no_index) look_up_slot(view, job, slot);
    entry.user = view.user(job);
    entry.known_s = known_.seconds(view, job);
    entry.known_us = from_seconds(static_cast<double>(entry.known_s)).us;
    entry.per_known_s = 1.0f / std::max(entry.known_s, 10.0f);
    entry.gpus = slot.gpus;
    entry.log_known = detail::fast_log1p(entry.known_s) / 10;
    entry.log_gpus = slot.log_gpus;
    entry.log_area = detail::fast_log1p(entry.known_s * entry.gpus) / 15;
    entry.key = key_of(options_.heuristic, entry);
    entry.prior = prior_of(entry);
    if (user_milli_.size() <= entry.user) {
      user_milli_.resize(entry.user + 1);
      user_shares_.resize(entry.user + 1);
    }
    queued_work_s_ += static_cast<double>(entry.known_s) * static_cast<double>(entry.gpus);
    if (slot.waiting++ == 0) active_.push_back(entry.slot);
  }

  // What holds for all jobs of the slot for ever; `job` is the first of them.
  void look_up_slot(const View& view, JobId job, Slot& slot) {
    const Shape& shape = view.shape(job);
    slot.example = job;
    slot.milli = shape.gpu_milli();
    slot.gpus = gpus_of(shape);
    slot.log_gpus = detail::fast_log1p(slot.gpus) / 5;
    slot.counts_suffice = counts_decide(shape) && uses_remnants(view.options().placement);
    slot.row[log_gpus] = slot.log_gpus;
    slot.row[gpus_over_total] = slot.gpus * per_total(view);
    const Room room{.queue = view.queue_of(job), .gpu_spec = shape.gpu_spec, .shares = shape.is_share()};
    const auto same = std::find_if(rooms_.begin(), rooms_.end(), [&](const Room& other) {
      return other.queue == room.queue && other.gpu_spec == room.gpu_spec && other.shares == room.shares;
    });
    slot.room = static_cast<std::uint32_t>(same - rooms_.begin());
    if (same == rooms_.end()) rooms_.push_back(room);
  }

  void end_run(JobId job) {
    const auto entry =
        std::find_if(running_.begin(), running_.end(), [job](const Running& run) { return run.job == job; });
    GPUSCHED_ASSERT(entry != running_.end(), "a job ended that the agenda did not start");
    hold(entry->user, -entry->milli);
    running_.erase(entry);
    ++stamp_;
  }

  // A user's running jobs hold `milli` more.
  void hold(std::uint32_t user, MilliGpu milli) {
    user_milli_[user] += milli;
    user_shares_[user] = static_cast<float>(user_milli_[user]) * share_of_milli_;
  }

  void start(std::uint32_t place, const View& view, Decision& decision) {
    const Verdict verdict = decision.start(waiting_[place].job);
    GPUSCHED_ASSERT(verdict == Verdict::ok, "a job that fits was refused");
    static_cast<void>(verdict);
    note_start(place, view);
  }

  // Starts it, or waits for it (select_blocking).
  void choose(std::uint32_t place, const View& view, Decision& decision) {
    if (options_.mode == ActionMode::select_blocking && !fits(view, decision, waiting_[place])) {
      block_on(view, place);
      return;
    }
    begin_start(place, view, decision);
  }

  // Starts it, or opens the choice of its node.
  void begin_start(std::uint32_t place, const View& view, Decision& decision) {
    if (options_.choose_nodes) list_kinds(view, waiting_[place].job);
    if (!options_.choose_nodes || kinds_.size() < 2) {
      start(place, view, decision);
      return;
    }
    list_groups(view);
    follow_arrivals(view);
    placing_ = place;
    tokens_ = static_cast<std::uint32_t>(kinds_.size());
    selectable_.assign(tokens_, 1);
    may_wait_ = false;
  }

  void start_on(NodeId node, const View& view, Decision& decision) {
    const std::uint32_t place = placing_;
    placing_ = no_index;
    const NodeTasks all{.node = node, .tasks = view.shape(waiting_[place].job).tasks};
    const Verdict verdict = decision.start_on(waiting_[place].job, {&all, 1});
    GPUSCHED_ASSERT(verdict == Verdict::ok, "a job that fits the node was refused");
    static_cast<void>(verdict);
    note_start(place, view);
  }

  void note_start(std::uint32_t place, const View& view) {
    const Waiting& entry = waiting_[place];
    const MilliGpu milli = slots_[entry.slot].milli;
    const Running run{view.now().us + entry.known_us, milli, entry.job, entry.user};
    running_.insert(std::upper_bound(running_.begin(), running_.end(), run,
                                     [](const Running& a, const Running& b) { return a.end_us < b.end_us; }),
                    run);
    hold(entry.user, milli);
    remove(place);
    ++stamp_;
  }

  void remove(std::uint32_t place) {
    queued_work_s_ -= static_cast<double>(waiting_[place].known_s) * static_cast<double>(waiting_[place].gpus);
    const std::uint32_t slot = waiting_[place].slot;
    if (--slots_[slot].waiting == 0) active_.erase(std::find(active_.begin(), active_.end(), slot));
    waiting_.erase(waiting_.begin() + place);
    if (place < blocked_place_) --blocked_place_;
    if (waiting_.empty()) queued_work_s_ = 0;  // no drift from rounding
  }

  // Kinds of node of which the first could take the whole job now, fullest first; none for shares of a GPU.
  void list_kinds(const View& view, JobId job) {
    kinds_.clear();
    const Shape& shape = view.shape(job);
    const ClusterState& cluster = view.cluster();
    if (shape.is_share() || cluster.node_count() == 1) return;
    for (std::uint32_t id = 0; id < cluster.node_count(); ++id) {
      const NodeId node{id};
      const Kind kind{node, cluster.node_gpu_type(node), cluster.node_gpus(node), cluster.node_idle_gpus(node)};
      if (std::int64_t{kind.idle} * whole_gpu < shape.gpu_milli() || kind.gpus == 0) continue;
      const bool listed = std::any_of(kinds_.begin(), kinds_.end(), [&](const Kind& other) {
        return other.gpu_type == kind.gpu_type && other.gpus == kind.gpus && other.idle == kind.idle;
      });
      if (listed || !cluster.node_allowed(node, shape, view.queue_of(job))) continue;
      if (cluster.tasks_that_fit(node, shape) >= shape.tasks) kinds_.push_back(kind);
    }
    std::stable_sort(kinds_.begin(), kinds_.end(), [](const Kind& a, const Kind& b) { return a.idle < b.idle; });
    if (kinds_.size() > options_.max_jobs) kinds_.resize(options_.max_jobs);
  }

  void write_kinds(const View& view, float* out) const {
    const Waiting& entry = waiting_[placing_];
    const float wait = static_cast<float>(view.now().us - entry.submit_us) * 1e-6f;
    for (std::uint32_t i = 0; i < size(); ++i, out += job_features) {
      const auto idle = static_cast<float>(kinds_[i].idle);
      out[log_wait] = detail::fast_log1p(wait) * 0.1f;
      out[log_known] = entry.log_known;
      out[log_gpus] = entry.log_gpus;
      out[gpus_over_free] = std::min(4.0f, entry.gpus / std::max(idle, 1.0f)) * 0.25f;
      out[log_slowdown] = detail::fast_log1p(wait * entry.per_known_s) * 0.2f;
      out[fits_now] = 1.0f;
      out[log_area] = entry.log_area;
      out[age_rank] = static_cast<float>(i) / static_cast<float>(size());
      out[gpus_over_total] = entry.gpus * per_total(view);
      out[user_share] = user_shares_[entry.user];
      out[fills_nodes] = idle == entry.gpus ? 1.0f : 0.0f;
      out[log_earliest_start] = -1.0f - 0.25f * static_cast<float>(kinds_[i].gpu_type);
    }
  }

  // ---- what fits -------------------------------------------------------------------------------------------------

  // Cached: the engine is asked once for each (queue, shape) and state of the cluster.
  bool fits(const View& view, Decision& decision, const Waiting& entry) {
    return fits(view, decision, slots_[entry.slot]);
  }

  bool fits(const View& view, Decision& decision, Slot& slot) {
    if (slot.stamp == stamp_) return slot.fits;
    slot.stamp = stamp_;
    slot.fits = slot.milli <= room_of(view, slot) && (slot.counts_suffice || decision.fits(slot.example));
    return slot.fits;
  }

  // ClusterState::available_gpu_milli, asked once for all shapes alike.
  MilliGpu room_of(const View& view, const Slot& slot) {
    Room& room = rooms_[slot.room];
    if (room.stamp != stamp_) {
      room.stamp = stamp_;
      room.milli = view.cluster().available_gpu_milli(view.shape(slot.example), room.queue);
    }
    return room.milli;
  }

  // Brings the features of a shape up to date but for log_earliest_start; `free` are the free GPUs, at least 1. Needs
  // list_groups() and fits().
  void describe(const View& view, float free, Slot& slot) {
    if (slot.described_stamp == stamp_) return;
    slot.described_stamp = stamp_;
    slot.row[gpus_over_free] = std::min(4.0f, slot.gpus / free) * 0.25f;
    slot.row[fits_now] = slot.fits ? 1.0f : 0.0f;
    slot.row[fills_nodes] = slot.fits && leaves_no_fragment(view, slot) ? 1.0f : 0.0f;
  }

  // Seconds until enough is free for a slot by known ends.
  float seconds_ahead(const View& view, Slot& slot) {
    if (slot.fits) return 0.0f;
    return static_cast<float>(std::max<std::int64_t>(0, earliest_us(view, slot) - view.now().us)) * 1e-6f;
  }

  // The instant at which enough is free by known ends. Precondition: the slot does not fit now.
  std::int64_t earliest_us(const View& view, Slot& slot) {
    if (slot.earliest_stamp != stamp_) {
      slot.earliest_stamp = stamp_;
      slot.earliest_us = earliest_start_us(view, slot.milli);
    }
    return slot.earliest_us;
  }

  // For such a gang ClusterState::may_fit is exact under a placement that uses remnants.
  static bool counts_decide(const Shape& shape) {
    return shape.gpu_milli_per_task == whole_gpu && shape.cpu_milli_per_task == 0 && shape.memory_mib_per_task == 0;
  }

  // Approximate by design: on one node it fills exactly what is idle there, or it takes whole nodes.
  [[nodiscard]] bool leaves_no_fragment(const View& view, const Slot& slot) const {
    if (rooms_[slot.room].shares) return false;
    const std::int64_t need = slot.milli / whole_gpu;
    const ClusterState& cluster = view.cluster();
    if (cluster.node_count() == 1) return need == cluster.node_idle_gpus(NodeId{0});
    if (node_gpus_ > 0 && need % node_gpus_ == 0) return true;
    const auto wanted = static_cast<float>(need % std::max<std::int64_t>(1, node_gpus_));
    return std::any_of(groups_.begin(), groups_.end(), [&](const auto& group) {
      return std::fabs(group[idle_fraction] * static_cast<float>(node_gpus_) - wanted) < 0.5f;
    });
  }

  [[nodiscard]] std::int64_t earliest_start_us(const View& view, MilliGpu need) {
    if (freed_stamp_ != stamp_) {
      freed_stamp_ = stamp_;
      freed_.resize(running_.size());
      MilliGpu sum = view.cluster().free_gpu_milli();
      for (std::size_t i = 0; i < running_.size(); ++i) freed_[i] = sum += running_[i].milli;
    }
    const auto enough = std::lower_bound(freed_.begin(), freed_.end(), need);
    if (enough == freed_.end()) return view.now().us;
    return running_[static_cast<std::size_t>(enough - freed_.begin())].end_us;
  }

  // ---- the choices -----------------------------------------------------------------------------------------------

  // What the observation needs beyond the candidates; most instants leave nothing to choose and need none of it.
  void describe_all(const View& view) {
    list_groups(view);
    follow_arrivals(view);
    const float free = static_cast<float>(view.cluster().free_gpu_milli()) / static_cast<float>(whole_gpu);
    // In chunks, so that the logarithms are taken side by side.
    constexpr std::size_t chunk = 8;
    std::array<float, chunk> ahead{};
    for (std::size_t first = 0; first < active_.size(); first += chunk) {
      const std::size_t count = std::min(chunk, active_.size() - first);
      for (std::size_t i = 0; i < count; ++i) {
        Slot& slot = slots_[active_[first + i]];
        describe(view, std::max(free, 1.0f), slot);
        ahead[i] = seconds_ahead(view, slot);
      }
      for (float& x : ahead) x = detail::fast_log1p(x) * 0.1f;
      for (std::size_t i = 0; i < count; ++i) slots_[active_[first + i]].row[log_earliest_start] = ahead[i];
    }
  }

  void list_candidates(const View& view, Decision& decision) {
    for (const std::uint32_t id : active_) fits(view, decision, slots_[id]);
    may_wait_ = false;
    switch (options_.mode) {
      case ActionMode::fit_or_wait: mark_fitting(view); break;
      case ActionMode::select_blocking: selectable_.assign(waiting_.size(), 1); break;
      case ActionMode::backfill: mark_backfill(view); break;
      case ActionMode::inspect: mark_first_fitting(); break;
      case ActionMode::preempt: break;
    }
    cap_tokens();
    count_choices();
    // Waiting is an action only where there is something to start instead and something to wait for.
    may_wait_ = choices_ > 0 && options_.mode != ActionMode::select_blocking && !forced_ && something_will_happen(view);
    if (may_wait_) ++choices_;
  }

  void count_choices() {
    choices_ = 0;
    only_choice_ = 0;
    if (options_.mode == ActionMode::select_blocking) {
      choices_ = size();
      return;
    }
    for (std::uint32_t i = 0; i < size(); ++i) {
      choices_ += selectable_[i];
      only_choice_ = selectable_[i] != 0 ? i : only_choice_;
    }
  }

  [[nodiscard]] bool something_will_happen(const View& view) const {
    return !view.running().empty() || view.arrived() < view.job_count();
  }

  // Precondition of each: fits() was asked about every shape that waits.
  void mark_fitting(const View& view) {
    forced_ = false;
    selectable_.resize(waiting_.size());
    if (options_.starvation != Time::max() && view.now().us - waiting_.front().submit_us >= options_.starvation.us) {
      std::fill(selectable_.begin(), selectable_.end(), std::uint8_t{0});
      forced_ = slots_[waiting_.front().slot].fits;
      selectable_.front() = forced_ ? 1 : 0;
      return;
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i) selectable_[i] = slots_[waiting_[i].slot].fits ? 1 : 0;
  }

  void mark_first_fitting() {
    forced_ = false;
    selectable_.assign(waiting_.size(), 0);
    std::size_t best = waiting_.size();
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (!slots_[waiting_[i].slot].fits) continue;
      if (best == waiting_.size() || waiting_[i].key < waiting_[best].key) best = i;
    }
    if (best < waiting_.size()) selectable_[best] = 1;
  }

  void mark_backfill(const View& view) {
    selectable_.assign(waiting_.size(), 0);
    std::size_t head = 0;
    for (std::size_t i = 1; i < waiting_.size(); ++i) {
      if (waiting_[i].key < waiting_[head].key) head = i;
    }
    Slot& head_slot = slots_[waiting_[head].slot];
    forced_ = head_slot.fits;
    if (forced_) {
      selectable_[head] = 1;
      return;
    }
    // EASY: a job may start if it ends before the head's reservation by what is known, or uses GPUs that the head will
    // not need then.
    const std::int64_t shadow = earliest_us(view, head_slot);
    MilliGpu spare = view.cluster().free_gpu_milli() - view.shape(waiting_[head].job).gpu_milli();
    for (const Running& run : running_) spare += run.end_us <= shadow ? run.milli : 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (i == head || !slots_[waiting_[i].slot].fits) continue;
      const std::int64_t end = view.now().us + waiting_[i].known_us;
      selectable_[i] = end <= shadow || view.shape(waiting_[i].job).gpu_milli() <= spare ? 1 : 0;
    }
  }

  // Keeps at most max_jobs tokens, in order of submission: the oldest, the newest, and of the selectable ones the
  // shortest and the smallest by area, a quarter each; what the orders share goes to the oldest.
  void cap_tokens() {
    tokens_ = static_cast<std::uint32_t>(waiting_.size());
    capped_ = tokens_ > options_.max_jobs;
    if (capped_) choose_tokens();
  }

  void choose_tokens() {
    const auto count = static_cast<std::uint32_t>(waiting_.size());
    listed_.resize(count);
    std::iota(listed_.begin(), listed_.end(), 0u);
    const std::uint32_t quarter = options_.max_jobs / 4;
    kept_.assign(count, 0);
    std::fill_n(kept_.begin(), quarter, std::uint8_t{1});
    std::fill_n(kept_.end() - quarter, quarter, std::uint8_t{1});
    for (const Heuristic order : {Heuristic::sjf, Heuristic::saf}) {
      const auto before = [&](std::uint32_t a, std::uint32_t b) {
        if (selectable_[a] != selectable_[b]) return selectable_[a] > selectable_[b];
        const double key_a = key_of(order, waiting_[a]);
        const double key_b = key_of(order, waiting_[b]);
        return key_a != key_b ? key_a < key_b : a < b;
      };
      std::nth_element(listed_.begin(), listed_.begin() + quarter, listed_.end(), before);
      for (std::uint32_t i = 0; i < quarter; ++i) kept_[listed_[i]] = 1;
    }
    auto room = options_.max_jobs - static_cast<std::uint32_t>(std::count(kept_.begin(), kept_.end(), 1));
    for (std::uint32_t i = 0; i < count && room > 0; ++i) {
      if (kept_[i] != 0) continue;
      kept_[i] = 1;
      --room;
    }
    listed_.clear();
    for (std::uint32_t i = 0; i < count; ++i) {
      if (kept_[i] == 0) continue;
      selectable_[listed_.size()] = selectable_[i];
      listed_.push_back(i);
    }
    tokens_ = static_cast<std::uint32_t>(listed_.size());
    selectable_.resize(tokens_);
  }

  static double key_of(Heuristic heuristic, const Waiting& entry) {
    return heuristic_key(heuristic, entry.known_s, entry.gpus, entry.submit_us);
  }

  // ---- select_blocking: the chosen job is waited for ----------------------------------------------------------------

  void block_on(const View& view, std::uint32_t place) {
    blocked_ = waiting_[place].job;
    blocked_place_ = place;
    if (options_.sc20_backfill) reservation_us_ = earliest_start_us(view, slots_[waiting_[place].slot].milli);
    backfilled_ = false;
  }

  // False while the chosen job still waits for room.
  bool serve_blocked(const View& view, Decision& decision) {
    if (blocked_ == no_job) return true;
    if (fits(view, decision, waiting_[blocked_place_])) {
      blocked_ = no_job;
      begin_start(blocked_place_, view, decision);
      return true;
    }
    if (options_.sc20_backfill && !backfilled_) backfill_sc20(view, decision);
    return false;
  }

  // One pass in order of submission; the reservation is that of the moment of choice, and a job must end strictly
  // before it (the SC'20 program has no rule of spare nodes).
  void backfill_sc20(const View& view, Decision& decision) {
    backfilled_ = true;
    for (std::uint32_t i = 0; i < waiting_.size();) {
      const Waiting& entry = waiting_[i];
      const std::int64_t end = view.now().us + entry.known_us;
      if (entry.job != blocked_ && end < reservation_us_ && fits(view, decision, entry)) {
        start(i, view, decision);
      } else {
        ++i;
      }
    }
  }

  // ---- the observation -------------------------------------------------------------------------------------------

  // In chunks, so that the logarithms are taken side by side. A token is a copy of its shape's row with six of the
  // twelve filled in.
  void write_jobs(const View& view, float* out) const {
    const std::int64_t now = view.now().us;
    const std::uint32_t count = size();
    const float per_token = 1.0f / static_cast<float>(std::max(1u, count));
    const Slot* const slots = slots_.data();
    const float* const user_shares = user_shares_.data();
    constexpr std::uint32_t chunk = 16;
    std::array<float, chunk> wait{}, slowdown{};
    for (std::uint32_t first = 0; first < count; first += chunk) {
      const std::uint32_t end = std::min(count, first + chunk);
      float* to_wait = wait.data();
      float* to_slowdown = slowdown.data();
      for_tokens(first, end, [&](std::size_t, const Waiting& entry) {
        const float seconds = static_cast<float>(now - entry.submit_us) * 1e-6f;
        *to_wait++ = seconds;
        *to_slowdown++ = seconds * entry.per_known_s;
      });
      for (float& x : wait) x = detail::fast_log1p(x) * 0.1f;
      for (float& x : slowdown) x = detail::fast_log1p(x) * 0.2f;
      const float* from_wait = wait.data();
      const float* from_slowdown = slowdown.data();
      for_tokens(first, end, [&](std::size_t i, const Waiting& entry) {
        std::memcpy(out, slots[entry.slot].row.data(), sizeof(Slot::row));
        out[log_wait] = *from_wait++;
        out[log_known] = entry.log_known;
        out[log_slowdown] = *from_slowdown++;
        out[log_area] = entry.log_area;
        out[age_rank] = static_cast<float>(static_cast<std::int32_t>(i)) * per_token;
        out[user_share] = user_shares[entry.user];
        out += job_features;
      });
    }
  }

  // Standardised over the tokens, sign turned so that larger is better; the logarithm of run times, which spread over
  // decades, keeps the preference between short jobs visible beside a long one. WAIT is one deviation behind the best
  // job that may be chosen.
  void write_prior(float* out) const {
    const std::uint32_t count = size();
    if (options_.heuristic == Heuristic::fcfs) {
      const std::int64_t oldest_us = count == 0 ? 0 : token(0).submit_us;
      for_tokens(0, count, [&](std::size_t i, const Waiting& entry) {
        out[i] = static_cast<float>(entry.submit_us - oldest_us) * 1e-6f;
      });
    } else {
      for_tokens(0, count, [&](std::size_t i, const Waiting& entry) { out[i] = entry.prior; });
    }
    // Two sums of each, side by side.
    std::array<double, 2> sums{}, squares{};
    for (std::uint32_t i = 0; i + 1 < count; i += 2) {
      for (std::uint32_t lane = 0; lane < 2; ++lane) {
        const auto key = static_cast<double>(out[i + lane]);
        sums[lane] += key;
        squares[lane] += key * key;
      }
    }
    if (count % 2 == 1) {
      const auto key = static_cast<double>(out[count - 1]);
      sums[0] += key;
      squares[0] += key * key;
    }
    const double per_count = 1.0 / std::max(1u, count);
    const double mean = (sums[0] + sums[1]) * per_count;
    const double variance = (squares[0] + squares[1]) * per_count - mean * mean;
    const double scale = variance > 1e-18 ? 1.0 / std::sqrt(variance) : 0.0;
    for (std::uint32_t i = 0; i < count; ++i) {
      out[i] = static_cast<float>((mean - static_cast<double>(out[i])) * scale);
    }
    out[size()] = 0.0f;
    if (!may_wait_) return;
    float best = std::numeric_limits<float>::lowest();
    for (std::uint32_t i = 0; i < size(); ++i) best = selectable_[i] != 0 && out[i] > best ? out[i] : best;
    out[size()] = best - 1.0f;
  }

  [[nodiscard]] float prior_of(const Waiting& entry) const {
    switch (options_.heuristic) {
      case Heuristic::sjf: return entry.log_known;
      case Heuristic::saf: return entry.log_area;
      case Heuristic::fcfs: return 0.0f;  // by the wait: write_prior()
      case Heuristic::las:
      case Heuristic::srtf:
      case Heuristic::f1: break;
    }
    return static_cast<float>(entry.key);
  }

  void list_groups(const View& view) {
    if (group_stamp_ == stamp_) return;
    group_stamp_ = stamp_;
    const ClusterState& cluster = view.cluster();
    groups_.clear();
    fragmented_ = 0;
    group_keys_.clear();
    cluster.for_each_idle_level([&](std::uint32_t type, std::uint32_t gpus, std::uint32_t idle, std::uint32_t nodes) {
      if (gpus == 0) return;
      if (idle < gpus && cluster.node_count() > 1) fragmented_ += std::int64_t{idle} * nodes;
      node_gpus_ = std::max<std::int64_t>(node_gpus_, gpus);
      const std::uint64_t key = std::uint64_t{type} << 48 | std::uint64_t{gpus} << 24 | std::uint64_t{idle};
      const auto place = std::find(group_keys_.begin(), group_keys_.end(), key);
      const auto share = static_cast<float>(gpus) * static_cast<float>(nodes);
      if (place == group_keys_.end()) {
        group_keys_.push_back(key);
        groups_.push_back({static_cast<float>(idle) / static_cast<float>(gpus), static_cast<float>(nodes),
                           detail::fast_log1p(static_cast<float>(gpus)) / 5, share});
        return;
      }
      auto& group = groups_[static_cast<std::size_t>(place - group_keys_.begin())];
      group[log_nodes] += static_cast<float>(nodes);
      group[group_gpu_share] += share;
    });
    for (auto& group : groups_) {
      group[log_nodes] = detail::fast_log1p(group[log_nodes]) / 5;
      group[group_gpu_share] /= static_cast<float>(std::max<std::int64_t>(1, cluster.total_gpus()));
    }
  }

  void write_global(const View& view, float* out) const {
    const ClusterState& cluster = view.cluster();
    const auto total = static_cast<float>(std::max<std::int64_t>(1, cluster.total_gpus()));
    const std::int64_t now = view.now().us;
    const auto seconds = [](std::int64_t us) { return static_cast<float>(std::max<std::int64_t>(0, us)) * 1e-6f; };
    // Side by side: eight logarithms for the price of two.
    std::array<float, 8> logs{static_cast<float>(waiting_.size()),
                              static_cast<float>(waiting_.size() - size()),
                              static_cast<float>(running_.size()),
                              static_cast<float>(view.arrived() - first_of_5m_),
                              static_cast<float>(view.arrived() - first_of_60m_),
                              static_cast<float>(std::max(0.0, queued_work_s_)) / total,
                              waiting_.empty() ? 0.0f : seconds(now - waiting_.front().submit_us),
                              running_.empty() ? 0.0f : seconds(running_.front().end_us - now)};
    for (float& x : logs) x = detail::fast_log1p(x);
    out[free_fraction] = static_cast<float>(cluster.free_gpu_milli()) / (total * static_cast<float>(whole_gpu));
    out[log_queue] = logs[0] * 0.2f;
    out[log_hidden] = logs[1] * 0.2f;
    out[log_running] = logs[2] * 0.2f;
    out[log_arrivals_5m] = logs[3] * 0.2f;
    out[log_arrivals_60m] = logs[4] * 0.2f;
    out[log_queued_work] = logs[5] * 0.1f;
    out[log_oldest_wait] = logs[6] * 0.1f;
    out[log_next_end] = logs[7] * 0.1f;
    const auto hour = static_cast<std::size_t>((now / (3600 * microseconds_per_second) % 168 + 168) % 168);
    const auto& sines = detail::hour_table()[hour];
    std::copy(sines.begin(), sines.end(), out + hour_sin);
    out[fragmented_fraction] = static_cast<float>(fragmented_) / total;
  }

  // Keeps the first job submitted within the last five minutes and the last hour.
  void follow_arrivals(const View& view) {
    const auto follow = [&](std::uint32_t& first, std::int64_t seconds) {
      const Time from{view.now().us - seconds * microseconds_per_second};
      while (first < view.arrived() && view.submit(JobId{first}) <= from) ++first;
    };
    follow(first_of_5m_, 300);
    follow(first_of_60m_, 3600);
  }

  AgendaOptions options_;
  KnownRuns known_;

  std::vector<Waiting> waiting_;  // in order of becoming pending
  std::vector<Running> running_;  // by known end
  std::vector<MilliGpu> user_milli_;
  std::vector<float> user_shares_;  // user_share of each
  double queued_work_s_ = 0;        // known GPU-seconds waiting
  float share_of_milli_ = 0;        // share of the cluster that a thousandth of a GPU is
  std::vector<Slot> slots_;
  std::vector<Room> rooms_;
  std::vector<std::uint32_t> active_;                 // slots in which jobs wait
  std::uint64_t stamp_ = 1;                           // counts changes of the cluster
  std::uint32_t first_of_5m_ = 0, first_of_60m_ = 0;  // jobs
  std::vector<MilliGpu> freed_;
  std::uint64_t freed_stamp_ = 0;

  std::uint32_t tokens_ = 0;
  bool capped_ = false;
  std::vector<std::uint32_t> listed_;     // the tokens' places in waiting_ when capped_, else that is their number
  std::vector<std::uint8_t> selectable_;  // by token
  std::vector<std::uint8_t> kept_;
  std::uint32_t choices_ = 0, only_choice_ = 0;
  bool may_wait_ = false, forced_ = false;
  bool waited_ = false;  // since the last observe()

  JobId blocked_ = no_job;
  std::uint32_t blocked_place_ = 0;  // in waiting_
  std::int64_t reservation_us_ = 0;
  bool backfilled_ = false;  // since the last observe()

  std::uint32_t placing_ = no_index;  // place in waiting_ of the job whose node is being chosen
  std::vector<Kind> kinds_;

  Ranking ranking_;            // mode preempt; nothing else is then kept
  std::vector<float> scores_;  // of an order's ranking

  std::vector<std::array<float, group_features>> groups_;
  std::vector<std::uint64_t> group_keys_;
  std::uint64_t group_stamp_ = 0;
  std::int64_t node_gpus_ = 0, fragmented_ = 0;
};

}  // namespace gpusched
