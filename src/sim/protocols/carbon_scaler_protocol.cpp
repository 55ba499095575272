// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/carbon_scaler_protocol.hpp"

#include <algorithm>

#include "src/base/field_parser.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/visible_text.hpp"

namespace gpusched {
namespace {

constexpr Time slot_of_plan = whole_seconds(3600);

// "  key: value" with its depth.
struct YamlLine {
  std::size_t indent = 0;
  std::string_view key, value;
};

class ScaleYaml {
 public:
  Result<void> read(YamlLine line) {
    if (line.indent == 0) {
      if (!line.value.empty()) return wrong(line.key, "expected a model, whose keys stand below it");
      profiles_.push_back({std::string(line.key), {}});
      in_replicas_ = false;
      return {};
    }
    if (profiles_.empty()) return wrong(line.key, "expected the name of a model at the beginning of a line");
    if (in_replicas_ && line.indent > replicas_indent_) return read_replica(line);
    in_replicas_ = line.key == "replicas";
    replicas_indent_ = line.indent;
    return {};
  }

  Result<std::vector<ScaleProfile>> take() {
    if (profiles_.empty()) return unexpected("expected models");
    for (const ScaleProfile& profile : profiles_) {
      const auto lacks = [](const ReplicaPoint& point) { return point.watts <= 0 || point.throughput <= 0; };
      if (profile.points.empty() || std::any_of(profile.points.begin(), profile.points.end(), lacks)) {
        return Unexpected{
            Error{.message = "expected replicas, each with power and throughput", .field = profile.model}};
      }
    }
    return std::move(profiles_);
  }

 private:
  static Unexpected wrong(std::string_view key, std::string message) {
    return Unexpected{Error{.message = std::move(message), .field = excerpt(key)}};
  }

  Result<void> read_replica(YamlLine line) {
    std::vector<ReplicaPoint>& points = profiles_.back().points;
    if (line.value.empty()) {
      const auto number = parse_integer(line.key);
      if (!number || *number != static_cast<std::int64_t>(points.size()) + 1) {
        return wrong(line.key, "expected " + std::to_string(points.size() + 1) + ", the next number of replicas");
      }
      points.emplace_back();
      return {};
    }
    if (line.key != "power" && line.key != "throughput") return {};
    const auto value = parse_number(line.value);
    if (!value || *value <= 0 || points.empty()) return wrong(line.key, "expected a number above 0 below replicas");
    (line.key == "power" ? points.back().watts : points.back().throughput) = *value;
    return {};
  }

  std::vector<ScaleProfile> profiles_;
  bool in_replicas_ = false;
  std::size_t replicas_indent_ = 0;
};

double grams(const Signal& carbon, std::size_t which, double watts) {
  const Time begin{static_cast<std::int64_t>(which) * slot_of_plan.us};
  return static_cast<double>(carbon.integral(begin, begin + slot_of_plan)) * watts / (1000 * 3600 * 1e12);
}

}  // namespace

Result<std::vector<ScaleProfile>> scale_profiles_from_yaml(std::string_view text, const std::string& file) {
  ScaleYaml yaml;
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    line = line.substr(0, line.find('#'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t indent = line.find_first_not_of(' ');
    line = trim(line);
    if (line.empty() || line == "---") continue;
    const std::size_t colon = line.find(':');
    Result<void> done;
    if (colon == std::string_view::npos) {
      done = Unexpected{Error{.message = "expected a key and a colon", .field = excerpt(line)}};
    } else {
      done = yaml.read({indent, trim(line.substr(0, colon)), trim(line.substr(colon + 1))});
    }
    if (!done) {
      Error error = done.error();
      error.file = file;
      error.line = number;
      return Unexpected{error};
    }
  }
  auto profiles = yaml.take();
  if (profiles) return profiles;
  Error error = profiles.error();
  error.file = file;
  return Unexpected{error};
}

Result<std::vector<ScaleProfile>> read_scale_profiles(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return scale_profiles_from_yaml(*text, path);
}

ScaleResult run_carbon_scaler(const ScaleProfile& profile, const Signal& carbon, const ScaleOptions& options) {
  const ReplicaPoint& one = profile.points.front();
  const Time deadline{options.deadline_h * slot_of_plan.us};
  const std::vector<double> expected = expected_slots(carbon, options.forecast, Time{}, deadline, slot_of_plan);
  const ReplicaPlan plan = carbon_scaler_plan(expected, profile.points, options.work_h * one.throughput, slot_of_plan);
  ScaleResult result{.in_time = plan.in_time};
  for (std::size_t which = 0; which < plan.replicas.size(); ++which) {
    if (plan.replicas[which] == 0) continue;
    const double watts = profile.points[plan.replicas[which] - 1].watts;
    result.carbon_g += grams(carbon, which, watts);
    result.energy_kwh += watts / 1000;
  }
  for (int hour = 0; hour < options.work_h; ++hour) {
    result.base_carbon_g += grams(carbon, static_cast<std::size_t>(hour), one.watts);
    result.base_energy_kwh += one.watts / 1000;
  }
  return result;
}

}  // namespace gpusched
