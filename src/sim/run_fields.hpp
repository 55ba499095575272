// SPDX-License-Identifier: Apache-2.0
/// The options of reading and backfilling that several commands have and mean the same by.
/// Those of conditions: condition_options.hpp.
#pragma once

#include "src/base/field_table.hpp"

namespace gpusched {

/// How the rows of a trace are read: rows of `scenario`, whose members have these names. The pointers live as long as
/// it.
template <class AnyScenario>
FieldTable reading_fields(AnyScenario& scenario) {
  return {
      {"trace.where", "--where",
       "which jobs to read: COLUMN=VALUE[|VALUE...][,...], also != < <= > >=", &scenario.where},
      {"trace.drop_bad_rows", "--drop-bad-rows",
       "leave out rows with bad values, counted, instead of refusing the trace", &scenario.drop_bad_rows},
      {"trace.backlog", "--backlog",
       "keep jobs that had not ended when the log was written; their time limit is their run time", &scenario.backlog},
      {"trace.qos", "--qos",
       "priorities by quality of service, which the policies priority and slurm mind: NAME=WEIGHT[,...]",
       &scenario.qos},
  };
}

/// Rows that each table puts where its reader looks for them.
struct RunFields {
  Field oversize, backfill;
};

/// The rows of `scenario`, whose members have these names. The pointers live as long as it.
template <class AnyScenario>
RunFields run_fields(AnyScenario& scenario) {
  return {
      .oversize = {"oversize",
                   "--oversize",
                   "a job larger than the cluster is an error, dropped, or clamped to fit",
                   &scenario.oversize,
                   {"error", "drop", "clamp"}},
      .backfill = {"backfill", "--backfill",
                   "how to backfill every policy that can be and does not say so itself, as fifo+easy and fifo+none "
                   "do: none, easy, conservative or sc20, with {parameter=value,...}",
                   &scenario.backfill},
  };
}

}  // namespace gpusched
