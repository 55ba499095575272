// SPDX-License-Identifier: Apache-2.0
#include "src/world/signal_reader.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/csv_rows.hpp"

namespace gpusched {
namespace {

constexpr Time one_hour = whole_seconds(3600);

// ---- units ----

struct Unit {
  SignalKind kind;
  std::string_view name;
  double factor;                          // to the kind's unit
  std::array<std::string_view, 3> words;  // that a column's name ends in
};

constexpr double grams_per_pound = 453.59237;

constexpr std::array<Unit, 13> signal_units{{
    {SignalKind::carbon, "g/kWh", 1, {"g_per_kwh", "gco2_per_kwh", "gco2eq_per_kwh"}},
    {SignalKind::carbon, "kg/MWh", 1, {"kg_per_mwh", "kgco2_per_mwh", "kgco2eq_per_mwh"}},
    {SignalKind::carbon, "kg/kWh", 1000, {"kg_per_kwh", "kgco2_per_kwh", "kgco2eq_per_kwh"}},
    {SignalKind::carbon, "t/MWh", 1000, {"t_per_mwh", "tco2_per_mwh", "tco2eq_per_mwh"}},
    {SignalKind::carbon, "lb/MWh", grams_per_pound / 1000, {"lb_per_mwh", "lbs_per_mwh", "lbco2_per_mwh"}},
    {SignalKind::price, "USD/MWh", 1, {"usd_per_mwh"}},
    {SignalKind::price, "USD/kWh", 1000, {"usd_per_kwh"}},
    {SignalKind::power, "W", 1, {"w", "watts"}},
    {SignalKind::power, "kW", 1000, {"kw"}},
    {SignalKind::power, "MW", 1e6, {"mw"}},
    {SignalKind::rate, "1/s", 1, {"per_s", "rps", "qps"}},
    {SignalKind::rate, "1/min", 1.0 / 60, {"per_min"}},
    {SignalKind::rate, "1/h", 1.0 / 3600, {"per_h"}},
}};

constexpr std::array<std::string_view, 4> kind_names{"carbon intensity", "price", "power", "rate"};

// "Carbon Intensity gCO2/kWh" as carbon_intensity_gco2_kwh.
std::string plain(std::string_view column) {
  std::string name;
  for (const char c : lower_case(trim(column))) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_word) name += c;
    if (!is_word && !name.empty() && name.back() != '_') name += '_';
  }
  while (name.ends_with('_')) name.pop_back();
  return name;
}

bool ends_in(std::string_view name, std::string_view word) {
  return !word.empty() && name.ends_with(word) &&
         (name.size() == word.size() || name[name.size() - word.size() - 1] == '_');
}

// The unit that a column's name says; those of Electricity Maps and of tables made from it say no unit.
const Unit* unit_of_column(std::string_view column) {
  const std::string name = plain(column);
  for (const Unit& unit : signal_units) {
    if (std::any_of(unit.words.begin(), unit.words.end(), [&](auto word) { return ends_in(name, word); })) return &unit;
  }
  const bool is_intensity = name.starts_with("carbon_intensity") || name == "gco2_direct" || name == "gco2_lca";
  return is_intensity ? &signal_units[0] : nullptr;
}

const Unit* unit_by_name(std::string_view name) {
  const auto found =
      std::find_if(signal_units.begin(), signal_units.end(), [&](const Unit& unit) { return unit.name == name; });
  return found == signal_units.end() ? nullptr : &*found;
}

std::string units_of(SignalKind kind) {
  std::string text;
  for (const Unit& unit : signal_units) {
    if (unit.kind == kind) text += (text.empty() ? "" : "|") + std::string(unit.name);
  }
  return text;
}

// ---- times ----

// How the first column writes times.
struct Clock {
  bool is_utc = false;
  bool dates = false;
  Time origin{};
  Time unit = whole_seconds(1);  // of numbers
};

// See read_signal().
std::optional<Time> parse_utc(std::string_view text) {
  text = trim(text);
  const std::size_t at = text.find_first_of(" T");
  std::string date(text.substr(0, at));
  std::string_view clock = at == std::string_view::npos ? std::string_view() : trim(text.substr(at + 1)), zone;
  if (date.size() == 10 && date[2] == '.' && date[5] == '.') {
    date = date.substr(6, 4) + "-" + date.substr(3, 2) + "-" + date.substr(0, 2);
  }
  std::replace(date.begin(), date.end(), '/', '-');
  const std::size_t end = std::min(clock.find_first_not_of("0123456789:."), clock.size());
  zone = trim(clock.substr(end));
  clock = trim(clock.substr(0, end));
  std::string time(clock);
  if (clock.empty()) time = "00:00";
  if (std::count(time.begin(), time.end(), ':') == 1) time += ":00";
  return parse_calendar(date + " " + time + std::string(zone));
}

Time year_begin(int year) {
  const std::chrono::sys_days day{std::chrono::year{year} / std::chrono::January / 1};
  return whole_seconds(std::int64_t{day.time_since_epoch().count()} * 86'400);
}

// `first`: the first time of the file, which tells dates from numbers.
Clock clock_of(std::string_view column, std::string_view first) {
  const std::string name = plain(column);
  constexpr std::string_view of_year = "hour_of_";
  if (name.starts_with(of_year) && name.size() == of_year.size() + 4) {
    if (const auto year = parse_exact<int>(std::string_view(name).substr(of_year.size()))) {
      return {.is_utc = true, .origin = year_begin(*year), .unit = one_hour};
    }
  }
  if (!parse_number(first)) return {.is_utc = true, .dates = true};
  if (name == "hour" || name == "hours" || name.ends_with("_h") || name.ends_with("_hour")) return {.unit = one_hour};
  if (name == "minute" || name == "minutes" || name.ends_with("_min")) return {.unit = whole_seconds(60)};
  return {.is_utc = name == "unix" || name == "epoch" || name == "timestamp"};
}

std::optional<Time> time_of(const Clock& clock, std::string_view text) {
  if (clock.dates) return parse_utc(text);
  const auto number = parse_number(text);
  constexpr double most_us = 4e18;
  if (!number || std::abs(*number * static_cast<double>(clock.unit.us)) > most_us) return std::nullopt;
  if (clock.unit == whole_seconds(1)) {
    const auto seconds = parse_seconds(text);
    return seconds ? std::optional(*seconds + clock.origin) : std::nullopt;
  }
  return Time{std::llround(*number * static_cast<double>(clock.unit.us))} + clock.origin;
}

std::string text_of(Time time, bool is_utc) { return is_utc ? utc_text(time) : exact_seconds(time) + " s"; }

// ---- rows ----

bool is_missing(std::string_view cell) {
  const std::string text = lower_case(cell);
  return text.empty() || text == "nan" || text == "na" || text == "null" || text == "-";
}

Unexpected misread(std::string_view field, std::string message) {
  return Unexpected{Error{.message = std::move(message), .field = std::string(field)}};
}

class SignalRows {
 public:
  explicit SignalRows(const SignalOptions& options) : options_(options) {}

  [[nodiscard]] bool has_header() const { return !header_.empty(); }

  Result<void> read_header(const std::vector<std::string_view>& cells) {
    for (std::string_view cell : cells) {
      constexpr std::string_view mark = "\xEF\xBB\xBF";  // of byte order
      if (header_.empty() && cell.starts_with(mark)) cell.remove_prefix(mark.size());
      header_.emplace_back(trim(cell));
    }
    if (parse_number(header_[0]) || parse_utc(header_[0])) {
      return misread(header_[0], "expected a header: the names of a column of times and of one of values");
    }
    if (header_.size() < 2) return misread(header_[0], "expected a column of values after that of times");
    return choose_column();
  }

  Result<void> read(const std::vector<std::string_view>& cells) {
    if (cells.size() != header_.size()) {
      return misread("", "expected " + std::to_string(header_.size()) + " fields, not " + std::to_string(cells.size()));
    }
    if (times_.empty()) clock_ = clock_of(header_[0], cells[0]);
    const auto time = time_of(clock_, cells[0]);
    if (!time || *time > end_of_time || *time < Time{} - end_of_time) {
      return misread(header_[0], std::string("expected ") + (clock_.dates ? "a date as 2023-01-31 13:00" : "a number") +
                                     ", not '" + excerpt(cells[0]) + "'");
    }
    if (!times_.empty() && *time <= times_.back()) {
      return misread(header_[0],
                     "expected a time after that of the row before, " + text_of(times_.back(), clock_.is_utc));
    }
    times_.push_back(*time);
    return read_value(trim(cells[value_]));
  }

  Result<SignalFile> file() {
    if (steps_.empty()) return misread(header_.empty() ? "" : header_[value_], "expected values below a header");
    SignalFile file{.signal = Signal(), .column = header_[value_], .is_utc = clock_.is_utc, .step = usual_step()};
    file.end = times_.back() + file.step;
    if (!choice_.empty()) file.notes.push_back(choice_);
    note_missing(file);
    if (options_.begins_at) {
      const Time from = times_.front() + options_.from;
      if (options_.from < Time{} || from > times_.back()) {
        return misread("from_h", "expected hours after the first row, at most the " +
                                     exact_number(to_seconds(times_.back() - times_.front()) / 3600) +
                                     " of the last, not " + exact_number(to_seconds(options_.from) / 3600));
      }
      const Time by = *options_.begins_at - from;
      for (Signal::Step& step : steps_) step.time += by;
      file.end += by;
    } else if (!clock_.is_utc && clock_.unit != whole_seconds(1)) {
      for (Signal::Step& step : steps_) step.time -= options_.midnight_to_zero;
      file.end -= options_.midnight_to_zero;
    }
    file.signal = Signal(std::move(steps_));
    return file;
  }

 private:
  Result<void> choose_column() {
    if (!options_.unit.empty()) {
      unit_ = unit_by_name(options_.unit);
      if (unit_ == nullptr || unit_->kind != options_.kind) {
        return Unexpected{Error{.message = "expected a unit of " + kind_name() + ", " + units_of(options_.kind) +
                                           ", not '" + excerpt(options_.unit) + "'"}};
      }
    }
    const auto begin = header_.begin() + 1;
    auto chosen = header_.end();
    if (!options_.column.empty()) {
      chosen = std::find(begin, header_.end(), options_.column);
      if (chosen == header_.end()) {
        return misread(options_.column, "the header lacks this column; expected one of " + names_from(begin));
      }
    } else {
      const auto fits = [&](const std::string& name) { return fits_kind(name); };
      chosen = std::find_if(begin, header_.end(), fits);
      if (chosen == header_.end() && unit_ != nullptr && header_.size() == 2) chosen = begin;
      if (chosen != header_.end() && std::count_if(chosen, header_.end(), fits) > 1) {
        choice_ = "of the columns " + names_from(begin) + " the first, " + *chosen + ", is taken";
      }
    }
    if (chosen == header_.end()) {
      return misread(header_[1],
                     "expected a column of " + kind_name() + ", or the unit of one: " + units_of(options_.kind));
    }
    value_ = static_cast<std::size_t>(chosen - header_.begin());
    if (unit_ == nullptr) unit_ = unit_of_column(*chosen);
    if (unit_ == nullptr || unit_->kind != options_.kind) {
      return misread(
          *chosen, "expected a name that says a unit of " + kind_name() + ", or that unit: " + units_of(options_.kind));
    }
    return {};
  }

  [[nodiscard]] bool fits_kind(const std::string& column) const {
    const Unit* unit = unit_of_column(column);
    return unit != nullptr && unit->kind == options_.kind;
  }

  [[nodiscard]] std::string kind_name() const {
    return std::string(kind_names[static_cast<std::size_t>(options_.kind)]);
  }

  [[nodiscard]] std::string names_from(std::vector<std::string>::const_iterator begin) const {
    std::string text;
    for (auto name = begin; name != header_.end(); ++name) text += (text.empty() ? "" : "|") + excerpt(*name);
    return text;
  }

  Result<void> read_value(std::string_view cell) {
    if (is_missing(cell)) {
      note_gap(times_.back(), 1);
      return {};
    }
    const auto value = parse_number(cell);
    constexpr double most = 9e12;  // Signal::to_micro()
    if (!value || std::abs(*value * unit_->factor) > most) {
      return misread(header_[value_], "expected a number, not '" + excerpt(cell) + "'");
    }
    if (options_.kind != SignalKind::price && *value < 0) {
      return misread(header_[value_], "expected a number of 0 or more, not '" + excerpt(cell) + "'");
    }
    steps_.push_back({times_.back(), Signal::to_micro(*value * unit_->factor)});
    return {};
  }

  // The difference that most neighbours have, if more than half of them do.
  [[nodiscard]] Time usual_step() const {
    std::map<std::int64_t, std::size_t> counts;
    for (std::size_t i = 1; i < times_.size(); ++i) ++counts[(times_[i] - times_[i - 1]).us];
    for (const auto& [us, count] : counts) {
      if (2 * count > times_.size() - 1) return Time{us};
    }
    return {};
  }

  void note_gap(Time first, std::int64_t count) {
    if (missing_ == 0 || first < first_missing_) first_missing_ = first;
    missing_ += count;
  }

  void note_missing(SignalFile& file) {
    for (std::size_t i = 1; i < times_.size() && file.step > Time{}; ++i) {
      const std::int64_t absent = ((times_[i] - times_[i - 1]).us - 1) / file.step.us;
      if (absent > 0) note_gap(times_[i - 1] + file.step, absent);
    }
    if (missing_ == 0) return;
    file.notes.push_back(counted(static_cast<std::uint64_t>(missing_), "value is missing", "values are missing") +
                         ", the first at " + text_of(first_missing_, clock_.is_utc) + "; the value before holds");
  }

  const SignalOptions& options_;
  std::vector<std::string> header_;
  std::size_t value_ = 1;  // of the columns
  const Unit* unit_ = nullptr;
  Clock clock_;
  std::vector<Time> times_;  // of all rows
  std::vector<Signal::Step> steps_;
  std::string choice_;
  std::int64_t missing_ = 0;
  Time first_missing_{};
};

}  // namespace

std::string utc_text(Time since_1970) {
  const std::int64_t second = microseconds_per_second;
  const std::int64_t seconds = (since_1970.us >= 0 ? since_1970.us : since_1970.us - second + 1) / second;
  const std::chrono::sys_seconds instant{std::chrono::seconds{seconds}};
  const auto day = std::chrono::floor<std::chrono::days>(instant);
  const std::chrono::year_month_day date{day};
  const std::int64_t minutes = std::chrono::duration_cast<std::chrono::minutes>(instant - day).count();
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02u %02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), static_cast<int>(minutes / 60),
                static_cast<int>(minutes % 60));
  return text.data();
}

Signal moved(const Signal& signal, Time by) {
  std::vector<Signal::Step> steps(signal.steps().begin(), signal.steps().end());
  for (Signal::Step& step : steps) step.time += by;
  return steps.empty() ? Signal() : Signal(std::move(steps));
}

Signal sampled(const Signal& signal, Time begin, Time end, Time step) {
  GPUSCHED_ASSERT(step > Time{}, "samples are some time apart");
  std::vector<Signal::Step> steps;
  for (Time t = begin; t < end; t += step) steps.push_back({t, signal.micro_at(t)});
  return steps.empty() ? Signal() : Signal(std::move(steps));
}

Result<SignalFile> signal_from_csv(std::string_view text, const std::string& file, const SignalOptions& options) {
  SignalRows rows(options);
  const auto read = for_each_csv_row(text, file, [&](const std::vector<std::string_view>& cells) {
    return rows.has_header() ? rows.read(cells) : rows.read_header(cells);
  });
  if (!read) return Unexpected{read.error()};
  auto signal = rows.file();
  if (!signal) {
    Error error = signal.error();
    error.file = file;
    return Unexpected{error};
  }
  for (std::string& note : signal->notes) note = file + ": " + note;
  return signal;
}

Result<SignalFile> read_signal(const std::string& path, const SignalOptions& options) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return signal_from_csv(*text, path, options);
}

}  // namespace gpusched
