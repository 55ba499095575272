// SPDX-License-Identifier: Apache-2.0
/// ServiceEnv: the environment of an agent that sets how many replicas services have, beside jobs on one cluster. What
/// it does not give to replicas is lent to jobs, as the scheduler of the scene has it. Many of them together:
/// ServiceVectorEnv.
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
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/bills.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/engine/run_inputs.hpp"
#include "gpusched/learn/detail/meter_reading.hpp"
#include "gpusched/learn/detail/worker_team.hpp"
#include "gpusched/learn/observation.hpp"
#include "gpusched/policy/policy.hpp"
#include "gpusched/policy/progress_watch.hpp"
#include "gpusched/serving/erlang.hpp"
#include "gpusched/serving/service_load.hpp"
#include "gpusched/serving/service_model.hpp"
#include "gpusched/watch/service_figures.hpp"

namespace gpusched {

/// Components of the reward of a ServiceEnv. Each adds up, over an episode, to what its line says. Larger is better.
enum ServiceRewardTerm : std::uint8_t {
  service_reward_missed,    ///< -(requests that broke their promise, were dropped, or left unserved)
  service_reward_latency,   ///< -(request-seconds in queues and in service)
  service_reward_replicas,  ///< -(GPU-hours that replicas held)
  service_reward_wait,      ///< -(sum of waiting times of jobs), seconds
  service_reward_jct,       ///< -(sum of completion times of jobs), seconds
  service_reward_energy,    ///< -(kWh at the meter, to the last request); 0, as what follows, without RunInputs::power
  service_reward_carbon,    ///< -(kg CO2e emitted)
  service_reward_money,     ///< -(USD for electricity and GPUs)
  service_reward_terms,
};
/// One value for each ServiceRewardTerm.
using ServiceRewardVector = std::array<double, service_reward_terms>;
/// The names of the terms in options.
inline constexpr std::array<std::string_view, service_reward_terms> service_reward_names{
    "missed", "latency", "replicas", "wait", "jct", "energy", "carbon", "money"};

/// What is told of each service. "Replicas' worth" is a rate of arrivals over the rate that one replica can serve.
enum ServiceFeature : std::uint8_t {
  service_rate,         ///< replicas' worth of the last period / the most replicas, at most 4
  service_rate_before,  ///< the same of the period before
  service_rate_hour,    ///< the same of the last hour
  service_queued,       ///< log(1 + requests that wait) / 10
  service_busy,         ///< requests in service / those that ready replicas can serve at once
  service_ready,        ///< replicas that serve / the most
  service_starting,     ///< replicas that are asked for or load / the most
  service_told,         ///< the last action / the most
  service_needed,       ///< the least replicas with which M/M/c keeps the promise at the last period's rate / the most;
                        ///< replicas' worth, rounded up, where that cannot be said; at most 1
  service_missed,       ///< share of the requests that ended in the last period which broke their promise
  service_features,
};

/// What is told of the cluster, behind the services.
enum ServiceClusterFeature : std::uint8_t {
  cluster_free,      ///< free GPUs in service / GPUs
  cluster_jobs,      ///< GPUs that jobs hold / GPUs
  cluster_waiting,   ///< log(1 + jobs that wait) / 5
  cluster_asked,     ///< log(1 + GPUs that waiting jobs ask for / GPUs)
  cluster_oldest,    ///< log(1 + seconds that the oldest job has waited) / 10
  cluster_hour_sin,  ///< of the hour in its day
  cluster_hour_cos,
  service_cluster_features,
};

/// One world of episodes. What it points at is borrowed and must outlive the environment.
struct ServiceScene {
  const JobTable* jobs = nullptr;    ///< replicas of the services in front (JobTable::in_front)
  const Cluster* cluster = nullptr;  ///< where they run
  EngineOptions engine = {};         ///< how the simulation behaves
  RunInputs inputs = {};             ///< services of which each has the rule ToldReplicas: told_replicas()
  AnyPolicy scheduler;               ///< who places jobs and replicas, as it is when a run begins
};

/// The services with the rule ToldReplicas, of one replica at first.
[[nodiscard]] inline ServiceModel told_replicas(ServiceModel services) {
  for (ServiceSpec& service : services.services) service.autoscaler = Autoscaler(ToldReplicas(1));
  return services;
}

/// How episodes go.
struct ServiceEnvOptions {
  Time period = whole_seconds(60);      ///< between two actions; above 0
  Time longest = Time::max();           ///< an episode is truncated after so long
  ServiceRewardVector weights = {1.0};  ///< of the scalar reward; by default missed requests alone
};

/// What a step brought.
struct ServiceStep {
  ServiceRewardVector reward{};  ///< by component
  double scalar = 0;             ///< weighted
  double seconds = 0;            ///< simulated
  bool terminated = false;       ///< every request and every job is done
  bool truncated = false;        ///< the episode was long enough, or nothing will ever happen again
  /// True when the episode is over.
  [[nodiscard]] bool done() const { return terminated || truncated; }
};

/// One environment. A value: a copy is an exact snapshot that goes on independently. Borrows the scene.
class ServiceEnv {
 public:
  /// reset() must come before anything else.
  explicit ServiceEnv(const ServiceEnvOptions& options = {}) : options_(options) {
    GPUSCHED_ASSERT(options.period > Time{}, "actions need time between them");
  }

  /// Starts an episode, with one replica for each service, at the first submission. The result brings nothing.
  ServiceStep reset(const ServiceScene& scene) {
    scene_ = &scene;
    engine_.emplace(*scene.jobs, *scene.cluster, scene.engine, scene.inputs);
    GPUSCHED_ASSERT(engine_->has_services(), "a scene needs services");
    scheduler_ = scene.scheduler;
    progress_.emplace(engine_->view());
    tracks_.assign(specs().size(), Track(options_.period));
    totals_ = {};
    meter_ = {};
    held_ = {};
    rows_ = scene.inputs.services->rows();
    gpus_ = static_cast<double>(std::max<std::int64_t>(1, engine_->view().cluster().total_gpus()));
    begin_ = next_action_ = scene.jobs->size() > 0 ? scene.jobs->submit(JobId{0}) : Time{};
    return advance();
  }

  /// Sets the replicas of each service, within 0 and its most, and goes on to the next action. While requests are there
  /// a service keeps one. Preconditions: the episode is open; one number for each service.
  ServiceStep step(std::span<const std::int32_t> replicas) {
    GPUSCHED_ASSERT(replicas.size() == tracks_.size(), "one number for each service");
    for (std::uint32_t i = 0; i < tracks_.size(); ++i) {
      tracks_[i].told = std::clamp(replicas[i], 0, static_cast<std::int32_t>(specs()[i].most));
      engine_->tell_replicas(i, tracks_[i].told);
    }
    next_action_ = later_by(next_action_, options_.period);
    return advance();
  }

  /// The services of the scene.
  [[nodiscard]] std::span<const ServiceSpec> specs() const { return scene_->inputs.services->services; }
  /// Floats of an observation.
  [[nodiscard]] std::size_t size() const { return tracks_.size() * service_features + service_cluster_features; }
  /// Writes the observation: service_features of each service, then service_cluster_features.
  void encode(float* out) const {
    for (std::uint32_t i = 0; i < tracks_.size(); ++i, out += service_features) write_service(i, out);
    write_cluster(out);
  }
  /// The replicas with which M/M/c keeps the promise of a service at the rate of the last period, as the feature
  /// service_needed has it.
  [[nodiscard]] std::int32_t needed(std::uint32_t service) const {
    const ServiceSpec& spec = specs()[service];
    const double rate = tracks_[service].rate;
    const auto most = static_cast<std::int32_t>(spec.most);
    if (!(rate > 0)) return 0;
    const bool is_queue = spec.batches.empty() && !spec.llm && spec.mean_service_s > 0;
    if (!is_queue || !spec.promise || spec.promise->within == Time::max()) {
      const double own = rate_of_replica(service);
      return own > 0 ? static_cast<std::int32_t>(std::min<std::int64_t>(most, replicas_lower_bound(rate, own))) : 0;
    }
    const LatencyTarget target{.within_s = to_seconds(spec.promise->within), .quantile = spec.promise->part};
    const std::int64_t least = least_replicas(rate, 1 / spec.mean_service_s, target, spec.at_once, most);
    return static_cast<std::int32_t>(std::min<std::int64_t>(most, least));
  }

  /// The simulated instant.
  [[nodiscard]] Time now() const { return engine_->view().now(); }
  /// The simulation behind the episode.
  [[nodiscard]] const Engine& engine() const { return *engine_; }
  /// Sums of the reward components since reset().
  [[nodiscard]] const ServiceRewardVector& totals() const { return totals_; }
  /// The options it was made with.
  [[nodiscard]] const ServiceEnvOptions& options() const { return options_; }

 private:
  // What is remembered of one service.
  struct Track {
    explicit Track(Time period) : history(std::max(period, whole_seconds(3600))) {}
    LoadHistory history;
    double rate = 0, rate_before = 0;     // of arrivals a second, in the last period and the one before
    std::vector<std::uint32_t> open;      // requests that came and have not ended
    std::uint32_t seen = 0;               // requests
    std::uint64_t ended = 0, missed = 0;  // in the last period
    std::int64_t held_us = 0;             // RequestLedger's, as of the last step
    std::int32_t told = 1;
  };
  // What is there between two events.
  struct Held {
    double waiting = 0, in_system = 0, replica_gpus = 0;
  };

  // Runs to the next action.
  ServiceStep advance() {
    ServiceStep result;
    const Time from = now();
    Decision decision = engine_->decision();
    while (!engine_->all_finished()) {
      const Time before = now();
      const bool happened = engine_->advance_to(next_action_);
      accrue(now() - before, result);
      if (!happened) break;
      progress_->observe(engine_->view(), engine_->events());
      if (!engine_->events().empty()) {
        scheduler_->decide(engine_->view(), decision);
        engine_->apply();
        progress_->observe(engine_->view(), engine_->events());
      }
      count_held();
      if (progress_->endless()) break;
    }
    result.seconds = to_seconds(now() - from);
    look_at_requests(result);
    result.terminated = engine_->all_finished();
    result.truncated = !result.terminated && (progress_->endless() || engine_->next_event_time() == Time::max() ||
                                              now() - begin_ >= options_.longest);
    for (std::size_t term = 0; term < service_reward_terms; ++term) {
      totals_[term] += result.reward[term];
      result.scalar += options_.weights[term] * result.reward[term];
    }
    return result;
  }

  void accrue(Time span, ServiceStep& result) {
    if (span.us == 0) return;
    const double dt = to_seconds(span);
    result.reward[service_reward_wait] -= held_.waiting * dt;
    result.reward[service_reward_jct] -= held_.in_system * dt;
    result.reward[service_reward_replicas] -= held_.replica_gpus * dt / 3600;
    const Bill passed = meter_.passed(*engine_);
    result.reward[service_reward_energy] -= passed.kwh();
    result.reward[service_reward_carbon] -= passed.carbon_kg();
    result.reward[service_reward_money] -= passed.usd();
  }

  // O(replicas).
  void count_held() {
    const OracleView view = engine_->view();
    double waiting = 0, running = 0;
    MilliGpu milli = 0;
    for (std::uint32_t row = 0; row < rows_; ++row) {
      const JobPhase phase = view.phase(JobId{row});
      waiting += phase == JobPhase::pending ? 1 : 0;
      if (phase != JobPhase::running) continue;
      running += 1;
      milli += view.shape(JobId{row}).gpu_milli();
    }
    held_.waiting = static_cast<double>(view.pending_count()) - waiting;
    held_.in_system = held_.waiting + static_cast<double>(view.running().size()) - running;
    held_.replica_gpus = static_cast<double>(milli) / static_cast<double>(whole_gpu);
  }

  // What became of requests since the last step.
  void look_at_requests(ServiceStep& result) {
    engine_->look_at_requests();
    const detail::Services& services = engine_->services();
    for (std::uint32_t i = 0; i < tracks_.size(); ++i) {
      Track& track = tracks_[i];
      const RequestLedger& ledger = services.requests(i);
      const auto came = static_cast<std::uint32_t>(ledger.counts().injected);
      for (; track.seen < came; ++track.seen) track.open.push_back(track.seen);
      track.ended = track.missed = 0;
      std::erase_if(track.open, [this, &i, &track, &ledger](std::uint32_t request) {
        if (ledger.records()[request].end == Time::max()) return false;
        ++track.ended;
        const bool is_answered = ledger.records()[request].phase == RequestPhase::completed;
        const bool kept = is_answered && (!specs()[i].promise || detail::in_time(ledger, specs()[i], request));
        track.missed += kept ? 0 : 1;
        return true;
      });
      result.reward[service_reward_missed] -= static_cast<double>(track.missed);
      result.reward[service_reward_latency] -=
          static_cast<double>(ledger.held_us() - std::exchange(track.held_us, ledger.held_us())) / 1e6;
      if (ledger.now() < ledger.begin() || ledger.over()) {
        track.rate_before = std::exchange(track.rate, 0.0);
        continue;
      }
      const auto [ready, starting] = services.replicas(i);
      track.history.add(ledger.load(ready, starting));
      track.rate_before = std::exchange(track.rate, track.history.rate(options_.period));
    }
  }

  // Requests a second that one replica serves; 0 where nothing is known of it.
  [[nodiscard]] double rate_of_replica(std::uint32_t service) const {
    const ServiceSpec& spec = specs()[service];
    const double own = most_rate_of_replica(spec);
    if (own > 0) return own;
    const double mean_s = engine_->services().requests(service).load(0, 0).mean_service_s;
    return mean_s > 0 ? spec.at_once / mean_s : 0;
  }

  void write_service(std::uint32_t service, float* out) const {
    const Track& track = tracks_[service];
    const ServiceSpec& spec = specs()[service];
    const double most = spec.most;
    const double own = rate_of_replica(service);
    const auto rate = [&own, &most](double arrivals_s) {
      return own > 0 ? static_cast<float>(std::min(4.0, arrivals_s / own / most)) : 0.0f;
    };
    const RequestCounts& counts = engine_->services().requests(service).counts();
    const auto [ready, starting] = engine_->services().replicas(service);
    out[service_rate] = rate(track.rate);
    out[service_rate_before] = rate(track.rate_before);
    out[service_rate_hour] = rate(track.history.rate(whole_seconds(3600)));
    out[service_queued] = detail::fast_log1p(static_cast<float>(counts.waiting)) * 0.1f;
    const double room =
        std::max(1, ready) * static_cast<double>(spec.batches.empty() ? spec.at_once : spec.batches.size());
    out[service_busy] = static_cast<float>(std::min(1.0, static_cast<double>(counts.served) / room));
    out[service_ready] = static_cast<float>(ready / most);
    out[service_starting] = static_cast<float>(starting / most);
    out[service_told] = static_cast<float>(track.told / most);
    out[service_needed] = static_cast<float>(std::min(1.0, needed(service) / most));
    out[service_missed] = track.ended == 0 ? 0.0f : static_cast<float>(track.missed) / static_cast<float>(track.ended);
  }

  void write_cluster(float* out) const {
    const OracleView view = engine_->view();
    const auto gpus = [&view](JobId job) {
      return static_cast<double>(view.shape(job).gpu_milli()) / static_cast<double>(whole_gpu);
    };
    double asked = 0, job_gpus = 0;
    Time oldest = view.now();
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      for (const JobId job : view.queue(queue)) {
        if (index(job) < rows_) continue;
        asked += gpus(job);
        oldest = std::min(oldest, view.submit(job));
      }
    }
    for (const JobId job : view.running()) job_gpus += index(job) < rows_ ? 0 : gpus(job);
    const double free = static_cast<double>(view.cluster().free_gpu_milli()) / static_cast<double>(whole_gpu);
    out[cluster_free] = static_cast<float>(free / gpus_);
    out[cluster_jobs] = static_cast<float>(job_gpus / gpus_);
    out[cluster_waiting] = detail::fast_log1p(static_cast<float>(held_.waiting)) * 0.2f;
    out[cluster_asked] = detail::fast_log1p(static_cast<float>(asked / gpus_));
    out[cluster_oldest] = detail::fast_log1p(static_cast<float>(to_seconds(view.now() - oldest))) * 0.1f;
    const auto& sines = detail::hour_table()[detail::hour_of_week(view.now())];
    out[cluster_hour_sin] = sines[0];
    out[cluster_hour_cos] = sines[1];
  }

  ServiceEnvOptions options_;
  const ServiceScene* scene_ = nullptr;
  std::optional<Engine> engine_;
  std::optional<AnyPolicy> scheduler_;
  std::optional<detail::ProgressWatch> progress_;
  std::vector<Track> tracks_;
  Held held_;
  Time begin_{}, next_action_{};
  std::uint32_t rows_ = 0;  // replicas, in front of the jobs
  double gpus_ = 1;
  detail::MeterReading meter_;
  ServiceRewardVector totals_{};
};

/// Environments stepped together. An episode begins anew at once when it is over; its last observation and its totals
/// are kept for one step. Scenes are drawn by seed, environment and number of the episode. Not copyable; save() is the
/// snapshot.
class ServiceVectorEnv {
 public:
  /// What a step of all environments brought.
  struct Batch {
    std::vector<float> observation;                   ///< [environments x size()]
    std::vector<ServiceStep> results;                 ///< [environments]
    std::vector<std::uint32_t> ended;                 ///< environments whose episode ended, ascending
    std::vector<float> final_observation;             ///< [ended x size()]: the last of the old episodes
    std::vector<ServiceRewardVector> episode_totals;  ///< [ended]
    std::vector<std::uint32_t> scenes;                ///< [environments]: of the open episodes
  };
  /// Everything that changes, as a value.
  struct State {
    std::vector<ServiceEnv> envs;         ///< [environments]
    std::vector<std::uint64_t> episodes;  ///< [environments]: number of the next episode, from 0
    std::uint64_t seed = 0;               ///< of reset()
    Batch batch;                          ///< what the last call brought
  };

  /// Borrows `scenes`, which have the same services. `threads` changes no result.
  ServiceVectorEnv(std::span<const ServiceScene> scenes, const ServiceEnvOptions& options, std::uint32_t environments,
                   std::uint32_t threads = 1)
      : scenes_(scenes), team_(std::max(1u, threads)) {
    state_.envs.assign(environments, ServiceEnv(options));
    GPUSCHED_ASSERT(!scenes.empty() && environments > 0, "no scenes or no environments");
    for (const ServiceScene& scene : scenes) {
      GPUSCHED_ASSERT(scene.inputs.services->services.size() == scenes[0].inputs.services->services.size(),
                      "scenes of other services");
    }
  }

  /// Number of environments.
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(state_.envs.size()); }
  /// Floats of an observation.
  [[nodiscard]] std::size_t size() const { return services() * service_features + service_cluster_features; }
  /// Services of a scene.
  [[nodiscard]] std::size_t services() const { return scenes_[0].inputs.services->services.size(); }
  /// Environment `e`.
  [[nodiscard]] const ServiceEnv& env(std::uint32_t e) const { return state_.envs[e]; }

  /// Starts first episodes.
  const Batch& reset(std::uint64_t seed) {
    state_.seed = seed;
    state_.episodes.assign(state_.envs.size(), 0);
    state_.batch.scenes.assign(state_.envs.size(), 0);
    state_.batch.results.assign(state_.envs.size(), {});
    team_.for_each(count(), [this](std::uint32_t e) { begin(e); });
    collect({});
    return state_.batch;
  }

  /// The replicas of each service of each environment, [environments x services].
  const Batch& step(std::span<const std::int32_t> replicas) {
    GPUSCHED_ASSERT(replicas.size() == state_.envs.size() * services(),
                    "one number for each service of each environment");
    team_.for_each(count(), [this, &replicas](std::uint32_t e) {
      state_.batch.results[e] = state_.envs[e].step(replicas.subspan(e * services(), services()));
    });
    std::vector<std::uint32_t> ended;
    for (std::uint32_t e = 0; e < count(); ++e) {
      if (state_.batch.results[e].done()) ended.push_back(e);
    }
    collect(std::move(ended));
    return state_.batch;
  }

  /// What the last call brought.
  [[nodiscard]] const Batch& batch() const { return state_.batch; }

  /// A snapshot for restore(). It borrows the scenes.
  [[nodiscard]] State save() const { return state_; }
  /// Goes on exactly from where save() was called, here or by another with these scenes and options.
  const Batch& restore(const State& state) {
    GPUSCHED_ASSERT(state.envs.size() == state_.envs.size(), "a state of another number of environments");
    state_ = state;
    return state_.batch;
  }

 private:
  void begin(std::uint32_t e) {
    Rng draw = Rng(state_.seed).split("scenes").split(e).split(state_.episodes[e]++);
    state_.batch.scenes[e] = static_cast<std::uint32_t>(draw.below(scenes_.size()));
    state_.envs[e].reset(scenes_[state_.batch.scenes[e]]);
  }

  void collect(std::vector<std::uint32_t> ended) {
    state_.batch.ended = std::move(ended);
    state_.batch.episode_totals.clear();
    state_.batch.final_observation.resize(state_.batch.ended.size() * size());
    for (std::size_t i = 0; i < state_.batch.ended.size(); ++i) {
      ServiceEnv& env = state_.envs[state_.batch.ended[i]];
      env.encode(state_.batch.final_observation.data() + i * size());
      state_.batch.episode_totals.push_back(env.totals());
      begin(state_.batch.ended[i]);
    }
    state_.batch.observation.resize(state_.envs.size() * size());
    for (std::uint32_t e = 0; e < count(); ++e) state_.envs[e].encode(state_.batch.observation.data() + e * size());
  }

  std::span<const ServiceScene> scenes_;
  State state_;
  detail::WorkerTeam team_;
};

}  // namespace gpusched
