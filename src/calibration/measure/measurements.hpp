// SPDX-License-Identifier: Apache-2.0
/// Measurements: what a calibration takes from a device, before anything is fitted to it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/calibration/measure/backend.hpp"
#include "src/calibration/measure/calibrate.hpp"
#include "src/calibration/measure/sample_store.hpp"
#include "src/calibration/measure/suite.hpp"
#include "src/calibration/measure/regression.hpp"

namespace gpusched {

/// Takes measurements by name, or finds them among the samples of an earlier run, and tells how far it has come.
class Sampler {
 public:
  using Take = std::function<Result<std::vector<double>>()>;

  /// `options` must outlive it.
  Sampler(const CalibrateOptions& options, SampleStore store) : options_(options), store_(std::move(store)) {}

  /// Tells the progress that so many measurements will come.
  void expect(std::size_t count) { total_ += static_cast<std::uint32_t>(count); }
  /// The samples kept under `id`, or those that `take` makes now. Errors: those of `take`, a stop, no room for samples.
  Result<std::vector<double>> measure(const std::string& id, const Take& take);
  /// Counts measurements that were expected and turned out not to be possible as done.
  void leave_out(std::size_t count) { done_ += static_cast<std::uint32_t>(count); }

  [[nodiscard]] std::string samples_hash() const { return store_.hash(); }

 private:
  const CalibrateOptions& options_;
  SampleStore store_;
  std::uint32_t done_ = 0;
  std::uint32_t total_ = 0;
};

/// Power under the representative kernels and under steps.
struct PowerMeasurements {
  double idle_w = 0;
  std::map<std::string, double> active_w = {};                      ///< by representative kernel, at full duty
  std::map<std::string, std::vector<PowerPoint>> duty_points = {};  ///< the same at each duty
  std::map<std::string, double> step_w = {};                        ///< by the step's id
};

struct Measurements {
  DeviceFacts facts = {};  ///< before the first sample
  std::vector<SuitePoint> suite = {};
  std::array<std::vector<double>, 2> pass_us = {};    ///< of each point of the suite, in each pass
  std::map<std::string, double> time_us = {};         ///< by the point's id: the mean of both passes
  std::map<std::string, std::uint32_t> samples = {};  ///< behind it
  std::vector<double> cold_start_s = {};              ///< empty: the device has no such cost
  std::vector<std::pair<std::string, KernelCall>> representatives = {};
  std::vector<std::vector<double>> slowdown = {};          ///< of representative row beside column, in one process
  std::vector<std::vector<double>> process_slowdown = {};  ///< in two; empty: not measured
  std::optional<PowerMeasurements> power = {};  ///< nothing without a sensor, or with windows too short for it
  std::vector<double> checkpoint_gbs = {};      ///< written, read; empty: not measured
};

/// Errors: as calibrate()'s. Tells `sampler` first how many measurements it takes.
Result<Measurements> take_measurements(Backend& backend, const CalibrateOptions& options, Sampler& sampler);

}  // namespace gpusched
