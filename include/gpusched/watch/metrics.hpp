// SPDX-License-Identifier: Apache-2.0
/// Metrics: what a finished run was like. compute_metrics() reads the finished engine and the RunLog that watched it.
///
/// All spans are seconds. A percentile p of n sorted values interpolates linearly at position p (n - 1) (type 7 of
/// Hyndman and Fan, The American Statistician 50(4), 1996; numpy's default).
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/slowdown_bound.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/measure_window.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/percentile.hpp"
#include "gpusched/watch/run_log.hpp"
#include "gpusched/watch/service_figures.hpp"
#include "gpusched/watch/study_figures.hpp"

namespace gpusched {

/// The numbers of a run, over the measured jobs. Names are the keys that files and reports use.
struct Metrics {
  /// Measured jobs. Averages, percentiles and ratios over jobs leave out those that users cancel at some time, under
  /// all policies alike, those that limits refuse and those that the policy cancelled (Engine::may_be_cancelled). They
  /// are nothing where no job is left.
  std::uint32_t jobs = 0;
  std::optional<double> avg_jct_s = {};     ///< job completion time: end - submission
  std::optional<double> median_jct_s = {};  ///< 50th percentile of the completion times
  std::optional<double> p95_jct_s = {};     ///< 95th percentile
  std::optional<double> p99_jct_s = {};     ///< 99th percentile
  /// Wait: completion time less the time spent running, so queueing after preemptions counts.
  std::optional<double> avg_wait_s = {};
  std::optional<double> p99_wait_s = {};            ///< 99th percentile of the waits
  std::optional<double> avg_bounded_slowdown = {};  ///< max(1, jct / max(work, 10 s)) (Feitelson and Rudolph, 1998)
  /// Mean bounded slowdown of the worst-treated tenth of the jobs: the n / 10 of the largest, rounded up.
  std::optional<double> worst_decile_slowdown = {};
  double makespan_s = 0;  ///< first submission to last end
  double last_end_s = 0;  ///< on the trace's clock
  /// The useful part of gpu_allocation: GPU time that advanced jobs (Engine::gpu_time), so without preemption costs
  /// and lost work, whatever the speed of the GPU.
  double gpu_utilization = 0;
  double gpu_allocation = 0;      ///< GPU time held by jobs (all, not only the measured) / GPUs over the makespan
  std::uint64_t preemptions = 0;  ///< of the measured jobs
  /// Of the meter, from the first measured submission to the last measured end; nothing: not known.
  /// \{
  std::optional<double> energy_kwh = {};
  std::optional<double> carbon_kg = {};  ///< of CO2 equivalent
  std::optional<double> cost_usd = {};   ///< of electricity and of GPUs
  std::optional<double> peak_kw = {};    ///< the most that was drawn for some time
  /// \}
  /// Share of the idle GPU time that lay on nodes with other GPUs in use (FragmentationLog); nothing: not watched.
  std::optional<double> gpu_fragmentation = {};
  /// Jain's index (sum x)^2 / (n sum x^2) over the finish-time ratios: 1 = all jobs are slowed alike (Jain, Chiu and
  /// Hawe, DEC TR-301, 1984).
  std::optional<double> jain_fairness = {};
  /// The largest finish-time ratio. Of a job: completion time / (work x contention), after Themis (Mahajan et al., NSDI
  /// 2020, section 3), where an equal share of a contended cluster would stretch the work by the contention: the mean
  /// over the job's life of max(1, GPUs asked for / GPUs there are). Above 1: worse off than with a share of its own.
  /// Jobs without work have none.
  std::optional<double> max_finish_time_ratio = {};
  std::uint64_t events = 0;  ///< of the whole run: submissions, finishes, retries, wakes and what failures bring
  /// Where the rest of the GPU time went, as shares like gpu_utilization; nothing: it is not counted, because stopping
  /// a job costs nothing and nodes do not fail. Idle is what is left of 1 - gpu_allocation after gpu_withheld.
  /// \{
  std::optional<double> gpu_overhead = {};  ///< loading and saving state
  std::optional<double> gpu_lost = {};      ///< work that no checkpoint kept, and standing still before a failure shows
  std::optional<double> gpu_withheld = {};  ///< of nodes out of service
  /// \}
  std::optional<double> goodput = {};  ///< gpu_utilization / gpu_allocation: the useful share of held GPU time (ETTR)
  std::optional<double> kills = {};    ///< of the measured jobs, by nodes that went down
  std::optional<double> refused_jobs = {};  ///< measured jobs whose submission a limit refused; nothing: no limits
  /// Measured jobs that users cancelled before they ended; nothing: users change none.
  std::optional<double> cancelled_jobs = {};
  /// Measured jobs that the policy cancelled (Decision::cancel); nothing: none.
  std::optional<double> policy_cancelled_jobs = {};
  /// Of the measured jobs, where runs have stages.
  /// \{
  std::optional<double> cold_starts = {};  ///< for which a node fetched something or made a container (StartCounts)
  std::optional<double> warm_starts = {};  ///< the others
  std::optional<double> fetched_gib = {};  ///< by all nodes; 1 GiB = 2^30 bytes
  /// \}
  /// Of the measured jobs that have a deadline; nothing where none has.
  /// \{
  std::optional<double> deadline_miss_rate = {};  ///< share of them that ended after it
  std::optional<double> avg_tardiness_s = {};     ///< mean of max(0, end - deadline) (Pinedo, Scheduling, section 2.1)
  /// \}
  /// Of all requests of all services (AllRequests), whichever jobs are measured.
  /// \{
  std::optional<double> slo_attainment = {};  ///< share answered within the promised time; nothing: none is promised
  std::optional<double> p99_latency_s = {};   ///< 99th percentile of the answered ones; nothing: no services
  /// \}
  /// Of all studies (AllStudies), whichever jobs are measured; nothing: there are none.
  /// \{
  std::optional<double> trial_loss = {};       ///< the best that each study found, their mean
  std::optional<double> study_span_s = {};     ///< mean wall clock of a search
  std::optional<double> study_gpu_hours = {};  ///< of all their trials
  std::optional<double> target_s = {};         ///< mean time to the target, or to the end of a search that misses it
  std::optional<double> targets_met = {};      ///< share of the studies with a target that meet it
  /// \}
};

/// Signs that a run says more about its length than about its policy.
struct Saturation {
  /// GPU time that the jobs submitted need on the GPUs that they got / GPU time in service over the span of
  /// submissions; 1 or more cannot be kept up with. 0 where none was in service.
  double offered_load = 0;
  std::uint32_t backlog_jobs = 0;     ///< measured jobs that had not started at the last measured submission
  std::int64_t max_waiting_jobs = 0;  ///< longest queue of the whole run
  /// At least 10 jobs and 5 % of the measured ones are that backlog, and the last quarter of them waited on average
  /// more than twice as long as the second: the queue grows for as long as jobs arrive.
  bool saturated = false;
};

namespace detail {

/// Mean of the largest n / 10 values, rounded up; reorders `values`. Precondition: not empty.
inline double mean_of_largest_tenth(std::span<double> values) {
  const std::size_t count = (values.size() + 9) / 10;
  const auto largest = values.end() - static_cast<std::ptrdiff_t>(count);
  std::nth_element(values.begin(), largest, values.end());
  std::sort(largest, values.end());  // the sum must not depend on how a standard library selects
  return std::accumulate(largest, values.end(), 0.0) / static_cast<double>(count);
}

inline double seconds(double us) { return us / static_cast<double>(microseconds_per_second); }

/// How long the job runs on the reference device, if nothing delays it: its work, or what it ran until its limit.
inline Time length_of(const Engine& engine, JobId job) {
  const Time work = engine.jobs().work(job);
  return engine.is_ended_at_limit(job) ? std::min(work, engine.ran(job)) : work;
}

/// One home of the per-job quantities.
struct JobOutcome {
  Time jct{}, wait{};
  double bounded_slowdown = 1;

  JobOutcome(const Engine& engine, JobId job) : jct(engine.end(job) - engine.submit(job)), wait(jct - engine.ran(job)) {
    const Time bound = std::max(length_of(engine, job), slowdown_bound);
    bounded_slowdown = std::max(1.0, static_cast<double>(jct.us) / static_cast<double>(bound.us));
  }
};

}  // namespace detail

/// How much longer the job took than with an equal share of the cluster (see Metrics::max_finish_time_ratio); nothing
/// for a job without work. Precondition: the job finished.
inline std::optional<double> finish_time_ratio(const Engine& engine, const RunLog& log, JobId job) {
  const auto jct = static_cast<double>((engine.end(job) - engine.submit(job)).us);
  const auto work = static_cast<double>(detail::length_of(engine, job).us);
  if (work <= 0) return std::nullopt;
  // A job faster than the reference device may live shorter than its work; one of length 0 was never contended.
  return jct <= 0 ? 0 : jct * jct / (work * log.contention_us(job));
}

namespace detail {

inline void add_deadlines(const Engine& engine, MeasureWindow window, Metrics& metrics) {
  const JobTable& jobs = engine.jobs();
  if (!jobs.has_deadlines()) return;
  double with_deadline = 0, missed = 0, tardiness_us = 0;
  for (std::uint32_t i = window.first; i < window.end(jobs.size()); ++i) {
    const Time deadline = jobs.deadline(JobId{i});
    if (deadline == Time::max() || engine.may_be_cancelled(JobId{i})) continue;
    ++with_deadline;
    if (engine.end(JobId{i}) <= deadline) continue;
    ++missed;
    tardiness_us += static_cast<double>((engine.end(JobId{i}) - deadline).us);
  }
  if (with_deadline == 0) return;
  metrics.deadline_miss_rate = missed / with_deadline;
  metrics.avg_tardiness_s = seconds(tardiness_us / with_deadline);
}

}  // namespace detail

namespace detail {

// Over the jobs that are averaged, if there are any.
inline void add_averages(Metrics& metrics, std::span<std::int64_t> jcts, std::span<std::int64_t> waits,
                         std::span<double> slowdowns, WideInt jct_sum, WideInt wait_sum, double slowdown_sum) {
  if (jcts.empty()) return;
  const auto count = static_cast<double>(jcts.size());
  metrics.avg_jct_s = seconds(static_cast<double>(jct_sum) / count);
  metrics.avg_wait_s = seconds(static_cast<double>(wait_sum) / count);
  metrics.avg_bounded_slowdown = slowdown_sum / count;
  metrics.worst_decile_slowdown = mean_of_largest_tenth(slowdowns);
  metrics.median_jct_s = seconds(percentile(jcts, 0.50));
  metrics.p95_jct_s = seconds(percentile(jcts, 0.95));
  metrics.p99_jct_s = seconds(percentile(jcts, 0.99));
  metrics.p99_wait_s = seconds(percentile(waits, 0.99));
}

}  // namespace detail

namespace detail {

/// Where the GPU time of all jobs went in the measured span. Preconditions as for compute_metrics.
inline GpuTime measured_gpu_time(const Engine& engine, const RunLog& log, MeasureWindow window) {
  if (!engine.keeps_accounts()) return {.useful = log.held()};
  if (!window.whole(engine.jobs().size())) return engine.measured_gpu_time();
  GpuTime sum;
  for (std::uint32_t i = 0; i < engine.jobs().size(); ++i) sum += engine.gpu_time(JobId{i});
  return sum;
}

// All figures of GPU time are read from the one account.
inline void add_gpu_time(const Engine& engine, const RunLog& log, MeasureWindow window, Metrics& metrics) {
  const GpuTime time = measured_gpu_time(engine, log, window);
  const double capacity_s = static_cast<double>(engine.view().cluster().total_gpus()) * metrics.makespan_s;
  if (capacity_s > 0) {
    metrics.gpu_allocation = RunLog::gpu_seconds(log.held()) / capacity_s;
    metrics.gpu_utilization = RunLog::gpu_seconds(time.useful) / capacity_s;
  }
  if (!engine.counts_costs()) return;
  const double allocated = time.held() == 0 ? 0 : metrics.gpu_allocation / static_cast<double>(time.held());
  metrics.gpu_overhead = static_cast<double>(time.overhead) * allocated;
  metrics.gpu_lost = static_cast<double>(time.lost) * allocated;
  metrics.gpu_withheld = capacity_s > 0 ? RunLog::gpu_seconds(log.withheld()) / capacity_s : 0;
  metrics.goodput = metrics.gpu_allocation > 0 ? metrics.gpu_utilization / metrics.gpu_allocation : 1;
}

inline void add_power(const Engine& engine, Metrics& metrics) {
  const Power& power = engine.power();
  const Bill meter = power.meter();
  metrics.energy_kwh = meter.kwh();
  metrics.peak_kw = power.meter_kw(power.peak_mw());
  if (power.model().knows_carbon()) metrics.carbon_kg = meter.carbon_kg();
  if (power.model().knows_money()) metrics.cost_usd = meter.usd();
}

}  // namespace detail

/// What is wrong with the account of a finished run; nothing when every GPU-microsecond of the measured span is useful,
/// overhead, lost, withheld or idle, what jobs held is the sum of the first three, and the bills of energy add up to
/// the meter's. Exact. Preconditions as for compute_metrics.
inline std::optional<std::string> fault_of_account(const Engine& engine, const RunLog& log, MeasureWindow window = {}) {
  const auto in_gpu_s = [](detail::WideInt milli_us) { return std::to_string(RunLog::gpu_seconds(milli_us)); };
  if (log.held() + log.withheld() + log.idle() != log.capacity()) {
    return "held " + in_gpu_s(log.held()) + ", withheld " + in_gpu_s(log.withheld()) + " and idle " +
           in_gpu_s(log.idle()) + " GPU-seconds are not the " + in_gpu_s(log.capacity()) + " that the cluster has";
  }
  if (engine.knows_power() && !engine.power().adds_up())
    return "the bills of jobs and others are not that of the meter";
  const GpuTime time = detail::measured_gpu_time(engine, log, window);
  if (time.held() == log.held() && time.useful >= 0 && time.overhead >= 0 && time.lost >= 0) return std::nullopt;
  return "useful " + in_gpu_s(time.useful) + ", overhead " + in_gpu_s(time.overhead) + " and lost " +
         in_gpu_s(time.lost) + " GPU-seconds are not the " + in_gpu_s(log.held()) + " that jobs held";
}

/// Metrics of the measured jobs. Allocates three arrays of 8 bytes a measured job. Preconditions: every job finished;
/// `log` watched the whole run with the same window, and the engine was given it (RunInputs::measured); at least one
/// job is measured.
inline Metrics compute_metrics(const Engine& engine, const RunLog& log, MeasureWindow window = {}) {
  const JobTable& jobs = engine.jobs();
  const std::uint32_t end = window.end(jobs.size());
  GPUSCHED_ASSERT(window.first < end, "no job is measured");
  Metrics metrics;
  metrics.jobs = end - window.first;
  std::vector<std::int64_t> values, waits;
  std::vector<double> slowdowns;
  for (auto* const of_jobs : {&values, &waits}) of_jobs->reserve(metrics.jobs);
  slowdowns.reserve(metrics.jobs);
  detail::WideInt jct_sum = 0, wait_sum = 0;
  double kills = 0, cold_starts = 0, warm_starts = 0, fetched_bytes = 0, refused = 0;
  double cancelled = 0, cancelled_by_policy = 0;
  double slowdown_sum = 0, ratio_sum = 0, ratio_squares = 0, largest_ratio = 0;
  std::uint32_t ratios = 0;
  Time last_end = Time{std::numeric_limits<std::int64_t>::min()};
  for (std::uint32_t i = window.first; i < end; ++i) {
    const JobId job{i};
    metrics.preemptions += engine.preemptions(job);
    kills += engine.kills(job);
    const StartCounts starts = engine.starts(job);
    cold_starts += starts.cold;
    warm_starts += starts.warm;
    fetched_bytes += static_cast<double>(starts.fetched_bytes);
    last_end = std::max(last_end, engine.end(job));
    if (engine.is_refused(job)) ++refused;
    if (engine.is_cancelled(job)) ++(engine.is_cancelled_by_policy(job) ? cancelled_by_policy : cancelled);
    if (engine.may_be_cancelled(job)) continue;
    const detail::JobOutcome outcome(engine, job);
    values.push_back(outcome.jct.us);
    waits.push_back(outcome.wait.us);
    slowdowns.push_back(outcome.bounded_slowdown);
    jct_sum += outcome.jct.us;
    wait_sum += outcome.wait.us;
    slowdown_sum += outcome.bounded_slowdown;
    if (const auto ratio = finish_time_ratio(engine, log, job)) {
      ratio_sum += *ratio;
      ratio_squares += *ratio * *ratio;
      largest_ratio = std::max(largest_ratio, *ratio);
      ++ratios;
    }
  }
  detail::add_averages(metrics, values, waits, slowdowns, jct_sum, wait_sum, slowdown_sum);
  if (ratios > 0) metrics.max_finish_time_ratio = largest_ratio;
  if (ratio_squares > 0) metrics.jain_fairness = ratio_sum * ratio_sum / (ratios * ratio_squares);
  metrics.last_end_s = to_seconds(last_end);
  metrics.makespan_s = to_seconds(last_end - jobs.submit(JobId{window.first}));
  detail::add_gpu_time(engine, log, window, metrics);
  if (engine.knows_power()) detail::add_power(engine, metrics);
  if (engine.counts_costs()) metrics.kills = kills;
  if (engine.has_stages()) {
    metrics.cold_starts = cold_starts;
    metrics.warm_starts = warm_starts;
    metrics.fetched_gib = fetched_bytes / bytes_per_gib;
  }
  if (engine.has_changes()) metrics.cancelled_jobs = cancelled;
  if (cancelled_by_policy > 0) metrics.policy_cancelled_jobs = cancelled_by_policy;
  if (engine.has_limits()) metrics.refused_jobs = refused;
  detail::add_deadlines(engine, window, metrics);
  const AllRequests requests = figures_of_all_requests(engine);
  metrics.slo_attainment = requests.slo_attainment;
  metrics.p99_latency_s = requests.p99_latency_s;
  const AllStudies studies = figures_of_all_studies(engine);
  metrics.trial_loss = studies.best_loss;
  metrics.study_span_s = studies.span_s;
  metrics.study_gpu_hours = studies.gpu_hours;
  metrics.target_s = studies.target_s;
  metrics.targets_met = studies.met;
  metrics.events = engine.events_seen();
  return metrics;
}

/// See Saturation. Preconditions as for compute_metrics.
inline Saturation find_saturation(const Engine& engine, const RunLog& log, MeasureWindow window = {}) {
  const JobTable& jobs = engine.jobs();
  const std::uint32_t end = window.end(jobs.size());
  const std::uint32_t count = end - window.first;
  const Time last_submit = jobs.submit(JobId{end - 1});
  Saturation found{.max_waiting_jobs = log.max_waiting_jobs()};
  detail::WideInt needed = 0;
  detail::WideInt wait_of_quarter[4] = {};
  for (std::uint32_t i = window.first; i < end; ++i) {
    const JobId job{i};
    needed += engine.gpu_time(job).useful;
    if (engine.may_be_cancelled(job)) continue;
    wait_of_quarter[std::uint64_t{i - window.first} * 4 / count] += detail::JobOutcome(engine, job).wait.us;
    if (engine.first_start(job) > last_submit) ++found.backlog_jobs;
  }
  const double span_s = to_seconds(last_submit - jobs.submit(JobId{window.first}));
  const auto gpus = static_cast<double>(engine.view().cluster().total_gpus());
  const double in_service_s = gpus * span_s - RunLog::gpu_seconds(log.withheld_while_submitting());
  if (in_service_s > 0) found.offered_load = RunLog::gpu_seconds(needed) / in_service_s;
  found.saturated =
      found.backlog_jobs >= 10 && found.backlog_jobs >= count / 20 && wait_of_quarter[3] > 2 * wait_of_quarter[1];
  return found;
}

/// What jobs are split by.
enum class SplitBy : std::uint8_t { gpus, user, vc, status, group, job_class };
/// The names of SplitBy, in its order.
inline constexpr std::string_view split_names[] = {"gpus", "user", "vc", "status", "group", "class"};

/// The measured jobs of one bucket, user, virtual cluster, status, group or class (JobRecord::family).
struct SplitRow {
  std::string key;         ///< "" = unknown
  std::uint32_t jobs = 0;  ///< measured jobs of this key
  /// As in Metrics, over these jobs.
  /// \{
  double avg_jct_s = 0;
  double median_jct_s = 0;
  double avg_wait_s = 0;
  double avg_bounded_slowdown = 0;
  /// \}
  double gpu_hours = 0;  ///< held
  Bill bill = {};        ///< nothing where power is not known
};

namespace detail {

/// GPU-count buckets: none, a share, then powers of two: 1, 2, 3-4, 5-8, ...
inline std::uint32_t gpu_bucket(MilliGpu gpus) {
  if (gpus == 0) return 0;
  if (gpus < whole_gpu) return 1;
  std::uint32_t bucket = 2;
  for (MilliGpu most = whole_gpu; most < gpus; most *= 2) ++bucket;
  return bucket;
}

inline std::string gpu_bucket_name(std::uint32_t bucket) {
  if (bucket == 0) return "0";
  if (bucket == 1) return "<1";
  const std::uint64_t most = std::uint64_t{1} << (bucket - 2);
  return most <= 2 ? std::to_string(most) : std::to_string(most / 2 + 1) + "-" + std::to_string(most);
}

inline std::uint32_t split_key(const JobTable& jobs, JobId job, SplitBy by) {
  switch (by) {
    case SplitBy::gpus: return gpu_bucket(jobs.shape(job).gpu_milli());
    case SplitBy::user: return jobs.user(job);
    case SplitBy::vc: return jobs.vc(job);
    case SplitBy::group: return jobs.group(job);
    case SplitBy::job_class: return jobs.family(job);
    case SplitBy::status: break;
  }
  return static_cast<std::uint32_t>(jobs.status(job));
}

inline std::string split_key_name(const JobTable& jobs, std::uint32_t key, SplitBy by) {
  switch (by) {
    case SplitBy::gpus: return gpu_bucket_name(key);
    case SplitBy::user: return jobs.users()[key];
    case SplitBy::vc: return jobs.vcs()[key];
    case SplitBy::group: return jobs.groups()[key];
    case SplitBy::job_class: return jobs.families()[key];
    case SplitBy::status: break;
  }
  return std::string(to_string(static_cast<JobStatus>(key)));
}

}  // namespace detail

/// Measured jobs that nobody cancels, grouped by `by`, in order of GPU count, of first appearance (names) or of
/// JobStatus. O(jobs). Preconditions as for compute_metrics.
inline std::vector<SplitRow> split_metrics(const Engine& engine, SplitBy by, MeasureWindow window = {}) {
  const JobTable& jobs = engine.jobs();
  const std::uint32_t end = window.end(jobs.size());
  std::vector<std::uint32_t> begin_of_key;  // counting sort: sizes first, then offsets
  for (std::uint32_t i = window.first; i < end; ++i) {
    if (engine.may_be_cancelled(JobId{i})) continue;
    const std::uint32_t key = detail::split_key(jobs, JobId{i}, by);
    if (key + 1 >= begin_of_key.size()) begin_of_key.resize(key + 2, 0);
    ++begin_of_key[key + 1];
  }
  for (std::size_t key = 1; key < begin_of_key.size(); ++key) begin_of_key[key] += begin_of_key[key - 1];
  struct Sums {
    detail::WideInt jct = 0, wait = 0, held = 0;
    Bill bill;
    double slowdown = 0;
    std::uint32_t jobs = 0;
  };
  std::vector<Sums> sums(begin_of_key.size());
  std::vector<std::int64_t> jcts(end - window.first);
  for (std::uint32_t i = window.first; i < end; ++i) {
    const JobId job{i};
    if (engine.may_be_cancelled(job)) continue;
    const std::uint32_t key = detail::split_key(jobs, job, by);
    const detail::JobOutcome outcome(engine, job);
    Sums& sum = sums[key];
    jcts[begin_of_key[key] + sum.jobs++] = outcome.jct.us;
    sum.jct += outcome.jct.us;
    sum.wait += outcome.wait.us;
    sum.held += engine.gpu_time(job).held();
    if (engine.knows_power()) sum.bill += engine.bill(job);
    sum.slowdown += outcome.bounded_slowdown;
  }
  std::vector<SplitRow> rows;
  for (std::uint32_t key = 0; key < sums.size(); ++key) {
    const Sums& sum = sums[key];
    if (sum.jobs == 0) continue;
    const double count = sum.jobs;
    rows.push_back({.key = detail::split_key_name(jobs, key, by),
                    .jobs = sum.jobs,
                    .avg_jct_s = detail::seconds(static_cast<double>(sum.jct) / count),
                    .median_jct_s =
                        detail::seconds(detail::percentile(std::span(jcts).subspan(begin_of_key[key], sum.jobs), 0.50)),
                    .avg_wait_s = detail::seconds(static_cast<double>(sum.wait) / count),
                    .avg_bounded_slowdown = sum.slowdown / count,
                    .gpu_hours = RunLog::gpu_seconds(sum.held) / 3600,
                    .bill = sum.bill});
  }
  return rows;
}

}  // namespace gpusched
