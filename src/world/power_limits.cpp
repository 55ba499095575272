// SPDX-License-Identifier: Apache-2.0
#include "src/world/power_limits.hpp"

#include <algorithm>
#include <cmath>

#include "src/calibration/profile/power_limit_table.hpp"

namespace gpusched {
namespace {

bool matches(const LimitTable& table, const PowerLimitCurve& curve) {
  const auto fits = [](const std::string& wanted, const std::string& found) {
    return wanted.empty() || wanted == found;
  };
  return fits(table.dataset, curve.dataset) && fits(table.network, curve.network) &&
         fits(table.optimizer, curve.optimizer) && (table.batch_size == 0 || table.batch_size == curve.batch_size);
}

PowerLimit limit_of(const PowerLimitRow& row, const PowerLimitRow& whole, double idle_w) {
  const double above_idle_w = whole.mean_w - idle_w;
  const double speed = std::min(whole.epoch_s / row.epoch_s, 1.0);
  return {.limit_w = row.limit_w,
          .draw = above_idle_w > 0 ? std::clamp((row.mean_w - idle_w) / above_idle_w, 0.0, 1.0) : 1,
          .speed = std::max<RatePpm>(1, static_cast<RatePpm>(std::llround(speed * reference_rate)))};
}

}  // namespace

Result<LimitCurve> read_limit_curve(const LimitTable& table, double idle_w) {
  const auto curves = read_power_limits(table.file);
  if (!curves) return Unexpected{curves.error()};
  const auto found =
      std::find_if(curves->begin(), curves->end(), [&](const PowerLimitCurve& curve) { return matches(table, curve); });
  if (found == curves->end()) {
    return Unexpected{
        Error{.message = "no rows have the dataset, network, optimizer and batch_size asked for", .file = table.file}};
  }
  const PowerLimitRow& whole = found->rows.back();
  LimitCurve curve{.full_w = whole.mean_w};
  std::string left_out;
  for (auto row = found->rows.rbegin(); row != found->rows.rend(); ++row) {
    const PowerLimit limit = limit_of(*row, whole, idle_w);
    const bool rises =
        !curve.limits.empty() && (limit.draw > curve.limits.back().draw || limit.speed > curve.limits.back().speed);
    if (rises) {
      left_out += (left_out.empty() ? "" : ", ") + std::to_string(std::lround(row->limit_w));
    } else {
      curve.limits.push_back(limit);
    }
  }
  std::reverse(curve.limits.begin(), curve.limits.end());
  if (!left_out.empty()) {
    curve.notes.push_back(table.file + ": power limits of " + left_out +
                          " W are left out: a higher one is slower or draws less");
  }
  return curve;
}

}  // namespace gpusched
