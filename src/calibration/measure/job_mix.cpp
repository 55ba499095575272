// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/job_mix.hpp"

#include <poll.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <numeric>

#include "gpusched/core/rng.hpp"
#include "gpusched/policy/simulate.hpp"
#include "src/base/number_text.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "src/calibration/profile/calibrated_runtime.hpp"
#include "src/calibration/profile/duration_model.hpp"
#include "src/calibration/measure/regression.hpp"
#include "src/policies/orders/fifo.hpp"
#include "src/policies/orders/sjf.hpp"

namespace gpusched {
namespace {

constexpr double jct_limit = 0.10;
constexpr double tie_ratio = 0.03;  ///< schedules this close have no order

struct MixSize {
  std::uint32_t jobs = 16;
  double shortest_s = 0.5;
};
constexpr double longest_over_shortest = 8;

MixSize size_of(SuiteScale scale) {
  switch (scale) {
    case SuiteScale::tiny: return {.jobs = 4, .shortest_s = 0.002};
    case SuiteScale::quick: return {.jobs = 16, .shortest_s = 0.06};
    case SuiteScale::full: break;
  }
  return {};
}

/// A job in its own process: when its steps began and ended, on the clock that all processes share; nothing when the
/// device is lost.
Result<ChildProcess> start_job(const OpenBackend& open, const MixJob& job) {
  return ChildProcess::start([&]() -> std::vector<double> {
    const auto backend = open();
    if (!backend) return {};
    const auto step = (*backend)->prepare(job.step);
    if (!step) return {};
    const double ready = monotonic_s();
    if (!(*step)->run(job.steps)) return {};
    return {ready, monotonic_s()};
  });
}

Result<std::vector<double>> finish_job(ChildProcess& process, const MixJob& job) {
  auto times = process.wait();
  if (!times || times->size() != 2) return unexpected("job '" + job.kind + "' ended early");
  return times;
}

struct RunningJob {
  std::size_t job = 0;
  ChildProcess process;
};

/// Waits until a job may have ended or `most_s` have passed.
void wait_for_any(const std::list<RunningJob>& running, double most_s) {
  std::vector<pollfd> ends;
  for (const RunningJob& entry : running)
    ends.push_back({.fd = entry.process.descriptor(), .events = POLLIN, .revents = 0});
  const int most_ms = static_cast<int>(std::clamp(std::ceil(1e3 * most_s), 0.0, 1e6));
  ::poll(ends.data(), ends.size(), most_ms);
}

bool has_ended(const RunningJob& entry) {
  pollfd end{.fd = entry.process.descriptor(), .events = POLLIN, .revents = 0};
  return ::poll(&end, 1, 0) > 0;
}

/// Takes the next job from those that wait, which are in order of submission.
std::size_t take_next(std::vector<std::size_t>& waiting, std::span<const MixJob> jobs, MixSchedule schedule) {
  auto next = waiting.begin();
  if (schedule == MixSchedule::sjf) {
    next = std::min_element(waiting.begin(), waiting.end(),
                            [&](std::size_t a, std::size_t b) { return jobs[a].predicted_s < jobs[b].predicted_s; });
  }
  const std::size_t job = *next;
  waiting.erase(next);
  return job;
}

std::string seconds_text(double seconds) { return formatted("%.3f s", seconds); }

/// Real over simulated time between start and end.
double residual_slowdown(const MixTimes& real, const MixTimes& simulated) {
  const auto total = [](const MixTimes& times) {
    return std::accumulate(times.end_s.begin(), times.end_s.end(), 0.0) -
           std::accumulate(times.start_s.begin(), times.start_s.end(), 0.0);
  };
  return total(real) / total(simulated);
}

}  // namespace

std::string_view to_string(MixSchedule schedule) {
  switch (schedule) {
    case MixSchedule::fifo: return "fifo";
    case MixSchedule::sjf: return "sjf";
    case MixSchedule::packing: break;
  }
  return "packing";
}

Result<std::vector<MixJob>> make_job_mix(const Backend& backend, const DeviceProfile& profile, SuiteScale scale,
                                         std::uint64_t seed) {
  const MixSize size = size_of(scale);
  const std::vector<SuitePoint> kinds = composite_steps(backend, scale);
  if (kinds.empty()) return unexpected("this device runs none of the steps that jobs consist of");
  Rng rng = Rng(seed).split("job mix");
  std::vector<MixJob> jobs;
  double total_s = 0;
  for (std::uint32_t i = 0; i < size.jobs; ++i) {
    const SuitePoint& kind = kinds[rng.below(kinds.size())];
    const auto step = predict(profile, kind.step);
    if (!step) return Unexpected{step.error()};
    const double wanted_s = size.shortest_s * std::pow(longest_over_shortest, rng.uniform());
    MixJob job{.kind = kind.id, .step = kind.step};
    job.steps = static_cast<std::uint64_t>(std::max(1.0, std::round(1e6 * wanted_s / step->time_us)));
    job.predicted_s = 1e-6 * step->time_us * static_cast<double>(job.steps);
    total_s += job.predicted_s;
    jobs.push_back(std::move(job));
  }
  // The mean gap is half a job's length: twice the load that one device serves, until the last job has arrived.
  double submit_s = 0;
  for (MixJob& job : jobs) {
    job.submit_s = submit_s;
    submit_s += 0.5 * total_s / size.jobs * rng.exponential(1);
  }
  return jobs;
}

double mean_jct_s(std::span<const MixJob> jobs, const MixTimes& times) {
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) sum += times.end_s[i] - jobs[i].submit_s;
  return sum / static_cast<double>(jobs.size());
}

Result<double> measure_job_start_s(const OpenBackend& open, std::span<const MixJob> jobs) {
  std::vector<double> times;
  for (const MixJob& job : jobs) {
    MixJob once = job;
    once.steps = 1;
    const double begin = monotonic_s();
    auto process = start_job(open, once);
    if (!process) return Unexpected{process.error()};
    const auto done = finish_job(*process, once);
    if (!done) return Unexpected{done.error()};
    times.push_back(monotonic_s() - begin - (done->back() - done->front()));
  }
  return quantile(std::move(times), 0.5);
}

Result<MixTimes> run_job_mix(const OpenBackend& open, std::span<const MixJob> jobs, MixSchedule schedule) {
  const std::size_t slots = schedule == MixSchedule::packing ? 2 : 1;
  MixTimes times{.start_s = std::vector<double>(jobs.size()), .end_s = std::vector<double>(jobs.size())};
  std::vector<std::size_t> waiting;
  std::list<RunningJob> running;
  std::size_t submitted = 0;
  const double begin = monotonic_s();
  for (std::size_t finished = 0; finished < jobs.size();) {
    const double now = monotonic_s() - begin;
    while (submitted < jobs.size() && jobs[submitted].submit_s <= now) waiting.push_back(submitted++);
    while (running.size() < slots && !waiting.empty()) {
      const std::size_t job = take_next(waiting, jobs, schedule);
      times.start_s[job] = monotonic_s() - begin;
      auto process = start_job(open, jobs[job]);
      if (!process) return Unexpected{process.error()};
      running.push_back({job, *std::move(process)});
    }
    wait_for_any(running, submitted < jobs.size() ? jobs[submitted].submit_s - (monotonic_s() - begin) : 1);
    for (auto entry = running.begin(); entry != running.end();) {
      if (!has_ended(*entry)) {
        ++entry;
        continue;
      }
      const auto done = finish_job(entry->process, jobs[entry->job]);
      if (!done) return Unexpected{done.error()};
      times.end_s[entry->job] = monotonic_s() - begin;
      ++finished;
      entry = running.erase(entry);
    }
  }
  return times;
}

Result<MixTimes> simulate_job_mix(const DeviceProfile& profile, std::span<const MixJob> jobs, MixSchedule schedule,
                                  double job_start_s) {
  const bool packing = schedule == MixSchedule::packing;
  JobTableBuilder builder;
  for (const MixJob& job : jobs) {
    builder.add({.submit = from_seconds(job.submit_s),
                 .work = from_seconds(job_start_s + job.predicted_s),
                 .shape = {.gpu_milli_per_task = packing ? whole_gpu / 2 : whole_gpu},
                 .family = job.kind});
  }
  const auto table = std::move(builder).build();
  if (!table) return Unexpected{table.error()};
  RuntimeModel model(table->families().size(), 1);
  for (const MixJob& own : jobs) {
    for (const MixJob& beside : jobs) {
      const auto slowdown = step_slowdown(profile, own.step, beside.step);
      if (!slowdown) return Unexpected{slowdown.error()};
      model.set_extra(table->families().find(own.kind), table->families().find(beside.kind), 0,
                      static_cast<std::uint32_t>(std::lround(1e6 * std::max(*slowdown - 1, 0.0))));
    }
  }
  Engine engine(*table, Cluster::homogeneous(1, 1), {}, &model);
  Fifo in_order;
  Sjf shortest_first;
  const bool done = schedule == MixSchedule::sjf ? simulate(engine, shortest_first) : simulate(engine, in_order);
  if (!done) return unexpected("the simulated job mix does not end");
  MixTimes times;
  for (std::uint32_t i = 0; i < table->size(); ++i) {  // rising submissions: ids are positions
    times.start_s.push_back(to_seconds(engine.first_start(JobId{i})));
    times.end_s.push_back(to_seconds(engine.end(JobId{i})));
  }
  return times;
}

std::vector<Gate> job_mix_gates(std::span<const MixJob> jobs, std::span<const MixTimes> real,
                                std::span<const MixTimes> simulated) {
  std::vector<Gate> gates;
  std::vector<double> real_s, simulated_s;
  for (std::size_t i = 0; i < std::size(mix_schedules); ++i) {
    real_s.push_back(mean_jct_s(jobs, real[i]));
    simulated_s.push_back(mean_jct_s(jobs, simulated[i]));
    const double error = std::abs(simulated_s[i] / real_s[i] - 1);
    gates.push_back({.name = "job mix " + std::string(to_string(mix_schedules[i])),
                     .status = error <= jct_limit ? "pass" : "fail",
                     .value_ratio = error,
                     .limit_ratio = jct_limit,
                     .n = static_cast<std::uint32_t>(jobs.size()),
                     .note = "mean completion time simulated " + seconds_text(simulated_s[i]) + ", real " +
                             seconds_text(real_s[i])});
  }
  std::uint32_t pairs = 0;
  std::uint32_t reversed = 0;
  for (std::size_t a = 0; a < real_s.size(); ++a) {
    for (std::size_t b = a + 1; b < real_s.size(); ++b) {
      if (std::abs(real_s[a] / real_s[b] - 1) <= tie_ratio) continue;
      ++pairs;
      if ((real_s[a] < real_s[b]) != (simulated_s[a] < simulated_s[b])) ++reversed;
    }
  }
  const double slowdown = residual_slowdown(real.front(), simulated.front());
  gates.push_back(
      {.name = "job mix order",
       .status = pairs == 0      ? "not_run"
                 : reversed == 0 ? "pass"
                                 : "fail",
       .value_ratio = pairs == 0 ? 0 : static_cast<double>(reversed) / pairs,
       .limit_ratio = 0,
       .n = pairs,
       .note = "pairs of schedules in the wrong order; residual slowdown of jobs alone " + percent_text(slowdown - 1)});
  return gates;
}

}  // namespace gpusched
