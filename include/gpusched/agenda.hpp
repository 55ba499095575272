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
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpusched/decision.hpp"
#include "gpusched/runtime_predictor.hpp"
#include "gpusched/view.hpp"

namespace gpusched {

/// What the agent chooses.
enum class ActionMode : std::uint8_t {
  fit_or_wait,      ///< a waiting job that fits, or WAIT for the next event
  select_blocking,  ///< any waiting job; it is then waited for until it fits (RLScheduler, SC'20); no WAIT
  backfill,         ///< the heuristic's first job holds a reservation (EASY); choose a job to backfill, or WAIT
  inspect,          ///< accept or reject (WAIT) the heuristic's first fitting job (SchedInspector, HPDC'22)
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
};

template <class T>
struct NamedValue {
  std::string_view name;
  T value;
};

inline constexpr std::array<NamedValue<ActionMode>, 4> action_mode_names{{
    {"fit_or_wait", ActionMode::fit_or_wait},
    {"select_blocking", ActionMode::select_blocking},
    {"backfill", ActionMode::backfill},
    {"inspect", ActionMode::inspect},
}};
inline constexpr std::array<NamedValue<RuntimeKnowledge>, 4> runtime_knowledge_names{{
    {"none", RuntimeKnowledge::none},
    {"user", RuntimeKnowledge::user},
    {"predicted", RuntimeKnowledge::predicted},
    {"oracle", RuntimeKnowledge::oracle},
}};
inline constexpr std::array<NamedValue<Heuristic>, 4> heuristic_names{{
    {"fcfs", Heuristic::fcfs},
    {"sjf", Heuristic::sjf},
    {"saf", Heuristic::saf},
    {"f1", Heuristic::f1},
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

}  // namespace detail

struct AgendaOptions {
  ActionMode mode = ActionMode::fit_or_wait;
  RuntimeKnowledge knowledge = RuntimeKnowledge::predicted;
  Heuristic heuristic = Heuristic::sjf;  ///< of the residual logits, of backfill's head and of inspect
  std::uint32_t max_jobs = 128;          ///< tokens at most, >= 4; above it, the union of four orders
  bool sc20_backfill = false;            ///< select_blocking: RLScheduler's backfilling while the chosen job waits
  Time starvation = Time::max();         ///< fit_or_wait: once the oldest job waited this long, nothing else starts
};

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
  /// `true_runs` (JobTable::works()) is read only with RuntimeKnowledge::oracle and may be empty otherwise; it is
  /// borrowed. `history` is what the predictor knows before the run.
  Agenda(const AgendaOptions& options, std::span<const Time> true_runs, RuntimePredictor history = {})
      : options_(options), true_runs_(true_runs), predictor_(std::move(history)) {
    GPUSCHED_ASSERT(options.knowledge != RuntimeKnowledge::oracle || !true_runs.empty(), "the oracle needs run times");
    GPUSCHED_ASSERT(options.max_jobs >= 4, "an observation needs at least four tokens");
    for (std::size_t hour = 0; hour < hours_.size(); ++hour) {
      constexpr double turn = 6.283185307179586;
      const double of_day = turn * static_cast<double>(hour % 24) / 24;
      const double of_week = turn * static_cast<double>(hour) / 168;
      hours_[hour] = {static_cast<float>(std::sin(of_day)), static_cast<float>(std::cos(of_day)),
                      static_cast<float>(std::sin(of_week)), static_cast<float>(std::cos(of_week))};
    }
  }

  [[nodiscard]] const AgendaOptions& options() const { return options_; }

  /// Folds the events of this instant. Call once after every advance(), before open().
  void observe(const View& view) {
    for (const Event& event : view.events()) {
      switch (event.kind) {
        case EventKind::submit:
        case EventKind::retry:
          if (event.kind == EventKind::retry) end_run(view, event.job);
          begin_wait(view, event.job);
          break;
        case EventKind::finish:
          end_run(view, event.job);
          predictor_.learn(view, event.job);
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
    if (waited_at_ == view.now()) return false;
    for (;;) {
      if (!serve_blocked(view, decision)) return false;
      if (waiting_.empty()) return false;
      list_candidates(view, decision);
      if (choices_ == 0) return false;
      if (choices_ > 1) return true;
      act(only_choice_, view, decision);
      if (waited_at_ == view.now()) return false;
    }
  }

  /// Lists the tokens although nothing may be chosen: for the final observation of a truncated run.
  void show(const View& view) {
    list_groups(view);
    selectable_.assign(waiting_.size(), 0);
    may_wait_ = false;
    cap_tokens();
  }

  /// Tokens of the open choice; WAIT is the action of that number.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(listed_.size()); }
  [[nodiscard]] std::uint32_t group_count() const { return static_cast<std::uint32_t>(groups_.size()); }

  /// The job of token `action` of the open choice.
  [[nodiscard]] JobId job(std::uint32_t action) const { return waiting_[listed_[action]].job; }

  /// True when the open choice allows `action`.
  [[nodiscard]] bool allowed(std::uint32_t action) const {
    return action < size() ? selectable_[action] != 0 : action == size() && may_wait_;
  }

  /// The allowed action that the heuristic prefers (never WAIT while a job may be chosen).
  [[nodiscard]] std::uint32_t heuristic_action(Heuristic heuristic) const {
    std::uint32_t best = size();
    double best_key = 0;
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (selectable_[i] == 0) continue;
      const double key = key_of(heuristic, waiting_[listed_[i]]);
      if (best != size() && key >= best_key) continue;
      best = i;
      best_key = key;
    }
    return best;
  }

  /// Carries out an action of the open choice. Precondition: allowed(action).
  void act(std::uint32_t action, const View& view, Decision& decision) {
    GPUSCHED_ASSERT(allowed(action), "a masked action was chosen");
    if (action == size()) {
      waited_at_ = view.now();
      return;
    }
    const std::uint32_t place = listed_[action];
    if (options_.mode == ActionMode::select_blocking && !fits(view, decision, waiting_[place])) {
      block_on(view, place);
      return;
    }
    start(place, view, decision);
  }

  /// Writes the open choice.
  void encode(const View& view, const ObservationSlot& slot) const {
    write_jobs(view, slot.jobs);
    write_prior(slot.prior);
    for (std::uint32_t i = 0; i < size(); ++i) slot.mask[i] = selectable_[i];
    slot.mask[size()] = may_wait_ ? 1 : 0;
    if (!groups_.empty()) std::copy(groups_.front().begin(), groups_.back().end(), slot.groups);
    write_global(view, slot.global);
  }

  [[nodiscard]] std::uint32_t waiting_count() const { return static_cast<std::uint32_t>(waiting_.size()); }

 private:
  struct Waiting {
    std::int64_t submit_us;
    JobId job;
    std::uint32_t slot;  // into slots_: its (queue, shape)
    std::uint32_t user;
    float known_s, log_known, log_gpus, gpus, log_area;
    double key;  // by the options' heuristic: logarithms are too dear for every choice
  };
  struct Running {
    std::int64_t end_us;  // by the known run time
    MilliGpu milli;
    JobId job;
    std::uint32_t user;
  };
  // What holds for all jobs of one shape in one scheduling queue, until the cluster changes.
  struct Slot {
    std::uint64_t stamp = 0;
    std::int64_t earliest_us = 0;  // instant at which enough is free by known ends
    bool fits = false;
    bool leaves_no_fragment = false;
  };

  [[nodiscard]] float known_run_s(const View& view, JobId job) const {
    switch (options_.knowledge) {
      case RuntimeKnowledge::none: return 0.0f;
      case RuntimeKnowledge::oracle: return static_cast<float>(to_seconds(true_runs_[index(job)]));
      case RuntimeKnowledge::user:
        if (view.estimate(job) != Time::max()) return static_cast<float>(to_seconds(view.estimate(job)));
        [[fallthrough]];
      case RuntimeKnowledge::predicted: break;
    }
    return static_cast<float>(predictor_.predict_seconds(view, job));
  }

  void begin_wait(const View& view, JobId job) {
    const std::uint32_t shapes = view.shape_count();
    if (slots_.empty()) slots_.resize(std::size_t{shapes} * view.queue_count());
    Waiting entry{};
    entry.submit_us = view.submit(job).us;
    entry.job = job;
    entry.slot = view.queue_of(job) * shapes + view.shape_id(job);
    entry.user = view.user(job);
    entry.known_s = known_run_s(view, job);
    entry.gpus = static_cast<float>(view.shape(job).gpu_milli()) / static_cast<float>(whole_gpu);
    entry.log_known = detail::fast_log1p(entry.known_s) / 10;
    entry.log_gpus = detail::fast_log1p(entry.gpus) / 5;
    entry.log_area = detail::fast_log1p(entry.known_s * entry.gpus) / 15;
    entry.key = computed_key(options_.heuristic, entry);
    queued_work_s_ += static_cast<double>(entry.known_s) * static_cast<double>(entry.gpus);
    waiting_.push_back(entry);
  }

  void end_run(const View&, JobId job) {
    const auto entry =
        std::find_if(running_.begin(), running_.end(), [job](const Running& run) { return run.job == job; });
    GPUSCHED_ASSERT(entry != running_.end(), "a job ended that the agenda did not start");
    user_milli_[entry->user] -= entry->milli;
    running_.erase(entry);
    ++stamp_;
  }

  void start(std::uint32_t place, const View& view, Decision& decision) {
    const Waiting entry = waiting_[place];
    const Verdict verdict = decision.start(entry.job);
    GPUSCHED_ASSERT(verdict == Verdict::ok, "a job that fits was refused");
    static_cast<void>(verdict);
    const MilliGpu milli = view.shape(entry.job).gpu_milli();
    const Running run{view.now().us + from_seconds(static_cast<double>(entry.known_s)).us, milli, entry.job,
                      entry.user};
    running_.insert(std::upper_bound(running_.begin(), running_.end(), run,
                                     [](const Running& a, const Running& b) { return a.end_us < b.end_us; }),
                    run);
    if (user_milli_.size() <= entry.user) user_milli_.resize(entry.user + 1);
    user_milli_[entry.user] += milli;
    remove(place);
    ++stamp_;
  }

  void remove(std::uint32_t place) {
    queued_work_s_ -= static_cast<double>(waiting_[place].known_s) * static_cast<double>(waiting_[place].gpus);
    waiting_.erase(waiting_.begin() + place);
    if (waiting_.empty()) queued_work_s_ = 0;  // no drift from rounding
  }

  // ---- what fits -------------------------------------------------------------------------------------------------

  // Cached: the engine is asked once for each (queue, shape) and state of the cluster.
  bool fits(const View& view, Decision& decision, const Waiting& entry) {
    Slot& slot = slots_[entry.slot];
    if (slot.stamp == stamp_) return slot.fits;
    slot.stamp = stamp_;
    const Shape& shape = view.shape(entry.job);
    const bool counts_suffice = counts_decide(shape) && uses_remnants(view.options().placement);
    slot.fits = view.cluster().may_fit(shape, view.queue_of(entry.job)) && (counts_suffice || decision.fits(entry.job));
    slot.leaves_no_fragment = slot.fits && leaves_no_fragment(view, shape);
    slot.earliest_us = slot.fits ? view.now().us : earliest_start_us(view, shape.gpu_milli());
    return slot.fits;
  }

  // For such a gang ClusterState::may_fit is exact under a placement that uses remnants.
  static bool counts_decide(const Shape& shape) {
    return shape.gpu_milli_per_task == whole_gpu && shape.cpu_milli_per_task == 0 && shape.memory_mib_per_task == 0;
  }

  // Approximate by design: on one node it fills exactly what is idle there, or it takes whole nodes.
  [[nodiscard]] bool leaves_no_fragment(const View& view, const Shape& shape) const {
    if (shape.is_share()) return false;
    const std::int64_t need = shape.gpu_milli() / whole_gpu;
    const ClusterState& cluster = view.cluster();
    if (cluster.node_count() == 1) return need == cluster.node_idle_gpus(NodeId{0});
    if (node_gpus_ > 0 && need % node_gpus_ == 0) return true;
    const auto wanted = static_cast<float>(need % std::max<std::int64_t>(1, node_gpus_));
    for (const auto& group : groups_) {
      const float idle = group[idle_fraction] * static_cast<float>(node_gpus_);
      if (std::fabs(idle - wanted) < 0.5f) return true;
    }
    return false;
  }

  [[nodiscard]] std::int64_t earliest_start_us(const View& view, MilliGpu need) {
    if (freed_stamp_ != stamp_) {
      freed_stamp_ = stamp_;
      freed_.clear();
      MilliGpu sum = view.cluster().free_gpu_milli();
      for (const Running& run : running_) freed_.push_back(sum += run.milli);
    }
    const auto enough = std::lower_bound(freed_.begin(), freed_.end(), need);
    if (enough == freed_.end()) return view.now().us;
    return running_[static_cast<std::size_t>(enough - freed_.begin())].end_us;
  }

  // ---- the choices -----------------------------------------------------------------------------------------------

  void list_candidates(const View& view, Decision& decision) {
    list_groups(view);
    choices_ = 0;
    may_wait_ = false;
    selectable_.assign(waiting_.size(), 0);
    switch (options_.mode) {
      case ActionMode::fit_or_wait: mark_fitting(view, decision); break;
      case ActionMode::select_blocking:
        for (const Waiting& entry : waiting_) fits(view, decision, entry);
        std::fill(selectable_.begin(), selectable_.end(), std::uint8_t{1});
        break;
      case ActionMode::backfill: mark_backfill(view, decision); break;
      case ActionMode::inspect: mark_first_fitting(view, decision); break;
    }
    cap_tokens();
    for (std::uint32_t i = 0; i < size(); ++i) {
      if (selectable_[i] == 0) continue;
      ++choices_;
      only_choice_ = i;
    }
    // Waiting is an action only where there is something to start instead and something to wait for.
    may_wait_ = choices_ > 0 && options_.mode != ActionMode::select_blocking && !forced_ && something_will_happen(view);
    if (may_wait_) ++choices_;
  }

  [[nodiscard]] bool something_will_happen(const View& view) const {
    return !view.running().empty() || view.arrived() < view.job_count();
  }

  void mark_fitting(const View& view, Decision& decision) {
    forced_ = false;
    if (options_.starvation != Time::max() && view.now().us - waiting_.front().submit_us >= options_.starvation.us) {
      forced_ = fits(view, decision, waiting_.front());
      selectable_.front() = forced_ ? 1 : 0;
      return;
    }
    for (std::size_t i = 0; i < waiting_.size(); ++i) selectable_[i] = fits(view, decision, waiting_[i]) ? 1 : 0;
  }

  void mark_first_fitting(const View& view, Decision& decision) {
    forced_ = false;
    std::size_t best = waiting_.size();
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (!fits(view, decision, waiting_[i])) continue;
      if (best == waiting_.size() ||
          key_of(options_.heuristic, waiting_[i]) < key_of(options_.heuristic, waiting_[best])) {
        best = i;
      }
    }
    if (best < waiting_.size()) selectable_[best] = 1;
  }

  void mark_backfill(const View& view, Decision& decision) {
    std::size_t head = 0;
    for (std::size_t i = 1; i < waiting_.size(); ++i) {
      if (key_of(options_.heuristic, waiting_[i]) < key_of(options_.heuristic, waiting_[head])) head = i;
    }
    forced_ = fits(view, decision, waiting_[head]);
    if (forced_) {
      selectable_[head] = 1;
      return;
    }
    // EASY: a job may start if it ends before the head's reservation by what is known, or uses GPUs that the head will
    // not need then.
    const std::int64_t shadow = slots_[waiting_[head].slot].earliest_us;
    MilliGpu spare = view.cluster().free_gpu_milli() - view.shape(waiting_[head].job).gpu_milli();
    for (const Running& run : running_) spare += run.end_us <= shadow ? run.milli : 0;
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (i == head || !fits(view, decision, waiting_[i])) continue;
      const std::int64_t end = view.now().us + from_seconds(static_cast<double>(waiting_[i].known_s)).us;
      selectable_[i] = end <= shadow || view.shape(waiting_[i].job).gpu_milli() <= spare ? 1 : 0;
    }
  }

  // Keeps at most max_jobs tokens, in order of submission: the oldest, the newest, and of the selectable ones the
  // shortest and the smallest by area, a quarter each; what the orders share goes to the oldest.
  void cap_tokens() {
    const auto count = static_cast<std::uint32_t>(waiting_.size());
    listed_.resize(count);
    for (std::uint32_t i = 0; i < count; ++i) listed_[i] = i;
    if (count <= options_.max_jobs) return;
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
    selectable_.resize(listed_.size());
  }

  [[nodiscard]] double key_of(Heuristic heuristic, const Waiting& entry) const {
    return heuristic == options_.heuristic ? entry.key : computed_key(heuristic, entry);
  }

  static double computed_key(Heuristic heuristic, const Waiting& entry) {
    const double run = entry.known_s > 0 ? static_cast<double>(entry.known_s) : 1.0;
    const double gpus = static_cast<double>(entry.gpus);
    switch (heuristic) {
      case Heuristic::fcfs: return static_cast<double>(entry.submit_us);
      case Heuristic::sjf: return run;
      case Heuristic::saf: return run * gpus;
      case Heuristic::f1: break;
    }
    const double submit = static_cast<double>(entry.submit_us) / static_cast<double>(microseconds_per_second);
    const auto log_of = [](double x) { return std::log10(x <= 0 ? 0.1 : x); };
    return log_of(run) * gpus + 870 * log_of(submit);
  }

  // ---- select_blocking: the chosen job is waited for ----------------------------------------------------------------

  void block_on(const View& view, std::uint32_t place) {
    blocked_ = waiting_[place].job;
    reservation_us_ = earliest_start_us(view, view.shape(blocked_).gpu_milli());
    served_backfill_at_ = Time::max();
  }

  // False while the chosen job still waits for room.
  bool serve_blocked(const View& view, Decision& decision) {
    if (blocked_ == no_job) return true;
    const auto entry =
        std::find_if(waiting_.begin(), waiting_.end(), [this](const Waiting& w) { return w.job == blocked_; });
    if (fits(view, decision, *entry)) {
      start(static_cast<std::uint32_t>(entry - waiting_.begin()), view, decision);
      blocked_ = no_job;
      return true;
    }
    if (options_.sc20_backfill && served_backfill_at_ != view.now()) backfill_sc20(view, decision);
    return false;
  }

  // One pass in order of submission; the reservation is that of the moment of choice, and a job must end strictly
  // before it (the SC'20 program has no rule of spare nodes).
  void backfill_sc20(const View& view, Decision& decision) {
    served_backfill_at_ = view.now();
    for (std::uint32_t i = 0; i < waiting_.size();) {
      const Waiting& entry = waiting_[i];
      const std::int64_t end = view.now().us + from_seconds(static_cast<double>(entry.known_s)).us;
      if (entry.job != blocked_ && end < reservation_us_ && fits(view, decision, entry)) {
        start(i, view, decision);
      } else {
        ++i;
      }
    }
  }

  // ---- the observation -------------------------------------------------------------------------------------------

  void write_jobs(const View& view, float* out) const {
    const std::int64_t now = view.now().us;
    const float total = static_cast<float>(std::max<std::int64_t>(1, view.cluster().total_gpus()));
    const float free = static_cast<float>(view.cluster().free_gpu_milli()) / static_cast<float>(whole_gpu);
    const float per_free = 1.0f / std::max(free, 1.0f);
    const float per_total = 1.0f / total;
    const float per_token = 1.0f / static_cast<float>(std::max(1u, size()));
    constexpr float per_us = 1e-6f;
    for (std::uint32_t i = 0; i < size(); ++i, out += job_features) {
      const Waiting& entry = waiting_[listed_[i]];
      const Slot& slot = slots_[entry.slot];
      const float wait = static_cast<float>(now - entry.submit_us) * per_us;
      const float ahead = static_cast<float>(std::max<std::int64_t>(0, slot.earliest_us - now)) * per_us;
      out[log_wait] = detail::fast_log1p(wait) * 0.1f;
      out[log_known] = entry.log_known;
      out[log_gpus] = entry.log_gpus;
      out[gpus_over_free] = std::min(4.0f, entry.gpus * per_free) * 0.25f;
      out[log_slowdown] = detail::fast_log1p(wait / std::max(entry.known_s, 10.0f)) * 0.2f;
      out[fits_now] = slot.fits ? 1.0f : 0.0f;
      out[log_area] = entry.log_area;
      out[age_rank] = static_cast<float>(i) * per_token;
      out[gpus_over_total] = entry.gpus * per_total;
      out[user_share] = share_of(entry.user) * per_total;
      out[fills_nodes] = slot.leaves_no_fragment ? 1.0f : 0.0f;
      out[log_earliest_start] = detail::fast_log1p(ahead) * 0.1f;
    }
  }

  [[nodiscard]] float share_of(std::uint32_t user) const {
    return user < user_milli_.size() ? static_cast<float>(user_milli_[user]) / static_cast<float>(whole_gpu) : 0.0f;
  }

  // Standardised over the tokens, sign turned so that larger is better; the logarithm of run times, which spread over
  // decades, keeps the preference between short jobs visible beside a long one. WAIT is one deviation behind the best
  // job that may be chosen.
  void write_prior(float* out) const {
    double sum = 0;
    double squares = 0;
    for (std::uint32_t i = 0; i < size(); ++i) {
      const double key = prior_key(waiting_[listed_[i]]);
      out[i] = static_cast<float>(key);
      sum += key;
      squares += key * key;
    }
    float best = std::numeric_limits<float>::lowest();
    const double count = std::max(1u, size());
    const double mean = sum / count;
    const double variance = squares / count - mean * mean;
    const double scale = variance > 1e-18 ? 1.0 / std::sqrt(variance) : 0.0;
    for (std::uint32_t i = 0; i < size(); ++i) {
      out[i] = static_cast<float>((mean - static_cast<double>(out[i])) * scale);
      if (selectable_[i] != 0) best = std::max(best, out[i]);
    }
    out[size()] = may_wait_ ? best - 1.0f : 0.0f;
  }

  [[nodiscard]] double prior_key(const Waiting& entry) const {
    switch (options_.heuristic) {
      case Heuristic::sjf: return static_cast<double>(entry.log_known);
      case Heuristic::saf: return static_cast<double>(entry.log_area);
      case Heuristic::fcfs: return static_cast<double>(entry.submit_us - waiting_[listed_[0]].submit_us) * 1e-6;
      case Heuristic::f1: break;
    }
    return key_of(options_.heuristic, entry);
  }

  void list_groups(const View& view) {
    if (group_stamp_ == stamp_) return;
    group_stamp_ = stamp_;
    const ClusterState& cluster = view.cluster();
    groups_.clear();
    fragmented_ = 0;
    group_keys_.clear();
    for (std::uint32_t id = 0; id < cluster.node_count(); ++id) {
      const NodeId node{id};
      const std::uint32_t gpus = cluster.node_gpus(node);
      const std::uint32_t idle = cluster.node_idle_gpus(node);
      if (gpus == 0) continue;
      if (idle < gpus && cluster.node_count() > 1) fragmented_ += idle;
      node_gpus_ = std::max<std::int64_t>(node_gpus_, gpus);
      const std::uint64_t key =
          std::uint64_t{cluster.node_gpu_type(node)} << 48 | std::uint64_t{gpus} << 24 | std::uint64_t{idle};
      const auto place = std::find(group_keys_.begin(), group_keys_.end(), key);
      if (place == group_keys_.end()) {
        group_keys_.push_back(key);
        groups_.push_back({static_cast<float>(idle) / static_cast<float>(gpus), 1.0f,
                           detail::fast_log1p(static_cast<float>(gpus)) / 5, static_cast<float>(gpus)});
        continue;
      }
      auto& group = groups_[static_cast<std::size_t>(place - group_keys_.begin())];
      group[log_nodes] += 1.0f;
      group[group_gpu_share] += static_cast<float>(gpus);
    }
    for (auto& group : groups_) {
      group[log_nodes] = detail::fast_log1p(group[log_nodes]) / 5;
      group[group_gpu_share] /= static_cast<float>(std::max<std::int64_t>(1, cluster.total_gpus()));
    }
  }

  void write_global(const View& view, float* out) const {
    const ClusterState& cluster = view.cluster();
    const auto total = static_cast<float>(std::max<std::int64_t>(1, cluster.total_gpus()));
    const auto log_count = [](std::size_t n) { return detail::fast_log1p(static_cast<float>(n)) * 0.2f; };
    const auto log_seconds = [](std::int64_t us) {
      return detail::fast_log1p(static_cast<float>(std::max<std::int64_t>(0, us)) * 1e-6f) * 0.1f;
    };
    const std::int64_t now = view.now().us;
    const auto hour = static_cast<std::size_t>((now / (3600 * microseconds_per_second) % 168 + 168) % 168);
    out[free_fraction] = static_cast<float>(cluster.free_gpu_milli()) / (total * static_cast<float>(whole_gpu));
    out[log_queue] = log_count(waiting_.size());
    out[log_hidden] = log_count(waiting_.size() - listed_.size());
    out[log_queued_work] = detail::fast_log1p(static_cast<float>(std::max(0.0, queued_work_s_)) / total) * 0.1f;
    out[log_running] = log_count(running_.size());
    out[log_arrivals_5m] = log_count(arrivals_since(view, Time{now - 300 * microseconds_per_second}));
    out[log_arrivals_60m] = log_count(arrivals_since(view, Time{now - 3600 * microseconds_per_second}));
    std::copy(hours_[hour].begin(), hours_[hour].end(), out + hour_sin);
    out[fragmented_fraction] = static_cast<float>(fragmented_) / total;
    out[log_oldest_wait] = waiting_.empty() ? 0.0f : log_seconds(now - waiting_.front().submit_us);
    out[log_next_end] = running_.empty() ? 0.0f : log_seconds(running_.front().end_us - now);
  }

  // Jobs submitted after `from`, up to now: ids follow submission, so that a search over ids serves.
  [[nodiscard]] static std::size_t arrivals_since(const View& view, Time from) {
    std::uint32_t least = 0;
    std::uint32_t most = view.arrived();
    while (least < most) {
      const std::uint32_t middle = least + (most - least) / 2;
      if (view.submit(JobId{middle}) > from) {
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    return view.arrived() - least;
  }

  AgendaOptions options_;
  std::span<const Time> true_runs_;
  RuntimePredictor predictor_;
  std::array<std::array<float, 4>, 168> hours_{};

  std::vector<Waiting> waiting_;  // in order of becoming pending
  std::vector<Running> running_;  // by known end
  std::vector<MilliGpu> user_milli_;
  double queued_work_s_ = 0;  // known GPU-seconds waiting
  std::vector<Slot> slots_;
  std::uint64_t stamp_ = 1;  // counts changes of the cluster
  std::vector<MilliGpu> freed_;
  std::uint64_t freed_stamp_ = 0;

  std::vector<std::uint32_t> listed_;     // tokens: places in waiting_
  std::vector<std::uint8_t> selectable_;  // by token
  std::vector<std::uint8_t> kept_;
  std::uint32_t choices_ = 0, only_choice_ = 0;
  bool may_wait_ = false, forced_ = false;
  Time waited_at_ = Time::max();  // the instant of the last WAIT

  JobId blocked_ = no_job;
  std::int64_t reservation_us_ = 0;
  Time served_backfill_at_ = Time::max();

  std::vector<std::array<float, group_features>> groups_;
  std::vector<std::uint64_t> group_keys_;
  std::uint64_t group_stamp_ = 0;
  std::int64_t node_gpus_ = 0, fragmented_ = 0;
};

}  // namespace gpusched
