// SPDX-License-Identifier: Apache-2.0
/// RunInputs and EngineOptions: what a run is given besides its jobs and its cluster.
#pragma once

#include <cstdint>

#include "gpusched/core/types.hpp"
#include "gpusched/data/elastic_model.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/measure_window.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/placement.hpp"
#include "gpusched/data/power_model.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "gpusched/data/stage_model.hpp"
#include "gpusched/serving/service_model.hpp"
#include "gpusched/trials/study_model.hpp"

namespace gpusched {

struct HostedJobs;

/// How much work lies between the periodic checkpoints of a run.
enum class CheckpointRule : std::uint8_t {
  fixed,  ///< PreemptionCost::checkpoint_interval
  /// sqrt(2 C M), C: the time to write one, M: the mean time between failures of the job's nodes (Young, CACM 17(9),
  /// 1974); no checkpoints where nothing fails
  young,
  /// the higher-order estimate sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 2M / 9) - C, or M where C >= 2M (Daly, FGCS
  /// 22(3), 2006)
  daly,
};

/// What stopping and starting again costs. The first two costs prolong the job at its next start after a preemption;
/// after a failure of a node, the second alone. A load that is interrupted is begun anew, in full, at the next start.
struct PreemptionCost {
  Time checkpoint{};           ///< to write the state that is kept
  Time restart{};              ///< to load it again
  Time checkpoint_interval{};  ///< 0: state is saved at the preemption, no work is lost, but a failure loses the run;
                               ///< > 0: work since the last multiple of this interval of work in the run is lost by
                               ///< both; the costs are not work
  /// Another than fixed takes the place of checkpoint_interval; then a preemption saves all that was done, too.
  CheckpointRule rule = CheckpointRule::fixed;
  Time periodic_checkpoint{};  ///< to write each of those of an interval, while the work rests; none at the run's end.
                               ///< Nothing where checkpoints are transfers (StageModel)

  /// True when anything costs time.
  [[nodiscard]] bool any() const { return checkpoint + restart + checkpoint_interval > Time{}; }
};

/// How a run behaves, besides its policy.
struct EngineOptions {
  Placement placement = Placement::consolidate;  ///< rule for gangs whose nodes the policy does not choose
  PreemptionCost preemption = {};                ///< none by default: preemption is free
  std::uint64_t seed = 0;                        ///< of the random placement and of failures
  /// An instant's events come one at a time, submissions first, with a decision between any two: the stepping of
  /// RLScheduler's simulator (SC'20). Otherwise all events of an instant are applied before anyone decides.
  bool one_event_a_step = false;
};

/// What happens in a run besides its jobs. Pointers are borrowed and must outlive the engine; null: nothing of that
/// kind.
struct RunInputs {
  const RuntimeModel* runtime = nullptr;   ///< how fast jobs run; null: at the reference rate
  const NodeFailures* failures = nullptr;  ///< when nodes fail
  const StageModel* stages = nullptr;      ///< what runs go through before they work
  const ElasticModel* elastic = nullptr;   ///< which jobs may run at another size
  const JobChanges* changes = nullptr;     ///< what users do to jobs
  const PowerModel* power = nullptr;       ///< what nodes draw, and caps; null: unknown
  const ServiceModel* services = nullptr;  ///< which rows of the table are replicas, and what they serve
  const StudyModel* studies = nullptr;     ///< which rows of the table are tasks of searches
  bool keeps_power_levels = false;         ///< what was drawn over time (Power::levels)
  bool kill_at_limit = false;              ///< jobs end when they have run for as long as they asked for (TimeLimits)
  /// What the engines of a host share, which says which jobs were submitted, and which join: Engine::tell_submitted().
  HostedJobs* hosted = nullptr;
  std::uint32_t engine = 0;     ///< number of this one among them
  MeasureWindow measured = {};  ///< the jobs for which the account of GPU time is kept; all by default
};

}  // namespace gpusched
