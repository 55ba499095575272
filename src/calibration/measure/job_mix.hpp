// SPDX-License-Identifier: Apache-2.0
/// JobMix: the end-to-end check of a calibration. Jobs of kernels that were never used in a fit run as processes on the
/// device under three schedules; the simulator runs the same jobs with the fitted profile; the two are compared.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/calibration/measure/calibrate.hpp"
#include "src/calibration/measure/process_pairs.hpp"
#include "src/calibration/measure/suite.hpp"
#include "src/calibration/profile/device_profile.hpp"

namespace gpusched {

/// A job: a composite step, over and over.
struct MixJob {
  std::string kind;  ///< the step's id
  std::vector<KernelCall> step;
  std::uint64_t steps = 1;
  double submit_s = 0;
  double predicted_s = 0;  ///< of its steps alone, by the profile
};

/// How the jobs are run: one at a time in order of submission, one at a time and the shortest first, or two at a time.
enum class MixSchedule : std::uint8_t { fifo, sjf, packing };
inline constexpr MixSchedule mix_schedules[] = {MixSchedule::fifo, MixSchedule::sjf, MixSchedule::packing};
std::string_view to_string(MixSchedule schedule);

/// 16 jobs (4 when tiny) of the suite's composite steps, arriving about as fast as one device serves them, so that a
/// queue forms. Durations are spread over a factor of eight. Error: the profile cannot predict a step.
Result<std::vector<MixJob>> make_job_mix(const Backend& backend, const DeviceProfile& profile, SuiteScale scale,
                                         std::uint64_t seed);

/// When the processes of a mix's jobs were started and had ended, in seconds since the first could be submitted, by
/// job.
struct MixTimes {
  std::vector<double> start_s, end_s;
};
double mean_jct_s(std::span<const MixJob> jobs, const MixTimes& times);

/// Seconds of a job beside its steps: starting a process, opening the device, making operands, and closing all that
/// again. The median over the kinds.
Result<double> measure_job_start_s(const OpenBackend& open, std::span<const MixJob> jobs);

/// Runs the jobs on the device, each in a process of its own. Errors: a process cannot be started, or a job ends early.
Result<MixTimes> run_job_mix(const OpenBackend& open, std::span<const MixJob> jobs, MixSchedule schedule);

/// Runs the jobs in the simulator: durations and slowdowns from the profile, `job_start_s` besides each job's steps.
/// Error: the profile cannot predict a step.
Result<MixTimes> simulate_job_mix(const DeviceProfile& profile, std::span<const MixJob> jobs, MixSchedule schedule,
                                  double job_start_s);

/// One gate a schedule (mean completion time within 10 %) and one for their order; `real` and `simulated` by schedule.
/// The order's note tells the residual slowdown: real over simulated time of jobs that ran alone.
std::vector<Gate> job_mix_gates(std::span<const MixJob> jobs, std::span<const MixTimes> real,
                                std::span<const MixTimes> simulated);

}  // namespace gpusched
