// SPDX-License-Identifier: Apache-2.0
/// The simulator of GAIA (Hanafy et al., "Going Green for Less Green: Optimizing the Cost of Reducing Cloud Carbon
/// Emissions", ASPLOS 2024; github.com/umassos/GAIA, src): jobs of some cpus that may wait, started by the carbon
/// intensity of the grid, in a cloud with reserved, on-demand and spot capacity.
///
/// It is not the engine: time is counted in slots of 5 s, nothing limits how many jobs run. Quirks, all kept:
///  - arrival and length are rounded down to slots; the queue, and with it the wait, goes by the rounded length (below
///    2 h: short), what may run on spot by the length of the file (at most 2 h);
///  - a start that is chosen once reckons with the mean length of its queue, rounded down; 2 h count in both means;
///  - a job takes reserved capacity only if all of its cpus fit at its start, and all of what it takes it keeps to its
///    end; what is freed in a slot can be taken in the next;
///  - in each slot every waiting job is taken from a heap ordered by arrival alone and those that stay are put on a new
///    one, so that the order of jobs that arrived in one slot changes from slot to slot (PythonHeap);
///  - reserved capacity is paid for until the last start;
///  - a suspended job is a job for each of its stretches.
/// The artifact cuts the signal after 720 hours; here it goes on.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/data/signal.hpp"

namespace gpusched {

/// Of the artifact, unless the user says otherwise.
struct GaiaOptions {
  double short_wait_h = 6, long_wait_h = 24;
  double on_demand_usd_per_h = 0.0624;  ///< a cpu
  double spot_usd_per_h = 0.01248;
  double reserved_share = 0.4;  ///< of the on-demand price, used or not
  double watts_per_cpu = 1;
  Forecast forecast{.kind = Forecast::Kind::perfect};
};

/// The policies.
enum class GaiaPolicy : std::uint8_t {
  no_wait,
  lowest_slot,
  lowest_window,
  carbon_time,
  ecovisor,
  wait_awhile,
  all_wait,   ///< when reserved capacity fits it, at the latest after its whole wait
  res_first,  ///< the same, at the latest at Carbon-Time's start
  spot_res,   ///< on spot at Carbon-Time's start what may run there, the others as res_first
};

/// The policies by the names of the paper.
inline constexpr std::array<NamedValue<GaiaPolicy>, 9> gaia_policies{{{"NoWait", GaiaPolicy::no_wait},
                                                                      {"Lowest-Slot", GaiaPolicy::lowest_slot},
                                                                      {"Lowest-Window", GaiaPolicy::lowest_window},
                                                                      {"Carbon-Time", GaiaPolicy::carbon_time},
                                                                      {"Ecovisor", GaiaPolicy::ecovisor},
                                                                      {"WaitAwhile", GaiaPolicy::wait_awhile},
                                                                      {"AllWait", GaiaPolicy::all_wait},
                                                                      {"RES-First", GaiaPolicy::res_first},
                                                                      {"SPOT-RES", GaiaPolicy::spot_res}}};

/// A job in slots.
struct GaiaJob {
  std::int64_t arrival = 0;
  std::int64_t length = 1;
  std::int64_t cpus = 1;
  bool is_spot = false;  ///< may run on spot capacity

  [[nodiscard]] bool is_short() const;
};

/// A trace.
struct GaiaTrace {
  std::vector<GaiaJob> jobs;        ///< by arrival, of equals as in the file
  std::int64_t short_expected = 0;  ///< slots; what Lowest-Window and Carbon-Time reckon with
  std::int64_t long_expected = 0;
};

/// Columns arrival_time, length (seconds), cpus. Errors carry file, line and column: numbers that are none, a length
/// below a slot.
Result<GaiaTrace> read_gaia_jobs(const std::string& path);

struct GaiaResult {
  double carbon_g = 0;
  double cost_usd = 0;
  double mean_wait_h = 0;  ///< between arrival and end, all but the length
};

/// Runs a trace; time 0 of the trace is time 0 of the signal, in g/kWh.
GaiaResult run_gaia(const GaiaTrace& trace, const Signal& carbon, GaiaPolicy policy, std::int64_t reserved_cpus,
                    const GaiaOptions& options);

/// The last instant at which a job can run, from the trace's time 0.
Time gaia_horizon(const GaiaTrace& trace, const GaiaOptions& options);

}  // namespace gpusched
