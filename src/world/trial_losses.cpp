// SPDX-License-Identifier: Apache-2.0
#include "src/world/trial_losses.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "src/base/field_parser.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/csv_rows.hpp"
#include "src/world/request_arrivals.hpp"

namespace gpusched {
namespace {

constexpr std::array<std::string_view, 4> table_columns{"trial", "units", "loss", "unit_s"};
constexpr double longest_unit_s = 1e9, most_loss = 1e15;
constexpr std::uint32_t most_table_trials = 100'000;

Unexpected wrong_loss(std::string_view field, std::string message) {
  return Unexpected{Error{.message = std::move(message), .field = std::string(field)}};
}

// A row of a table.
struct TableRow {
  std::uint32_t trial = 0;
  TrialUnits units = 0;
  double loss = 0;
  std::optional<double> unit_s;
};

// Where the columns stand; no_index: it is not there.
using Places = std::array<std::uint32_t, table_columns.size()>;

Result<Places> places_of(const std::vector<std::string_view>& cells) {
  Places places{};
  for (std::size_t i = 0; i < table_columns.size(); ++i) {
    places[i] = no_index;
    for (std::uint32_t k = 0; k < cells.size(); ++k) {
      if (trim(cells[k]) == table_columns[i]) places[i] = k;
    }
    if (places[i] == no_index && table_columns[i] != "unit_s") {
      return wrong_loss(table_columns[i], "expected a header with trial, units and loss");
    }
  }
  return places;
}

Result<TableRow> row_of(const std::vector<std::string_view>& cells, const Places& places) {
  const auto cell = [&](std::size_t column) { return trim(cells[places[column]]); };
  TableRow row;
  const auto trial = parse_integer(cell(0)), done = parse_integer(cell(1));
  if (!trial || *trial < 0 || *trial >= most_table_trials) {
    return wrong_loss("trial", "expected a whole number from 0 to 99999, not '" + excerpt(cell(0)) + "'");
  }
  if (!done || *done < 0)
    return wrong_loss("units", "expected a whole number from 0 on, not '" + excerpt(cell(1)) + "'");
  const auto loss = parse_number(cell(2));
  if (!loss || std::abs(*loss) > most_loss) {
    return wrong_loss("loss", "expected a number, not '" + excerpt(cell(2)) + "'");
  }
  row = {.trial = static_cast<std::uint32_t>(*trial), .units = *done, .loss = *loss, .unit_s = {}};
  if (places[3] == no_index) return row;
  row.unit_s = parse_number(cell(3));
  if (!row.unit_s || !(*row.unit_s >= 1e-6 && *row.unit_s <= longest_unit_s)) {
    return wrong_loss("unit_s", "expected seconds above 0, not '" + excerpt(cell(3)) + "'");
  }
  return row;
}

}  // namespace

double lasting_loss(std::uint32_t trial) { return static_cast<double>(7919 * std::uint64_t{trial} % 1000) / 1000; }

double falling_loss(std::uint32_t trial, TrialUnits units) {
  const double speed = 0.02 + static_cast<double>(7907 * std::uint64_t{trial} % 1000) / 2000, end = lasting_loss(trial);
  return end + (1 - end) * std::exp(-speed * static_cast<double>(units));
}

Result<TrialLosses> TrialLosses::read(JsonFields& fields, const std::string& file, const Rng& rng) {
  TrialLosses losses;
  losses.rng_ = rng;
  Result<void> done;
  fields.require("loss");
  fields.read_object("loss", [&](JsonFields& own) {
    static constexpr std::array<NamedValue<Law>, 3> laws{
        {{"lasting", Law::lasting}, {"falling", Law::falling}, {"drawn", Law::drawn}}};
    if (own.has("law") == own.has("table") && own.good()) return own.refuse("law", "a law, or a table");
    own.read_word("law", losses.law_, laws);
    if (losses.law_ == Law::drawn) {
      own.read("first", losses.first_, -most_loss, most_loss);
      own.read("least", losses.least_, -most_loss, most_loss);
      own.read("most", losses.most_, losses.least_, most_loss);
      own.read("half_units", losses.half_units_, 2);
      const std::vector<double>& half = losses.half_units_;
      if (own.good() && !(half[0] > 0 && half[1] >= half[0] && half[1] <= most_loss)) {
        own.refuse("half_units", "two numbers above 0, the larger last");
      }
    }
    if (!own.has("table")) return;
    losses.law_ = Law::table;
    std::uint64_t order_seed = 0;
    std::string named;
    own.read("table", named);
    own.read("order_seed", order_seed);
    if (!own.good()) return;
    const std::string path = path_from(file, named);
    const auto text = read_text_file(path);
    done = text ? losses.read_table(*text, path) : Result<void>(Unexpected{text.error()});
    if (done && own.has("order_seed")) losses.shuffle(Rng(order_seed));
  });
  if (!done) return Unexpected{done.error()};
  return losses;
}

Result<void> TrialLosses::read_table(std::string_view text, const std::string& file) {
  std::optional<Places> places;
  std::size_t width = 0;
  auto done = for_each_csv_row(text, file, [&](const std::vector<std::string_view>& cells) -> Result<void> {
    if (!places) {
      auto found = places_of(cells);
      if (!found) return Unexpected{found.error()};
      places = *found;
      width = cells.size();
      return {};
    }
    if (cells.size() != width) {
      return wrong_loss("", "expected " + std::to_string(width) + " fields, not " + std::to_string(cells.size()));
    }
    const auto row = row_of(cells, *places);
    if (!row) return Unexpected{row.error()};
    if (row->trial >= curves_.size()) curves_.resize(row->trial + 1);
    Curve& curve = curves_[row->trial];
    if (!curve.losses.empty() && row->units <= curve.losses.back().first) {
      return wrong_loss("units", "expected more than in the trial's row above");
    }
    if (!curve.losses.empty() && curve.unit_s != row->unit_s) {
      return wrong_loss("unit_s", "expected that of the trial's row above");
    }
    curve.losses.emplace_back(row->units, row->loss);
    curve.unit_s = row->unit_s;
    return {};
  });
  if (!done) return done;
  for (std::size_t i = 0; i < curves_.size(); ++i) {
    if (!curves_[i].losses.empty()) continue;
    return Unexpected{Error{.message = "expected rows of trial " + std::to_string(i), .file = file, .field = "trial"}};
  }
  if (curves_.empty()) return Unexpected{Error{.message = "expected at least one row", .file = file}};
  return {};
}

void TrialLosses::shuffle(Rng rng) {
  for (std::size_t i = curves_.size(); i > 1; --i) std::swap(curves_[i - 1], curves_[rng.below(i)]);
}

double TrialLosses::at(std::uint32_t trial, TrialUnits units) const {
  if (law_ == Law::lasting) return lasting_loss(trial);
  if (law_ == Law::falling) return falling_loss(trial, units);
  if (law_ == Law::drawn) {
    Rng rng = rng_.split(trial);
    const double end = least_ + (most_ - least_) * rng.uniform();
    const double half = half_units_[0] * std::pow(half_units_[1] / half_units_[0], rng.uniform());
    return end + (first_ - end) * std::exp2(-static_cast<double>(units) / half);
  }
  const std::vector<std::pair<TrialUnits, double>>& losses = curves_[trial].losses;
  const auto above = std::upper_bound(losses.begin(), losses.end(), units,
                                      [](TrialUnits of, const auto& point) { return of < point.first; });
  return above == losses.begin() ? above->second : (above - 1)->second;
}

std::uint32_t TrialLosses::trials() const {
  return law_ == Law::table ? static_cast<std::uint32_t>(curves_.size()) : std::numeric_limits<std::uint32_t>::max();
}

std::optional<double> TrialLosses::unit_s(std::uint32_t trial) const {
  return law_ == Law::table ? curves_[trial].unit_s : std::nullopt;
}

}  // namespace gpusched
