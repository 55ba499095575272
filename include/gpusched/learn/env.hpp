// SPDX-License-Identifier: Apache-2.0
/// The training environment: episodes over windows of a trace, with dense vector rewards that add up to the metrics. A
/// policy trained here runs anywhere through Agenda (agenda.hpp). Many of them together: vector_env.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/core/slowdown_bound.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/bills.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/engine/run_inputs.hpp"
#include "gpusched/learn/agenda.hpp"
#include "gpusched/learn/detail/meter_reading.hpp"
#include "gpusched/learn/observation.hpp"
#include "gpusched/learn/window.hpp"
#include "gpusched/policy/simulate.hpp"

namespace gpusched {

/// Components of the reward. Each is dense and adds up, over an episode that was not truncated, to what its line says;
/// "scored" leaves warm-up jobs out. What a power model meters counts from the first scored submission to the last end
/// of a scored job. Larger is better.
enum RewardTerm : std::uint8_t {
  reward_jct,               ///< -(sum of scored completion times), seconds
  reward_wait,              ///< -(sum of scored waiting times), seconds
  reward_bounded_slowdown,  ///< -(sum over scored jobs of bounded slowdown - 1), bound 10 s
  reward_idle,              ///< -(GPU-seconds idle / GPUs) from the first scored submission to the last end
  reward_fragmentation,     ///< -(GPU-seconds free on partly used nodes / GPUs); 0 unless its weight is not
  reward_energy,            ///< -(kWh) as the meter shows; without RunInputs::power by EnvOptions' watts of a GPU
  reward_fairness,          ///< Jain's index over users of mean bounded slowdown, minus 1
  reward_carbon,            ///< -(kg CO2e emitted); this and what follows is 0 without RunInputs::power
  reward_money,             ///< -(USD for electricity and GPUs)
  reward_peak,              ///< -(kW at most, losses included)
  reward_terms,
};
/// One value for each RewardTerm.
using RewardVector = std::array<double, reward_terms>;

/// The names of the terms in configurations and files.
inline constexpr std::array<std::string_view, reward_terms> reward_names{
    "jct", "wait", "bounded_slowdown", "idle", "fragmentation", "energy", "fairness", "carbon", "money", "peak"};

/// Bounded slowdown divides by at least this.
inline constexpr double slowdown_bound_s = to_seconds(slowdown_bound);

/// What a step brought.
struct StepResult {
  RewardVector reward{};    ///< undiscounted, by component
  double scalar = 0;        ///< weighted, discounted to the action, or EnvOptions::reward's; times the window's scale
  double seconds = 0;       ///< simulated time until the next choice
  bool terminated = false;  ///< every job has finished
  bool truncated = false;   ///< the window's end came first
  /// True when the episode is over.
  [[nodiscard]] bool done() const { return terminated || truncated; }
};

/// What a reward of one's own is computed from; borrowed for the call.
struct RewardInput {
  const StepResult& result;         ///< the step's components and seconds; its scalar is the scaled weighted sum
  std::span<const JobId> finished;  ///< scored jobs that finished in the step, in order
  const Engine& engine;             ///< the simulation after the step, true run times included
  std::span<const JobId> started;   ///< scored jobs that started in the step, in order; again after each preemption
};
/// The scalar reward of a step, not discounted within it. A pure function of its argument: copies of an environment and
/// several threads call it. The fragmentation component is 0 unless its weight is not.
using RewardFunction = std::function<double(const RewardInput& step)>;

/// The options of an episode: what the agent chooses, how the engine runs, and the reward.
struct EnvOptions {
  AgendaOptions agenda = {};         ///< what is chosen and observed
  EngineOptions engine = {};         ///< how the simulation behaves
  RewardVector weights = {0, 0, 1};  ///< of the scalar reward
  double discount_per_s = 0;         ///< beta: a reward t seconds away counts exp(-beta t)
  double idle_gpu_w = 60;            ///< watts of an idle GPU
  double busy_gpu_w = 300;           ///< watts of a GPU that a job holds
  RewardFunction reward = {};        ///< in place of the weighted sum; empty: the weighted sum
  /// The conditions of every window, borrowed, but for RunInputs::changes, in whose place Window::changes stand. Each
  /// window has failures of its own (engine_options()); an episode in which failures undo all work for ever is
  /// truncated.
  RunInputs inputs = {};
  bool lists_jobs = false;  ///< Env::finished() and Env::started() are kept, as they are for a `reward`
};

/// A cluster and the conditions of runs on it, where the windows of one environment are of several (Window::world).
struct EnvWorld {
  Cluster cluster;            ///< in place of the environment's
  EngineOptions engine = {};  ///< in place of EnvOptions::engine
  RunInputs inputs = {};      ///< in place of EnvOptions::inputs
};

/// How the simulation of a window behaves. Where nodes can fail its random numbers come from EngineOptions::seed and
/// the window's place in the trace: the failures of a window are the same for every agent.
inline EngineOptions engine_options(const EnvOptions& options, const Window& window) {
  EngineOptions engine = window.world != nullptr ? window.world->engine : options.engine;
  const RunInputs& inputs = window.world != nullptr ? window.world->inputs : options.inputs;
  if (inputs.failures != nullptr) engine.seed = Rng(engine.seed).split("window").split(window.start).state()[0];
  return engine;
}

/// The conditions of a window. What its nodes draw is measured from its first scored job on.
inline RunInputs run_inputs(const EnvOptions& options, const Window& window) {
  RunInputs inputs = window.world != nullptr ? window.world->inputs : options.inputs;
  inputs.changes = window.changes.is_empty() ? nullptr : &window.changes;
  if (inputs.power != nullptr) inputs.measured.first = window.first_scored;
  return inputs;
}

/// One environment. A value: a copy is an exact snapshot that goes on independently. Borrows the window and cluster.
class Env {
 public:
  /// Borrows the cluster. reset() must come before anything else.
  Env(const Cluster& cluster, const EnvOptions& options)
      : cluster_(&cluster), options_(options), lists_jobs_(options.lists_jobs || options.reward) {}

  /// Sets the cluster of the episodes from the next reset() on; it is borrowed.
  void move_to(const Cluster& cluster) { cluster_ = &cluster; }

  /// Starts an episode and goes to its first choice. The result holds what accrued before that, which no action
  /// changes; done() tells of a window without any choice. `scale` multiplies the scalar reward, so that windows of
  /// different load weigh alike.
  StepResult reset(const Window& window, double scale = 1) {
    window_ = &window;
    scale_ = scale;
    inputs_ = run_inputs(options_, window);
    const Cluster& cluster = window.world != nullptr ? window.world->cluster : *cluster_;
    engine_.emplace(window.jobs, cluster, engine_options(options_, window), inputs_);
    meter_ = {};
    peak_kw_ = 0;
    turns_.reset();
    if (inputs_.failures != nullptr) turns_.emplace(engine_->view());
    const bool reads = KnownRuns::predicts(options_.agenda.knowledge) || options_.agenda.mode == ActionMode::preempt;
    agenda_.emplace(options_.agenda, window.jobs.works(), reads ? window.history : JobHistory{});
    rates_ = {};
    totals_ = {};
    gpus_ = static_cast<double>(std::max<std::int64_t>(1, engine_->view().cluster().total_gpus()));
    per_gpus_ = 1 / gpus_;
    look_up_jobs();
    fairness_.assign(window.jobs.users().size(), {});
    fairness_sums_ = {};
    fairness_now_ = 1;
    took_over_ = false;
    return finish_step();
  }

  /// Carries out an action (a token number, or the number of tokens for WAIT) and goes to the next choice.
  /// Preconditions: the episode is open; agenda().allowed(action).
  StepResult step(std::uint32_t action) {
    Decision decision = engine_->decision();
    agenda_->act(action, engine_->view(), decision);
    return finish_step();
  }

  /// Mode preempt: ranks the tokens by their scores, larger first, and goes to the next choice.
  StepResult step(std::span<const float> scores) {
    agenda_->rank(engine_->view(), scores);
    return finish_step();
  }

  /// Does what a network's outputs for the tokens and WAIT say, in any mode (Agenda::act).
  template <class Pick>
  StepResult step(std::span<const float> outputs, Pick pick) {
    Decision decision = engine_->decision();
    agenda_->act(outputs, pick, engine_->view(), decision);
    return finish_step();
  }

  /// Does what a heuristic does, in any mode.
  StepResult step(Heuristic heuristic) {
    Decision decision = engine_->decision();
    agenda_->act(heuristic, engine_->view(), decision);
    return finish_step();
  }

  /// Another agent, or another order of the same, acts from now on (Agenda::change_hands).
  void change_hands() { agenda_->change_hands(engine_->view()); }

  /// The open choice.
  [[nodiscard]] const Agenda& agenda() const { return *agenda_; }
  /// The simulated instant.
  [[nodiscard]] Time now() const { return engine_->view().now(); }
  /// The options it was made with.
  [[nodiscard]] const EnvOptions& options() const { return options_; }
  /// The window of the episode.
  [[nodiscard]] const Window& window() const { return *window_; }
  /// The simulation behind the episode.
  [[nodiscard]] const Engine& engine() const { return *engine_; }
  /// Sums of the reward components since reset().
  [[nodiscard]] const RewardVector& totals() const { return totals_; }

  /// True for a job that counts in rewards. As in the metrics, jobs that users cancel under any policy do not.
  [[nodiscard]] bool scored(JobId job) const {
    return index(job) >= window_->first_scored && !window_->changes.cancels(job);
  }
  /// Scored jobs that finished in the last step, or before the first choice, in order (EnvOptions::lists_jobs).
  [[nodiscard]] std::span<const JobId> finished() const { return finished_; }
  /// Scored jobs that started then, in order; again after each preemption (EnvOptions::lists_jobs).
  [[nodiscard]] std::span<const JobId> started() const { return started_; }

  /// Writes the observation of the open choice. AgendaOptions::signals needs RunInputs::power.
  void encode(const ObservationSlot& slot) const { agenda_->encode(engine_->view(), slot); }

  /// Writes privileged_features floats: what only the critic may see.
  void encode_privileged(float* out) const {
    const double now_s = to_seconds(now());
    const auto log_work = [this](double gpu_s) {
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

  // How long the job runs on the reference device, which its limit may end.
  [[nodiscard]] Time length(JobId job) const {
    const Time work = window_->jobs.work(job), limit = window_->jobs.estimate(job);
    return inputs_.kill_at_limit && limit.us > 0 ? std::min(work, limit) : work;
  }

  // Goes to the next choice, with the reward of EnvOptions::reward where there is one.
  StepResult finish_step() {
    if (!lists_jobs_) return advance_to_choice();
    finished_.clear();
    started_.clear();
    StepResult result = advance_to_choice();
    if (!options_.reward) return result;
    result.scalar =
        scale_ * options_.reward({.result = result, .finished = finished_, .engine = *engine_, .started = started_});
    return result;
  }

  StepResult advance_to_choice() {
    StepResult result;
    Decision decision = engine_->decision();
    double discount = 1;
    for (;;) {
      while (agenda_->open(engine_->view(), decision)) {
        if (rates_.scoring) {
          if (!std::exchange(took_over_, true)) agenda_->change_hands(engine_->view());
          finish(result);
          return result;
        }
        agenda_->act(options_.agenda.heuristic, engine_->view(), decision);
      }
      engine_->apply();
      watch(result, discount);
      if (engine_->all_finished()) {  // what is still planned would not happen
        end(result);
        return result;
      }
      const Time before = now();
      const bool happened = engine_->advance_to(window_->end);
      accrue(now() - before, result, discount);
      if (knows_power() && rates_.scoring) watch_peak(result, discount);
      if (!happened) {
        end(result);
        return result;
      }
      watch(result, discount);
      if (turns_) turns_->observe(engine_->view(), engine_->events());
      if (turns_ && turns_->endless()) {
        end(result);
        return result;
      }
      agenda_->observe(engine_->view());
    }
  }

  void end(StepResult& result) {
    result.terminated = engine_->all_finished();
    result.truncated = !result.terminated;
    agenda_->show(engine_->view());
    finish(result);
  }

  void finish(StepResult& result) {
    for (std::size_t term = 0; term < reward_terms; ++term) totals_[term] += result.reward[term];
    if (options_.discount_per_s == 0) result.scalar = dot(options_.weights, result.reward);
    result.scalar *= scale_;
  }

  // A reward of `amount` at this instant.
  void credit(RewardTerm term, double amount, StepResult& result, double discount) const {
    result.reward[term] += amount;
    result.scalar += options_.weights[term] * amount * discount;
  }

  // Rates are constant between events: integrates them over `span`, discounted within it.
  void accrue(Time span, StepResult& result, double& discount) {
    if (span.us == 0) return;
    const double dt = to_seconds(span);
    result.seconds += dt;
    const Bill bill = meter_.passed(*engine_);  // draws may change between events: it counts as spread evenly
    if (!rates_.scoring) return;
    const double idle_gpus = gpus_ - rates_.held_gpus;
    const double watts = idle_gpus * options_.idle_gpu_w + rates_.held_gpus * options_.busy_gpu_w;
    RewardVector rate{-rates_.in_system,
                      -rates_.waiting,
                      -rates_.slowdown,
                      -idle_gpus * per_gpus_,
                      -rates_.fragmented_gpus * per_gpus_,
                      -watts * (1 / joules_per_kwh)};
    if (knows_power()) {
      rate[reward_energy] = -bill.kwh() / dt;
      rate[reward_carbon] = -bill.carbon_kg() / dt;
      rate[reward_money] = -bill.usd() / dt;
    }
    for (std::size_t term = 0; term < reward_terms; ++term) result.reward[term] += rate[term] * dt;
    if (options_.discount_per_s == 0) return;  // finish() weighs the sums
    const double next = std::exp(-options_.discount_per_s * dt);
    const double weight = (1 - next) / options_.discount_per_s;  // integral of the discount over the span
    result.scalar += dot(options_.weights, rate) * weight * discount;
    discount *= next;
  }

  [[nodiscard]] bool knows_power() const { return engine_->knows_power(); }

  // A new peak costs when it is reached.
  void watch_peak(StepResult& result, double discount) {
    const detail::Power& power = engine_->power();
    const double kw = power.meter_kw(power.peak_mw_until(now()));
    if (kw <= peak_kw_) return;
    credit(reward_peak, peak_kw_ - kw, result, discount);
    peak_kw_ = kw;
  }

  static double dot(const RewardVector& a, const RewardVector& b) {
    double sum = 0;
    for (std::size_t term = 0; term < reward_terms; ++term) sum += a[term] * b[term];
    return sum;
  }

  // Folds the engine's events of this instant into the rates.
  GPUSCHED_HOT void watch(StepResult& result, double discount) {
    const OracleView view = engine_->view();
    for (const Event& event : engine_->events()) {
      switch (event.kind) {
        case EventKind::submit: submit(view, event.job); break;
        case EventKind::retry:
          stop(event.job);
          queue(event.job, +1);
          break;
        case EventKind::finish:
          stop(event.job);
          complete(view, event.job, result, discount);
          break;
        case EventKind::start: start(view, event.job); break;
        case EventKind::preempt:
        case EventKind::kill: preempt(view, event.job); break;
        case EventKind::move:
        case EventKind::wake:
        case EventKind::node_down:
        case EventKind::node_up:
        case EventKind::refuse:
        case EventKind::reprioritize:
        case EventKind::more_power: break;
        case EventKind::withdraw: withdraw(event.job); break;
      }
    }
    if (options_.weights[reward_fragmentation] != 0) rates_.fragmented_gpus = fragmented_gpus(view);
  }

  // What the rates need of a job, worked out once an episode.
  struct JobFacts {
    double gpus, gpu_s;      // gpu_s: left
    double scored, urgency;  // 1, and 1 / max(run, bound); both 0 for a warm-up job
    double end_s = 0;        // planned, of the present run
    bool is_known = false;   // was submitted before; kept where users change jobs
  };
  [[nodiscard]] const JobFacts& facts(JobId job) const { return facts_[index(job)]; }

  void look_up_jobs() {
    facts_.resize(window_->jobs.size());
    for (std::uint32_t i = 0; i < facts_.size(); ++i) {
      const JobId job{i};
      const double run = to_seconds(length(job));
      const double gpus = static_cast<double>(window_->jobs.shape(job).gpu_milli()) / static_cast<double>(whole_gpu);
      const double weight = scored(job) ? 1.0 : 0.0;
      facts_[i] = {gpus, gpus * run, weight, weight / std::max(run, slowdown_bound_s)};
      rates_.future_gpu_s += facts_[i].gpu_s;
    }
  }

  // For the first time, or again with another size.
  void submit(const OracleView& view, JobId job) {
    if (window_->changes.is_empty()) {
      rates_.future_gpu_s -= facts(job).gpu_s;
    } else {
      resize(view, job);
    }
    rates_.scoring = rates_.scoring || index(job) >= window_->first_scored;
    rates_.in_system += facts(job).scored;
    queue(job, +1);
  }

  void resize(const OracleView& view, JobId job) {
    JobFacts& job_facts = facts_[index(job)];
    if (!std::exchange(job_facts.is_known, true)) rates_.future_gpu_s -= job_facts.gpu_s;
    job_facts.gpus = static_cast<double>(view.shape(job).gpu_milli()) / static_cast<double>(whole_gpu);
    job_facts.gpu_s = job_facts.gpus * to_seconds(view.remaining(job));
  }

  // A waiting job is cancelled, or leaves its queue to join it with another size.
  void withdraw(JobId job) {
    queue(job, -1);
    rates_.in_system -= facts(job).scored;
  }

  void queue(JobId job, double sign) {
    rates_.queued_gpu_s += sign * facts(job).gpu_s;
    rates_.waiting += sign * facts(job).scored;
    rates_.slowdown += sign * facts(job).urgency;
    if (rates_.waiting == 0) rates_.slowdown = 0;  // no drift from rounding
  }

  void start(const OracleView& view, JobId job) {
    if (lists_jobs_ && scored(job)) started_.push_back(job);
    queue(job, -1);
    rates_.held_gpus += facts(job).gpus;
    rates_.running_gpus += facts(job).gpus;
    const bool as_planned = inputs_.runtime == nullptr && inputs_.stages == nullptr;
    const Time end = as_planned ? view.now() + view.remaining(job) : view.expected_end(job);
    facts_[index(job)].end_s = to_seconds(end);
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
    if (lists_jobs_) finished_.push_back(job);
    rates_.in_system -= 1;
    const double run = to_seconds(length(job));
    const double ran = to_seconds(view.ran(job));
    const double wait = std::max(0.0, to_seconds(view.now() - view.submit(job) - view.ran(job)));
    const double slowdown = std::max(1.0, (wait + ran) / std::max(run, slowdown_bound_s));
    const bool at_other_speed = inputs_.runtime != nullptr && ran != run;
    if (ran > run || at_other_speed) {  // restarts prolonged it without waiting, or its GPUs made it faster or slower
      credit(reward_bounded_slowdown, wait * facts(job).urgency - (slowdown - 1), result, discount);
    } else if (run < slowdown_bound_s) {
      // Waiting accrued 1 / bound a second also while the slowdown of a very short job was still bounded by 1.
      credit(reward_bounded_slowdown, std::min(wait, slowdown_bound_s - run) / slowdown_bound_s, result, discount);
    }
    update_fairness(view.user(job), slowdown, result, discount);
  }

  void update_fairness(std::uint32_t user, double slowdown, StepResult& result, double discount) {
    UserSlowdown& entry = fairness_[user];
    const double before = entry.mean;
    if (entry.jobs == 0) fairness_sums_.users += 1;
    entry.jobs += 1;
    entry.sum += slowdown;
    const double after = entry.mean = entry.sum / entry.jobs;
    fairness_sums_.sum += after - before;
    fairness_sums_.squares += after * after - before * before;
    const double jain = fairness_sums_.sum * fairness_sums_.sum / (fairness_sums_.users * fairness_sums_.squares);
    credit(reward_fairness, jain - fairness_now_, result, discount);
    fairness_now_ = jain;
  }

  [[nodiscard]] static double fragmented_gpus(const View& view) {
    std::int64_t sum = 0;
    view.cluster().for_each_idle_level(
        [&sum](std::uint32_t, std::uint32_t gpus, std::uint32_t idle, std::uint32_t nodes) {
          if (idle < gpus) sum += std::int64_t{idle} * nodes;
        });
    return static_cast<double>(sum);
  }

  struct UserSlowdown {
    double jobs = 0, sum = 0, mean = 0;
  };
  struct FairnessSums {
    double users = 0, sum = 0, squares = 0;
  };

  const Cluster* cluster_;
  EnvOptions options_;
  bool lists_jobs_;
  RunInputs inputs_;  // of the window
  const Window* window_ = nullptr;
  double scale_ = 1;
  std::optional<Engine> engine_;
  std::optional<detail::ProgressWatch> turns_;  // where nodes can fail
  std::optional<Agenda> agenda_;
  double gpus_ = 1, per_gpus_ = 1;  // of the cluster; 1 / that
  std::vector<JobFacts> facts_;
  Rates rates_;
  RewardVector totals_{};
  std::vector<UserSlowdown> fairness_;
  FairnessSums fairness_sums_;
  double fairness_now_ = 1;
  detail::MeterReading meter_;
  double peak_kw_ = 0;                     // since the first scored submission
  std::vector<JobId> finished_, started_;  // in the present step, where lists_jobs_
  bool took_over_ = false;                 // the first choice of the episode was shown
};

}  // namespace gpusched
