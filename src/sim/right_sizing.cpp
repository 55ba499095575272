// SPDX-License-Identifier: Apache-2.0
#include "src/sim/right_sizing.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"

namespace gpusched {
namespace {

// Throughput by GPUs.
using Curve = std::map<std::uint32_t, double>;

std::map<std::string, Curve> curves_of(const ThroughputTable& table, const std::string& gpu_type) {
  std::map<std::string, Curve> curves;
  for (const auto& [gang, by_type] : table.rows) {
    const auto measured = by_type.find(gpu_type);
    if (gang.second > 0 && measured != by_type.end() && measured->second > 0) {
      curves[gang.first][gang.second] = measured->second;
    }
  }
  std::erase_if(curves, [](const auto& curve) { return curve.second.size() < 2; });
  return curves;
}

double per_gpu(const std::pair<const std::uint32_t, double>& point) { return point.second / point.first; }

Curve::const_iterator most_efficient(const Curve& curve) {
  return std::max_element(curve.begin(), curve.end(),
                          [](const auto& a, const auto& b) { return per_gpu(a) < per_gpu(b); });
}

Curve::const_iterator advised(const Curve& curve, Curve::const_iterator own, double least_efficiency) {
  const auto best = most_efficient(curve);
  const auto reaches = [&](Curve::const_iterator size) { return per_gpu(*size) >= least_efficiency * per_gpu(*best); };
  if (reaches(own)) return own;
  for (auto size = own; size != curve.begin();) {
    if (reaches(--size)) return size;
  }
  return best;
}

// GPUs of a gang of whole ones; 0 for other jobs.
std::uint32_t gang_gpus(const Shape& shape) {
  return shape.is_share() ? 0 : static_cast<std::uint32_t>(shape.gpu_milli() / whole_gpu);
}

double sum(const std::vector<GangWaste>& gangs, auto value) {
  return std::accumulate(gangs.begin(), gangs.end(), 0.0,
                         [&](double so_far, const GangWaste& gang) { return so_far + value(gang); });
}

}  // namespace

double TraceWaste::gpu_hours() const {
  return sum(gangs, [](const GangWaste& gang) { return gang.gpu_hours; });
}
double TraceWaste::wasted_gpu_hours() const {
  return sum(gangs, [](const GangWaste& gang) { return gang.wasted_gpu_hours(); });
}
double TraceWaste::advised_gpu_hours() const {
  return sum(gangs, [](const GangWaste& gang) { return gang.advised_gpu_hours; });
}

Result<TraceWaste> trace_waste(const JobTable& jobs, const ThroughputTable& table, const std::string& gpu_type,
                               double least_efficiency) {
  TraceWaste waste{.gpu_type = gpu_type, .least_efficiency = least_efficiency, .gangs = {}};
  if (gpu_type.empty() && !table.gpu_types.empty()) waste.gpu_type = table.gpu_types.front();
  if (std::find(table.gpu_types.begin(), table.gpu_types.end(), waste.gpu_type) == table.gpu_types.end()) {
    return Unexpected{
        Error{.message = "has no GPU type '" + waste.gpu_type + "'" + suggest_nearest(waste.gpu_type, table.gpu_types),
              .file = table.file}};
  }
  const std::map<std::string, Curve> curves = curves_of(table, waste.gpu_type);
  std::map<std::pair<std::string, std::uint32_t>, GangWaste> gangs;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const std::string& family = jobs.families()[jobs.family(job)];
    const std::uint32_t gpus = gang_gpus(jobs.shape(job));
    const double gpu_hours = to_seconds(jobs.work(job)) / 3600 * static_cast<double>(jobs.shape(job).gpu_milli()) /
                             static_cast<double>(whole_gpu);
    const auto curve = curves.find(family);
    if (curve == curves.end() || !curve->second.contains(gpus)) {
      ++waste.unmeasured_jobs;
      waste.unmeasured_gpu_hours += gpu_hours;
      continue;
    }
    GangWaste& gang = gangs[{family, gpus}];
    ++gang.jobs;
    gang.gpu_hours += gpu_hours;
  }
  for (auto& [key, gang] : gangs) {
    const Curve& curve = curves.at(key.first);
    const auto own = curve.find(key.second), size = advised(curve, own, least_efficiency);
    gang.family = key.first;
    gang.gpus = key.second;
    gang.efficiency = per_gpu(*own) / per_gpu(*most_efficient(curve));
    gang.advised_gpus = size->first;
    gang.advised_time = own->second / size->second;
    gang.advised_gpu_hours = gang.gpu_hours * gang.advised_time * size->first / own->first;
    waste.gangs.push_back(std::move(gang));
  }
  if (waste.gangs.empty()) {
    return Unexpected{Error{.message = "no job of the trace has a family and a size that were measured on " +
                                       waste.gpu_type + ", beside another size of the family",
                            .file = table.file}};
  }
  std::stable_sort(waste.gangs.begin(), waste.gangs.end(),
                   [](const GangWaste& a, const GangWaste& b) { return a.wasted_gpu_hours() > b.wasted_gpu_hours(); });
  return waste;
}

std::string waste_text(const TraceWaste& waste, const TextStyle& style, std::size_t most) {
  TextTable table({"family", "GPUs", "jobs", "GPU-hours", "used", "wasted", "advised", "GPU-hours", "run time"});
  for (std::size_t i = 0; i < std::min(most, waste.gangs.size()); ++i) {
    const GangWaste& gang = waste.gangs[i];
    const bool stays = gang.advised_gpus == gang.gpus;
    table.add({gang.family, std::to_string(gang.gpus), human_count(gang.jobs), formatted("%.1f", gang.gpu_hours),
               formatted("%.1f %%", 100 * gang.efficiency), formatted("%.1f", gang.wasted_gpu_hours()),
               stays ? "as it is" : std::to_string(gang.advised_gpus), formatted("%.1f", gang.advised_gpu_hours),
               formatted("x %.2f", gang.advised_time)});
  }
  std::string text = table.text(style);
  if (waste.gangs.size() > most) {
    text += "... and " + counted(waste.gangs.size() - most, "size") + " that waste less\n";
  }
  const double held = waste.gpu_hours();
  text += "\nOf " + formatted("%.1f", held) + " GPU-hours, " + formatted("%.1f", waste.wasted_gpu_hours()) +
          formatted(" (%.1f %%)", held > 0 ? 100 * waste.wasted_gpu_hours() / held : 0.0) +
          " are wasted by gangs of a size at which a GPU does less than at the best one (" + waste.gpu_type +
          "). With the advised sizes, at least " + formatted("%.0f %%", 100 * waste.least_efficiency) +
          " used, the same work takes " + formatted("%.1f", waste.advised_gpu_hours()) + ".\n";
  if (waste.unmeasured_jobs > 0) {
    text += counted(waste.unmeasured_jobs, "job") + " (" + formatted("%.1f", waste.unmeasured_gpu_hours) +
            " GPU-hours) left out: their family and size were not measured\n";
  }
  return text;
}

std::string waste_json(const TraceWaste& waste) {
  Json gangs = Json::array();
  for (const GangWaste& gang : waste.gangs) {
    gangs.push_back({{"family", gang.family},
                     {"gpus", gang.gpus},
                     {"jobs", gang.jobs},
                     {"gpu_hours", gang.gpu_hours},
                     {"efficiency", gang.efficiency},
                     {"wasted_gpu_hours", gang.wasted_gpu_hours()},
                     {"advised_gpus", gang.advised_gpus},
                     {"advised_gpu_hours", gang.advised_gpu_hours},
                     {"advised_time", gang.advised_time}});
  }
  const Json json{{"gpu_type", waste.gpu_type},
                  {"least_efficiency", waste.least_efficiency},
                  {"gpu_hours", waste.gpu_hours()},
                  {"wasted_gpu_hours", waste.wasted_gpu_hours()},
                  {"advised_gpu_hours", waste.advised_gpu_hours()},
                  {"unmeasured_jobs", waste.unmeasured_jobs},
                  {"unmeasured_gpu_hours", waste.unmeasured_gpu_hours},
                  {"gangs", std::move(gangs)}};
  return json_text(json);  // families may be no valid UTF-8
}

}  // namespace gpusched
