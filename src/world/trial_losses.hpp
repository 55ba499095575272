// SPDX-License-Identifier: Apache-2.0
/// TrialLosses: the loss of each trial after so many units, from a law or a table.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/trials/trial_task.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

/// What trial k of the law `lasting` has from the beginning, and that of `falling` comes to.
double lasting_loss(std::uint32_t trial);
/// The law `falling`.
double falling_loss(std::uint32_t trial, TrialUnits units);

class TrialLosses {
 public:
  /// "loss" of a study. Errors of a table; others are kept by `fields`.
  static Result<TrialLosses> read(JsonFields& fields, const std::string& file, const Rng& rng);

  /// Loss of a trial after so many units. Precondition: trial < trials().
  [[nodiscard]] double at(std::uint32_t trial, TrialUnits units) const;
  /// How many trials there may be.
  [[nodiscard]] std::uint32_t trials() const;
  /// How long a unit of a trial takes, where the table says so.
  [[nodiscard]] std::optional<double> unit_s(std::uint32_t trial) const;

 private:
  enum class Law : std::uint8_t { lasting, falling, drawn, table };
  struct Curve {
    std::vector<std::pair<TrialUnits, double>> losses;  // by units
    std::optional<double> unit_s;
  };

  Result<void> read_table(std::string_view text, const std::string& file);
  void shuffle(Rng rng);

  Law law_ = Law::lasting;
  Rng rng_;
  double first_ = 1, least_ = 0, most_ = 1;
  std::vector<double> half_units_{1, 8};
  std::vector<Curve> curves_;
};

}  // namespace gpusched
