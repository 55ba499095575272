// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/power_limit_table.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "src/calibration/profile/measured_csv.hpp"

namespace gpusched {

Result<std::vector<PowerLimitCurve>> read_power_limits(const std::string& path) {
  constexpr std::array<MeasuredColumn, 7> columns{{{"dataset"},
                                                   {"network"},
                                                   {"batch_size"},
                                                   {"optimizer"},
                                                   {"power_limit"},
                                                   {"time_per_epoch"},
                                                   {"average_power"}}};
  std::vector<PowerLimitCurve> curves;
  const auto read = for_each_measured_cells(path, columns, [&](MeasuredCells& cells) {
    const PowerLimitCurve key{cells.text(0), cells.text(1), cells.text(3), cells.count(2, 1), {}};
    const PowerLimitRow row{cells.positive(4), cells.positive(5), cells.positive(6)};
    if (!cells.good()) return;
    const auto same_key = [&](const PowerLimitCurve& other) {
      return std::tie(key.dataset, key.network, key.optimizer, key.batch_size) ==
             std::tie(other.dataset, other.network, other.optimizer, other.batch_size);
    };
    auto curve = std::find_if(curves.begin(), curves.end(), same_key);
    if (curve == curves.end()) curve = curves.insert(curves.end(), key);
    const auto below = [](const PowerLimitRow& other, double limit_w) { return other.limit_w < limit_w; };
    const auto place = std::lower_bound(curve->rows.begin(), curve->rows.end(), row.limit_w, below);
    if (place != curve->rows.end() && place->limit_w == row.limit_w) cells.fail(4, "each limit once");
    curve->rows.insert(place, row);
  });
  if (!read) return Unexpected{read.error()};
  return curves;
}

double largest_limit_w(const std::vector<PowerLimitCurve>& curves) {
  double largest = 0;
  for (const PowerLimitCurve& curve : curves) largest = std::max(largest, curve.rows.back().limit_w);
  return largest;
}

}  // namespace gpusched
