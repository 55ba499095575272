// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/duration_model.hpp"

#include <algorithm>

#include "src/calibration/profile/device_models.hpp"

namespace gpusched {
namespace {

// Assumed where no kernel launch was measured; a few microseconds on every platform of the last decade.
constexpr double assumed_launch_us = 5;
constexpr double assumed_link_gbs = 12;

void use(Prediction& prediction, const DeviceProfile& profile, const std::string& path, const Quantity& value) {
  prediction.used.push_back({profile.profile_id, path, value.value, value.unit, value.source, value.ref});
}

Prediction from_roofline(const DeviceProfile& profile, const std::string& name, const RooflineFit& fit,
                         const KernelCall& call) {
  const Roofline model{fit.t0_us.value, fit.p_tflops.value, fit.w_gbs.value, fit.gamma.value,
                       fit.step_ns ? fit.step_ns->value : 0};
  const double flops = flops_of(in_whole_tiles(call, fit.tile_side));
  Prediction prediction{.time_us = model.predict_us(flops, bytes_of(call), depth_of(call))};
  prediction.busy_share =
      std::max(flops / (model.p_tflops * 1e6), bytes_of(call) / (model.w_gbs * 1e3)) / prediction.time_us;
  const std::string path = "/fits/" + name;
  use(prediction, profile, path + "/t0_us", fit.t0_us);
  use(prediction, profile, path + "/p_tflops", fit.p_tflops);
  use(prediction, profile, path + "/w_gbs", fit.w_gbs);
  use(prediction, profile, path + "/gamma", fit.gamma);
  if (fit.step_ns) use(prediction, profile, path + "/step_ns", *fit.step_ns);
  return prediction;
}

Prediction from_bandwidth(const DeviceProfile& profile, const std::string& name, const BandwidthFit& fit,
                          const KernelCall& call) {
  const double moving_us = bytes_of(call) / (fit.w_gbs.value * 1e3);
  Prediction prediction{.time_us = fit.t0_us.value + moving_us};
  prediction.busy_share = moving_us / prediction.time_us;
  use(prediction, profile, "/ops/" + name + "/t0_us", fit.t0_us);
  use(prediction, profile, "/ops/" + name + "/w_gbs", fit.w_gbs);
  return prediction;
}

/// Where the profile has a fit for a cache, it is used for operands that fit in that cache.
const BandwidthFit* op_fit(const DeviceProfile& profile, std::string& name, const KernelCall& call) {
  for (const std::string level : {"l2", "l3"}) {
    const auto cache = profile.resources.find(level + "_bytes");
    if (cache == profile.resources.end() || footprint_of(call) > 0.5 * cache->second.value) continue;
    const auto inside = profile.ops.find(name + "_" + level);
    if (inside == profile.ops.end()) continue;
    name = inside->first;
    return &inside->second;
  }
  const auto own = profile.ops.find(name);
  return own == profile.ops.end() ? nullptr : &own->second;
}

Result<const Quantity*> peak(const DeviceProfile& profile, const std::string& key) {
  const auto place = profile.peaks.find(key);
  if (place != profile.peaks.end() && place->second.source != Source::unavailable) return &place->second;
  return Unexpected{
      Error{.message = "device profile '" + profile.profile_id + "' lacks this value and has no fit instead",
            .field = "/peaks/" + key}};
}

/// The kernel's own number format, or the next wider one that the device has.
std::string peak_key(const DeviceProfile& profile, Kernel kernel) {
  std::string key(peak_of(kernel));
  if (key == "bf16_tflops" && !profile.peaks.contains(key)) key = "fp16_tflops";
  if (key == "fp16_tflops" && !profile.peaks.contains(key)) key = "fp32_tflops";
  return key;
}

Result<Prediction> from_peaks(const DeviceProfile& profile, const KernelCall& call) {
  const std::string key = peak_key(profile, call.kernel);
  const auto p = peak(profile, key);
  if (!p) return Unexpected{p.error()};
  const auto w = peak(profile, "memory_gbs");
  if (!w) return Unexpected{w.error()};
  const double bound_us = std::max(flops_of(call) / ((*p)->value * 1e6), bytes_of(call) / ((*w)->value * 1e3));
  Prediction prediction{.time_us = assumed_launch_us + bound_us};
  prediction.busy_share = bound_us / prediction.time_us;
  use(prediction, profile, "/peaks/" + key, **p);
  use(prediction, profile, "/peaks/memory_gbs", **w);
  prediction.used.push_back({profile.profile_id, "launch_us", assumed_launch_us, "us", Source::assumed,
                             "no fit of " + std::string(to_string(call.kernel)) + ": peaks at full efficiency"});
  return prediction;
}

Prediction from_transfer(const DeviceProfile& profile, const std::string& name, const KernelCall& call) {
  Prediction prediction;
  const double bytes = bytes_of(call);
  const auto own = profile.transfers.find(name);
  if (own != profile.transfers.end() && own->second.beta_gbs.source != Source::unavailable) {
    const TransferFit& fit = own->second;
    prediction.time_us = predict_transfer_us(fit.table_bytes_us, fit.alpha_us.value, fit.beta_gbs.value, bytes);
    use(prediction, profile, "/transfers/" + name + "/alpha_us", fit.alpha_us);
    use(prediction, profile, "/transfers/" + name + "/beta_gbs", fit.beta_gbs);
    return prediction;
  }
  for (const LinkFact& link : profile.links) {
    if (!link.link_class.starts_with("pcie")) continue;
    prediction.time_us = assumed_launch_us + bytes / (link.busbw_gbs.value * 1e3);
    use(prediction, profile, "/links/" + link.link_class + "/busbw_gbs", link.busbw_gbs);
    return prediction;
  }
  prediction.time_us = assumed_launch_us + bytes / (assumed_link_gbs * 1e3);
  prediction.used.push_back({profile.profile_id, "link_gbs", assumed_link_gbs, "GB/s", Source::assumed,
                             "no transfer fit and no PCIe link in the profile"});
  return prediction;
}

}  // namespace

Result<Prediction> predict(const DeviceProfile& profile, const KernelCall& call) {
  std::string name(to_string(call.kernel));
  switch (model_of(call.kernel)) {
    case KernelModel::roofline: {
      const auto row = profile.ops.find(name + "_row");
      if (is_row_product(call) && row != profile.ops.end()) {
        return from_bandwidth(profile, row->first, row->second, call);
      }
      const auto own = profile.fits.find(name);
      if (own != profile.fits.end()) return from_roofline(profile, name, own->second, call);
      // A device without narrow formats multiplies in fp32.
      const auto wide = profile.fits.find("gemm_fp32");
      const bool no_narrow = !profile.peaks.contains("bf16_tflops") && !profile.peaks.contains("fp16_tflops");
      if (call.kernel == Kernel::gemm_bf16 && no_narrow && wide != profile.fits.end()) {
        return from_roofline(profile, "gemm_fp32", wide->second, {Kernel::gemm_fp32, call.m, call.n, call.k});
      }
      break;
    }
    case KernelModel::bandwidth:
      if (const BandwidthFit* own = op_fit(profile, name, call)) return from_bandwidth(profile, name, *own, call);
      break;
    case KernelModel::transfer: return from_transfer(profile, name, call);
    case KernelModel::launch:
    case KernelModel::ceiling: break;
  }
  return from_peaks(profile, call);
}

Result<Prediction> predict(const DeviceProfile& profile, std::span<const KernelCall> step) {
  Prediction total;
  double busy_us = 0;
  for (const KernelCall& call : step) {
    auto one = predict(profile, call);
    if (!one) return one;
    total.time_us += one->time_us;
    busy_us += one->time_us * one->busy_share;
    for (UsedValue& value : one->used) {
      if (std::find(total.used.begin(), total.used.end(), value) == total.used.end())
        total.used.push_back(std::move(value));
    }
  }
  if (total.time_us > 0) total.busy_share = busy_us / total.time_us;
  return total;
}

Result<double> predict_from_peaks(const DeviceProfile& profile, std::span<const KernelCall> step) {
  double total = 0;
  for (const KernelCall& call : step) {
    if (model_of(call.kernel) == KernelModel::transfer) {
      total += from_transfer(profile, "", call).time_us;
      continue;
    }
    const auto p = peak(profile, peak_key(profile, call.kernel));
    if (!p) return Unexpected{p.error()};
    const auto w = peak(profile, "memory_gbs");
    if (!w) return Unexpected{w.error()};
    total += std::max(flops_of(call) / ((*p)->value * 1e6), bytes_of(call) / ((*w)->value * 1e3));
  }
  return total;
}

}  // namespace gpusched
