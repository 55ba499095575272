// SPDX-License-Identifier: Apache-2.0
#include "src/world/elastic_reader.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/json_fields.hpp"
#include "src/world/absent_names.hpp"

namespace gpusched {
namespace {

// What a file may make the reader compute and keep.
constexpr std::uint32_t most_gpus = 4096, most_goodput_gpus = 1024;
constexpr std::size_t most_phases = 1000, most_noise_scales = 100;

// Speed by GPUs, linear between points.
using Points = std::vector<std::pair<double, double>>;

/// A curve as the file has it: by GPUs, in a unit of its own.
struct FileCurve {
  struct Phase {
    double until = 1;
    Points speeds;
  };
  std::vector<Phase> phases;
  std::uint32_t min_gpus = 1, max_gpus = most_gpus;
};

double speed_at(const Points& points, double gpus) {
  const auto above =
      std::lower_bound(points.begin(), points.end(), gpus, [](const auto& point, double x) { return point.first < x; });
  if (above == points.begin() || above->first == gpus) return above->second;
  const auto& [x0, y0] = *(above - 1);
  return y0 + (above->second - y0) * (gpus - x0) / (above->first - x0);
}

/// Pollux's model of one family.
struct GoodputModel {
  double initial_batch = 0, most_batch = 0, most_batch_per_gpu = 0, gamma = 1;
  std::uint32_t gpus_per_node = 1;
  std::vector<double> gradient_s, sync_s, sync_nodes_s;

  [[nodiscard]] double step_s(std::uint32_t gpus, double batch) const {
    const double gradient = gradient_s[0] + gradient_s[1] * batch / gpus;
    if (gpus == 1) return gradient;
    const std::vector<double>& link = gpus <= gpus_per_node ? sync_s : sync_nodes_s;
    const double sync = link[0] + link[1] * (gpus - 2.0);
    return std::pow(std::pow(gradient, gamma) + std::pow(sync, gamma), 1 / gamma);
  }

  [[nodiscard]] bool can_run_on(std::uint32_t gpus) const { return initial_batch <= most_batch_per_gpu * gpus; }

  // Of the best batch size, by a grid that holds both ends.
  [[nodiscard]] double goodput(std::uint32_t gpus, double noise_scale) const {
    constexpr int steps = 200;
    const double most = std::min(most_batch, most_batch_per_gpu * gpus);
    double best = 0;
    for (int i = 0; i <= steps; ++i) {
      const double batch = initial_batch * std::pow(most / initial_batch, static_cast<double>(i) / steps);
      const double efficiency = (noise_scale + initial_batch) / (noise_scale + batch);
      best = std::max(best, batch / step_s(gpus, batch) * efficiency);
    }
    return best;
  }
};

// Pairs of numbers, the first of each ascending; an error names `key`.
Points read_points(JsonFields& fields, const char* key, const std::string& expected) {
  Points points;
  const Json* list = fields.read_array(key);
  if (list == nullptr) return points;
  for (const Json& entry : *list) {
    const bool pair = entry.is_array() && entry.size() == 2 && entry[0].is_number() && entry[1].is_number();
    const double x = pair ? entry[0].get<double>() : 0, y = pair ? entry[1].get<double>() : 0;
    if (!pair || !(x > 0 && x <= most_gpus && y > 0 && y <= 1e15) || (!points.empty() && x <= points.back().first)) {
      fields.refuse(std::string(key) + "/" + std::to_string(points.size()), expected);
      return {};
    }
    points.emplace_back(x, y);
  }
  if (points.empty()) fields.refuse(key, "at least one point: " + expected);
  return points;
}

constexpr const char* speedup_point = "[GPUs, speed], both above 0, GPUs ascending";

void check_until(JsonFields& fields, const char* key, const std::vector<double>& until) {
  const bool ascends = std::adjacent_find(until.begin(), until.end(), std::greater_equal<>()) == until.end();
  if (until.empty() || !ascends || until.front() <= 0 || until.back() != 1) {
    fields.fail(key, "expected shares of the work that ascend to 1");
  }
}

void read_phases(JsonFields& fields, FileCurve& curve) {
  const Json* list = fields.read_array("phases");
  if (list != nullptr && list->size() > most_phases) return fields.refuse("phases", "at most 1000 phases");
  std::vector<double> until;
  fields.read_objects("phases", [&](JsonFields& own, std::size_t) {
    FileCurve::Phase phase;
    own.require("until");
    own.read("until", phase.until, 0, 1);
    own.require("speedup");
    phase.speeds = read_points(own, "speedup", speedup_point);
    until.push_back(phase.until);
    curve.phases.push_back(std::move(phase));
  });
  check_until(fields, "phases", until);
}

void read_goodput(JsonFields& fields, FileCurve& curve) {
  fields.read_object("goodput", [&](JsonFields& own) {
    GoodputModel model;
    for (const char* key : {"initial_batch", "most_batch", "most_batch_per_gpu", "gpus_per_node", "gradient_s",
                            "sync_s", "sync_nodes_s", "noise_scale"}) {
      own.require(key);
    }
    own.read("initial_batch", model.initial_batch, 1, 1e9);
    own.read("most_batch", model.most_batch, model.initial_batch, 1e9);
    own.read("most_batch_per_gpu", model.most_batch_per_gpu, 1, 1e9);
    own.read("gpus_per_node", model.gpus_per_node, 1, 64);
    own.read("gamma", model.gamma, 1, 10);
    own.read("gradient_s", model.gradient_s, 2);
    own.read("sync_s", model.sync_s, 2);
    own.read("sync_nodes_s", model.sync_nodes_s, 2);
    for (const auto* pair : {&model.gradient_s, &model.sync_s, &model.sync_nodes_s}) {
      const bool good = pair->size() == 2 && (*pair)[0] >= 0 && (*pair)[1] >= 0 && (*pair)[0] + (*pair)[1] < 1e9;
      if (!good) own.fail("gradient_s", "expected two times >= 0 there, in sync_s and in sync_nodes_s");
      if (!good) return;
    }
    if (model.gradient_s[0] + model.gradient_s[1] <= 0) own.fail("gradient_s", "expected a time above 0");
    const Points noise = read_points(own, "noise_scale", "[share of the work, noise scale], ascending");
    if (noise.size() > most_noise_scales) own.fail("noise_scale", "expected at most 100 points");
    std::vector<double> until;
    for (const auto& [share, scale] : noise) until.push_back(share);
    check_until(own, "noise_scale", until);
    if (!own.good()) return;
    curve.max_gpus = std::min(curve.max_gpus, most_goodput_gpus);
    while (curve.min_gpus < curve.max_gpus && !model.can_run_on(curve.min_gpus)) ++curve.min_gpus;
    if (!model.can_run_on(curve.min_gpus)) own.fail("initial_batch", "expected one that fits max_gpus");
    for (const auto& [share, scale] : noise) {
      FileCurve::Phase phase{.until = share, .speeds = {}};
      for (std::uint32_t gpus = curve.min_gpus; gpus <= curve.max_gpus; ++gpus) {
        phase.speeds.emplace_back(gpus, model.goodput(gpus, scale));
      }
      curve.phases.push_back(std::move(phase));
    }
  });
}

FileCurve read_curve(JsonFields& fields) {
  FileCurve curve;
  fields.read("min_gpus", curve.min_gpus, 1, most_gpus);
  fields.read("max_gpus", curve.max_gpus, curve.min_gpus, most_gpus);
  const bool by_speedup = fields.find("speedup") != nullptr, by_phases = fields.find("phases") != nullptr,
             by_goodput = fields.find("goodput") != nullptr;
  if (by_speedup + by_phases + by_goodput != 1) fields.fail("", "expected one of speedup, phases and goodput");
  if (!fields.good()) return curve;
  if (by_goodput) read_goodput(fields, curve);
  if (by_phases) read_phases(fields, curve);
  if (by_speedup) {
    curve.phases.push_back({.until = 1, .speeds = read_points(fields, "speedup", speedup_point)});
  }
  if (!fields.good()) return curve;
  double least = 1, most = most_gpus;
  for (const FileCurve::Phase& phase : curve.phases) {
    least = std::max(least, phase.speeds.front().first);
    most = std::min(most, phase.speeds.back().first);
  }
  curve.min_gpus = std::max(curve.min_gpus, static_cast<std::uint32_t>(std::ceil(least)));
  curve.max_gpus = std::min(curve.max_gpus, static_cast<std::uint32_t>(std::floor(most)));
  if (curve.min_gpus > curve.max_gpus) fields.fail("min_gpus", "expected a range that the points hold");
  return curve;
}

// The curve of gangs of that shape; none where it does not hold what they ask for.
std::optional<ElasticCurve> curve_of(const FileCurve& file, const Shape& shape) {
  const auto gpus_per_task = static_cast<std::uint32_t>(shape.gpu_milli_per_task / whole_gpu);
  const std::uint32_t asked = shape.tasks * gpus_per_task;
  if (asked < file.min_gpus || asked > file.max_gpus) return std::nullopt;
  ElasticCurve curve{.min_tasks = (file.min_gpus + gpus_per_task - 1) / gpus_per_task,
                     .max_tasks = file.max_gpus / gpus_per_task};
  for (const FileCurve::Phase& phase : file.phases) {
    ElasticCurve::Phase part{.until = phase.until};
    const double unit = speed_at(phase.speeds, asked);
    for (std::uint32_t tasks = curve.min_tasks; tasks <= curve.max_tasks; ++tasks) {
      const double rate = speed_at(phase.speeds, tasks * gpus_per_task) / unit * reference_rate;
      part.rates.push_back(static_cast<RatePpm>(std::clamp(std::round(rate), 1.0, 4e9)));
    }
    curve.phases.push_back(std::move(part));
  }
  return curve;
}

ElasticJobs made_for(const JobTable& jobs, const std::map<std::uint32_t, FileCurve>& families,
                     const std::optional<FileCurve>& others) {
  ElasticJobs made{.model = ElasticModel(jobs.shapes().size())};
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> known;  // by family and shape: it has a curve
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    const Shape& shape = jobs.shape(job);
    const auto named = families.find(jobs.family(job));
    const FileCurve* const file = named != families.end() ? &named->second : others ? &*others : nullptr;
    if (file == nullptr || shape.is_share() || shape.gpu_milli_per_task == 0) continue;
    const auto [place, added] = known.try_emplace({jobs.family(job), jobs.shape_id(job)}, false);
    if (added) {
      auto curve = curve_of(*file, shape);
      place->second = curve.has_value();
      if (curve) made.model.add(jobs.family(job), jobs.shape_id(job), *std::move(curve));
    }
    ++(place->second ? made.elastic : made.outside);
  }
  return made;
}

}  // namespace

Result<ElasticJobs> elastic_from_json(std::string_view text, const std::string& file, const JobTable& jobs) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  std::map<std::uint32_t, FileCurve> families;
  std::optional<FileCurve> others;
  std::vector<std::string> absent;
  JsonFields fields(*json, file);
  fields.read_members("families", [&](JsonFields& own, const std::string& name, const Json& entry) {
    const std::uint32_t number = jobs.families().find(name);
    own.read_nested(name, entry, [&](JsonFields& of) {
      FileCurve curve = read_curve(of);
      if (number == no_index) return absent.push_back(name);
      families[number] = std::move(curve);
    });
  });
  if (const Json* entry = fields.find("others")) {
    fields.read_nested("others", *entry, [&](JsonFields& own) { others = read_curve(own); });
  }
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (families.empty() && absent.empty() && !others) {
    return Unexpected{Error{.message = "expected families, or others", .file = file, .field = ""}};
  }
  ElasticJobs made = made_for(jobs, families, others);
  made.notes = absent_names_note(file, "/families", absent, jobs.families().names());
  if (made.elastic > 0 || (families.empty() && !others)) return made;
  return Unexpected{Error{
      .message = std::string("no job of the trace is elastic by it: families differ, gangs lie outside the curves, "
                             "or tasks hold no whole GPUs") +
                 (made.notes.empty() ? "" : "; " + made.notes.front().substr(file.size() + 2)),
      .file = file}};
}

Result<ElasticJobs> read_elastic(const std::string& path, const JobTable& jobs) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return elastic_from_json(*text, path, jobs);
}

}  // namespace gpusched
