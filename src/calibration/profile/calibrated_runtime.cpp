// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/calibrated_runtime.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "src/base/letter_case.hpp"
#include "src/base/number_text.hpp"
#include "src/calibration/profile/device_models.hpp"
#include "src/calibration/profile/job_family.hpp"

namespace gpusched {
namespace {

void merge(std::vector<UsedValue>& into, const std::vector<UsedValue>& more) {
  for (const UsedValue& value : more) {
    if (std::find(into.begin(), into.end(), value) == into.end()) into.push_back(value);
  }
}

bool same_word(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

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
  if (auto shipped = shipped_profile_of_model(gpu_type)) return *std::move(shipped);
  return unexpected("no device profile for GPU type '" + gpu_type + "'; give one: --profile " + gpu_type +
                    "=FILE_OR_NAME");
}

/// What a family's step consists of on a device.
struct StepMix {
  std::map<std::string, double> shares;  ///< of the device's time, by representative kernel; they add up to 1
  double busy_share = 1;                 ///< of the step's time; the rest is the host's
};

Result<StepMix> mix_of_step(const DeviceProfile& profile, std::span<const KernelCall> step) {
  StepMix mix;
  double busy_us = 0;
  for (const KernelCall& call : step) {
    const auto time = predict(profile, call);
    if (!time) return Unexpected{time.error()};
    mix.shares[representative_of(call.kernel)] += time->time_us;
    busy_us += time->time_us;
  }
  for (auto& [kernel, share] : mix.shares) share /= busy_us;
  return mix;
}

Result<StepMix> mix_of(const DeviceProfile& profile, const std::string& family) {
  const DeclaredWork work = declared_work(family);
  const std::vector<KernelCall> calls = training_step(work);
  auto mix = mix_of_step(profile, calls);
  if (!mix) return mix;
  const double device_us = predict(profile, calls)->time_us;
  mix->busy_share = device_us / (device_us + work.host_us());
  return mix;
}

Result<std::vector<StepMix>> mixes_of(const DeviceProfile& profile, const NameTable& families) {
  std::vector<StepMix> mixes;
  for (std::uint32_t family = 0; family < families.size(); ++family) {
    auto mix = mix_of(profile, families[family]);
    if (!mix) return Unexpected{mix.error()};
    mixes.push_back(*std::move(mix));
  }
  return mixes;
}

const Interference* interference_of(const DeviceProfile& profile) {
  if (profile.process_interference) return &*profile.process_interference;
  return profile.interference ? &*profile.interference : nullptr;
}

double slowdown_beside(const DeviceProfile& profile, const StepMix& own, const StepMix& beside) {
  const Interference* matrix = interference_of(profile);
  if (matrix == nullptr) return default_slowdown(own.busy_share, beside.busy_share);
  const auto place = [&](const std::string& kernel) {
    return static_cast<std::size_t>(std::find(matrix->kernels.begin(), matrix->kernels.end(), kernel) -
                                    matrix->kernels.begin());
  };
  double slowdown = 0;
  for (const auto& [kernel, share] : own.shares) {
    for (const auto& [neighbour, neighbour_share] : beside.shares) {
      const std::size_t row = place(kernel);
      const std::size_t column = place(neighbour);
      const bool known = row < matrix->kernels.size() && column < matrix->kernels.size();
      slowdown += share * neighbour_share * (known ? matrix->slowdown[row][column] : default_slowdown(1, 1));
    }
  }
  return slowdown;
}

/// Where the slowdowns between these steps come from.
std::vector<UsedValue> interference_sources(const DeviceProfile& profile, std::span<const StepMix> mixes) {
  const Interference* matrix = interference_of(profile);
  if (matrix == nullptr) {
    return {{profile.profile_id, "/interference", 0, "1", Source::assumed,
             "no matrix: from the busy shares of the two jobs, max(1, u_a + u_b)"}};
  }
  const std::string path = profile.process_interference ? "/process_interference" : "/interference";
  std::vector<UsedValue> used = {
      {profile.profile_id, path, static_cast<double>(matrix->kernels.size()), "1", matrix->source,
       "slowdowns of pairs of kernels (" + matrix->mode + "), weighted by the families' kernel times"}};
  for (const StepMix& mix : mixes) {
    for (const auto& [kernel, share] : mix.shares) {
      if (std::find(matrix->kernels.begin(), matrix->kernels.end(), kernel) != matrix->kernels.end()) continue;
      merge(used, {{profile.profile_id, path + "/" + kernel, default_slowdown(1, 1), "1", Source::assumed,
                    "not in the matrix: as if both kernels used the whole device"}});
    }
  }
  return used;
}

/// Adds the extra times of one GPU type.
Result<void> add_interference(CalibratedRuntime& runtime, const DeviceProfile& profile, const NameTable& families,
                              std::uint32_t type) {
  const auto mixes = mixes_of(profile, families);
  if (!mixes) return Unexpected{mixes.error()};
  for (std::uint32_t own = 0; own < families.size(); ++own) {
    for (std::uint32_t beside = 0; beside < families.size(); ++beside) {
      const double extra = std::clamp(slowdown_beside(profile, (*mixes)[own], (*mixes)[beside]) - 1, 0.0, 4e3);
      runtime.model.set_extra(own, beside, type, static_cast<std::uint32_t>(std::lround(extra * 1e6)));
    }
  }
  merge(runtime.used, interference_sources(profile, *mixes));
  return {};
}

bool has_power(const DeviceProfile& profile) {
  return profile.power && profile.power->idle_w.source != Source::unavailable && !profile.power->active_w.empty();
}

/// Power of the kernel; where the profile has none for it, that of a product, or any that the profile has.
std::pair<std::string, Quantity> active_power(const PowerProfile& power, const std::string& kernel) {
  auto place = power.active_w.find(kernel);
  if (place == power.active_w.end()) place = power.active_w.find("gemm");
  if (place == power.active_w.end()) place = power.active_w.begin();
  return *place;
}

Result<void> add_power(CalibratedRuntime& runtime, const DeviceProfile& profile, const NameTable& families,
                       std::uint32_t type) {
  const PowerProfile& power = *profile.power;
  const auto use = [&](const std::string& path, const Quantity& value) {
    merge(runtime.power_used,
          {{profile.profile_id, "/power/" + path, value.value, value.unit, value.source, value.ref}});
  };
  use("idle_w", power.idle_w);
  use("beta", power.beta);
  LoadPower& load = runtime.power.gpus[type].load;
  load = {.idle_w = power.idle_w.value, .exponent = power.beta.value};
  const auto mixes = mixes_of(profile, families);
  if (!mixes) return Unexpected{mixes.error()};
  for (std::uint32_t family = 0; family < families.size(); ++family) {
    FamilyPower& entry = runtime.power.families[family * runtime.power.gpus.size() + type];
    entry.busy_share = (*mixes)[family].busy_share;
    for (const auto& [kernel, share] : (*mixes)[family].shares) {
      const auto [name, watts] = active_power(power, kernel);
      entry.full_w += share * watts.value;
      use("active_w/" + name, watts);
    }
    load.full_w = std::max(load.full_w, entry.full_w);
  }
  return {};
}

/// "durations rest on 2 assumed values of datasheet-v100", one line per profile.
void note_assumed(std::vector<std::string>& notes, const std::string& what, const std::vector<UsedValue>& used) {
  std::map<std::string, std::uint32_t> assumed;
  for (const UsedValue& value : used) {
    if (value.source == Source::assumed) ++assumed[value.profile_id];
  }
  for (const auto& [profile_id, count] : assumed) {
    notes.push_back(what + counted(count, "assumed value") + " of " + profile_id);
  }
}

}  // namespace

Result<Prediction> predict_step(const DeviceProfile& profile, const std::string& family) {
  const DeclaredWork work = declared_work(family);
  auto step = predict(profile, training_step(work));
  if (!step) return step;
  if (!work.kernels.empty()) return step;
  step->time_us += work.host_us();
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
                                                      const DeviceProfile& reference, const RuntimeOptions& options) {
  GPUSCHED_ASSERT(options.slowdown > 0, "a slowdown factor must be positive");
  const auto types = static_cast<std::uint32_t>(gpu_types.size());
  CalibratedRuntime runtime{.model = RuntimeModel(families.size(), types)};
  const auto is_empty = [&](std::uint32_t type) {
    return std::find(options.empty_types.begin(), options.empty_types.end(), type) != options.empty_types.end();
  };
  std::vector<DeviceProfile> of_type;
  bool all_have_power = true;
  for (std::uint32_t type = 0; type < types; ++type) {
    auto profile = profile_of(gpu_types[type], profiles);
    if (!profile && !is_empty(type)) return Unexpected{profile.error()};
    of_type.push_back(profile ? *std::move(profile) : reference);
    all_have_power = all_have_power && (is_empty(type) || has_power(of_type.back()));
  }
  if (all_have_power) {
    runtime.power.gpus.resize(types);
    runtime.power.families.resize(std::size_t{types} * families.size());
  }
  std::vector<std::string> unknown;
  for (std::uint32_t type = 0; type < types; ++type) {
    const DeviceProfile& profile = of_type[type];
    for (std::uint32_t family = 0; family < families.size(); ++family) {
      const auto here = predict_step(profile, families[family]);
      if (!here) return Unexpected{here.error()};
      const auto there = predict_step(reference, families[family]);
      if (!there) return Unexpected{there.error()};
      const double rate = there->time_us / here->time_us / options.slowdown * reference_rate;
      runtime.model.set(family, type, static_cast<RatePpm>(std::clamp(std::round(rate), 1.0, 4e9)));
      merge(runtime.used, here->used);
      merge(runtime.used, there->used);
      const bool stated = !families[family].empty();
      if (type == 0 && stated && !declared_work(families[family]).recognised) {
        unknown.push_back("'" + families[family] + "'");
      }
    }
    if (options.interference) {
      if (auto done = add_interference(runtime, profile, families, type); !done) return Unexpected{done.error()};
    }
    if (all_have_power && !is_empty(type)) {
      if (auto done = add_power(runtime, profile, families, type); !done) return Unexpected{done.error()};
    }
  }
  note_assumed(runtime.notes, "durations rest on ", runtime.used);
  note_assumed(runtime.notes, "energy rests on ", runtime.power_used);
  if (!unknown.empty()) {
    runtime.notes.push_back(std::to_string(unknown.size()) +
                            (unknown.size() == 1 ? " job family is unknown and runs as 'mixed': "
                                                 : " job families are unknown and run as 'mixed': ") +
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
  const auto own = mix_of(profile, family);
  if (!own) return Unexpected{own.error()};
  const auto other = mix_of(profile, beside);
  if (!other) return Unexpected{other.error()};
  return CoLocationSlowdown{.factor = slowdown_beside(profile, *own, *other),
                            .used = interference_sources(profile, std::array{*own, *other})};
}

Result<double> step_slowdown(const DeviceProfile& profile, std::span<const KernelCall> step,
                             std::span<const KernelCall> beside) {
  const auto own = mix_of_step(profile, step);
  if (!own) return Unexpected{own.error()};
  const auto other = mix_of_step(profile, beside);
  if (!other) return Unexpected{other.error()};
  return slowdown_beside(profile, *own, *other);
}

}  // namespace gpusched
