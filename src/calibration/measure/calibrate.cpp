// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/calibrate.hpp"

#include "src/base/build_info.hpp"
#include "src/base/process_info.hpp"
#include "src/calibration/measure/checkpoint_speed.hpp"
#include "src/calibration/measure/gates.hpp"
#include "src/calibration/measure/job_mix.hpp"
#include "src/calibration/measure/measurements.hpp"
#include "src/calibration/measure/profile_fit.hpp"
#include "src/calibration/measure/sample_store.hpp"

namespace gpusched {
namespace {

std::string_view to_string(SuiteScale scale) {
  return scale == SuiteScale::tiny ? "tiny" : scale == SuiteScale::quick ? "quick" : "full";
}

/// "cuda-a100-sxm4-80gb-2026-11-21".
std::string id_of(const DeviceProfile& profile) {
  std::string id = profile.backend + "-" + profile.model + "-" + profile.created_utc.substr(0, 10);
  for (char& c : id) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
    if (c >= 'A' && c <= 'Z')
      c = static_cast<char>(c - 'A' + 'a');
    else if (!plain)
      c = '-';
  }
  return id;
}

/// The head of a profile: what was measured, when, with which program; no value yet.
DeviceProfile title_page(const Backend& backend, const CalibrateOptions& options, const DeviceFacts& facts) {
  const BuildInfo build = build_info();
  DeviceProfile profile{.kind = facts.kind,
                        .vendor = facts.vendor,
                        .model = facts.model,
                        .backend = backend.name(),
                        .created_utc = utc_now()};
  profile.profile_id = id_of(profile);
  profile.tool = {{"version", std::string(build.version)},
                  {"git", std::string(build.git_commit)},
                  {"compiler", std::string(build.compiler)}};
  profile.environment = backend.facts().environment;  // as it is after the samples
  profile.environment["suite"] = std::string(to_string(options.scale)) + ", seed " + std::to_string(options.seed);
  return profile;
}

/// Samples: all starts, then all ends.
Result<MixTimes> run_mix_for_real(std::span<const MixJob> jobs, MixSchedule schedule, const CalibrateOptions& options,
                                  Sampler& sampler) {
  const auto samples =
      sampler.measure("job mix " + std::string(gpusched::to_string(schedule)), [&]() -> Result<std::vector<double>> {
        auto times = run_job_mix(options.open, jobs, schedule);
        if (!times) return Unexpected{times.error()};
        std::vector<double> flat = std::move(times->start_s);
        flat.insert(flat.end(), times->end_s.begin(), times->end_s.end());
        return flat;
      });
  if (!samples) return Unexpected{samples.error()};
  const auto middle = samples->begin() + static_cast<std::ptrdiff_t>(jobs.size());
  return MixTimes{.start_s = {samples->begin(), middle}, .end_s = {middle, samples->end()}};
}

/// Runs jobs as processes and in the simulator, and adds the gates of the two beside each other.
Result<void> compare_job_mix(DeviceProfile& profile, const Backend& backend, const CalibrateOptions& options,
                             Sampler& sampler) {
  const auto jobs = make_job_mix(backend, profile, options.scale, options.seed);
  if (!jobs) return Unexpected{jobs.error()};
  const auto start_s = sampler.measure("job start", [&]() -> Result<std::vector<double>> {
    const auto found = measure_job_start_s(options.open, *jobs);
    if (!found) return Unexpected{found.error()};
    return std::vector<double>{*found};
  });
  if (!start_s) return Unexpected{start_s.error()};
  profile.cold_start["job_s"] = measured_quantity("job_s", start_s->front(), jobs->size());
  std::vector<MixTimes> real, simulated;
  for (const MixSchedule schedule : mix_schedules) {
    auto times = run_mix_for_real(*jobs, schedule, options, sampler);
    if (!times) return Unexpected{times.error()};
    auto model = simulate_job_mix(profile, *jobs, schedule, start_s->front());
    if (!model) return Unexpected{model.error()};
    real.push_back(*std::move(times));
    simulated.push_back(*std::move(model));
  }
  std::vector<Gate>& gates = profile.validation.gates;
  for (Gate& gate : job_mix_gates(*jobs, real, simulated)) gates.push_back(std::move(gate));
  profile.validation.verdict = verdict_of(gates);
  return {};
}

}  // namespace

Result<DeviceProfile> calibrate(Backend& backend, const CalibrateOptions& options) {
  if (!options.checkpoint_folder.empty()) {
    if (auto room = check_room(options.checkpoint_folder, checkpoint_bytes(options.scale)); !room) {
      return Unexpected{room.error()};
    }
  }
  const std::string identity = "backend=" + backend.name() + " device=" + backend.facts().model +
                               " suite=" + std::string(to_string(options.scale)) +
                               " seed=" + std::to_string(options.seed);
  auto store = SampleStore::open(options.samples_path, identity);
  if (!store) return Unexpected{store.error()};
  Sampler sampler(options, *std::move(store));
  const bool with_mix = options.job_mix && options.open;
  if (with_mix) sampler.expect(1 + std::size(mix_schedules));

  const auto measured = take_measurements(backend, options, sampler);
  if (!measured) return Unexpected{measured.error()};
  DeviceProfile profile = title_page(backend, options, measured->facts);
  fit_profile(profile, backend, *measured, options.bootstraps, Rng(options.seed).split("bootstrap"));
  judge_profile(profile, backend, *measured);
  if (with_mix) {
    if (auto done = compare_job_mix(profile, backend, options, sampler); !done) return Unexpected{done.error()};
  }
  if (!options.samples_path.empty()) {
    profile.raw = RawSamples{options.samples_path.substr(options.samples_path.rfind('/') + 1), sampler.samples_hash()};
  }
  return profile;
}

}  // namespace gpusched
