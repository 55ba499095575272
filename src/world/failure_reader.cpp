// SPDX-License-Identifier: Apache-2.0
#include "src/world/failure_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/csv_rows.hpp"

namespace gpusched {
namespace {

constexpr double seconds_per_hour = 3600, seconds_per_day = 86'400;
constexpr double most_hours = 1e9;

constexpr std::array<NamedValue<FailureLaw::Repair>, 3> repair_names{{{"fixed", FailureLaw::Repair::fixed},
                                                                      {"exponential", FailureLaw::Repair::exponential},
                                                                      {"lognormal", FailureLaw::Repair::lognormal}}};

// A law as the file gives it.
struct GivenLaw {
  FailureLaw law;
  double lemon_share = 0, lemon_factor = 1;
};

GivenLaw read_law(JsonFields& fields) {
  GivenLaw given;
  double per_1000_days = 0, mtbf_h = 0, repair_h = 0;
  const bool by_rate = fields.has("per_1000_days"), by_mean = fields.has("mtbf_h");
  fields.read("per_1000_days", per_1000_days, 0, 1e9);
  fields.read("mtbf_h", mtbf_h, 1e-3, most_hours);
  if (by_rate == by_mean) fields.fail("mtbf_h", "give either mtbf_h or per_1000_days");
  if (by_rate && per_1000_days > 0) given.law.mean_up_s = 1000 * seconds_per_day / per_1000_days;
  if (by_mean) given.law.mean_up_s = mtbf_h * seconds_per_hour;
  fields.require("repair_h");
  fields.read("repair_h", repair_h, 1e-6, most_hours);
  given.law.mean_repair_s = repair_h * seconds_per_hour;
  fields.read("shape", given.law.up_shape, 0.1, 100);
  fields.read("detect_s", given.law.detect_s, 0, 1e9);
  fields.read_word("repair", given.law.repair, repair_names);
  fields.read("repair_sigma", given.law.repair_sigma, 0, 10);
  if (fields.has("repair_sigma") && given.law.repair != FailureLaw::Repair::lognormal) {
    fields.fail("repair_sigma", "is of repair lognormal alone");
  }
  fields.read("lemon_share", given.lemon_share, 0, 1);
  fields.read("lemon_factor", given.lemon_factor, 1e-3, 1e6);
  if (fields.has("lemon_share") != fields.has("lemon_factor")) {
    fields.fail("lemon_share", "give both lemon_share and lemon_factor, or none");
  }
  return given;
}

using Units = std::vector<std::vector<NodeId>>;

Units node_units(const Cluster& cluster) {
  Units units;
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) units.push_back({NodeId{node}});
  return units;
}

Units gpu_units(const Cluster& cluster) {
  Units units;
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    units.insert(units.end(), cluster.nodes[node].gpus, {NodeId{node}});
  }
  return units;
}

Units rack_units(const Cluster& cluster) {
  std::map<std::uint32_t, std::vector<NodeId>> racks;
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    racks[cluster.nodes[node].rack].push_back(NodeId{node});
  }
  Units units;
  for (auto& [rack, nodes] : racks) units.push_back(std::move(nodes));
  return units;
}

void add_units(NodeFailures& failures, const GivenLaw& given, const Units& units, Rng rng) {
  const std::uint32_t law = failures.add_law(given.law);
  std::uint32_t lemon_law = law;
  if (given.lemon_share > 0) {
    FailureLaw often = given.law;
    often.mean_up_s /= given.lemon_factor;
    lemon_law = failures.add_law(often);
  }
  std::vector<std::uint32_t> order(units.size());
  for (std::uint32_t unit = 0; unit < order.size(); ++unit) order[unit] = unit;
  rng.shuffle(order.data(), order.size());
  const auto lemons = static_cast<std::size_t>(std::llround(given.lemon_share * static_cast<double>(units.size())));
  std::vector<bool> is_lemon(units.size());
  for (std::size_t i = 0; i < lemons; ++i) is_lemon[order[i]] = true;
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    failures.add_unit(is_lemon[unit] ? lemon_law : law, units[unit]);
  }
}

// Nodes by what a csv calls them.
class NodeNames {
 public:
  explicit NodeNames(const Cluster& cluster) : cluster_(&cluster) {
    for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
      const std::string& name = cluster.nodes[node].name;
      if (name.empty()) continue;
      const auto [place, added] = numbers_.try_emplace(name, node);
      if (!added) place->second = no_index;
    }
  }

  [[nodiscard]] Result<NodeId> find(std::string_view text) const {
    const auto named = numbers_.find(std::string(text));
    if (named != numbers_.end()) {
      if (named->second == no_index) return unexpected("'" + std::string(text) + "' is the name of several nodes");
      return NodeId{named->second};
    }
    const auto number = parse_integer(text);
    const auto nodes = static_cast<std::int64_t>(cluster_->nodes.size());
    if (number && *number >= 0 && *number < nodes) return NodeId{static_cast<std::uint32_t>(*number)};
    return unexpected("'" + std::string(text) +
                      "' is no node: expected a node's name in the cluster, or a number from 0 to " +
                      std::to_string(nodes - 1));
  }

  /// By order of appearance.
  [[nodiscard]] Result<NodeId> appear(std::string_view text) {
    const auto next = static_cast<std::uint32_t>(appeared_.size());
    const auto [place, added] = appeared_.try_emplace(std::string(text), next);
    if (added && next >= cluster_->nodes.size()) {
      return unexpected("names more machines than the cluster's " + std::to_string(cluster_->nodes.size()) + " nodes");
    }
    return NodeId{place->second};
  }

 private:
  const Cluster* cluster_;
  std::unordered_map<std::string, std::uint32_t> numbers_, appeared_;  // looked up, never iterated
};

struct CsvForm {
  std::size_t time = 0, event = 1, node = 2, columns = 3;
  bool is_spot = true;
};

Result<CsvForm> form_of(const std::vector<std::string_view>& cells) {
  CsvForm form;
  if (cells.size() == 3 && parse_integer(cells[0]) && (trim(cells[1]) == "add" || trim(cells[1]) == "remove"))
    return form;
  form = {.columns = cells.size(), .is_spot = false};
  const auto column = [&](std::string_view name) {
    return static_cast<std::size_t>(
        std::find_if(cells.begin(), cells.end(), [&](std::string_view cell) { return trim(cell) == name; }) -
        cells.begin());
  };
  form.time = column("time_s");
  form.node = column("node");
  form.event = column("event");
  for (const auto& [place, name] : {std::pair(form.time, "time_s"), {form.node, "node"}, {form.event, "event"}}) {
    if (place == cells.size()) {
      return Unexpected{
          Error{.message = "expected a header with time_s, node and event, or rows ms,add|remove,name", .field = name}};
    }
  }
  return form;
}

Result<NodeChange> change_of(const std::vector<std::string_view>& cells, const CsvForm& form, NodeNames& names) {
  if (cells.size() != form.columns) {
    return unexpected("expected " + std::to_string(form.columns) + " fields, not " + std::to_string(cells.size()));
  }
  const auto fail = [](const char* field, std::string message) {
    return Unexpected{Error{.message = std::move(message), .field = field}};
  };
  NodeChange change;
  const std::string_view event = trim(cells[form.event]);
  const std::string_view up = form.is_spot ? "add" : "up", down = form.is_spot ? "remove" : "down";
  change.up = event == up;
  change.drain = !form.is_spot && event == "drain";
  if (!change.up && !change.drain && event != down) {
    const std::string known = form.is_spot ? "remove or add" : "down, drain or up";
    return fail("event", "expected " + known + ", not '" + excerpt(event) + "'");
  }
  if (form.is_spot) {
    const auto ms = parse_integer(cells[form.time]);
    constexpr std::int64_t most_ms = std::int64_t{1} << 52;
    if (!ms || *ms < -most_ms || *ms > most_ms) return fail("time", "expected whole milliseconds");
    change.time = Time{*ms * 1000};
  } else {
    const auto time = parse_seconds(cells[form.time]);
    if (!time || *time > end_of_time || *time < Time{} - end_of_time) return fail("time_s", "expected seconds");
    change.time = *time;
  }
  const auto node = form.is_spot ? names.appear(trim(cells[form.node])) : names.find(trim(cells[form.node]));
  if (!node) return fail("node", node.error().message);
  change.node = *node;
  return change;
}

std::string beside(const std::string& file, const std::string& named) {
  const std::filesystem::path path(named);
  return path.is_absolute() ? named : (std::filesystem::path(file).parent_path() / path).string();
}

}  // namespace

Result<std::vector<NodeChange>> node_changes_from_csv(std::string_view text, const std::string& file,
                                                      const Cluster& cluster, Time begin) {
  NodeNames names(cluster);
  std::optional<CsvForm> form;
  std::vector<NodeChange> changes;
  const auto read = for_each_csv_row(text, file, [&](const std::vector<std::string_view>& cells) -> Result<void> {
    if (!form) {
      const auto found = form_of(cells);
      if (!found) return Unexpected{found.error()};
      form = *found;
      if (!form->is_spot) return {};
    }
    auto change = change_of(cells, *form, names);
    if (!change) return Unexpected{change.error()};
    change->time += begin;
    changes.push_back(*change);
    return {};
  });
  if (!read) return Unexpected{read.error()};
  if (changes.empty()) return Unexpected{Error{.message = "no event in it", .file = file}};
  return changes;
}

Result<NodeFailures> failures_from_json(std::string_view text, const std::string& file, const Cluster& cluster,
                                        Time first_submit, std::uint64_t seed) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  NodeFailures failures;
  JsonFields fields(*json, file);
  const Rng rng = Rng(seed).split("lemons");
  const auto add = [&](const char* key, auto units_of) {
    const Json* object = fields.find(key);
    if (object == nullptr) return;
    fields.read_nested(key, *object, [&](JsonFields& own) {
      const GivenLaw law = read_law(own);
      if (own.good()) add_units(failures, law, units_of(cluster), rng.split(key));
    });
  };
  add("node", node_units);
  add("gpu", gpu_units);
  add("rack", rack_units);
  std::string trace, begins = "on_clock";
  fields.read("trace", trace);
  fields.read_word("trace_begins", begins, std::vector<std::string>{"on_clock", "with_jobs"});
  std::uint32_t spares = 0;
  fields.read("spares", spares, 0, std::max(static_cast<double>(cluster.nodes.size()) - 1, 0.0));
  failures.keep_spares(spares);
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  if (!trace.empty()) {
    const std::string path = beside(file, trace);
    const auto csv = read_text_file(path);
    if (!csv) return Unexpected{csv.error()};
    const auto changes = node_changes_from_csv(*csv, path, cluster, begins == "with_jobs" ? first_submit : Time{});
    if (!changes) return Unexpected{changes.error()};
    failures.add_changes(*changes);
  }
  if (failures.is_empty()) {
    return Unexpected{Error{.message = "nothing fails in it: expected node, gpu, rack or trace", .file = file}};
  }
  return failures;
}

Result<NodeFailures> read_failures(const std::string& path, const Cluster& cluster, Time first_submit,
                                   std::uint64_t seed) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  if (trim(*text).starts_with('{')) return failures_from_json(*text, path, cluster, first_submit, seed);
  const auto changes = node_changes_from_csv(*text, path, cluster, Time{});
  if (!changes) return Unexpected{changes.error()};
  NodeFailures failures;
  failures.add_changes(*changes);
  return failures;
}

std::vector<std::string> files_of_failures(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text || !trim(*text).starts_with('{')) return {};
  const auto json = parse_json_strictly(*text, path);
  if (!json) return {};
  JsonFields fields(*json, path);
  std::string trace;
  fields.read("trace", trace);
  return trace.empty() ? std::vector<std::string>{} : std::vector<std::string>{beside(path, trace)};
}

}  // namespace gpusched
