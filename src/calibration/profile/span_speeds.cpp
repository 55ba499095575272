// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/span_speeds.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "src/base/field_parser.hpp"
#include "src/base/nearest_name.hpp"
#include "src/calibration/profile/gang_kinds.hpp"

namespace gpusched {
namespace {

Unexpected unknown_span(const std::string& given) {
  std::vector<std::string> known;
  for (const NamedValue<Span>& span : span_names) {
    if (span.value != Span::node) known.emplace_back(span.name);
  }
  return unexpected("expected " + gpusched::joined(known, "|") + "=SPEED, not '" + given + "'" +
                    suggest_nearest(given, known));
}

// The part between two commas, "nodes=0.9".
Result<void> read_speed(std::string_view part, std::array<RatePpm, span_count>& given) {
  const std::size_t equals = std::min(part.find('='), part.size());
  const std::string name(trim(part.substr(0, equals)));
  const auto span = value_from_name(span_names, name);
  if (!span || *span == Span::node) return unknown_span(name);
  const std::string_view text = part.substr(std::min(equals + 1, part.size()));
  const auto speed = parse_number(text);
  if (!speed || *speed < 1e-6 || *speed > 1) {
    return unexpected(name + ": expected a part of the speed on one node, from 0.000001 to 1, not '" +
                      std::string(text) + "'");
  }
  RatePpm& ppm = given[static_cast<std::size_t>(*span)];
  if (ppm != 0) return unexpected(name + " is given twice");
  ppm = static_cast<RatePpm>(std::llround(*speed * reference_rate));
  return {};
}

}  // namespace

GpusTogether gpus_together(const Cluster& cluster) {
  GpusTogether together{};
  std::map<std::uint32_t, std::uint64_t> racks, sites;
  std::uint64_t all = 0;
  const auto note = [&](Span span, std::uint64_t gpus) {
    std::uint64_t& most = together[static_cast<std::size_t>(span)];
    most = std::max(most, gpus);
  };
  for (const Node& node : cluster.nodes) {
    note(Span::node, node.island_gpus > 0 ? node.island_gpus : node.gpus);
    note(Span::islands, node.gpus);
    note(Span::nodes, racks[node.rack] += node.gpus);
    note(Span::racks, sites[cluster.site_of(node.rack)] += node.gpus);
    note(Span::sites, all += node.gpus);
  }
  return together;
}

Span narrowest_span(const GpusTogether& together, std::uint64_t gpus) {
  std::size_t span = 0;
  while (span + 1 < span_count && together[span] < gpus) ++span;
  return static_cast<Span>(span);
}

SpanSpeeds relative_to(const SpanSpeeds& speeds, Span base) {
  SpanSpeeds relative = no_slowdown;
  const double whole = speeds[static_cast<std::size_t>(base)];
  for (std::size_t span = static_cast<std::size_t>(base) + 1; span < span_count; ++span) {
    const double ppm = std::round(speeds[span] / whole * reference_rate);
    relative[span] = static_cast<RatePpm>(std::clamp(ppm, 1.0, 4e9));
  }
  return relative;
}

Result<SpanSpeeds> parse_span_speeds(std::string_view text) {
  std::array<RatePpm, span_count> given{};  // 0: not given
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    if (auto read = read_speed(text.substr(at, comma - at), given); !read) return Unexpected{read.error()};
    at = comma + 1;
  }
  SpanSpeeds speeds = no_slowdown;
  for (std::size_t span = 1; span < span_count; ++span) {
    speeds[span] = given[span] == 0 ? speeds[span - 1] : given[span];
    if (speeds[span] > speeds[span - 1]) {
      return unexpected(std::string(span_names[span].name) + ": expected a gang to be no faster at a wider span");
    }
  }
  return speeds;
}

SpanModel span_model_of_speeds(const SpanSpeeds& speeds, SpanReference reference, const JobTable& jobs,
                               const Cluster& cluster, const JobChanges& changes) {
  const auto types = static_cast<std::uint32_t>(cluster.gpu_types.size());
  SpanModel model(jobs.families().size(), types);
  for (std::uint32_t family = 0; family < jobs.families().size(); ++family) {
    for (std::uint32_t type = 0; type < types; ++type) model.set(family, type, speeds);
  }
  if (reference == SpanReference::node) return model;
  const GpusTogether together = gpus_together(cluster);
  std::map<std::uint32_t, SpanSpeeds> by_gpus;
  for (const auto& [family, shape] : kinds_of_gangs(jobs, changes)) {
    if (shape.is_share()) continue;
    const std::uint32_t gpus = gpus_of_gang(shape);
    const auto [place, is_new] = by_gpus.try_emplace(gpus);
    if (is_new) place->second = relative_to(speeds, narrowest_span(together, gpus));
    for (std::uint32_t type = 0; type < types; ++type) {
      model.set_for_gang(family, gpus, type, place->second);
    }
  }
  return model;
}

}  // namespace gpusched
