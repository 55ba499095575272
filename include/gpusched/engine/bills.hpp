// SPDX-License-Identifier: Apache-2.0
/// Bills: what a job, or what nobody uses, drew, emitted and cost, in whole numbers that add up.
#pragma once

#include <cstdint>

#include "gpusched/core/types.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched {

/// Integrals of the signals of one place over time, in millionths of their units times microseconds.
struct PassedSignals {
  detail::WideInt carbon = 0;       ///< of g/kWh
  detail::WideInt electricity = 0;  ///< of USD/MWh

  /// What passed since.
  friend PassedSignals operator-(const PassedSignals& end, const PassedSignals& begin) {
    return {end.carbon - begin.carbon, end.electricity - begin.electricity};
  }
};

/// Sums over time, exact. Rounded once, where they are printed.
struct Bill {
  detail::WideInt nj = 0;           ///< energy: milliwatts times microseconds
  detail::WideInt carbon = 0;       ///< that energy times millionths of g/kWh
  detail::WideInt electricity = 0;  ///< that energy times millionths of USD/MWh
  detail::WideInt rent = 0;         ///< millionths of USD an hour times microseconds

  /// \{ In units that people use.
  [[nodiscard]] double kwh() const { return static_cast<double>(nj) / 3.6e15; }
  [[nodiscard]] double carbon_kg() const { return static_cast<double>(carbon) / 3.6e24; }
  [[nodiscard]] double electricity_usd() const { return static_cast<double>(electricity) / 3.6e24; }
  [[nodiscard]] double rent_usd() const { return static_cast<double>(rent) / 3.6e15; }
  [[nodiscard]] double usd() const { return electricity_usd() + rent_usd(); }
  /// \}

  /// Part by part.
  /// \{
  Bill& operator+=(const Bill& other) {
    nj += other.nj;
    carbon += other.carbon;
    electricity += other.electricity;
    rent += other.rent;
    return *this;
  }
  Bill& operator-=(const Bill& other) {
    nj -= other.nj;
    carbon -= other.carbon;
    electricity -= other.electricity;
    rent -= other.rent;
    return *this;
  }
  friend bool operator==(const Bill&, const Bill&) = default;
  /// \}

  /// Adds what a constant draw of `mw` and a constant rent came to in `span`, while signals passed by `passed`.
  void add(std::int64_t mw, std::int64_t micro_usd_per_h, Time span, const PassedSignals& passed) {
    nj += detail::WideInt{mw} * span.us;
    rent += detail::WideInt{micro_usd_per_h} * span.us;
    carbon += mw * passed.carbon;
    electricity += mw * passed.electricity;
  }
};

/// Whose bill it is, besides jobs.
enum class BillOf : std::uint8_t {
  idle,    ///< what nodes draw that no job uses, and the rent of GPUs that are paid whether used or not
  asleep,  ///< nodes that sleep
  waking,  ///< waking them, beside what they draw idle
  losses,  ///< between the meter and the nodes, and cooling
};
inline constexpr std::size_t most_bills = 4;  ///< of them

}  // namespace gpusched
