// SPDX-License-Identifier: Apache-2.0
/// PowerModel: what nodes draw under load, how fast they are under a lower power limit, what is lost on the way to
/// them, and what a kilowatt-hour emits and costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/data/signal.hpp"

namespace gpusched {

/// Watts of a device by its load, a number from 0 (idle) to 1.
struct LoadPower {
  double idle_w = 0;  ///< at load 0
  double full_w = 0;  ///< at load 1
  /// As the load comes near 0 from above; nothing: idle_w. Above it (SimGrid's epsilon; a GPU that draws all of its
  /// power as soon as it is touched) the draw jumps.
  std::optional<double> touched_w = {};
  /// The draw rises from touched_w to full_w as load^exponent: 1 linear, 1/2 square root, 2 square, 3 cubic (OpenDC).
  double exponent = 1;
  /// Measured (load, watts), ascending in load from 0 to 1, in place of all that; linear between them.
  std::vector<std::pair<double, double>> points = {};

  /// The draw at that load. Precondition: 0 <= load <= 1.
  [[nodiscard]] double watts(double load) const {
    if (!points.empty()) return interpolated(load);
    if (load <= 0) return idle_w;
    const double from = touched_w.value_or(idle_w);
    return from + (full_w - from) * (exponent == 1 ? load : std::pow(load, exponent));
  }

 private:
  [[nodiscard]] double interpolated(double load) const {
    const auto after = std::upper_bound(points.begin(), points.end(), load,
                                        [](double at, const auto& point) { return at < point.first; });
    if (after == points.begin()) return points.front().second;
    if (after == points.end()) return points.back().second;
    const auto before = after - 1;
    const double part = (load - before->first) / (after->first - before->first);
    return before->second + part * (after->second - before->second);
  }
};

/// One setting of a GPU's power limit.
struct PowerLimit {
  double limit_w = 0;              ///< what is set
  double draw = 1;                 ///< factor on the draw of a busy GPU
  RatePpm speed = reference_rate;  ///< factor on its speed
};

/// What GPUs of one type draw.
struct GpuPower {
  LoadPower load = {};  ///< by how busy the GPU is
  /// Ascending by limit_w; draw and speed do not fall from one to the next, and are 1 in the last, which limits
  /// nothing. Empty: the limit cannot be changed.
  std::vector<PowerLimit> limits = {};
};

/// A job family on a GPU type, where that is known; else the GPU is as busy as the job's share of it.
struct FamilyPower {
  double full_w = 0;                    ///< watts of a GPU that is always busy with it; 0: GpuPower's
  double busy_share = 1;                ///< (0, 1] of the time that a job alone on a GPU keeps it busy
  std::vector<PowerLimit> limits = {};  ///< as GpuPower's, which they replace for this family; empty: those
};

/// A node that nobody uses.
struct NodeSleep {
  Time after = Time::max();  ///< idle for so long, it falls asleep; max(): never
  double asleep_w = 0;       ///< all of it
  Time wake{};               ///< until it can work again
  double wake_j = 0;         ///< which takes so much energy beside what it draws idle
};

/// What a node draws besides its GPUs.
struct NodePower {
  double base_w = 0;         ///< memory, network, storage, fans: whatever happens
  LoadPower cpu = {};        ///< of one processor
  std::uint32_t cpus = 0;    ///< processors
  double cores_per_cpu = 0;  ///< > 0: working cores fill one processor after another, and one that is touched is full;
                             ///< 0: all processors share the load evenly
  NodeSleep sleep = {};      ///< what an idle node does
};

/// What is added to the draw of nodes before it reaches the meter, as a whole: `gain` times the draw and `fixed_w`.
struct PowerLosses {
  double gain = 0;     ///< a part of the draw
  double fixed_w = 0;  ///< watts
};

/// What a kilowatt-hour is, at one place. Nodes of different places may be in one run.
struct PowerPlace {
  Signal carbon_g_per_kwh = {};  ///< emitted, grams of CO2 equivalent
  Signal usd_per_mwh = {};       ///< paid; may be negative
  double fixed_w = 0;            ///< of PowerLosses::fixed_w, what is lost there; the rest is lost at the first place
};

/// What GPUs of a node cost beside electricity.
struct NodeRent {
  double usd_per_gpu_h = 0;  ///< of one GPU
  bool when_idle = false;    ///< reserved or owned: paid whether used or not; false: on demand, for what jobs hold
};

/// A limit on what some nodes draw together, losses and cooling left out.
struct PowerCap {
  Signal watts = {};                      ///< the limit
  std::vector<std::uint32_t> nodes = {};  ///< their numbers, ascending; empty: all
};

/// Who is slowed first when a cap is near.
enum class CapRule : std::uint8_t {
  admit,       ///< nobody: jobs are not started if they would exceed a cap
  uniform,     ///< all alike
  priority,    ///< the lowest priority first, then the latest place in the queue
  efficiency,  ///< where a step saves most watts for the speed that it costs
};

/// Immutable while a run lasts; the engine borrows it. Made for one cluster and one JobTable.
struct PowerModel {
  std::vector<GpuPower> gpus = {};           ///< by GPU type of the cluster
  std::vector<FamilyPower> families = {};    ///< [family * gpus.size() + type]; empty: nothing is known of families
  std::vector<NodePower> kinds = {};         ///< of nodes
  std::vector<std::uint32_t> kind_of = {};   ///< by node, in kinds
  PowerLosses losses = {};                   ///< between meter and nodes
  std::vector<PowerPlace> places = {};       ///< empty: energy alone is counted
  std::vector<std::uint32_t> place_of = {};  ///< by node, in places; empty: all in the first
  std::vector<NodeRent> rents = {};          ///< by node; empty: nothing is paid
  std::vector<PowerCap> caps = {};           ///< all hold at once
  CapRule rule = CapRule::uniform;           ///< of caps; a GPU type without limits is never slowed
  Time cap_latency{};                        ///< until a step down takes effect
  double hysteresis = 0.02;  ///< a step up is taken only if the draw then stays below (1 - hysteresis) x the cap

  /// True when nothing is known: energy is not counted.
  [[nodiscard]] bool is_empty() const { return kinds.empty(); }
  /// Somewhere a kilowatt-hour emits, or costs, something, or a GPU is paid for.
  /// \{
  [[nodiscard]] bool knows_carbon() const {
    return std::any_of(places.begin(), places.end(),
                       [](const PowerPlace& place) { return !place.carbon_g_per_kwh.is_empty(); });
  }
  [[nodiscard]] bool knows_money() const {
    return !rents.empty() || std::any_of(places.begin(), places.end(),
                                         [](const PowerPlace& place) { return !place.usd_per_mwh.is_empty(); });
  }
  /// \}
  /// What a GPU of that type that is always busy with that family draws.
  [[nodiscard]] double full_w(std::uint32_t family, std::uint32_t type) const {
    const double own = families.empty() ? 0 : families[std::size_t{family} * gpus.size() + type].full_w;
    return own > 0 ? own : gpus[type].load.full_w;
  }
  /// The settings of a GPU of that type that runs the family.
  [[nodiscard]] const std::vector<PowerLimit>& limits(std::uint32_t family, std::uint32_t type) const {
    const bool is_type = families.empty() || families[std::size_t{family} * gpus.size() + type].limits.empty();
    return is_type ? gpus[type].limits : families[std::size_t{family} * gpus.size() + type].limits;
  }
  /// The share of time that a job of the family, alone on a GPU of that type, keeps it busy.
  [[nodiscard]] double busy_share(std::uint32_t family, std::uint32_t type) const {
    return families.empty() ? 1 : families[std::size_t{family} * gpus.size() + type].busy_share;
  }
};

}  // namespace gpusched
