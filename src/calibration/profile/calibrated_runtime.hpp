// SPDX-License-Identifier: Apache-2.0
/// From device profiles to the RuntimeModel that an engine takes: how fast each job family runs on each GPU type,
/// relative to the device that the trace's durations are of, and beside which others; and to what the GPUs draw.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/power_model.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "src/calibration/profile/device_profile.hpp"
#include "src/calibration/profile/duration_model.hpp"

namespace gpusched {

/// The profile to use for a GPU type.
struct TypeProfile {
  std::string gpu_type;  ///< of Cluster::gpu_types; empty: the profile's own model, or any type without a profile
  DeviceProfile profile;
};

/// A runtime model and the values that it was computed from.
struct CalibratedRuntime {
  RuntimeModel model = {};
  std::vector<UsedValue> used = {};  ///< each value once
  /// `gpus` and `families` alone; empty where the profile of some GPU type has no power.
  PowerModel power = {};
  std::vector<UsedValue> power_used = {};
  std::vector<std::string> notes = {};  ///< one line each: what was assumed
};

/// Time of a training step of the family on the device, host part included.
Result<Prediction> predict_step(const DeviceProfile& profile, const std::string& family);

/// What a runtime model is made for.
struct RuntimeOptions {
  double slowdown = 1;        ///< factor on every duration
  bool interference = false;  ///< jobs that share a card slow each other, as co_location_slowdown() says
  /// GPU types (indices) without a GPU in the cluster: no job runs there, so they need no profile.
  std::vector<std::uint32_t> empty_types = {};
};

/// Rate of (family, type) = step time on `reference` / step time on the type's profile / slowdown. A GPU type takes the
/// profile given for it, else a profile of that model, else one given for no type, else the shipped profile whose name
/// the type begins with ("V100M32": V100). Errors: a type with GPUs and without any profile; a profile that lacks a
/// value. Precondition: slowdown > 0.
Result<CalibratedRuntime> runtime_model_from_profiles(const NameTable& families, std::span<const std::string> gpu_types,
                                                      std::span<const TypeProfile> profiles,
                                                      const DeviceProfile& reference,
                                                      const RuntimeOptions& options = {});

/// "TYPE=FILE_OR_NAME" or "FILE_OR_NAME".
Result<TypeProfile> parse_type_profile(const std::string& text);

/// How much slower than alone a job of one family runs when it shares a device with one of another: by the profile's
/// interference matrix (of processes, where it has one), each family seen as the mix of representative kernels that its
/// step time consists of; without a matrix by the formula of default_slowdown() on their busy shares, and `used` says
/// assumed.
struct CoLocationSlowdown {
  double factor = 1;
  std::vector<UsedValue> used = {};
};
Result<CoLocationSlowdown> co_location_slowdown(const DeviceProfile& profile, const std::string& family,
                                                const std::string& beside);
/// The slowdown of a step beside another, where neither leaves anything to the host.
Result<double> step_slowdown(const DeviceProfile& profile, std::span<const KernelCall> step,
                             std::span<const KernelCall> beside);

}  // namespace gpusched
