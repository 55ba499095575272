// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/device_profile.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "src/base/atomic_file.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/nearest_name.hpp"
#include "src/calibration/profile/shipped_profiles.hpp"

namespace gpusched {
namespace {

constexpr std::array<NamedValue<Source>, 7> source_words = {{{"measured", Source::measured},
                                                             {"fitted", Source::fitted},
                                                             {"datasheet", Source::datasheet},
                                                             {"literature", Source::literature},
                                                             {"assumed", Source::assumed},
                                                             {"recorded", Source::recorded},
                                                             {"unavailable", Source::unavailable}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> key_units = {{{"_us", "us"},
                                                                                      {"_ns", "ns"},
                                                                                      {"_s", "s"},
                                                                                      {"_gbs", "GB/s"},
                                                                                      {"_tflops", "TFLOP/s"},
                                                                                      {"_w", "W"},
                                                                                      {"_bytes", "B"},
                                                                                      {"_mib", "MiB"},
                                                                                      {"_mhz", "MHz"},
                                                                                      {"_c", "degC"},
                                                                                      {"_j_per_tflop", "J/TFLOP"},
                                                                                      {"_j_per_gb", "J/GB"},
                                                                                      {"_count", "1"},
                                                                                      {"_ratio", "1"}}};

const std::vector<std::string> peak_keys = {"fp64_tflops", "fp32_tflops", "tf32_tflops", "fp16_tflops",
                                            "bf16_tflops", "memory_gbs",  "l2_gbs"};
const std::vector<std::string> kinds = {"gpu", "cpu", "fpga", "npu"};
const std::vector<std::string> backends = {"cuda", "cpu", "analytic", "datasheet"};
const std::vector<std::string> modes = {"streams", "threads", "processes", "model"};
const std::vector<std::string> sensors = {"energy_counter", "poll", "none"};
const std::vector<std::string> bounds = {"at_least", "at_most"};
const std::vector<std::string> statuses = {"pass", "fail", "not_run"};

/// Why a reader would refuse the quantity; "" when it is valid.
std::string fault_of(const Quantity& quantity, std::string_view key) {
  if (!std::isfinite(quantity.value)) return "value: expected a finite number";
  if (quantity.unit != unit_of_key(key)) {
    return "unit: expected '" + std::string(unit_of_key(key)) + "', not '" + quantity.unit + "'";
  }
  const bool needs_ref = quantity.source == Source::datasheet || quantity.source == Source::literature ||
                         quantity.source == Source::assumed || quantity.source == Source::recorded;
  if (needs_ref && quantity.ref.empty()) return "ref: a value that was not measured here needs its reference";
  if (quantity.value < 0) return "value: expected a number of at least 0";
  if (quantity.ci95 && !((*quantity.ci95)[0] <= (*quantity.ci95)[1])) return "ci95: expected [low, high]";
  if (!quantity.bound.empty() && !quantity.ci95) return "bound: expected ci95 beside it";
  return {};
}

/// Writes what describe() visits. Its twin is Reader.
class Writer {
 public:
  explicit Writer(Json& at) : at_(&at) { at = Json::object(); }

  void constant(const char* key, std::string_view word) { (*at_)[key] = std::string(word); }
  void text(const char* key, const std::string& value) { (*at_)[key] = value; }
  void optional_text(const char* key, const std::string& value) {
    if (!value.empty()) (*at_)[key] = value;
  }
  void choice(const char* key, const std::string& value, const std::vector<std::string>&) { (*at_)[key] = value; }
  void source(const char* key, Source value) { (*at_)[key] = std::string(to_string(value)); }
  void number(const char* key, double value) { (*at_)[key] = value; }
  void count(const char* key, std::uint32_t value) { (*at_)[key] = value; }
  void optional_count(const char* key, std::uint32_t value, std::uint32_t left_out) {
    if (value != left_out) count(key, value);
  }
  void texts(const char* key, const std::vector<std::string>& values) { (*at_)[key] = values; }
  template <class Row>
  void rows(const char* key, const std::vector<Row>& values, bool required) {
    if (required || !values.empty()) (*at_)[key] = values;
  }
  void quantity(const char* key, const Quantity& value) { put((*at_)[key], value); }
  void optional_quantity(const char* key, const std::optional<Quantity>& value) {
    if (value) quantity(key, *value);
  }
  void text_map(const char* key, const std::map<std::string, std::string>& values) { (*at_)[key] = values; }
  void quantity_map(const char* key, const std::map<std::string, Quantity>& values, const std::vector<std::string>&,
                    const char* /*unit_key*/ = nullptr) {
    Json& map = (*at_)[key] = Json::object();
    for (const auto& [name, value] : values) put(map[name], value);
  }
  template <class T>
  void object(const char* key, T& value) {
    Writer child((*at_)[key]);
    describe(child, value);
  }
  template <class T>
  void optional_object(const char* key, std::optional<T>& value) {
    if (value) object(key, *value);
  }
  template <class T>
  void object_map(const char* key, std::map<std::string, T>& values) {
    Json& map = (*at_)[key] = Json::object();
    for (auto& [name, value] : values) {
      Writer child(map[name]);
      describe(child, value);
    }
  }
  template <class T>
  void object_list(const char* key, std::vector<T>& values) {
    Json& list = (*at_)[key] = Json::array();
    for (T& value : values) {
      list.push_back(nullptr);
      Writer child(list.back());
      describe(child, value);
    }
  }

 private:
  static void put(Json& at, const Quantity& value) {
    at = Json::object();
    at["value"] = value.value;
    at["unit"] = value.unit;
    at["source"] = std::string(to_string(value.source));
    if (!value.ref.empty()) at["ref"] = value.ref;
    if (value.ci95) at["ci95"] = *value.ci95;
    if (!value.bound.empty()) at["bound"] = value.bound;
    if (value.n > 0) at["n"] = value.n;
  }

  Json* at_;
};

/// Reads what describe() visits. A key that is not called optional must be there.
class Reader {
 public:
  explicit Reader(JsonFields& fields) : fields_(&fields) {}

  void constant(const char* key, std::string_view word) {
    const Json* value = find(key, true);
    if (value != nullptr && *value != word) fields_->refuse(key, "\"" + std::string(word) + "\"");
  }
  void text(const char* key, std::string& out) {
    fields_->require(key);
    fields_->read(key, out);
    if (out.empty()) fields_->refuse(key, "a text");
  }
  void optional_text(const char* key, std::string& out) {
    if (there(key)) text(key, out);
  }
  void choice(const char* key, std::string& out, const std::vector<std::string>& words) {
    fields_->require(key);
    fields_->read_word(key, out, words);
  }
  void source(const char* key, Source& out) {
    fields_->require(key);
    fields_->read_word(key, out, source_words);
  }
  void number(const char* key, double& out) {
    const Json* value = find(key, true);
    if (value == nullptr) return;
    if (!value->is_number()) return fields_->refuse(key, "a finite number");
    out = value->get<double>();
  }
  void count(const char* key, std::uint32_t& out) {
    fields_->require(key);
    fields_->read(key, out);
  }
  void texts(const char* key, std::vector<std::string>& out) {
    const Json* value = find(key, true);
    if (value == nullptr) return;
    const auto is_text = [](const Json& item) { return item.is_string(); };
    if (!value->is_array() || !std::all_of(value->begin(), value->end(), is_text)) {
      return fields_->refuse(key, "a list of texts");
    }
    out = value->get<std::vector<std::string>>();
  }
  template <class Row>
  void rows(const char* key, std::vector<Row>& out, bool required) {
    if (required) fields_->require(key);
    const Json* value = fields_->read_array(key);
    if (value == nullptr) return;
    for (std::size_t i = 0; i < value->size(); ++i) {
      const Json& row = (*value)[i];
      const bool numbers =
          row.is_array() && std::all_of(row.begin(), row.end(), [](const Json& cell) { return cell.is_number(); });
      Row cells{};
      if (!numbers || !fits(cells, row.size())) {
        return fields_->refuse(std::string(key) + "/" + std::to_string(i), "a row of finite numbers");
      }
      for (std::size_t k = 0; k < row.size(); ++k) cells[k] = row[k].get<double>();
      out.push_back(cells);
    }
  }
  void optional_count(const char* key, std::uint32_t& out, std::uint32_t) { fields_->read(key, out); }
  void quantity(const char* key, Quantity& out) { quantity(key, key, out); }
  void optional_quantity(const char* key, std::optional<Quantity>& out) {
    if (there(key)) quantity(key, out.emplace());
  }
  void text_map(const char* key, std::map<std::string, std::string>& out) {
    fields_->read_members(key, [&](JsonFields& members, const std::string& name, const Json& item) {
      if (!item.is_string()) return members.refuse(name, "a text");
      out[name] = item.get<std::string>();
    });
  }
  /// `names` empty: any name. `unit_key`: every value has that key's unit instead of its own name's.
  void quantity_map(const char* key, std::map<std::string, Quantity>& out, const std::vector<std::string>& names,
                    const char* unit_key = nullptr) {
    fields_->read_members(key, [&](JsonFields& members, const std::string& name, const Json&) {
      if (!names.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
        return members.fail(name, unknown_key(name, names));
      }
      Reader(members).quantity(name.c_str(), unit_key != nullptr ? unit_key : name.c_str(), out[name]);
    });
  }
  template <class T>
  void object(const char* key, T& out) {
    if (const Json* value = find(key, true)) visit(*fields_, key, *value, out);
  }
  template <class T>
  void optional_object(const char* key, std::optional<T>& out) {
    if (there(key)) object(key, out.emplace());
  }
  template <class T>
  void object_map(const char* key, std::map<std::string, T>& out) {
    fields_->read_members(key, [&](JsonFields& members, const std::string& name, const Json& item) {
      visit(members, name, item, out[name]);
    });
  }
  template <class T>
  void object_list(const char* key, std::vector<T>& out) {
    fields_->read_objects(key, [&](JsonFields& fields, std::size_t) {
      Reader reader(fields);
      describe(reader, out.emplace_back());
    });
  }

 private:
  static bool fits(std::array<double, 2>&, std::size_t size) { return size == 2; }
  static bool fits(std::vector<double>& row, std::size_t size) {
    row.resize(size);
    return true;
  }

  const Json* find(const char* key, bool required) {
    if (required) fields_->require(key);
    return fields_->find(key);
  }
  bool there(const char* key) { return fields_->find(key) != nullptr; }

  void quantity(const char* key, const char* unit_key, Quantity& out) {
    const Json* value = find(key, true);
    if (value == nullptr) return;
    fields_->read_nested(key, *value, [&](JsonFields& own) {
      Reader child(own);
      child.number("value", out.value);
      child.text("unit", out.unit);
      child.source("source", out.source);
      child.optional_text("ref", out.ref);
      child.interval("ci95", out.ci95);
      own.read_word("bound", out.bound, bounds);
      own.read("n", out.n);
      const std::string fault = fault_of(out, unit_key);
      if (!fault.empty()) own.fail(fault.substr(0, fault.find(':')), fault.substr(fault.find(':') + 2));
    });
  }

  void interval(const char* key, std::optional<std::array<double, 2>>& out) {
    const Json* value = find(key, false);
    if (value == nullptr) return;
    if (!value->is_array() || value->size() != 2 || !(*value)[0].is_number() || !(*value)[1].is_number()) {
      return fields_->refuse(key, "[low, high]");
    }
    out = {(*value)[0].get<double>(), (*value)[1].get<double>()};
  }

  template <class T>
  static void visit(JsonFields& above, std::string_view key, const Json& at, T& out) {
    above.read_nested(key, at, [&](JsonFields& own) {
      Reader reader(own);
      describe(reader, out);
    });
  }

  JsonFields* fields_;
};

// The one description of the format: Reader and Writer both follow it.

template <class Io>
void describe(Io& io, RooflineFit& fit) {
  io.constant("model", "t0_pnorm_roofline");
  io.quantity("t0_us", fit.t0_us);
  io.quantity("p_tflops", fit.p_tflops);
  io.quantity("w_gbs", fit.w_gbs);
  io.quantity("gamma", fit.gamma);
  io.optional_quantity("step_ns", fit.step_ns);
  io.optional_count("tile_side", fit.tile_side, 1);
  io.optional_quantity("train_mape_ratio", fit.train_mape_ratio);
}

template <class Io>
void describe(Io& io, BandwidthFit& fit) {
  io.quantity("t0_us", fit.t0_us);
  io.quantity("w_gbs", fit.w_gbs);
}

template <class Io>
void describe(Io& io, TransferFit& fit) {
  io.rows("table_bytes_us", fit.table_bytes_us, true);
  io.quantity("alpha_us", fit.alpha_us);
  io.quantity("beta_gbs", fit.beta_gbs);
}

template <class Io>
void describe(Io& io, LinkFact& link) {
  io.text("link_class", link.link_class);
  io.optional_quantity("alpha_us", link.alpha_us);
  io.quantity("busbw_gbs", link.busbw_gbs);
}

template <class Io>
void describe(Io& io, Interference& interference) {
  io.choice("mode", interference.mode, modes);
  io.source("source", interference.source);
  io.texts("kernels", interference.kernels);
  io.rows("slowdown", interference.slowdown, true);
}

template <class Io>
void describe(Io& io, PowerProfile& power) {
  io.quantity("idle_w", power.idle_w);
  io.quantity_map("active_w", power.active_w, {}, "active_w");
  io.quantity("beta", power.beta);
  io.rows("cap_curve", power.cap_curve, false);
  io.optional_text("cap_curve_ref", power.cap_curve_ref);
  io.choice("sensor", power.sensor, sensors);
}

template <class Io>
void describe(Io& io, Gate& gate) {
  io.text("name", gate.name);
  io.choice("status", gate.status, statuses);
  io.number("value_ratio", gate.value_ratio);
  io.number("limit_ratio", gate.limit_ratio);
  io.count("n", gate.n);
  io.optional_text("note", gate.note);
}

template <class Io>
void describe(Io& io, ValidationPoint& point) {
  io.text("id", point.id);
  io.number("timed_us", point.timed_us);
  io.number("predicted_us", point.predicted_us);
  io.number("roofline_us", point.roofline_us);
}

template <class Io>
void describe(Io& io, Validation& validation) {
  io.object_list("gates", validation.gates);
  io.object_list("points", validation.points);
  io.choice("verdict", validation.verdict, statuses);
}

template <class Io>
void describe(Io& io, RawSamples& raw) {
  io.text("file", raw.file);
  io.text("fnv1a64", raw.fnv1a64);
}

template <class Io>
void describe(Io& io, DeviceProfile& profile) {
  io.constant("schema", device_profile_schema);
  io.text("profile_id", profile.profile_id);
  io.choice("kind", profile.kind, kinds);
  io.text("vendor", profile.vendor);
  io.text("model", profile.model);
  io.choice("backend", profile.backend, backends);
  io.text("created_utc", profile.created_utc);
  io.text_map("tool", profile.tool);
  io.text_map("environment", profile.environment);
  io.quantity_map("resources", profile.resources, {});
  io.quantity_map("peaks", profile.peaks, peak_keys);
  io.object_map("fits", profile.fits);
  io.object_map("ops", profile.ops);
  io.object_map("transfers", profile.transfers);
  io.object_list("links", profile.links);
  io.quantity_map("cold_start", profile.cold_start, {});
  io.optional_object("interference", profile.interference);
  io.optional_object("process_interference", profile.process_interference);
  io.optional_object("power", profile.power);
  io.object("validation", profile.validation);
  io.optional_object("raw", profile.raw);
}

/// Rules that span several values.
void check_whole(const DeviceProfile& profile, std::optional<Error>& error) {
  const auto fail = [&](std::string field, std::string message) {
    if (!error) error = Error{.message = std::move(message), .field = std::move(field)};
  };
  const auto positive = [&](const Quantity& value, const std::string& path) {
    if (value.source != Source::unavailable && value.value <= 0) fail(path + "/value", "expected a number above 0");
  };
  // A model without any known parameter is left out.
  const auto known = [&](const Quantity& value, const std::string& path) {
    if (value.source == Source::unavailable) fail(path + "/source", "a fit needs all its parameters; leave it out");
  };
  for (const auto& [name, peak] : profile.peaks) positive(peak, "/peaks/" + name);
  for (const auto& [name, fit] : profile.fits) {
    const std::string path = "/fits/" + name;
    known(fit.t0_us, path + "/t0_us");
    for (const auto& [key, rate] : {std::pair{"/p_tflops", &fit.p_tflops}, std::pair{"/w_gbs", &fit.w_gbs}}) {
      known(*rate, path + key);
      positive(*rate, path + key);
    }
    known(fit.gamma, path + "/gamma");
    if (fit.step_ns) known(*fit.step_ns, path + "/step_ns");
    if (fit.gamma.value < 1) fail(path + "/gamma/value", "expected a number of at least 1");
  }
  for (const auto& [name, op] : profile.ops) {
    known(op.t0_us, "/ops/" + name + "/t0_us");
    known(op.w_gbs, "/ops/" + name + "/w_gbs");
    positive(op.w_gbs, "/ops/" + name + "/w_gbs");
  }
  for (const auto& [name, transfer] : profile.transfers) {
    positive(transfer.beta_gbs, "/transfers/" + name + "/beta_gbs");
    for (std::size_t i = 0; i < transfer.table_bytes_us.size(); ++i) {
      const bool rises = i == 0 || transfer.table_bytes_us[i][0] > transfer.table_bytes_us[i - 1][0];
      if (!rises || transfer.table_bytes_us[i][0] <= 0 || transfer.table_bytes_us[i][1] <= 0) {
        fail("/transfers/" + name + "/table_bytes_us/" + std::to_string(i), "expected rising sizes and positive times");
      }
    }
  }
  const auto square = [&](const std::optional<Interference>& matrix, const char* path) {
    if (!matrix) return;
    const std::size_t size = matrix->kernels.size();
    const auto& rows = matrix->slowdown;
    const bool sound =
        rows.size() == size && std::all_of(rows.begin(), rows.end(), [&](const auto& row) {
          return row.size() == size && std::all_of(row.begin(), row.end(), [](double cell) { return cell > 0; });
        });
    if (!sound) fail(std::string(path) + "/slowdown", "expected one positive number for each pair of kernels");
  };
  square(profile.interference, "/interference");
  square(profile.process_interference, "/process_interference");
}

}  // namespace

std::string_view to_string(Source source) { return name_of(source_words, source); }

std::string_view unit_of_key(std::string_view key) {
  for (const auto& [ending, unit] : key_units) {
    if (key.ends_with(ending)) return unit;
  }
  return "1";
}

Quantity quantity(std::string_view key, double value, Source source, std::string ref) {
  return {.value = value, .unit = std::string(unit_of_key(key)), .source = source, .ref = std::move(ref)};
}

Quantity measured_quantity(std::string_view key, double value, std::size_t samples) {
  Quantity measured = quantity(key, value, Source::measured);
  measured.n = static_cast<std::uint32_t>(samples);
  return measured;
}

Result<DeviceProfile> parse_device_profile(std::string_view text, const std::string& file) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  DeviceProfile profile;
  JsonFields fields(*json, file);
  Reader reader(fields);
  describe(reader, profile);
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};
  std::optional<Error> error;
  check_whole(profile, error);
  if (error) {
    error->file = file;
    return Unexpected{*error};
  }
  return profile;
}

Result<DeviceProfile> read_device_profile(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return parse_device_profile(*text, path);
}

std::string to_json(const DeviceProfile& profile) {
  Json json;
  Writer writer(json);
  DeviceProfile copy = profile;  // describe() visits values that a reader may change
  describe(writer, copy);
  return json.dump(2) + "\n";
}

Result<void> write_device_profile(const DeviceProfile& profile, const std::string& path) {
  const std::string text = to_json(profile);
  const auto checked = parse_device_profile(text, path);
  if (!checked) return Unexpected{checked.error()};
  return replace_file(path, text);
}

std::vector<std::pair<std::string, Quantity>> all_quantities(const DeviceProfile& profile) {
  std::vector<std::pair<std::string, Quantity>> all;
  const auto add_map = [&](const std::string& section, const std::map<std::string, Quantity>& map) {
    for (const auto& [name, value] : map) all.emplace_back("/" + section + "/" + name, value);
  };
  add_map("resources", profile.resources);
  add_map("peaks", profile.peaks);
  for (const auto& [name, fit] : profile.fits) {
    const std::string path = "/fits/" + name;
    all.emplace_back(path + "/t0_us", fit.t0_us);
    all.emplace_back(path + "/p_tflops", fit.p_tflops);
    all.emplace_back(path + "/w_gbs", fit.w_gbs);
    all.emplace_back(path + "/gamma", fit.gamma);
    if (fit.step_ns) all.emplace_back(path + "/step_ns", *fit.step_ns);
    if (fit.train_mape_ratio) all.emplace_back(path + "/train_mape_ratio", *fit.train_mape_ratio);
  }
  for (const auto& [name, op] : profile.ops) {
    all.emplace_back("/ops/" + name + "/t0_us", op.t0_us);
    all.emplace_back("/ops/" + name + "/w_gbs", op.w_gbs);
  }
  for (const auto& [name, transfer] : profile.transfers) {
    all.emplace_back("/transfers/" + name + "/alpha_us", transfer.alpha_us);
    all.emplace_back("/transfers/" + name + "/beta_gbs", transfer.beta_gbs);
  }
  for (const LinkFact& link : profile.links) {
    if (link.alpha_us) all.emplace_back("/links/" + link.link_class + "/alpha_us", *link.alpha_us);
    all.emplace_back("/links/" + link.link_class + "/busbw_gbs", link.busbw_gbs);
  }
  add_map("cold_start", profile.cold_start);
  if (profile.power) {
    all.emplace_back("/power/idle_w", profile.power->idle_w);
    add_map("power/active_w", profile.power->active_w);
    all.emplace_back("/power/beta", profile.power->beta);
  }
  return all;
}

std::vector<std::string> shipped_profile_names() {
  std::vector<std::string> names;
  for (const ShippedProfile& shipped : shipped_profiles()) names.emplace_back(shipped.name);
  return names;
}

Result<DeviceProfile> shipped_profile(std::string_view name) {
  for (const ShippedProfile& shipped : shipped_profiles()) {
    if (lower_case(shipped.name) == lower_case(name))
      return parse_device_profile(shipped.json, "profiles/" + std::string(shipped.name) + ".json");
  }
  return unexpected("no device profile '" + std::string(name) + "'" + suggest_nearest(name, shipped_profile_names()) +
                    "; shipped are " + joined(shipped_profile_names(), " | ") + ", or give a file");
}

std::optional<DeviceProfile> shipped_profile_of_model(std::string_view model) {
  std::string longest;
  for (const std::string& name : shipped_profile_names()) {
    if (lower_case(model).starts_with(lower_case(name)) && name.size() > longest.size()) longest = name;
  }
  if (longest.empty()) return std::nullopt;
  return shipped_profile(longest).value();
}

Result<DeviceProfile> find_device_profile(const std::string& name_or_path) {
  std::error_code ignored;
  const bool is_file = name_or_path.ends_with(".json") || std::filesystem::is_regular_file(name_or_path, ignored);
  return is_file ? read_device_profile(name_or_path) : shipped_profile(name_or_path);
}

}  // namespace gpusched
