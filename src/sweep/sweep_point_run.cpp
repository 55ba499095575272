// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_point_run.hpp"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <fstream>
#include <new>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/base/process_info.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/sim/report.hpp"
#include "src/sim/site_stretch.hpp"
#include "src/sweep/sweep_workers.hpp"

namespace gpusched {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Unexpected bad_window(const std::string& field, const std::string& message) {
  return Unexpected{Error{.message = message, .field = field}};
}

// The last end that any schedule may come to must be a Time.
bool fits_clock(const JobTable& jobs, double arrival_scale) {
  double work_s = 0;
  for (const Time work : jobs.works()) work_s += to_seconds(work);
  const auto submits = jobs.submits();
  return to_seconds(submits.front()) + to_seconds(submits.back() - submits.front()) * arrival_scale + work_s <
         to_seconds(end_of_time);
}

// Every job, at the trace's own rate.
bool runs_all(const SweepPoint& point) { return point.first_job == 0 && point.jobs == 0 && point.load == 1; }

}  // namespace

Result<JobTable> part_of_jobs(const JobTable& jobs, const SweepPoint& point) {
  const std::uint32_t size = jobs.size();
  if (runs_all(point)) return jobs;
  if (point.load != 1 && !point.run.conditions.changes.empty()) {
    return bad_window("load", "expected 1 beside changes, whose times it would not move");
  }
  const std::uint64_t count = point.jobs != 0 ? point.jobs : size - std::min<std::uint64_t>(point.first_job, size);
  if (point.first_job >= size || count > size - point.first_job) {
    return bad_window("window", "asks for jobs " + std::to_string(point.first_job) + " to " +
                                    std::to_string(point.first_job + std::max<std::uint64_t>(count, 1) - 1) + " of " +
                                    std::to_string(size) + ", counted from 0");
  }
  if (point.load < 1 && !fits_clock(jobs, 1 / point.load)) {
    return bad_window("load", "is so low that submissions reach beyond the clock");
  }
  return jobs.slice(static_cast<std::uint32_t>(point.first_job), static_cast<std::uint32_t>(count), 1 / point.load);
}

Result<Trace> point_jobs(Trace trace, const SweepPoint& point) {
  if (runs_all(point)) return trace;
  auto jobs = part_of_jobs(trace.jobs, point);
  if (!jobs) return Unexpected{jobs.error()};
  trace.jobs = *std::move(jobs);
  const std::uint32_t count = trace.jobs.size();
  trace.report.notes.push_back("a sweep ran " + counted(count, "job") + " from number " +
                               std::to_string(point.first_job) + " on, at " + exact_number(point.load) +
                               " times the arrival rate of the trace");
  return trace;
}

Result<void> PointRunner::prepare(const SweepPoint& point, const PlannedRun& planned) {
  // Changes of jobs may add sizes to a table, which is then not the next run's.
  const bool changes = !point.run.conditions.changes.empty() || (input_ && !input_->conditions.changes.is_empty());
  if (input_ && input_number_ == planned.input && !changes) return change_runs(*input_, point.run, *registry_);
  input_.reset();  // before its successor needs memory
  auto fitted = fit_input(input_request(point.run), traces_->at(planned.trace));
  if (!fitted) return Unexpected{fitted.error()};
  auto part = point_jobs(std::move(fitted->trace), point);
  if (!part) return Unexpected{part.error()};
  fitted->trace = *std::move(part);
  auto input = prepare_replay(point.run, *registry_, *std::move(fitted));
  if (!input) return Unexpected{input.error()};
  input_.emplace(*std::move(input));
  input_number_ = planned.input;
  return {};
}

Result<void> PointRunner::write_files(const SweepPoint& point, const PlannedRun& planned, std::vector<PolicyRun>& runs,
                                      double wall_s) {
  auto folder = OutputFolder::open(folders_ + "/" + run_folder_name(planned), manifest_name);
  if (!folder) return Unexpected{folder.error()};
  if (auto written = write_policy_files(*folder, *input_, runs.front()); !written) return written;
  const Execution execution{.started = utc_now(), .wall_s = wall_s, .peak_memory_bytes = peak_memory_bytes()};
  return write_manifest(*folder, point.run, *input_, runs, execution);
}

Result<SweepResult> PointRunner::carry_out(std::uint64_t number) {
  const auto begin = std::chrono::steady_clock::now();
  const PlannedRun& planned = plan_->runs[number];
  auto point = plan_->sweep.point(number);
  if (!point) return Unexpected{point.error()};
  point->run.recorded = "none";
  if (!point->sites.empty()) return carry_out_at_sites(*point, planned);
  if (auto ready = prepare(*point, planned); !ready) {
    input_.reset();  // change_runs() may have left it between two scenarios
    return Unexpected{ready.error()};
  }
  const bool to_files = !folders_.empty();
  ReplayProgress progress;
  auto runs = run_replay(*input_, *registry_, 1, {.splits = to_files, .job_files = to_files}, progress);
  if (!runs) return Unexpected{runs.error()};
  const PolicyRun& run = runs->front();
  if (!run.why_unfinished.empty()) return unexpected(run.why_unfinished);
  SweepResult result{.status = RunStatus::done,
                     .message = {},
                     .metrics = run.metrics,
                     .saturation = run.saturation,
                     .clairvoyant = run.clairvoyant,
                     .sim_s = run.sim_seconds};
  if (to_files) {
    if (auto written = write_files(*point, planned, *runs, seconds_since(begin)); !written) {
      return SweepResult{.message = written.error().to_string(), .fatal = true};
    }
  }
  return result;
}

Result<SweepResult> PointRunner::carry_out_at_sites(const SweepPoint& point, const PlannedRun& planned) {
  auto trace = point_jobs(traces_->at(planned.trace), point);
  if (!trace) return Unexpected{trace.error()};
  JobTable& jobs = trace->jobs;
  const Scenario& run = point.run;
  auto sites = read_fitting_sites({.sites = point.sites, .services = run.conditions.services, .trace = run.trace}, jobs,
                                  run.seed);
  if (!sites) return Unexpected{sites.error()};
  auto policies = parse_contestants(*registry_, run.policies);
  if (!policies) return Unexpected{policies.error()};
  const auto backfill = default_backfill(*registry_, run.backfill, *policies);
  if (!backfill) return Unexpected{backfill.error()};
  if (*backfill) backfill_by_default(*registry_, **backfill, *policies);
  const std::uint32_t own = jobs.size() - jobs.in_front();
  const auto warm_up = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.warmup_jobs, own));
  const std::uint64_t measured = run.measure_jobs > 0 ? run.measure_jobs : own - warm_up;
  if (measured == 0 || measured > own - warm_up) return bad_window("measure", "asks for more jobs than there are");
  const MeasureWindow window{.first = jobs.in_front() + warm_up, .count = static_cast<std::uint32_t>(measured)};
  const auto begin = std::chrono::steady_clock::now();
  const auto ended = run_at_sites({.jobs = &jobs,
                                   .sites = *std::move(sites),
                                   .policy = policies->front(),
                                   .router = point.router,
                                   .engine = {.placement = *placement_from_name(run.conditions.placement),
                                              .preemption = run.conditions.preemption,
                                              .seed = run.seed},
                                   .kill_at_limit = run.conditions.kill_at_limit,
                                   .measured = window},
                                  *registry_, {.seed = run.seed});
  if (!ended) return Unexpected{ended.error()};
  if (!ended->failure.empty()) return unexpected(ended->failure);
  return SweepResult{.status = RunStatus::done,
                     .message = {},
                     .metrics = *ended->metrics,
                     .saturation = ended->saturation,
                     .clairvoyant = ended->clairvoyant,
                     .sim_s = seconds_since(begin)};
}

SweepResult PointRunner::run(std::uint64_t number) {
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t cpu_begin = std::clock();
  if (!marks_.empty()) std::ofstream(marks_ + "/" + begun_mark_name(plan_->runs[number])).flush();
  SweepResult result;
  try {
    auto outcome = carry_out(number);
    result = outcome ? *std::move(outcome) : SweepResult{.message = outcome.error().to_string()};
  } catch (const std::bad_alloc&) {
    input_.reset();
    result.message = "not enough memory";
  } catch (const std::exception& error) {
    input_.reset();
    result.message = error.what();
  }
  result.wall_s = seconds_since(begin);
  result.cpu_s = static_cast<double>(std::clock() - cpu_begin) / CLOCKS_PER_SEC;
  return result;
}

}  // namespace gpusched
