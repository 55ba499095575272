// SPDX-License-Identifier: Apache-2.0
/// WaitFigures: what operators ask of waits. `gpusched replay --waits`.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "gpusched/data/measure_window.hpp"
#include "gpusched/engine/engine.hpp"
#include "src/base/text_style.hpp"
#include "src/sim/idle_log.hpp"
#include "src/sim/wait_cause.hpp"

namespace gpusched {

/// What operators ask of waits, of the measured jobs that no user cancels.
struct WaitFigures {
  /// GPU-hours that were free while jobs waited, by WaitCause, from the first measured submission to the last end.
  std::array<double, wait_cause_names.size()> idle_gpu_hours = {};
  struct Queue {
    std::string name;  ///< virtual cluster; "" for jobs of none
    std::uint64_t jobs = 0, under_an_hour = 0;
    double longest_wait_s = 0;
  };
  std::vector<Queue> queues = {};  ///< those with jobs, in order of their names

  [[nodiscard]] double all_idle_gpu_hours() const;
};

/// Of a run that has ended.
WaitFigures wait_figures(const Engine& engine, const IdleLog& idle, const MeasureWindow& window);

nlohmann::ordered_json waits_json(const WaitFigures& waits);

/// The figures of a policy's run, borrowed.
struct NamedWaits {
  std::string policy;
  const WaitFigures* waits = nullptr;
};
/// Two tables: why GPUs were free while jobs waited, and how long queues wait.
std::string waits_tables(const std::vector<NamedWaits>& runs, const TextStyle& style = {});

}  // namespace gpusched
