// SPDX-License-Identifier: Apache-2.0
/// RunFields: the options of reading and backfilling that a replay and an evaluation both have and mean the same by.
/// Those of conditions: condition_options.hpp.
#pragma once

#include "src/base/field_table.hpp"

namespace gpusched {

/// Their rows, which each table puts where its reader looks for them.
struct RunFields {
  Field where, drop_bad_rows, oversize, backfill;
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
  };
}

}  // namespace gpusched
