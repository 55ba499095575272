// SPDX-License-Identifier: Apache-2.0
/// Backend: a device that runs the kernels. Three exist: cuda (cuda/), cpu (threads of this machine) and analytic (a
/// device of known truth with seeded noise, for tests). All answer the same calls; what a device cannot do is an Error
/// or "unsupported", never a made-up number.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/calibration/profile/device_profile.hpp"
#include "src/calibration/profile/kernel.hpp"

namespace gpusched {

/// How large the suite's points may be on this device.
struct SuiteLimits {
  double memory_bytes = 0;      ///< operands of one call together
  double flops = 0;             ///< operations of one call
  double cache_bytes = 0;       ///< cache whose inside has lines of its own ("_l2"); 0 = none
  double last_cache_bytes = 0;  ///< a larger one behind it, shared with others ("_l3"); 0 = none
  std::int64_t gemm_most = 0;   ///< largest N and K of a matrix product
};

/// What the device says about itself.
struct DeviceFacts {
  std::string kind, vendor, model;
  std::map<std::string, std::string> environment = {};
  std::map<std::string, Quantity> resources = {};
  SuiteLimits limits;
  std::string co_location_mode;  ///< Interference::mode of co_locate()
  bool is_hopper = false;        ///< its composite steps are allowed a wider p90
  /// Work too small to fill the device takes as long as its longest chain of steps: fits have a floor for that.
  bool has_step_floor = false;
  std::map<Kernel, std::uint32_t> tile_sides = {};  ///< of products that compute whole square tiles of cells
  /// The quantile of a point's samples that is its time: the median, or a lower one where other programs share
  /// processor and caches, which can only lengthen a sample.
  double typical_quantile = 0.5;
  /// How often each pass measures every point, of which the fastest turn counts: more than once where disturbances last
  /// longer than a point.
  std::uint32_t turns = 1;
};

/// Mean power over a window.
struct PowerReading {
  double watts = 0;
  double idle_watts = 0;
  double seconds = 0;  ///< windows under 2 s are not trusted: sensors average over that long
};

/// A step with its operands in place.
class PreparedStep {
 public:
  PreparedStep() = default;
  PreparedStep(const PreparedStep&) = delete;
  PreparedStep& operator=(const PreparedStep&) = delete;
  virtual ~PreparedStep() = default;

  /// Runs it `times` times, one after another, caches as they come. Error: the device is lost.
  virtual Result<void> run(std::uint64_t times) = 0;
};

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  /// "cuda", "cpu" or "analytic".
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual DeviceFacts facts() const = 0;
  [[nodiscard]] virtual bool supports(Kernel kernel) const = 0;

  /// Seconds on the clock of the measurements: this machine's, or the simulated one of the analytic device.
  [[nodiscard]] virtual double clock_s() const;

  /// Runs the calls of a step one after another, `samples` times after a warm-up; time of each run in microseconds.
  /// Where the cache can be emptied (cuda), each run starts from a cold one, except a single kernel bound by memory
  /// whose operands fit half of it. Error: the device is lost or out of memory. Precondition: every kernel is
  /// supported.
  virtual Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) = 0;

  /// Makes the operands of a step and runs it once. Error: the device is lost or out of memory. The backend must
  /// outlive what it prepared. The default goes through time_us().
  virtual Result<std::unique_ptr<PreparedStep>> prepare(std::span<const KernelCall> step);

  /// Runs the call once on check_data() and compares with a double-precision reference: the largest error relative to
  /// the largest reference value. Meant for small sizes.
  virtual Result<double> check(const KernelCall& call) = 0;

  /// Runs both calls at once in loops for about `seconds`, in one process: how many times slower each is than alone.
  virtual Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double seconds) = 0;

  /// Seconds until a fresh process can use the device, `samples` times. Empty when the backend has no such cost.
  virtual Result<std::vector<double>> cold_start_s(std::uint32_t samples) = 0;

  /// Mean power while the step runs in a loop with the given duty (0..1] for `seconds`; nullopt when there is no
  /// sensor.
  virtual Result<std::optional<PowerReading>> power(std::span<const KernelCall> step, double duty, double seconds) = 0;
};

/// How far a kernel's result may lie from the double-precision reference, relative to its largest value.
double error_limit(const KernelCall& call);

/// A device of known truth.
///
/// With `sm_count` above 0 it is one of so many multiprocessors: kernels other than the bf16 product reach a part of
/// `p_tflops` only (analytic_backend.cpp), blocks of cells go to multiprocessors in whole rounds, and work too small to
/// fill them waits for its chain.
struct AnalyticTruth {
  std::uint32_t sm_count = 0;
  double step_ns = 0;  ///< of each step of a chain
  double t0_us = 5;
  double p_tflops = 100;
  double w_gbs = 1000;
  double gamma = 2;
  double noise_sigma = 0.02;    ///< of the log-normal factor on every sample
  double outlier_share = 0.02;  ///< samples that are `outlier_factor` times too long
  double outlier_factor = 3;
  std::uint64_t seed = 1;
};
std::unique_ptr<Backend> make_analytic_backend(const AnalyticTruth& truth);

/// The threads of this machine; 0 = all.
std::unique_ptr<Backend> make_cpu_backend(std::uint32_t threads = 0);

}  // namespace gpusched
