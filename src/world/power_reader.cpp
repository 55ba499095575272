// SPDX-License-Identifier: Apache-2.0
#include "src/world/power_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "gpusched/engine/effects/power_table.hpp"
#include "src/base/nearest_name.hpp"
#include "src/world/absent_names.hpp"
#include "src/world/power_fields.hpp"
#include "src/world/power_limits.hpp"
#include "src/world/signal_fields.hpp"

namespace gpusched {
namespace {

constexpr const char* any_type = "any";  // GPU types that have no entry of their own
constexpr const char* no_gpus = "none";  // nodes without GPUs

constexpr std::array<NamedValue<CapRule>, 4> cap_rule_names{{{"admit", CapRule::admit},
                                                             {"uniform", CapRule::uniform},
                                                             {"priority", CapRule::priority},
                                                             {"efficiency", CapRule::efficiency}}};

std::string number_text(double value) { return Json(value).dump(); }

const ReadyPower* find_ready(std::string_view name) {
  for (const ReadyPower& ready : ready_powers()) {
    if (ready.name == name) return &ready;
  }
  return nullptr;
}

// Fills a PowerOfRun from one object.
class PowerBuilder {
 public:
  PowerBuilder(std::string file, const Cluster& cluster, const JobTable& jobs, const PowerModel& measured)
      : file_(std::move(file)), cluster_(cluster), jobs_(jobs), is_measured_(!measured.gpus.empty()) {
    power_.model.gpus = measured.gpus;
    power_.model.families = measured.families;
    power_.model.gpus.resize(cluster.gpu_types.size());
    for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) nodes_by_name_.try_emplace(cluster.nodes[i].name, i);
  }

  Result<PowerOfRun> build(std::string_view text) {
    const auto json = parse_json_strictly(text, file_);
    if (!json) return Unexpected{json.error()};
    JsonFields fields(*json, file_);
    read_gpus(fields);
    read_families(fields);
    read_nodes(fields);
    read_losses(fields);
    read_places(fields);
    read_rents(fields);
    read_caps(fields);
    if (auto done = fields.finish(); !done) return Unexpected{done.error()};
    if (failed_) return Unexpected{*failed_};
    power_.file = file_;
    return std::move(power_);
  }

 private:
  PowerModel& model() { return power_.model; }
  [[nodiscard]] std::size_t types() const { return cluster_.gpu_types.size(); }

  // ---- GPUs ----

  // A list of settings, or a table of Zeus, whose largest draw is that of a busy GPU where `full_w` is not said.
  void read_limits(JsonFields& fields, double idle_w, std::vector<PowerLimit>& limits, double& full_w) {
    const Json* value = fields.find("limits");
    if (value == nullptr) return;
    if (value->is_array()) return read_limit_list(fields, limits);
    LimitTable table;
    if (value->is_string()) {
      table.file = value->get<std::string>();
    } else {
      fields.read_nested("limits", *value, [&](JsonFields& own) {
        own.require("file");
        own.read("file", table.file);
        own.read("dataset", table.dataset);
        own.read("network", table.network);
        own.read("optimizer", table.optimizer);
        own.read("batch_size", table.batch_size, 1);
      });
    }
    if (!good(fields)) return;
    table.file = path_beside(file_, table.file);
    auto read = read_limit_curve(table, idle_w);
    if (!read) return fail(read.error());
    limits = std::move(read->limits);
    if (!fields.has("full_w") && !fields.has("points")) full_w = read->full_w;
    note(std::move(read->notes));
  }

  void read_gpu(JsonFields& fields, GpuPower& gpu) {
    // A draw that only the table of limits tells is not known yet.
    const double before_w = gpu.load.full_w;
    if (fields.has("limits") && !fields.has("full_w")) gpu.load.full_w = most_watts;
    read_load_power(fields, gpu.load);
    if (gpu.load.full_w == most_watts) gpu.load.full_w = before_w;
    read_limits(fields, gpu.load.idle_w, gpu.limits, gpu.load.full_w);
    if (good(fields) && gpu.load.full_w < gpu.load.idle_w) {
      fields.fail("limits", "expected a full_w beside it, or a table whose largest draw is above idle_w, " +
                                number_text(gpu.load.idle_w));
    }
  }

  // What the file says of a type's draw takes the place of what was measured.
  static bool tells_draw(const Json& entry) {
    return entry.contains("idle_w") || entry.contains("full_w") || entry.contains("points");
  }
  void forget_families(std::uint32_t type) {
    for (std::size_t at = type; at < model().families.size(); at += types()) model().families[at] = {};
  }

  void read_gpus(JsonFields& fields) {
    std::vector<bool> is_known(types(), is_measured_);
    std::vector<std::string> absent;
    fields.read_members("gpus", [&](JsonFields& gpus, const std::string& name, const Json& entry) {
      if (name != any_type) return;
      GpuPower power;
      gpus.read_nested(name, entry, [&](JsonFields& own) { read_gpu(own, power); });
      for (std::uint32_t type = 0; type < types(); ++type) {
        if (!is_known[type]) model().gpus[type] = power;
        is_known[type] = true;
      }
    });
    fields.read_members("gpus", [&](JsonFields& gpus, const std::string& name, const Json& entry) {
      if (name == any_type) return;
      const std::uint32_t type = type_named(name);
      GpuPower nobodys;
      if (type == no_index) absent.push_back(name);
      if (type != no_index && tells_draw(entry)) forget_families(type);
      gpus.read_nested(name, entry,
                       [&](JsonFields& own) { read_gpu(own, type == no_index ? nobodys : model().gpus[type]); });
      if (type != no_index) is_known[type] = true;
    });
    note_absent("/gpus", absent, cluster_.gpu_types, "node");
    for (const Node& node : cluster_.nodes) {
      if (node.gpus == 0 || is_known[node.gpu_type] || !good(fields)) continue;
      fields.fail("gpus", "expected the draw of \"" + cluster_.gpu_types[node.gpu_type] +
                              "\", a GPU type of the cluster, or of \"any\"");
    }
  }

  [[nodiscard]] std::uint32_t type_named(std::string_view name) const {
    const auto found = std::find(cluster_.gpu_types.begin(), cluster_.gpu_types.end(), name);
    return found == cluster_.gpu_types.end() ? no_index
                                             : static_cast<std::uint32_t>(found - cluster_.gpu_types.begin());
  }

  void read_families(JsonFields& fields) {
    if (!fields.has("families")) return;
    model().families.resize(std::max<std::size_t>(jobs_.families().size(), 1) * types());
    std::vector<std::string> absent, absent_types;
    fields.read_members("families", [&](JsonFields& families, const std::string& name, const Json& entry) {
      const std::uint32_t family = jobs_.families().find(name);
      if (family == no_index) absent.push_back(name);
      families.read_nested(name, entry, [&](JsonFields& by_type) {
        if (!entry.is_object()) return;
        for (const auto& [type_name, value] : entry.items()) {
          const bool is_any = type_name == any_type;
          if (!is_any && type_named(type_name) == no_index) absent_types.push_back(type_name);
          if (!is_any && by_type.good()) read_family(by_type, family, type_named(type_name), type_name, value);
          if (is_any && by_type.good()) read_family(by_type, family, no_index, type_name, value);  // whether it can be
          for (std::uint32_t type = 0; is_any && type < types(); ++type) {
            if (by_type.good() && !entry.contains(cluster_.gpu_types[type])) {
              read_family(by_type, family, type, type_name, value);
            }
          }
        }
      });
    });
    note_absent("/families", absent, jobs_.families().names(), "job");
    note_absent("/families", absent_types, cluster_.gpu_types, "node");
  }

  void read_family(JsonFields& by_type, std::uint32_t family, std::uint32_t type, const std::string& type_name,
                   const Json& value) {
    FamilyPower nobodys;
    FamilyPower& power = family != no_index && type != no_index ? model().families[family * types() + type] : nobodys;
    const double idle_w = type == no_index ? 0 : model().gpus[type].load.idle_w;
    by_type.find(type_name);
    by_type.read_nested(type_name, value, [&](JsonFields& own) {
      own.read("full_w", power.full_w, 0, most_watts);
      own.read_above_zero("busy_share", power.busy_share, 1);
      read_limits(own, idle_w, power.limits, power.full_w);
      if (good(own) && power.full_w > 0 && power.full_w < idle_w) {
        own.refuse("full_w", "at least the " + number_text(idle_w) + " W of an idle GPU");
      }
    });
  }

  // ---- nodes ----

  struct Kind {
    NodePower power;
    bool counts_cpus = false;  // as many processors as the node's cores fill
    std::string curve = {};    // the key that says how the draw of processors rises; empty: none
    std::string path = "nodes";
  };

  static void read_kind(JsonFields& fields, Kind& kind) {
    NodePower& power = kind.power;
    fields.read("base_w", power.base_w, 0, most_watts);
    fields.read_object("cpu", [&](JsonFields& own) {
      read_load_power(own, power.cpu);
      for (const char* const key : {"load", "exponent", "touched_w", "points"}) {
        if (own.has(key)) kind.curve = key;
      }
    });
    fields.read("cores_per_cpu", power.cores_per_cpu, 0, 1e6);
    if (power.cores_per_cpu > 0 && !kind.curve.empty()) {
      fields.fail("cpu/" + kind.curve, "expected none beside cores_per_cpu: a processor is full once touched");
    }
    kind.counts_cpus = power.cores_per_cpu > 0 && !fields.has("cpus") && (kind.counts_cpus || power.cpus == 0);
    fields.read("cpus", power.cpus, 0, 1024);
    if (fields.has("cpu") && power.cpus == 0 && !kind.counts_cpus && !fields.has("cpus")) power.cpus = 1;
    read_node_sleep(fields, power.sleep);
  }

  void read_nodes(JsonFields& fields) {
    Kind usual;
    std::map<std::string, Kind> of;
    fields.read_object("nodes", [&](JsonFields& own) {
      read_kind(own, usual);
      own.read_members("of", [&](JsonFields& members, const std::string& name, const Json& entry) {
        Kind& kind = of.try_emplace(name, usual).first->second;
        kind.path = "nodes/of/" + name;
        members.read_nested(name, entry, [&](JsonFields& kind_fields) { read_kind(kind_fields, kind); });
      });
    });
    std::vector<std::string> absent;
    for (const auto& [name, kind] : of) {
      if (name != no_gpus && type_named(name) == no_index) absent.push_back(name);
    }
    note_absent("/nodes/of", absent, cluster_.gpu_types, "node");
    std::map<std::pair<const Kind*, std::uint32_t>, std::uint32_t> numbers;  // of a kind with so many processors
    for (const Node& node : cluster_.nodes) {
      const auto found = of.find(node.gpus == 0 ? no_gpus : cluster_.gpu_types[node.gpu_type]);
      const Kind& kind = found == of.end() ? usual : found->second;
      NodePower power = kind.power;
      if (kind.counts_cpus) power.cpus = processors(node, power.cores_per_cpu);
      const auto [number, is_new] =
          numbers.try_emplace({&kind, power.cpus}, static_cast<std::uint32_t>(model().kinds.size()));
      if (is_new) model().kinds.push_back(power);
      model().kind_of.push_back(number->second);
      check_sleep(fields, kind, model().kind_of.size() - 1);
    }
  }

  // As many as have the node's cores; one where the cluster does not say how many these are.
  static std::uint32_t processors(const Node& node, double cores_per_cpu) {
    if (node.cpu_milli >= unlimited) return 1;
    return static_cast<std::uint32_t>(std::ceil(static_cast<double>(node.cpu_milli) / 1000 / cores_per_cpu - 1e-9));
  }

  void check_sleep(JsonFields& fields, const Kind& kind, std::size_t node) {
    const NodeSleep& sleep = kind.power.sleep;
    const double awake_w = idle_w(node);
    if (sleep.after == Time::max() || sleep.asleep_w <= awake_w) return;
    fields.fail(kind.path + "/sleep/asleep_w", "expected no more than the " + number_text(awake_w) +
                                                   " W that such a node draws idle, not " +
                                                   number_text(sleep.asleep_w));
  }

  // Of a node that is awake, in watts.
  [[nodiscard]] double idle_w(std::size_t node) {
    const NodePower& kind = model().kinds[model().kind_of[node]];
    const Node& machine = cluster_.nodes[node];
    return kind.base_w + detail::DrawTable::cpus_w(kind, 0, 0) +
           (machine.gpus == 0 ? 0 : machine.gpus * model().gpus[machine.gpu_type].load.idle_w);
  }

  void read_losses(JsonFields& fields) {
    PowerLosses& losses = model().losses;
    double pue = 1;
    fields.read("pue", pue, 1, 10);
    losses.gain = pue - 1;
    if (fields.has("pue") && fields.has("losses")) fields.fail("pue", "expected none beside losses");
    fields.read_object("losses", [&](JsonFields& own) {
      own.read("gain", losses.gain, 0, 10);
      own.read("fixed_w", losses.fixed_w, 0, most_cap_watts);
      own.read("fixed_w_per_node", lost_per_node_w_, 0, most_watts);
    });
    losses.fixed_w += lost_per_node_w_ * static_cast<double>(cluster_.nodes.size());
  }

  // ---- signals ----

  // A number, a file, or an object that says how to read one.
  std::optional<Signal> read_signal_at(JsonFields& fields, const char* key, SignalKind kind, double least,
                                       double most) {
    return read_signal_field(fields, {key, kind, least, most}, file_, jobs_, power_.notes, failed_);
  }

  void read_place(JsonFields& fields, PowerPlace& place) {
    if (auto carbon = read_signal_at(fields, "carbon", SignalKind::carbon, 0, 1e6)) place.carbon_g_per_kwh = *carbon;
    if (auto price = read_signal_at(fields, "usd_per_mwh", SignalKind::price, -1e6, 1e6)) place.usd_per_mwh = *price;
  }

  // What is said of all nodes is the first place.
  void read_places(JsonFields& fields) {
    PowerPlace usual;
    read_place(fields, usual);
    if (!usual.carbon_g_per_kwh.is_empty() || !usual.usd_per_mwh.is_empty()) model().places.push_back(usual);
    if (!fields.has("places")) return;
    model().places.assign(1, usual);
    model().place_of.assign(cluster_.nodes.size(), 0);
    std::vector<bool> is_taken(cluster_.nodes.size(), false);
    fields.read_objects("places", [&](JsonFields& own, std::size_t) {
      PowerPlace place = usual;
      read_place(own, place);
      const auto number = static_cast<std::uint32_t>(model().places.size());
      model().places.push_back(std::move(place));
      for (const std::uint32_t node : read_nodes_of(own)) {
        if (takes(own, node, is_taken)) model().place_of[node] = number;
      }
    });
    for (const std::uint32_t number : model().place_of) {
      if (number > 0) model().places[number].fixed_w += lost_per_node_w_;
    }
  }

  // Their numbers by `nodes` and `racks` (names or numbers); all without either.
  std::vector<std::uint32_t> read_nodes_of(JsonFields& fields) const {
    std::set<std::uint32_t> members;
    const Json* const racks = fields.read_array("racks");
    const Json* const nodes = fields.read_array("nodes");
    for (std::size_t at = 0; racks != nullptr && at < racks->size(); ++at) {
      if (!add_rack((*racks)[at], members)) {
        fields.refuse("racks/" + std::to_string(at), "the name or number of a rack of the cluster");
      }
    }
    for (std::size_t at = 0; nodes != nullptr && at < nodes->size(); ++at) {
      const std::uint32_t number = node_named((*nodes)[at]);
      if (number == no_index) {
        fields.refuse("nodes/" + std::to_string(at), "the name or number of a node of the cluster");
      } else {
        members.insert(number);
      }
    }
    if (racks == nullptr && nodes == nullptr) {
      for (std::uint32_t i = 0; i < cluster_.nodes.size(); ++i) members.insert(i);
    }
    return {members.begin(), members.end()};
  }

  // A node belongs to one entry of a list that names it; one that names none says what holds without these.
  bool takes(JsonFields& fields, std::uint32_t node, std::vector<bool>& is_taken) const {
    const bool is_named = fields.has("nodes") || fields.has("racks");
    if (!is_named) return !is_taken[node];
    if (is_taken[node] && fields.good()) {
      const std::string& name = cluster_.nodes[node].name;
      fields.fail("", "expected nodes of no other entry, not " + (name.empty() ? std::to_string(node) : name));
    }
    is_taken[node] = true;
    return true;
  }

  bool add_rack(const Json& rack, std::set<std::uint32_t>& members) const {
    const auto number = rack_named(rack);
    bool found = false;
    for (std::uint32_t i = 0; i < cluster_.nodes.size() && number; ++i) {
      if (cluster_.nodes[i].rack != *number) continue;
      members.insert(i);
      found = true;
    }
    return found;
  }

  // A string is a name alone, were it made of digits.
  [[nodiscard]] std::optional<std::uint64_t> rack_named(const Json& rack) const {
    if (rack.is_number_unsigned()) return rack.get<std::uint64_t>();
    if (!rack.is_string() || rack.get_ref<const std::string&>().empty()) return std::nullopt;
    const std::vector<std::string>& names = cluster_.rack_names;
    const auto found = std::find(names.begin(), names.end(), rack.get_ref<const std::string&>());
    if (found == names.end()) return std::nullopt;
    return static_cast<std::uint64_t>(found - names.begin());
  }

  [[nodiscard]] std::uint32_t node_named(const Json& name) const {
    if (name.is_number_unsigned() && name.get<std::uint64_t>() < cluster_.nodes.size())
      return name.get<std::uint32_t>();
    if (!name.is_string() || name.get_ref<const std::string&>().empty()) return no_index;
    const auto found = nodes_by_name_.find(name.get<std::string>());
    return found == nodes_by_name_.end() ? no_index : found->second;
  }

  // ---- money ----

  void read_rents(JsonFields& fields) {
    const Json* value = fields.find("rent");
    if (value == nullptr) return;
    model().rents.resize(cluster_.nodes.size());
    is_rented_.assign(cluster_.nodes.size(), false);
    if (value->is_array()) {
      fields.read_objects("rent", [&](JsonFields& own, std::size_t) { read_rent(own); });
    } else {
      fields.read_nested("rent", *value, [&](JsonFields& own) { read_rent(own); });
    }
  }

  void read_rent(JsonFields& fields) {
    constexpr std::array<NamedValue<bool>, 2> words{{{"when_used", false}, {"always", true}}};
    bool when_idle = false;
    fields.read_word("paid", when_idle, words);
    const std::vector<std::uint32_t> members = read_nodes_of(fields);
    fields.require("usd_per_gpu_h");
    const Json* price = fields.find("usd_per_gpu_h");
    if (price == nullptr) return;
    std::vector<double> by_type(types(), 0);
    std::vector<std::string> absent;
    if (price->is_object()) {
      fields.read_members("usd_per_gpu_h", [&](JsonFields& prices, const std::string& name, const Json&) {
        double usd = 0;
        prices.read(name, usd, 0, 1e6);
        const std::uint32_t type = type_named(name);
        if (type == no_index) absent.push_back(name);
        if (type != no_index) by_type[type] = usd;
      });
    } else {
      double usd = 0;
      fields.read("usd_per_gpu_h", usd, 0, 1e6);
      std::fill(by_type.begin(), by_type.end(), usd);
    }
    note_absent("/rent", absent, cluster_.gpu_types, "node");
    for (const std::uint32_t node : members) {
      if (!takes(fields, node, is_rented_)) continue;
      model().rents[node] = {.usd_per_gpu_h = by_type[cluster_.nodes[node].gpu_type], .when_idle = when_idle};
    }
  }

  // ---- caps ----

  void read_caps(JsonFields& fields) {
    fields.read_word("cap_rule", model().rule, cap_rule_names);
    double latency_s = 0;
    fields.read("cap_latency_s", latency_s, 0, most_power_s);
    model().cap_latency = from_seconds(latency_s);
    fields.read("cap_hysteresis", model().hysteresis, 0, 0.9);
    fields.read_objects("caps", [&](JsonFields& own, std::size_t) { read_cap(own); });
  }

  void read_cap(JsonFields& fields) {
    fields.require("w");
    auto watts = read_signal_at(fields, "w", SignalKind::power, 0, most_cap_watts);
    PowerCap cap;
    cap.nodes = read_nodes_of(fields);
    if (cap.nodes.empty()) fields.fail("", "expected a cap of some node");
    if (!watts || !good(fields)) return;
    cap.watts = std::move(*watts);
    double idle = 0, most = 0;
    for (const std::uint32_t node : cap.nodes) idle += idle_w(node);
    for (const Signal::Step& step : cap.watts.steps()) most = std::max(most, static_cast<double>(step.micro) / 1e6);
    if (most < idle) {
      fields.refuse("w", (cap.watts.steps().size() > 1 ? "at some time " : "") + std::string("at least the ") +
                             number_text(idle) + " W that its nodes draw idle");
    }
    if (cap.nodes.size() == cluster_.nodes.size()) cap.nodes.clear();
    model().caps.push_back(std::move(cap));
  }

  // ---- notes and errors ----

  [[nodiscard]] bool good(const JsonFields& fields) const { return fields.good() && !failed_; }
  void note(std::vector<std::string> lines) {
    for (std::string& line : lines) power_.notes.push_back(std::move(line));
  }
  // Ready models are of many clusters.
  void note_absent(const char* field, const std::vector<std::string>& absent, std::span<const std::string> known,
                   const char* who) {
    if (find_ready(file_) == nullptr) note(absent_names_note(file_, field, absent, known, who));
  }
  void fail(Error error) {
    if (!failed_) failed_ = std::move(error);
  }

  std::string file_;
  const Cluster& cluster_;
  const JobTable& jobs_;
  bool is_measured_;
  double lost_per_node_w_ = 0;
  std::map<std::string, std::uint32_t> nodes_by_name_;
  PowerOfRun power_;
  std::vector<bool> is_rented_;  // by node
  std::optional<Error> failed_;  // of another file
};

std::vector<std::string> ready_names() {
  std::vector<std::string> names;
  for (const ReadyPower& ready : ready_powers()) names.emplace_back(ready.name);
  return names;
}

}  // namespace

Result<PowerOfRun> power_from_json(std::string_view text, const std::string& file, const Cluster& cluster,
                                   const JobTable& jobs, const PowerModel& measured) {
  return PowerBuilder(file, cluster, jobs, measured).build(text);
}

Result<PowerOfRun> read_power(const std::string& path, const Cluster& cluster, const JobTable& jobs,
                              const PowerModel& measured) {
  if (const ReadyPower* ready = find_ready(path)) return power_from_json(ready->json, path, cluster, jobs, measured);
  const auto text = read_text_file(path);
  if (text) return power_from_json(*text, path, cluster, jobs, measured);
  Error error = text.error();
  error.message += "; ready models are " + joined(ready_names(), ", ") + suggest_nearest(path, ready_names());
  return Unexpected{std::move(error)};
}

PowerModel power_of_gpus(const PowerModel& measured, const Cluster& cluster) {
  if (measured.gpus.empty()) return {};
  PowerModel power = measured;
  power.kinds.resize(1);
  power.kind_of.assign(cluster.nodes.size(), 0);
  return power;
}

std::vector<std::string> files_of_power(const std::string& path) {
  if (find_ready(path) != nullptr) return {};
  std::set<std::string> files{path};
  const auto text = read_text_file(path);
  const auto json = text ? parse_json_strictly(*text, path) : Result<Json>(Unexpected{text.error()});
  if (!json) return {path};
  const std::function<void(const Json&, std::string_view)> visit = [&](const Json& value, std::string_view key) {
    constexpr std::array<std::string_view, 5> keys{"carbon", "usd_per_mwh", "w", "limits", "file"};
    if (value.is_string() && std::find(keys.begin(), keys.end(), key) != keys.end()) {
      files.insert(path_beside(path, value.get<std::string>()));
    }
    if (!value.is_structured()) return;
    for (const auto& [name, member] : value.items()) visit(member, value.is_object() ? std::string_view(name) : key);
  };
  visit(*json, "");
  return {files.begin(), files.end()};
}

}  // namespace gpusched
