// SPDX-License-Identifier: Apache-2.0
/// The training environment: episodes over windows of a trace, with dense vector rewards that add up to the metrics,
/// and the semantics of Gymnasium's VectorEnv. A policy trained here runs anywhere through Agenda (agenda.hpp).
#pragma once

#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gpusched/agenda.hpp"
#include "gpusched/engine.hpp"
#include "gpusched/rng.hpp"
#include "gpusched/window.hpp"

namespace gpusched {

/// Components of the reward. Each is dense and adds up, over an episode that was not truncated, to what its line says;
/// "scored" leaves warm-up jobs out. Larger is better.
enum RewardTerm : std::uint8_t {
  reward_jct,               ///< -(sum of scored completion times), seconds
  reward_wait,              ///< -(sum of scored waiting times), seconds
  reward_bounded_slowdown,  ///< -(sum over scored jobs of bounded slowdown - 1), bound 10 s
  reward_idle,              ///< -(GPU-seconds idle / GPUs) from the first scored submission to the last end
  reward_fragmentation,     ///< -(GPU-seconds free on partly used nodes / GPUs); 0 unless its weight is not
  reward_energy,            ///< -(kWh) by EnvOptions' power of an idle and a busy GPU
  reward_fairness,          ///< Jain's index over users of mean bounded slowdown, minus 1
  reward_terms,
};
using RewardVector = std::array<double, reward_terms>;

inline constexpr std::array<std::string_view, reward_terms> reward_names{
    "jct", "wait", "bounded_slowdown", "idle", "fragmentation", "energy", "fairness"};

/// Bounded slowdown divides by at least this (Feitelson's bound, as in the SC'20 program).
inline constexpr double slowdown_bound_s = 10;

struct EnvOptions {
  AgendaOptions agenda = {};
  EngineOptions engine = {};
  RewardVector weights = {0, 0, 1, 0, 0, 0, 0};  ///< of the scalar reward
  double discount_per_s = 0;                     ///< beta: a reward t seconds away counts exp(-beta t)
  double idle_gpu_w = 60;                        ///< watts of an idle GPU
  double busy_gpu_w = 300;                       ///< watts of a GPU that a job holds
};

/// What a step brought.
struct StepResult {
  RewardVector reward{};    ///< undiscounted, by component
  double scalar = 0;        ///< weighted, discounted to the instant of the action, times the window's scale
  double seconds = 0;       ///< simulated time until the next choice
  bool terminated = false;  ///< every job has finished
  bool truncated = false;   ///< the window's end came first
  [[nodiscard]] bool done() const { return terminated || truncated; }
};

/// One environment. A value: a copy is an exact snapshot that goes on independently. Borrows the window and cluster.
class Env {
 public:
  Env(const Cluster& cluster, const EnvOptions& options) : cluster_(&cluster), options_(options) {}

  /// Episodes from the next reset() on take place on another cluster, which is borrowed.
  void move_to(const Cluster& cluster) { cluster_ = &cluster; }

  /// Starts an episode and goes to its first choice. The result has no reward; done() tells of a window without any
  /// choice. `scale` multiplies the scalar reward, so that windows of different load weigh alike.
  StepResult reset(const Window& window, double scale = 1) {
    window_ = &window;
    scale_ = scale;
    engine_.emplace(window.jobs, *cluster_, options_.engine);
    agenda_.emplace(options_.agenda, window.jobs.works(), window.history);
    rates_ = {};
    totals_ = {};
    gpus_ = static_cast<double>(std::max<std::int64_t>(1, engine_->view().cluster().total_gpus()));
    per_gpus_ = 1 / gpus_;
    look_up_jobs();
    fairness_.assign(window.jobs.users().size(), {});
    fairness_sums_ = {};
    fairness_now_ = 1;
    took_over_ = false;
    return advance_to_choice();
  }

  /// Carries out an action (a token number, or the number of tokens for WAIT) and goes to the next choice.
  /// Preconditions: the episode is open; agenda().allowed(action).
  StepResult step(std::uint32_t action) {
    Decision decision = engine_->decision();
    agenda_->act(action, engine_->view(), decision);
    return advance_to_choice();
  }

  /// Mode preempt: ranks the tokens by their scores, larger first, and goes to the next choice.
  StepResult step(std::span<const float> scores) {
    agenda_->rank(engine_->view(), scores);
    return advance_to_choice();
  }

  /// Does what a heuristic does, in any mode.
  StepResult step(Heuristic heuristic) {
    Decision decision = engine_->decision();
    agenda_->act(heuristic, engine_->view(), decision);
    return advance_to_choice();
  }

  /// The open choice.
  [[nodiscard]] const Agenda& agenda() const { return *agenda_; }
  [[nodiscard]] Time now() const { return engine_->view().now(); }
  [[nodiscard]] const Window& window() const { return *window_; }
  [[nodiscard]] const Engine& engine() const { return *engine_; }
  /// Sums of the reward components since reset().
  [[nodiscard]] const RewardVector& totals() const { return totals_; }

  void encode(const ObservationSlot& slot) const { agenda_->encode(engine_->view(), slot); }

  /// Writes privileged_features floats.
  void encode_privileged(float* out) const {
    const double now_s = to_seconds(now());
    const auto log_work = [&](double gpu_s) {
      return detail::fast_log1p(static_cast<float>(std::max(0.0, gpu_s) / gpus_)) * 0.1f;
    };
    const auto jobs = static_cast<float>(window_->jobs.size());
    const auto future = jobs - static_cast<float>(engine_->view().arrived());
    out[log_true_queued_work] = log_work(rates_.queued_gpu_s);
    out[log_true_running_work] = log_work(rates_.running_end_gpu_s - now_s * rates_.running_gpus);
    out[log_future_work] = log_work(rates_.future_gpu_s);
    out[log_future_jobs] = detail::fast_log1p(future) * 0.1f;
    out[mean_true_urgency] = detail::fast_log1p(static_cast<float>(std::max(0.0, rates_.slowdown))) * 0.2f;
    out[window_progress] = 1.0f - future / jobs;
  }

 private:
  // What accrues a second, and sums that the privileged features show.
  struct Rates {
    double in_system = 0, waiting = 0;  // scored jobs
    double slowdown = 0;                // sum of 1 / max(run, bound) of waiting scored jobs
    double held_gpus = 0;
    double fragmented_gpus = 0;
    double queued_gpu_s = 0, running_gpus = 0, running_end_gpu_s = 0, future_gpu_s = 0;
    bool scoring = false;  // the first scored job has been submitted
  };

  [[nodiscard]] bool scored(JobId job) const { return index(job) >= window_->first_scored; }

  StepResult advance_to_choice() {
    StepResult result;
    Decision decision = engine_->decision();
    double discount = 1;
    for (;;) {
      while (agenda_->open(engine_->view(), decision)) {
        if (rates_.scoring) {
          if (!std::exchange(took_over_, true) && agenda_->ranks()) agenda_->rank_anew(engine_->view());
          return finish(result);
        }
        agenda_->act(options_.agenda.heuristic, engine_->view(), decision);
      }
      engine_->apply();
      watch(result, discount);
      const Time before = now();
      const bool happened = engine_->advance_to(window_->end);
      accrue(now() - before, result, discount);
      if (!happened) {
        result.terminated = engine_->all_finished();
        result.truncated = !result.terminated;
        agenda_->show(engine_->view());
        return finish(result);
      }
      watch(result, discount);
      agenda_->observe(engine_->view());
    }
  }

  StepResult finish(StepResult& result) {
    for (std::size_t term = 0; term < reward_terms; ++term) totals_[term] += result.reward[term];
    if (options_.discount_per_s == 0) result.scalar = dot(options_.weights, result.reward);
    result.scalar *= scale_;
    return result;
  }

  // A reward of `amount` at this instant.
  void credit(RewardTerm term, double amount, StepResult& result, double discount) const {
    result.reward[term] += amount;
    result.scalar += options_.weights[term] * amount * discount;
  }

  // Rates are constant between events: integrates them over `span`, discounted within it.
  void accrue(Time span, StepResult& result, double& discount) const {
    if (span.us == 0) return;
    const double dt = to_seconds(span);
    result.seconds += dt;
    if (!rates_.scoring) return;
    const double idle_gpus = gpus_ - rates_.held_gpus;
    constexpr double joules_per_kwh = 3.6e6;
    const double watts = idle_gpus * options_.idle_gpu_w + rates_.held_gpus * options_.busy_gpu_w;
    const RewardVector rate{-rates_.in_system,
                            -rates_.waiting,
                            -rates_.slowdown,
                            -idle_gpus * per_gpus_,
                            -rates_.fragmented_gpus * per_gpus_,
                            -watts * (1 / joules_per_kwh),
                            0.0};
    for (std::size_t term = 0; term < reward_terms; ++term) result.reward[term] += rate[term] * dt;
    if (options_.discount_per_s == 0) return;  // finish() weighs the sums
    const double next = std::exp(-options_.discount_per_s * dt);
    const double weight = (1 - next) / options_.discount_per_s;  // integral of the discount over the span
    result.scalar += dot(options_.weights, rate) * weight * discount;
    discount *= next;
  }

  static double dot(const RewardVector& a, const RewardVector& b) {
    double sum = 0;
    for (std::size_t term = 0; term < reward_terms; ++term) sum += a[term] * b[term];
    return sum;
  }

  // Folds the engine's events of this instant into the rates.
  void watch(StepResult& result, double discount) {
    const OracleView view = engine_->view();
    for (const Event& event : engine_->events()) {
      switch (event.kind) {
        case EventKind::submit: submit(event.job); break;
        case EventKind::retry:
          stop(event.job);
          queue(event.job, +1);
          break;
        case EventKind::finish:
          stop(event.job);
          complete(view, event.job, result, discount);
          break;
        case EventKind::start: start(view, event.job); break;
        case EventKind::preempt: preempt(view, event.job); break;
        case EventKind::move:
        case EventKind::wake: break;
      }
    }
    if (options_.weights[reward_fragmentation] != 0) rates_.fragmented_gpus = fragmented_gpus(view);
  }

  // What the rates need of a job, worked out once an episode.
  struct JobFacts {
    double gpus, gpu_s, urgency;  // gpu_s: left; urgency = 1 / max(run, bound)
    double end_s = 0;             // planned, of the present run
  };
  [[nodiscard]] const JobFacts& facts(JobId job) const { return facts_[index(job)]; }

  void look_up_jobs() {
    facts_.resize(window_->jobs.size());
    for (std::uint32_t i = 0; i < facts_.size(); ++i) {
      const JobId job{i};
      const double run = to_seconds(window_->jobs.work(job));
      const double gpus = static_cast<double>(window_->jobs.shape(job).gpu_milli()) / static_cast<double>(whole_gpu);
      facts_[i] = {gpus, gpus * run, 1 / std::max(run, slowdown_bound_s)};
      rates_.future_gpu_s += facts_[i].gpu_s;
    }
  }

  void submit(JobId job) {
    rates_.future_gpu_s -= facts(job).gpu_s;
    rates_.scoring = rates_.scoring || scored(job);
    if (scored(job)) rates_.in_system += 1;
    queue(job, +1);
  }

  void queue(JobId job, double sign) {
    rates_.queued_gpu_s += sign * facts(job).gpu_s;
    if (!scored(job)) return;
    rates_.waiting += sign;
    rates_.slowdown += sign * facts(job).urgency;
    if (rates_.waiting == 0) rates_.slowdown = 0;  // no drift from rounding
  }

  void start(const OracleView& view, JobId job) {
    queue(job, -1);
    rates_.held_gpus += facts(job).gpus;
    rates_.running_gpus += facts(job).gpus;
    facts_[index(job)].end_s = to_seconds(view.now() + view.remaining(job));
    rates_.running_end_gpu_s += facts(job).gpus * facts(job).end_s;
  }

  void stop(JobId job) {
    rates_.held_gpus -= facts(job).gpus;
    rates_.running_gpus -= facts(job).gpus;
    rates_.running_end_gpu_s -= facts(job).gpus * facts(job).end_s;
  }

  void preempt(const OracleView& view, JobId job) {
    stop(job);
    facts_[index(job)].gpu_s = facts(job).gpus * to_seconds(view.remaining(job));
    queue(job, +1);
  }

  void complete(const OracleView& view, JobId job, StepResult& result, double discount) {
    if (!scored(job)) return;
    rates_.in_system -= 1;
    const double run = to_seconds(window_->jobs.work(job));
    const double ran = to_seconds(view.ran(job));
    const double wait = std::max(0.0, to_seconds(view.now() - view.submit(job) - view.ran(job)));
    const double slowdown = std::max(1.0, (wait + ran) / std::max(run, slowdown_bound_s));
    if (ran > run) {  // restarts prolonged it without waiting
      credit(reward_bounded_slowdown, wait * facts(job).urgency - (slowdown - 1), result, discount);
    } else if (run < slowdown_bound_s) {
      // Waiting accrued 1 / bound a second also while the slowdown of a very short job was still bounded by 1.
      credit(reward_bounded_slowdown, std::min(wait, slowdown_bound_s - run) / slowdown_bound_s, result, discount);
    }
    update_fairness(view.user(job), slowdown, result, discount);
  }

  void update_fairness(std::uint32_t user, double slowdown, StepResult& result, double discount) {
    UserSlowdown& entry = fairness_[user];
    const double before = entry.mean();
    if (entry.jobs == 0) fairness_sums_.users += 1;
    entry.jobs += 1;
    entry.sum += slowdown;
    const double after = entry.mean();
    fairness_sums_.sum += after - before;
    fairness_sums_.squares += after * after - before * before;
    const double jain = fairness_sums_.sum * fairness_sums_.sum / (fairness_sums_.users * fairness_sums_.squares);
    credit(reward_fairness, jain - fairness_now_, result, discount);
    fairness_now_ = jain;
  }

  [[nodiscard]] static double fragmented_gpus(const View& view) {
    std::int64_t sum = 0;
    view.cluster().for_each_idle_level([&](std::uint32_t, std::uint32_t gpus, std::uint32_t idle, std::uint32_t nodes) {
      if (idle < gpus) sum += std::int64_t{idle} * nodes;
    });
    return static_cast<double>(sum);
  }

  struct UserSlowdown {
    double jobs = 0, sum = 0;
    [[nodiscard]] double mean() const { return jobs > 0 ? sum / jobs : 0; }
  };
  struct FairnessSums {
    double users = 0, sum = 0, squares = 0;
  };

  const Cluster* cluster_;
  EnvOptions options_;
  const Window* window_ = nullptr;
  double scale_ = 1;
  std::optional<Engine> engine_;
  std::optional<Agenda> agenda_;
  double gpus_ = 1, per_gpus_ = 1;  // of the cluster; 1 / that
  std::vector<JobFacts> facts_;
  Rates rates_;
  RewardVector totals_{};
  std::vector<UserSlowdown> fairness_;
  FairnessSums fairness_sums_;
  double fairness_now_ = 1;
  bool took_over_ = false;  // the first choice of the episode was shown
};

/// The observations of several environments, ragged: environment e's tokens are rows job_begin[e] to job_begin[e + 1],
/// its prior and mask have
/// one entry more (WAIT) and begin at job_begin[e] + e.
struct Observation {
  std::vector<float> jobs;               ///< [tokens x job_features]
  std::vector<float> prior;              ///< [tokens + environments]
  std::vector<std::uint8_t> mask;        ///< [tokens + environments]
  std::vector<std::uint32_t> job_begin;  ///< [environments + 1]
  std::vector<float> groups;             ///< [groups x group_features]
  std::vector<std::uint32_t> group_begin;
  std::vector<float> global;      ///< [environments x global_features]
  std::vector<float> privileged;  ///< [environments x privileged_features]

  [[nodiscard]] std::uint32_t count() const {
    return job_begin.empty() ? 0 : static_cast<std::uint32_t>(job_begin.size() - 1);
  }
  [[nodiscard]] std::uint32_t tokens(std::uint32_t e) const { return job_begin[e + 1] - job_begin[e]; }

  /// Makes room for the environments that size(e) -> (tokens, groups) describes.
  template <class Size>
  void shape(std::uint32_t environments, Size size) {
    job_begin.assign(environments + 1, 0);
    group_begin.assign(environments + 1, 0);
    for (std::uint32_t e = 0; e < environments; ++e) {
      const auto [job_count, group_count] = size(e);
      job_begin[e + 1] = job_begin[e] + job_count;
      group_begin[e + 1] = group_begin[e] + group_count;
    }
    jobs.resize(std::size_t{job_begin.back()} * job_features);
    prior.resize(std::size_t{job_begin.back()} + environments);
    mask.resize(std::size_t{job_begin.back()} + environments);
    groups.resize(std::size_t{group_begin.back()} * group_features);
    global.resize(std::size_t{environments} * global_features);
    privileged.resize(std::size_t{environments} * privileged_features);
  }

  /// Where environment `e` writes.
  [[nodiscard]] ObservationSlot slot(std::uint32_t e) {
    return {.jobs = jobs.data() + std::size_t{job_begin[e]} * job_features,
            .prior = prior.data() + job_begin[e] + e,
            .mask = mask.data() + job_begin[e] + e,
            .groups = groups.data() + std::size_t{group_begin[e]} * group_features,
            .global = global.data() + std::size_t{e} * global_features};
  }
};

/// When a finished environment starts its next episode (Gymnasium's AutoresetMode).
enum class AutoresetMode : std::uint8_t {
  next_step,  ///< at the next step(), which ignores its action and brings no reward
  same_step,  ///< at once; the last observation of the old episode is in final_observation
  disabled,   ///< when reset_done() is called
};

/// What a step of all environments brought; borrowed from the VectorEnv until its next call.
struct Batch {
  Observation observation;
  std::vector<StepResult> results;  ///< [environments]
  /// Environments whose episode ended at this step, ascending, and (same_step) their last observations in this order.
  std::vector<std::uint32_t> ended;
  Observation final_observation;
  std::vector<RewardVector> episode_totals;  ///< of the ended episodes
  std::vector<std::uint32_t> episode_window;
};

namespace detail {

/// Tells the core that this thread spins.
inline void pause_core() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// A counter on a cache line of its own. Waiting spins for some tens of microseconds, about what a step of a batch
/// takes, and only then goes to the kernel, whose wake-up costs as much again.
class alignas(64) SpinCounter {
 public:
  [[nodiscard]] std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  /// Precondition: nobody waits.
  void store(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }

  void add_one() {
    ++value_;
    if (asleep_.load() != 0) value_.notify_all();
  }

  /// The value once it differs from `seen`.
  std::uint32_t wait(std::uint32_t seen) {
    constexpr int spins = 2000;
    for (int turn = 0; turn < spins; ++turn) {
      if (const std::uint32_t now = load(); now != seen) return now;
      pause_core();
    }
    ++asleep_;
    value_.wait(seen);
    --asleep_;
    return load();
  }

 private:
  std::atomic<std::uint32_t> value_ = 0, asleep_ = 0;
};

/// Threads that run one function together, each on its part; the caller's thread is part 0.
class WorkerTeam {
 public:
  explicit WorkerTeam(std::uint32_t threads) {
    for (std::uint32_t part = 1; part < threads; ++part) {
      threads_.emplace_back([this, part] { serve(part); });
    }
  }
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;
  ~WorkerTeam() {
    stop_ = true;
    round_.add_one();
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(threads_.size() + 1); }

  /// Calls work(part) for every part and returns when all are done.
  void run(const std::function<void(std::uint32_t)>& work) {
    const auto others = static_cast<std::uint32_t>(threads_.size());
    if (others == 0) return work(0);
    work_ = &work;
    done_.store(0);
    round_.add_one();
    work(0);
    for (std::uint32_t done = done_.load(); done != others;) done = done_.wait(done);
  }

 private:
  void serve(std::uint32_t part) {
    for (std::uint32_t seen = 0;;) {
      seen = round_.wait(seen);
      if (stop_) return;
      (*work_)(part);
      done_.add_one();
    }
  }

  SpinCounter round_, done_;  // work handed out; parts that are done with it
  const std::function<void(std::uint32_t)>* work_ = nullptr;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace detail

struct VectorEnvOptions {
  EnvOptions env = {};
  AutoresetMode autoreset = AutoresetMode::same_step;
  std::uint32_t environments = 16;
  std::uint32_t group = 1;    ///< neighbouring environments that share the windows of their episodes
  std::uint32_t threads = 1;  ///< never changes a result
};

/// Environments stepped together. Windows are drawn by seed, group and episode number, so that an environment's
/// episodes do not depend on the others. Not copyable; save() is the snapshot.
class VectorEnv {
 public:
  /// Everything that changes, as a value.
  struct State {
    std::vector<Env> envs;
    std::vector<std::uint64_t> episodes;
    std::vector<std::uint32_t> windows;
    std::vector<std::uint8_t> done;
    std::uint64_t seed = 0;
  };

  /// Borrows windows, scales (empty, or one for each window: Env::reset) and cluster. Preconditions: at least one
  /// window; the environments are a multiple of the group.
  VectorEnv(std::span<const Window> windows, std::span<const double> scales, const Cluster& cluster,
            const VectorEnvOptions& options)
      : VectorEnv(windows, scales, std::span(&cluster, 1), options) {}

  /// The same; each episode takes place on one of several clusters, drawn as its window is.
  VectorEnv(std::span<const Window> windows, std::span<const double> scales, std::span<const Cluster> clusters,
            const VectorEnvOptions& options)
      : windows_(windows),
        scales_(scales),
        clusters_(clusters),
        options_(options),
        team_(std::max(1u, options.threads)) {
    GPUSCHED_ASSERT(!windows.empty() && !clusters.empty(), "no windows or no cluster");
    GPUSCHED_ASSERT(scales.empty() || scales.size() == windows.size(), "one scale for each window");
    GPUSCHED_ASSERT(options.group > 0 && options.environments % options.group == 0, "environments come in groups");
    state_.envs.assign(options.environments, Env(clusters.front(), options.env));
    state_.done.assign(options.environments, 0);
    state_.windows.assign(options.environments, 0);
    state_.episodes.assign(options.environments, 0);
    standing_.assign(options.environments, {});
  }

  [[nodiscard]] std::uint32_t size() const { return options_.environments; }
  [[nodiscard]] const Env& env(std::uint32_t e) const { return state_.envs[e]; }

  /// Starts first episodes in every environment.
  const Batch& reset(std::uint64_t seed) {
    state_.seed = seed;
    state_.episodes.assign(size(), 0);
    batch_.results.assign(size(), {});
    for_each([this](std::uint32_t e) { begin_episode(e); });
    collect({});
    return batch_;
  }

  /// One action for each environment; those of done environments are ignored. Precondition: each other is allowed.
  const Batch& step(std::span<const std::uint32_t> actions) {
    GPUSCHED_ASSERT(actions.size() == size(), "one action for each environment");
    return step_each([&](Env& env, std::uint32_t e) { return env.step(actions[e]); });
  }

  /// Mode preempt: scores of the batch's tokens, laid out as Observation::prior.
  const Batch& step(std::span<const float> scores) {
    GPUSCHED_ASSERT(scores.size() == batch_.observation.prior.size(), "one score for each token");
    return step_each([&](Env& env, std::uint32_t e) {
      return env.step(scores.subspan(std::size_t{batch_.observation.job_begin[e]} + e, env.agenda().size()));
    });
  }

  /// A heuristic's steps, in any mode.
  const Batch& step(Heuristic heuristic) {
    return step_each([&](Env& env, std::uint32_t) { return env.step(heuristic); });
  }

  /// AutoresetMode::disabled: starts new episodes where the last one is done.
  const Batch& reset_done() {
    for_each([this](std::uint32_t e) {
      if (state_.done[e] != 0) begin_episode(e);
    });
    collect({});
    return batch_;
  }

  /// The allowed action that `heuristic` prefers, for every environment that is not done. On the threads that hold the
  /// environments: from one alone it would cost more than a step.
  void heuristic_actions(Heuristic heuristic, std::span<std::uint32_t> actions) {
    GPUSCHED_ASSERT(actions.size() == size(), "one action for each environment");
    for_each([&](std::uint32_t e) {
      if (state_.done[e] == 0) actions[e] = state_.envs[e].agenda().heuristic_action(heuristic);
    });
  }

  [[nodiscard]] const Batch& batch() const { return batch_; }
  [[nodiscard]] bool is_done(std::uint32_t e) const { return state_.done[e] != 0; }
  /// The window of environment `e`'s episode.
  [[nodiscard]] std::uint32_t window(std::uint32_t e) const { return state_.windows[e]; }

  [[nodiscard]] State save() const { return state_; }
  /// Goes on exactly from where save() was called.
  const Batch& restore(const State& state) {
    state_ = state;
    for_each([this](std::uint32_t e) { stand(e); });
    batch_.results.assign(size(), {});
    collect({});
    return batch_;
  }

 private:
  // What the caller's thread must know of an environment after a step, packed, because it comes out of another core's
  // cache: reading it from the environments and results themselves took as long as the step.
  struct Standing {
    std::uint32_t tokens = 0, groups = 0;
    bool ended = false;  // its episode, at the last step
  };

  template <class Work>
  void for_each(Work work) {
    const std::uint32_t parts = team_.size();
    const std::function<void(std::uint32_t)> run_part = [&](std::uint32_t part) {
      const auto begin = static_cast<std::uint32_t>(std::uint64_t{size()} * part / parts);
      const auto end = static_cast<std::uint32_t>(std::uint64_t{size()} * (part + 1) / parts);
      for (std::uint32_t e = begin; e < end; ++e) work(e);
    };
    team_.run(run_part);
  }

  // Steps every environment that is not done by `step_one`.
  template <class StepOne>
  const Batch& step_each(StepOne step_one) {
    for_each([&](std::uint32_t e) {
      if (state_.done[e] == 0) {
        batch_.results[e] = step_one(state_.envs[e], e);
        state_.done[e] = batch_.results[e].done() ? 1 : 0;
        stand(e);
        standing_[e].ended = state_.done[e] != 0;
        return;
      }
      batch_.results[e] = {};
      standing_[e].ended = false;
      if (options_.autoreset == AutoresetMode::next_step) begin_episode(e);
    });
    std::vector<std::uint32_t> ended;
    for (std::uint32_t e = 0; e < size(); ++e) {
      if (standing_[e].ended) ended.push_back(e);
    }
    collect(std::move(ended));
    return batch_;
  }

  // Draws windows until one has a choice.
  void begin_episode(std::uint32_t e) {
    const Rng draws = Rng(state_.seed).split("windows").split(e / options_.group);
    do {
      Rng draw = draws.split(state_.episodes[e]++);
      state_.windows[e] = static_cast<std::uint32_t>(draw.below(windows_.size()));
      if (clusters_.size() > 1) state_.envs[e].move_to(clusters_[draw.below(clusters_.size())]);
    } while (
        state_.envs[e].reset(windows_[state_.windows[e]], scales_.empty() ? 1.0 : scales_[state_.windows[e]]).done());
    state_.done[e] = 0;
    stand(e);
  }

  // Notes where environment `e` stands.
  void stand(std::uint32_t e) {
    const Agenda& agenda = state_.envs[e].agenda();
    standing_[e] = {agenda.size(), agenda.group_count(), false};
  }

  // Tells about the ended episodes, resets them (same_step), and encodes where every environment stands.
  void collect(std::vector<std::uint32_t> ended) {
    batch_.ended = std::move(ended);
    batch_.episode_totals.clear();
    batch_.episode_window.clear();
    for (const std::uint32_t e : batch_.ended) {
      batch_.episode_totals.push_back(state_.envs[e].totals());
      batch_.episode_window.push_back(state_.windows[e]);
    }
    const bool now = options_.autoreset == AutoresetMode::same_step;
    encode(batch_.final_observation, now ? std::span<const std::uint32_t>(batch_.ended) : std::span<std::uint32_t>{});
    if (now && !batch_.ended.empty()) {  // by the thread that steps it, which then has its memory to itself
      for_each([this](std::uint32_t e) {
        if (standing_[e].ended) begin_episode(e);
      });
    }
    if (everyone_.size() != size()) {
      everyone_.resize(size());
      for (std::uint32_t e = 0; e < size(); ++e) everyone_[e] = e;
    }
    encode(batch_.observation, everyone_);
  }

  void encode(Observation& observation, std::span<const std::uint32_t> envs) {
    const auto count = static_cast<std::uint32_t>(envs.size());
    observation.shape(count, [&](std::uint32_t i) {
      const Standing& standing = standing_[envs[i]];
      return std::pair{standing.tokens, standing.groups};
    });
    if (count == 0) return;
    const std::uint32_t parts = team_.size();
    const std::function<void(std::uint32_t)> run_part = [&](std::uint32_t part) {
      const auto begin = static_cast<std::uint32_t>(std::uint64_t{count} * part / parts);
      const auto end = static_cast<std::uint32_t>(std::uint64_t{count} * (part + 1) / parts);
      for (std::uint32_t i = begin; i < end; ++i) {
        state_.envs[envs[i]].encode(observation.slot(i));
        state_.envs[envs[i]].encode_privileged(observation.privileged.data() + std::size_t{i} * privileged_features);
      }
    };
    team_.run(run_part);
  }

  std::span<const Window> windows_;
  std::span<const double> scales_;
  std::span<const Cluster> clusters_;
  VectorEnvOptions options_;
  State state_;
  Batch batch_;
  std::vector<std::uint32_t> everyone_;
  std::vector<Standing> standing_;
  detail::WorkerTeam team_;
};

}  // namespace gpusched
