// SPDX-License-Identifier: Apache-2.0
#include "src/world/power_fields.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

namespace gpusched {
namespace {

// Exponents of the load. At 0 a device draws all of its power as soon as it is touched.
constexpr std::array<NamedValue<double>, 5> load_curves{
    {{"constant", 0}, {"linear", 1}, {"sqrt", 0.5}, {"square", 2}, {"cubic", 3}}};

constexpr const char* points_form = "pairs of a load from 0 to 1 and watts, ascending in load and not falling in watts";

void read_points(JsonFields& fields, LoadPower& load) {
  const Json* list = fields.read_array("points");
  if (list == nullptr) return;
  load.points.clear();
  for (const Json& pair : *list) {
    const bool is_pair = pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
    if (!is_pair) return fields.refuse("points", points_form);
    const double at = pair[0].get<double>(), watts = pair[1].get<double>();
    const bool ascends =
        load.points.empty() ? at == 0 : at > load.points.back().first && watts >= load.points.back().second;
    if (!ascends || at > 1 || !(watts >= 0 && watts <= most_watts)) return fields.refuse("points", points_form);
    load.points.emplace_back(at, watts);
  }
  if (load.points.empty() || load.points.back().first < 1) return fields.refuse("points", points_form);
  load.idle_w = load.points.front().second;
  load.full_w = load.points.back().second;
}

void read_delay(JsonFields& fields, const char* key, Time& time) {
  if (!fields.has(key)) return;
  double seconds = 0;
  fields.read(key, seconds, 0, most_power_s);
  time = from_seconds(seconds);
}

}  // namespace

void read_load_power(JsonFields& fields, LoadPower& load) {
  const bool has_points = fields.has("points");
  for (const char* const key : {"idle_w", "full_w", "load", "exponent", "touched_w"}) {
    if (has_points && fields.has(key)) fields.fail(key, "expected none beside points");
  }
  if (fields.has("load") && fields.has("exponent")) fields.fail("exponent", "expected none beside load");
  fields.read("idle_w", load.idle_w, 0, most_watts);
  fields.read("full_w", load.full_w, 0, most_watts);
  fields.read_word("load", load.exponent, load_curves);
  fields.read("exponent", load.exponent, 0, 100);
  double touched_w = load.touched_w.value_or(load.idle_w);
  fields.read("touched_w", touched_w, 0, most_watts);
  if (fields.has("touched_w")) load.touched_w = touched_w;
  if (!has_points && (fields.has("idle_w") || fields.has("full_w"))) load.points.clear();
  read_points(fields, load);
  if (!fields.good() || load.full_w >= std::max(load.idle_w, load.touched_w.value_or(0))) return;
  fields.refuse(fields.has("full_w")   ? "full_w"
                : fields.has("idle_w") ? "idle_w"
                                       : "touched_w",
                "a full_w no less than idle_w and touched_w");
}

void read_limit_list(JsonFields& fields, std::vector<PowerLimit>& limits) {
  limits.clear();
  fields.read_objects("limits", [&](JsonFields& own, std::size_t) {
    PowerLimit limit;
    double speed = 1;
    own.require("limit_w");
    own.read_above_zero("limit_w", limit.limit_w, most_watts);
    own.read("draw", limit.draw, 0, 1);
    own.read("speed", speed, 1e-6, 1);
    limit.speed = static_cast<RatePpm>(std::llround(speed * reference_rate));
    if (own.good() && !limits.empty()) {
      const PowerLimit& below = limits.back();
      const bool rises = below.limit_w < limit.limit_w && below.draw <= limit.draw && below.speed <= limit.speed;
      if (!rises) own.refuse("", "a higher limit_w than before, and no less draw and speed");
    }
    limits.push_back(limit);
  });
  const bool is_whole = !limits.empty() && limits.back().draw == 1 && limits.back().speed == reference_rate;
  if (fields.good() && !is_whole) fields.refuse("limits", "a last setting with draw and speed 1");
}

void read_node_sleep(JsonFields& fields, NodeSleep& sleep) {
  if (!fields.has("sleep")) return;
  fields.read_object("sleep", [&](JsonFields& own) {
    read_delay(own, "after_s", sleep.after);
    own.find("after_s");
    own.read("asleep_w", sleep.asleep_w, 0, most_watts);
    read_delay(own, "wake_s", sleep.wake);
    own.find("wake_s");
    own.read("wake_j", sleep.wake_j, 0, 1e12);
    if (sleep.wake_j > 0 && sleep.wake.us == 0) own.refuse("wake_j", "a wake_s above 0 with it");
    if (sleep.after == Time::max()) own.require("after_s");
  });
}

std::string path_beside(const std::string& file, const std::string& name) {
  return (std::filesystem::path(file).parent_path() / name).string();
}

}  // namespace gpusched
