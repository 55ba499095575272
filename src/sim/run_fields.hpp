// SPDX-License-Identifier: Apache-2.0
/// RunFields: the options that a replay and an evaluation both have and mean the same by.
#pragma once

#include "src/base/field_table.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {

/// Their rows, which each table puts where its reader looks for them.
struct RunFields {
  Field where, drop_bad_rows, oversize, backfill, placement;
  Field checkpoint_cost, restart_cost, checkpoint_interval, checkpoint_write;
};

/// The rows of `scenario`, whose members have these names. The pointers live as long as it.
template <class AnyScenario>
RunFields run_fields(AnyScenario& scenario) {
  return {
      .where = {"trace.where", "--where",
                "which jobs to read: COLUMN=VALUE[|VALUE...][,...], also != < <= > >=", &scenario.where},
      .drop_bad_rows = {"trace.drop_bad_rows", "--drop-bad-rows",
                        "leave out rows with bad values, counted, instead of refusing the trace",
                        &scenario.drop_bad_rows},
      .oversize = {"oversize",
                   "--oversize",
                   "a job larger than the cluster is an error, dropped, or clamped to fit",
                   &scenario.oversize,
                   {"error", "drop", "clamp"}},
      .backfill = {"backfill", "--backfill",
                   "how to backfill every policy that can be and does not say so itself, as fifo+easy and fifo+none "
                   "do: none, easy, conservative or sc20, with {parameter=value,...}",
                   &scenario.backfill},
      .placement = {"placement", "--placement", "how nodes are chosen; count: no nodes, only GPUs", &scenario.placement,
                    placement_words()},
      .checkpoint_cost = {"preemption.checkpoint_s", "--checkpoint-cost",
                          "seconds to save a job's state when it is preempted", &scenario.preemption.checkpoint},
      .restart_cost = {"preemption.restart_s", "--restart-cost", "seconds to load it again",
                       &scenario.preemption.restart},
      .checkpoint_interval = {"preemption.checkpoint_interval_s", "--checkpoint-interval",
                              "seconds of work between checkpoints; what follows the last one is lost; 0: a preemption "
                              "loses nothing, a failure of a node the whole run",
                              &scenario.preemption.checkpoint_interval},
      .checkpoint_write = {"preemption.checkpoint_write_s", "--checkpoint-write",
                           "seconds to write each checkpoint of an interval, while the job's work rests",
                           &scenario.preemption.periodic_checkpoint},
  };
}

}  // namespace gpusched
