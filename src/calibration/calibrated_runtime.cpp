// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/calibrated_runtime.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>

#include "src/calibration/fit.hpp"
#include "src/calibration/job_family.hpp"

namespace gpusched {
namespace {

void merge(std::vector<UsedValue>& into, const std::vector<UsedValue>& more) {
  for (const UsedValue& value : more) {
    if (std::find(into.begin(), into.end(), value) == into.end()) into.push_back(value);
  }
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

Result<DeviceProfile> profile_of(const std::string& gpu_type, std::span<const TypeProfile> profiles) {
  for (const TypeProfile& given : profiles) {
    if (same_word(given.gpu_type, gpu_type)) return given.profile;
  }
  for (const TypeProfile& given : profiles) {
    if (given.gpu_type.empty() && same_word(given.profile.model, gpu_type)) return given.profile;
  }
  for (const TypeProfile& given : profiles) {
    if (given.gpu_type.empty()) return given.profile;
  }
  std::string longest;
  for (const std::string& name : shipped_profile_names()) {
    const bool begins =
        gpu_type.size() >= name.size() && same_word(name, std::string_view(gpu_type).substr(0, name.size()));
    if (begins && name.size() > longest.size()) longest = name;
  }
  if (!longest.empty()) return shipped_profile(longest);
  return unexpected("no device profile for GPU type '" + gpu_type + "'; give one: --profile " + gpu_type +
                    "=FILE_OR_NAME");
}

/// Share of a step's time by representative kernel of the interference matrix.
Result<std::map<std::string, double>> kernel_shares(const DeviceProfile& profile, const std::string& family) {
  std::map<std::string, double> shares;
  double total = 0;
  for (const KernelCall& call : training_step(declared_work(family))) {
    const auto time = predict(profile, call);
    if (!time) return Unexpected{time.error()};
    const KernelModel model = model_of(call.kernel);
    const char* kernel = model == KernelModel::roofline    ? "gemm"
                         : call.kernel == Kernel::gather   ? "gather"
                         : model == KernelModel::bandwidth ? "dram"
                                                           : "small";
    shares[kernel] += time->time_us;
    total += time->time_us;
  }
  for (auto& [kernel, share] : shares) share /= total;
  return shares;
}

}  // namespace

Result<Prediction> predict_step(const DeviceProfile& profile, const std::string& family) {
  const DeclaredWork work = declared_work(family);
  auto step = predict(profile, training_step(work));
  if (!step) return step;
  const double host_us = work.family->host_us_per_sample * static_cast<double>(work.batch);
  step->time_us += host_us;
  step->used.push_back({"job families", "/" + work.family->name + "/host_us_per_sample",
                        work.family->host_us_per_sample, "us", Source::assumed,
                        "time on the host, the same beside every device"});
  step->used.push_back({"job families", "/" + work.family->name + "/layers",
                        static_cast<double>(work.family->layers.size()), "1",
                        work.recognised ? Source::literature : Source::assumed, work.family->ref});
  return step;
}

Result<CalibratedRuntime> runtime_model_from_profiles(const NameTable& families, std::span<const std::string> gpu_types,
                                                      std::span<const TypeProfile> profiles,
                                                      const DeviceProfile& reference, double slowdown) {
  GPUSCHED_ASSERT(slowdown > 0, "a slowdown factor must be positive");
  CalibratedRuntime runtime{.model = RuntimeModel(families.size(), static_cast<std::uint32_t>(gpu_types.size()))};
  std::vector<std::string> unknown;
  for (std::uint32_t type = 0; type < gpu_types.size(); ++type) {
    const auto profile = profile_of(gpu_types[type], profiles);
    if (!profile) return Unexpected{profile.error()};
    for (std::uint32_t family = 0; family < families.size(); ++family) {
      const auto here = predict_step(*profile, families[family]);
      if (!here) return Unexpected{here.error()};
      const auto there = predict_step(reference, families[family]);
      if (!there) return Unexpected{there.error()};
      const double rate = there->time_us / here->time_us / slowdown * reference_rate;
      runtime.model.set(family, type, static_cast<RatePpm>(std::clamp(std::round(rate), 1.0, 4e9)));
      merge(runtime.used, here->used);
      merge(runtime.used, there->used);
      if (type == 0 && !declared_work(families[family]).recognised) unknown.push_back("'" + families[family] + "'");
    }
  }
  std::map<std::string, std::uint32_t> assumed;
  for (const UsedValue& value : runtime.used) {
    if (value.source == Source::assumed) ++assumed[value.profile_id];
  }
  for (const auto& [profile_id, count] : assumed) {
    runtime.notes.push_back("durations rest on " + std::to_string(count) + " assumed value" + (count == 1 ? "" : "s") +
                            " of " + profile_id);
  }
  if (!unknown.empty()) {
    runtime.notes.push_back(std::to_string(unknown.size()) + " job families are of no known kind and run as 'mixed': " +
                            unknown.front() + (unknown.size() > 1 ? ", ..." : ""));
  }
  return runtime;
}

Result<TypeProfile> parse_type_profile(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string type = equals == std::string::npos ? "" : text.substr(0, equals);
  auto profile = find_device_profile(equals == std::string::npos ? text : text.substr(equals + 1));
  if (!profile) return Unexpected{profile.error()};
  return TypeProfile{.gpu_type = type, .profile = *std::move(profile)};
}

Result<CoLocationSlowdown> co_location_slowdown(const DeviceProfile& profile, const std::string& family,
                                                const std::string& beside) {
  const auto own = kernel_shares(profile, family);
  if (!own) return Unexpected{own.error()};
  const auto other = kernel_shares(profile, beside);
  if (!other) return Unexpected{other.error()};
  CoLocationSlowdown slowdown;
  if (!profile.interference) {
    // A step keeps its device busy but for the host's part.
    const auto busy = [&](const std::string& name) {
      const DeclaredWork work = declared_work(name);
      const double host_us = work.family->host_us_per_sample * static_cast<double>(work.batch);
      return 1 - host_us / predict_step(profile, name)->time_us;
    };
    slowdown.factor = default_slowdown(busy(family), busy(beside));
    slowdown.used.push_back({profile.profile_id, "/interference", slowdown.factor, "1", Source::assumed,
                             "no matrix: the sum of busy shares beyond one device"});
    return slowdown;
  }
  const Interference& matrix = *profile.interference;
  const auto place = [&](const std::string& kernel) {
    return static_cast<std::size_t>(std::find(matrix.kernels.begin(), matrix.kernels.end(), kernel) -
                                    matrix.kernels.begin());
  };
  slowdown.factor = 0;
  for (const auto& [kernel, share] : *own) {
    for (const auto& [neighbour, neighbour_share] : *other) {
      const std::size_t row = place(kernel);
      const std::size_t column = place(neighbour);
      const bool known = row < matrix.kernels.size() && column < matrix.kernels.size();
      slowdown.factor += share * neighbour_share * (known ? matrix.slowdown[row][column] : 1);
    }
  }
  slowdown.used.push_back({profile.profile_id, "/interference", slowdown.factor, "1", matrix.source, matrix.mode});
  return slowdown;
}

}  // namespace gpusched
