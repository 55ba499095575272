// SPDX-License-Identifier: Apache-2.0
#include "traces/core/column_mapping.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "src/base/letter_case.hpp"
#include "src/base/nearest_name.hpp"

namespace gpusched {
namespace {

// What a role holds, which decides its units.
enum class RoleKind { text, instant, span, gpus, number, memory, gpu_memory, cores };

struct ColumnRole {
  std::string_view name;
  RoleKind kind;
};

constexpr std::array column_roles{
    ColumnRole{"submit", RoleKind::instant},   ColumnRole{"gpus", RoleKind::gpus},
    ColumnRole{"duration", RoleKind::span},    ColumnRole{"start", RoleKind::instant},
    ColumnRole{"end", RoleKind::instant},      ColumnRole{"id", RoleKind::text},
    ColumnRole{"user", RoleKind::text},        ColumnRole{"group", RoleKind::text},
    ColumnRole{"vc", RoleKind::text},          ColumnRole{"name", RoleKind::text},
    ColumnRole{"family", RoleKind::text},      ColumnRole{"estimate", RoleKind::span},
    ColumnRole{"deadline", RoleKind::instant}, ColumnRole{"tasks", RoleKind::number},
    ColumnRole{"cpu", RoleKind::cores},        ColumnRole{"memory", RoleKind::memory},
    ColumnRole{"gpu_type", RoleKind::text},    ColumnRole{"gpu_memory", RoleKind::gpu_memory},
    ColumnRole{"priority", RoleKind::number},  ColumnRole{"qos", RoleKind::text},
    ColumnRole{"status", RoleKind::text},      ColumnRole{"after", RoleKind::text},
    ColumnRole{"after_delay", RoleKind::span}};

constexpr std::string_view mapping_settings[] = {"delimiter", "header", "na"};

std::vector<std::string> known_words() {
  std::vector<std::string> words;
  for (const ColumnRole& role : column_roles) words.emplace_back(role.name);
  for (const std::string_view setting : mapping_settings) words.emplace_back(setting);
  return words;
}

RoleKind kind_of(std::string_view name) {
  const auto place =
      std::find_if(column_roles.begin(), column_roles.end(), [&](const ColumnRole& role) { return role.name == name; });
  return place == column_roles.end() ? RoleKind::text : place->kind;
}

struct NamedTimeUnit {
  std::string_view name;
  std::int64_t numerator, denominator;
};
constexpr NamedTimeUnit column_time_units[] = {{"s", 1'000'000, 1},     {"ms", 1'000, 1},       {"us", 1, 1},
                                               {"ns", 1, 1'000},        {"min", 60'000'000, 1}, {"h", 3'600'000'000, 1},
                                               {"d", 86'400'000'000, 1}};

struct NamedDateOrder {
  std::string_view name;
  DateOrder order;
};
constexpr NamedDateOrder date_orders[] = {{"ymd", DateOrder::ymd}, {"mdy", DateOrder::mdy}, {"dmy", DateOrder::dmy}};

struct NamedMemoryUnit {
  std::string_view name;
  double bytes;
};
constexpr double bytes_of_mib = 1024.0 * 1024;
constexpr NamedMemoryUnit column_memory_units[] = {
    {"b", 1},    {"kib", 1024}, {"mib", bytes_of_mib}, {"gib", 1024 * bytes_of_mib}, {"kb", 1000},
    {"mb", 1e6}, {"gb", 1e9}};

struct NamedGpuText {
  std::string_view name;
  GpuText text;
};
constexpr NamedGpuText gpu_texts[] = {{"milli", GpuText::milli}, {"gres", GpuText::gres}, {"tres", GpuText::tres}};

// Every unit of a kind, for messages.
std::string units_of(RoleKind kind) {
  std::vector<std::string> names;
  const auto add = [&](const auto& units) {
    for (const auto& unit : units) names.emplace_back(unit.name);
  };
  if (kind == RoleKind::instant || kind == RoleKind::span) add(column_time_units);
  if (kind == RoleKind::instant) add(date_orders);
  if (kind == RoleKind::memory || kind == RoleKind::gpu_memory) add(column_memory_units);
  if (kind == RoleKind::cores) names.emplace_back("milli");
  if (kind == RoleKind::gpus) add(gpu_texts);
  return joined(names, "|");
}

constexpr std::pair<std::string_view, char> separators[] = {
    {"comma", ','}, {"semicolon", ';'}, {"tab", '\t'}, {"bar", '|'}};

std::int64_t position_of(std::string_view text) {
  text = text.substr(0, text.rfind(':'));
  const bool digits =
      !text.empty() && text.size() < 6 && text.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? parse_integer(text).value_or(0) : 0;
}

std::string without_hash(std::string_view name) {
  return std::string(trim(name.starts_with('#') ? name.substr(1) : name));
}

}  // namespace

Result<ColumnMapping> ColumnMapping::parse(const std::string& text) {
  ColumnMapping mapping;
  CsvSplitter splitter;
  if (!splitter.split(text)) return unexpected("--columns: a quote is not closed");
  for (const std::string_view pair : splitter.fields()) {
    const std::size_t equals = pair.find('=');
    const std::string name(trim(pair.substr(0, equals)));
    const auto known = known_words();
    if (equals == std::string_view::npos || std::find(known.begin(), known.end(), name) == known.end()) {
      return unexpected("--columns: expected ROLE=COLUMN, found '" + std::string(pair) + "'" +
                        suggest_nearest(name, known));
    }
    const std::string_view value = pair.substr(equals + 1);
    if (std::find(std::begin(mapping_settings), std::end(mapping_settings), name) != std::end(mapping_settings)) {
      if (auto taken = mapping.take_setting(name, value); !taken) return Unexpected{taken.error()};
      continue;
    }
    if (mapping.roles_.contains(name)) return unexpected("--columns: " + name + " is given twice");
    mapping.roles_[name] = {.text = std::string(trim(value)), .name = {}};
  }
  for (const char* role : {"submit", "gpus"}) {
    if (!mapping.roles_.contains(role)) return unexpected(std::string("--columns: ") + role + "=COLUMN is missing");
  }
  if (!mapping.roles_.contains("duration") && !mapping.roles_.contains("end")) {
    return unexpected("--columns: duration=COLUMN (or end=COLUMN) is missing");
  }
  return mapping;
}

Result<void> ColumnMapping::take_setting(const std::string& name, std::string_view value) {
  if (name == "na") {
    no_value_.emplace_back(trim(value));
    return {};
  }
  const std::string word(trim(value));
  if (name == "header") {
    if (word != "yes" && word != "no") return unexpected("--columns: header: expected yes or no, found '" + word + "'");
    header_ = word == "yes" ? 1 : 0;
    return {};
  }
  for (const auto& [word_for, character] : separators) {
    if (word == word_for) separator_ = character;
  }
  if (value.size() == 1 && value.front() != '"') separator_ = value.front();
  if (value == "\\t") separator_ = '\t';
  if (separator_ != '\0') return {};
  return unexpected("--columns: delimiter: expected one character, or comma|semicolon|tab|bar, found '" + word + "'");
}

// Times and GPUs where they should stand: this is no header.
bool ColumnMapping::header_is_values(const std::vector<std::string_view>& fields) const {
  const auto field = [&](const char* role) {
    const auto position = static_cast<std::size_t>(position_of(roles_.at(role).text));
    return position >= 1 && position <= fields.size() ? trim(fields[position - 1]) : std::string_view();
  };
  const std::string_view submit = field("submit");
  return !submit.empty() && submit.front() >= '0' && submit.front() <= '9';
}

Result<void> ColumnMapping::look_at(std::string_view head) {
  const std::string_view line = first_line(head);
  const auto fields_at = [&](char separator) {
    CsvSplitter splitter(separator);
    std::vector<std::string> fields;
    if (splitter.split(line)) {
      for (const std::string_view field : splitter.fields()) fields.emplace_back(trim(field));
    }
    return fields;
  };
  const auto found_in = [&](const std::vector<std::string>& fields) {
    return std::count_if(roles_.begin(), roles_.end(), [&](const auto& entry) {
      const std::string& text = entry.second.text;
      return std::any_of(fields.begin(), fields.end(), [&](const std::string& field) {
        return field == text || field == text.substr(0, text.rfind(':')) || without_hash(field) == text;
      });
    });
  };
  const bool numbers =
      std::all_of(roles_.begin(), roles_.end(), [](const auto& entry) { return position_of(entry.second.text) > 0; });
  char best = separator_ == '\0' ? ',' : separator_;
  if (separator_ == '\0') {
    std::size_t most_fields = fields_at(',').size();
    auto most_found = found_in(fields_at(','));
    for (const auto& [name, separator] : separators) {
      const auto fields = fields_at(separator);
      const auto found = found_in(fields);
      const bool better = found != most_found ? found > most_found : (numbers && fields.size() > most_fields);
      if (!better) continue;
      best = separator;
      most_found = found;
      most_fields = fields.size();
    }
  }
  separator_ = best;
  const auto fields = fields_at(separator_);
  width_ = fields.size();
  by_position_ = numbers && (header_ == 0 || found_in(fields) < static_cast<std::ptrdiff_t>(roles_.size()));
  if (header_ == 0 && !by_position_) {
    return unexpected("--columns: without a header line, columns are positions from 1: submit=1,gpus=2,...");
  }
  const std::vector<std::string_view> views(fields.begin(), fields.end());
  has_header_ = header_ >= 0 ? header_ == 1 : !(by_position_ && header_is_values(views));
  return {};
}

RowStyle ColumnMapping::style() const {
  RowStyle style;
  style.separator = separator_;
  style.decimal_comma = separator_ == ';' || separator_ == '\t';
  style.no_value = no_value_;
  return style;
}

Result<void> ColumnMapping::take_unit(const std::string& role, MappedColumn& column, std::string_view unit) const {
  const std::string word = lower_case(trim(unit));
  const RoleKind kind = kind_of(role);
  const auto find = [&](const auto& units) {
    return std::find_if(std::begin(units), std::end(units), [&](const auto& entry) { return entry.name == word; });
  };
  const auto time = find(column_time_units);
  const auto order = find(date_orders);
  const auto memory = find(column_memory_units);
  const auto gpus = find(gpu_texts);
  const bool is_time = kind == RoleKind::instant || kind == RoleKind::span;
  const bool is_memory = kind == RoleKind::memory || kind == RoleKind::gpu_memory;
  if (is_time && time != std::end(column_time_units)) {
    column.time.numerator = time->numerator;
    column.time.denominator = time->denominator;
  } else if (kind == RoleKind::instant && order != std::end(date_orders)) {
    column.time.dates = order->order;
  } else if (is_memory && memory != std::end(column_memory_units)) {
    column.factor = memory->bytes / (kind == RoleKind::memory ? bytes_of_mib : 1024 * bytes_of_mib);
  } else if (kind == RoleKind::cores && word == "milli") {
    column.factor = 1e-3;
  } else if (kind == RoleKind::gpus && gpus != std::end(gpu_texts)) {
    column.gpus = gpus->text;
  } else {
    const std::string expected = units_of(kind);
    return unexpected("--columns: " + role + ": unknown unit '" + std::string(unit) + "'; expected " +
                      (expected.empty() ? "none" : "one of " + expected));
  }
  return {};
}

// A column has one unit, whatever it is the column of. Roles are looked at in the order of their names.
Result<void> ColumnMapping::check_alike(const std::string& role, const MappedColumn& column) const {
  const auto differs = [](const TimeUnit& a, const TimeUnit& b) {
    return a.numerator != b.numerator || a.denominator != b.denominator || a.dates != b.dates;
  };
  for (const auto& [name, other] : roles_) {
    if (name == role) return {};
    const RoleKind kind = kind_of(name);
    if ((kind != RoleKind::instant && kind != RoleKind::span) || other.name != column.name) continue;
    if (differs(other.time, column.time)) {
      return unexpected("--columns: " + name + "=" + other.text + " and " + role + "=" + column.text +
                        ": expected one unit for a column");
    }
  }
  return {};
}

Result<void> ColumnMapping::resolve(RowReader& rows) {
  const std::vector<std::string>& names = rows.names();
  const auto is_there = [&](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (auto& [role, column] : roles_) {
    column.name = column.text;
    const RoleKind kind = kind_of(role);
    const std::size_t colon = column.text.rfind(':');
    const std::string before = column.text.substr(0, colon);
    const bool has_unit = colon != std::string::npos && !is_there(column.text) && kind != RoleKind::text &&
                          (is_there(before) || !units_of(kind).empty());
    if (has_unit) {
      column.name = trim(before);
      if (auto taken = take_unit(role, column, column.text.substr(colon + 1)); !taken) return taken;
    }
    column.time.spans = true;
    if (!is_there(column.name) && is_there("#" + column.name)) column.name = "#" + column.name;
    columns_[role] = rows.require({column.name});
    if (kind != RoleKind::instant && kind != RoleKind::span) continue;
    if (auto alike = check_alike(role, column); !alike) return alike;
    rows.set_unit(columns_[role], column.time);
  }
  return {};
}

Column ColumnMapping::column(const std::string& role) const {
  const auto place = columns_.find(role);
  return place == columns_.end() ? Column{} : place->second;
}

}  // namespace gpusched
