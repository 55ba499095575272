// SPDX-License-Identifier: Apache-2.0
/// What a learning scheduler sees: the meaning of each float that tells of a job, a group of nodes or the whole, and
/// where the floats lie.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/engine/view.hpp"

namespace gpusched {

/// The floats of a token. Logarithms are natural, of 1 + x, times the constant named.
enum JobFeature : std::uint8_t {
  log_wait,            ///< seconds waited, / 10
  log_known,           ///< known run time in seconds, / 10; 0 when unknown
  log_gpus,            ///< GPUs, / 5
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

/// One float of a token in mode preempt (ranking.hpp), where a job has two, as it would wait and as it would run.
enum RankFeature : std::uint8_t {
  rank_running,   ///< 0 in the first token, 1 in the second
  rank_service,   ///< level of the GPU service attained, / 10
  rank_wait,      ///< level of the time waited in all, / 10
  rank_gpus,      ///< log(1 + GPUs) / 5
  rank_known,     ///< log(1 + known run time in seconds) / 10; 0 when unknown
  rank_left,      ///< log(1 + known time left) / 10; the time run where it exceeds the known time
  rank_overrun,   ///< log(time run / known run time) / 10 when that is positive
  rank_ending,    ///< log(share) / 5: of the finished jobs of its shape that reached its level, those that ended in it
  rank_attempts,  ///< log(1 + attempts that ended) / 3
  rank_features,
};
static_assert(int{rank_features} <= int{job_features}, "the tokens of both kinds share their columns");

/// One float of a token of AgendaOptions::node_speeds' second choice: the chosen job on the GPU type that the token
/// stands for. Speeds are View::speeds(). The best type is the one where the job is fastest, of those that the cluster
/// has and the job may use.
enum PlaceFeature : std::uint8_t {
  place_log_wait,   ///< seconds waited, / 10
  place_log_here,   ///< known run time on this type in seconds, / 10; 0 when unknown
  place_log_best,   ///< the same on the best type
  place_log_gpus,   ///< GPUs, / 5
  place_rate,       ///< ln(speed here / speed on the best type), 0 or less
  place_free_rate,  ///< the same of the fastest token
  place_speed,      ///< ln(speed here), where 0 is the device that run times are of
  place_type_free,  ///< free GPUs of this type / its GPUs
  place_log_until,  ///< seconds until the best type has as many GPUs free by known ends, / 10; 0: it has now, or
                    ///< unknown
  place_keener,     ///< share of the other waiting jobs whose place_rate here is greater
  place_one_node,   ///< 1 when one node of the type has room for the whole job
  place_type,       ///< -1 - GPU type / 4: below 0, unlike the last float of every other token
  place_features,
};
static_assert(int{place_features} == int{job_features} && int{place_type} == int{log_earliest_start},
              "the tokens of both kinds share their columns, of which the last tells them apart");

/// True when the tokens that begin at `row` are PlaceFeature's. Where AgendaOptions::node_speeds is off the same tells
/// the tokens of the choice of nodes (Agenda::placing()).
inline bool is_placing(const float* row) { return row[place_type] < 0; }

/// What holds for the whole cluster and all that waits.
enum GlobalFeature : std::uint8_t {
  free_fraction,     ///< of all GPUs
  log_queue,         ///< waiting jobs, / 5
  log_hidden,        ///< waiting jobs without a token, / 5
  log_queued_work,   ///< known GPU-seconds waiting / GPUs, / 10
  log_running,       ///< running jobs, / 5
  log_arrivals_5m,   ///< jobs submitted in the last 5 minutes, / 5
  log_arrivals_60m,  ///< jobs submitted in the last hour, / 5
  hour_sin,          ///< of the hour in its day
  hour_cos,
  day_sin,  ///< of the hour in its week
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

/// What AgendaOptions::signals tells, each from -1 to 1 (cut off there). The day's mean of a signal is that of the
/// absolute values at the 24 full hours before now, and of now; where a cluster has several places (PowerPlace), their
/// signals count by their nodes. What is to come is told by AgendaOptions::forecast. 0 where there is no such signal.
enum SignalFeature : std::uint8_t {
  carbon_level,     ///< g/kWh now / the day's mean, - 1
  carbon_rank,      ///< share of the 24 hours before with less
  carbon_1h,        ///< what it is in 1 hour less what it is now, / the day's mean
  carbon_3h,        ///< in 3 hours
  carbon_6h,        ///< in 6
  carbon_12h,       ///< in 12
  carbon_24h,       ///< in 24
  carbon_least,     ///< the least in 1, 2 ... 24 hours less what it is now, / the day's mean
  carbon_least_in,  ///< in so many hours, / 24; 0 where nothing is less than now
  price_level,      ///< the same of USD/MWh
  price_rank,
  price_1h,
  price_3h,
  price_6h,
  price_12h,
  price_24h,
  price_least,
  price_least_in,
  draw_share,  ///< what nodes draw / what they draw when all work
  headroom,    ///< watts below the nearest cap / that; 1 without caps
  cap_1h,      ///< the change of the cap that changes most in 1 hour, in watts / that
  cap_least,   ///< the deepest fall of a cap within 1, 2 ... 24 hours, in watts / that, from 0 to -1
  signal_features,
};

static_assert(int{price_least_in} - int{price_level} == int{carbon_least_in} - int{carbon_level} &&
                  int{carbon_level} == 0,
              "the features of prices are those of carbon once more");

/// For the critic alone, never for the policy: true run times and the future of the window.
enum PrivilegedFeature : std::uint8_t {
  log_true_queued_work,   ///< GPU-seconds of waiting jobs / GPUs, / 10
  log_true_running_work,  ///< GPU-seconds that running jobs have left / GPUs, / 10
  log_future_work,        ///< GPU-seconds of jobs not yet submitted / GPUs, / 10
  log_future_jobs,        ///< jobs not yet submitted, / 10
  mean_true_urgency,      ///< sum over waiting jobs of 1 / max(run time, 10 s), log, / 5
  window_progress,        ///< submitted / jobs
  privileged_features,
};

/// GPUs of a gang, a share counting as its fraction; in single precision, as all that a network reads.
inline float gpus_of(const Shape& shape) {
  return static_cast<float>(shape.gpu_milli()) / static_cast<float>(whole_gpu);
}

/// GPUs of the cluster, but at least one, so that shares of it are finite.
inline float gpus_of(const ClusterState& cluster) {
  return static_cast<float>(std::max<std::int64_t>(1, cluster.total_gpus()));
}

namespace detail {

/// Four side by side: compilers unroll short loops before they look for vectors in them.
using FourFloats __attribute__((vector_size(16))) = float;
using FourBits __attribute__((vector_size(16))) = std::int32_t;  ///< those of FourFloats

/// `value` in single precision.
inline float to_floats(std::int32_t value) { return static_cast<float>(value); }
inline FourFloats to_floats(FourBits values) { return __builtin_convertvector(values, FourFloats); }  ///< likewise

/// Natural logarithm of 1 + x for x >= 0 within 1e-4; std::log would cost as much as the rest of a step. The same bits
/// everywhere: only additions, multiplications and bit operations.
template <class Floats, class Bits>
Floats fast_log1p_of(Floats x) {
  const auto bits = std::bit_cast<Bits>(1.0f + x);
  const Floats exponent = to_floats((bits >> 23) - 127);
  const Floats m = std::bit_cast<Floats>((bits & 0x7FFFFF) | 0x3F800000) - 1.0f;
  // Least squares of log(1 + m) on [0, 1), exact at both ends so that the whole is continuous.
  const Floats log_mantissa = m * (0.99700858f + m * (-0.46848477f + m * (0.22052788f + m * -0.05590450f)));
  return exponent * 0.69314718f + log_mantissa;
}

/// Of one x.
inline float fast_log1p(float x) { return fast_log1p_of<float, std::int32_t>(x); }

/// Replaces the first `count` floats, and what follows them up to a multiple of four, by fast_log1p() times `scale`.
template <std::size_t size>
void fast_log1p_each(std::array<float, size>& floats, std::size_t count, float scale) {
  static_assert(size % 4 == 0);
  for (std::size_t i = 0; i < count; i += 4) {
    FourFloats four;
    std::memcpy(&four, floats.data() + i, sizeof four);
    four = fast_log1p_of<FourFloats, FourBits>(four) * scale;
    std::memcpy(floats.data() + i, &four, sizeof four);
  }
}

/// Sine and cosine of the hour in its day, then in its week, for each hour of a week.
inline const std::array<std::array<float, 4>, 168>& hour_table() {
  // Not const: a compiler that folds the sines would put them where another, which fills the table at the first call,
  // may not write.
  static auto table = [] {
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

/// Of an instant, for hour_table().
inline std::size_t hour_of_week(Time now) {
  return static_cast<std::size_t>((now.us / (3600 * microseconds_per_second) % 168 + 168) % 168);
}

}  // namespace detail

/// Where one state's observation is written; each pointer has room for what Agenda::size() says.
struct ObservationSlot {
  float* jobs = nullptr;         ///< [jobs x job_features]
  float* prior = nullptr;        ///< [jobs + 1]: standardised heuristic preference, larger is better; the last is WAIT
  std::uint8_t* mask = nullptr;  ///< [jobs + 1]: 1 = may be chosen; the last is WAIT
  float* groups = nullptr;       ///< [groups x group_features]
  float* global = nullptr;       ///< [global_features]
  float* signals = nullptr;      ///< [signal_features]; null where AgendaOptions::signals is off
};

/// The observations of several environments, ragged: environment e's tokens are rows job_begin[e] to job_begin[e + 1],
/// its prior and mask have one entry more (WAIT) and begin at job_begin[e] + e.
struct Observation {
  std::vector<float> jobs;                 ///< [tokens x job_features]
  std::vector<float> prior;                ///< [tokens + environments]
  std::vector<std::uint8_t> mask;          ///< [tokens + environments]
  std::vector<std::uint32_t> job_begin;    ///< [environments + 1]
  std::vector<float> groups;               ///< [groups x group_features]
  std::vector<std::uint32_t> group_begin;  ///< [environments + 1], as job_begin
  std::vector<float> global;               ///< [environments x global_features]
  std::vector<float> privileged;           ///< [environments x privileged_features]
  std::vector<float> signals;              ///< [environments x signal_features]; empty without AgendaOptions::signals

  /// Number of environments.
  [[nodiscard]] std::uint32_t count() const {
    return job_begin.empty() ? 0 : static_cast<std::uint32_t>(job_begin.size() - 1);
  }
  /// Number of tokens of environment `e`.
  [[nodiscard]] std::uint32_t tokens(std::uint32_t e) const { return job_begin[e + 1] - job_begin[e]; }

  /// Makes room for the environments that size(e) -> (tokens, groups) describes.
  template <class Size>
  void shape(std::uint32_t environments, Size size, bool has_signals = false) {
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
    signals.resize(has_signals ? std::size_t{environments} * signal_features : 0);
  }

  /// Where environment `e` writes.
  [[nodiscard]] ObservationSlot slot(std::uint32_t e) {
    return {.jobs = jobs.data() + std::size_t{job_begin[e]} * job_features,
            .prior = prior.data() + job_begin[e] + e,
            .mask = mask.data() + job_begin[e] + e,
            .groups = groups.data() + std::size_t{group_begin[e]} * group_features,
            .global = global.data() + std::size_t{e} * global_features,
            .signals = signals.empty() ? nullptr : signals.data() + std::size_t{e} * signal_features};
  }
};

}  // namespace gpusched
