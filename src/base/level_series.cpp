// SPDX-License-Identifier: Apache-2.0
#include "src/base/level_series.hpp"

#include <algorithm>

namespace gpusched {

std::vector<SharePoint> distribution(std::vector<double> values, std::size_t most) {
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const std::size_t points = std::min(count, most);
  std::vector<SharePoint> result;
  for (std::size_t k = 0; k < points; ++k) {
    const std::size_t place = points == 1 ? 0 : k * (count - 1) / (points - 1);
    const SharePoint point{values[place], static_cast<double>(place + 1) / static_cast<double>(count)};
    if (!result.empty() && result.back().x == point.x) {
      result.back().share = point.share;
    } else {
      result.push_back(point);
    }
  }
  return result;
}

LevelSeries::LevelSeries(Time begin, Time end, std::size_t parts)
    : begin_(begin), end_(end), partial_(parts), whole_(parts + 1) {}

double LevelSeries::position(Time t) const {
  const double share = to_seconds(std::clamp(t, begin_, end_) - begin_) / to_seconds(end_ - begin_);
  return share * static_cast<double>(partial_.size());
}

Time LevelSeries::begin_of(std::size_t part) const {
  const double share = static_cast<double>(part) / static_cast<double>(partial_.size());
  return begin_ + from_seconds(to_seconds(end_ - begin_) * share);
}

void LevelSeries::add(Time from, Time to, double amount) {
  const double first = position(from), last = position(to);
  if (!(first < last)) return;
  const auto first_part = static_cast<std::size_t>(first);
  const auto last_part = std::min(static_cast<std::size_t>(last), partial_.size() - 1);
  if (first_part == last_part) {
    partial_[first_part] += amount * (last - first);
    return;
  }
  partial_[first_part] += amount * (static_cast<double>(first_part + 1) - first);
  partial_[last_part] += amount * (last - static_cast<double>(last_part));
  whole_[first_part + 1] += amount;
  whole_[last_part] -= amount;
}

std::vector<double> LevelSeries::means() const {
  std::vector<double> result(partial_.size());
  double level = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    level += whole_[i];
    result[i] = std::max(0.0, level + partial_[i]);
  }
  return result;
}

}  // namespace gpusched
