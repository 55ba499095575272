// SPDX-License-Identifier: Apache-2.0
/// The options of reading and backfilling that several commands have and mean the same by.
/// Those of conditions: condition_options.hpp.
#pragma once

#include "gpusched/core/result.hpp"
#include "src/base/field_table.hpp"
#include "src/world/limit_text.hpp"
#include "src/world/run_input.hpp"

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

/// The files of a Slurm cluster: rows of `scenario`, whose members have these names. The pointers live as long as it.
template <class AnyScenario>
FieldTable slurm_fields(AnyScenario& scenario) {
  return {
      {"trace.slurm_conf", "--slurm-conf",
       "slurm.conf of the cluster: parameters of the policy slurm, limits of partitions and, without --cluster, the "
       "nodes",
       &scenario.slurm_conf},
      {"trace.slurm_qos", "--slurm-qos",
       "its QOS as `sacctmgr show qos -P` prints them: priorities, in place of --qos, and limits", &scenario.slurm_qos},
  };
}

/// Priorities of QOS are given once, and limits can be read.
template <class AnyScenario>
Result<void> check_qos_and_limits(const AnyScenario& scenario) {
  if (!scenario.qos.empty() && !scenario.slurm_qos.empty())
    return bad_option("trace.slurm_qos", "expected --qos or --slurm-qos, not both");
  const auto limits = parse_limits(scenario.limits);
  return limits ? Result<void>{} : bad_option("limits", limits.error().message);
}

/// There are replicas or trials, which run without jobs of a trace.
template <class AnyScenario>
bool runs_without_jobs(const AnyScenario& scenario) {
  return !scenario.conditions.services.empty() || !scenario.conditions.trials.empty();
}

/// What is read of `scenario`, whose members have these names, but for its traces with their formats, columns and
/// clusters.
template <class AnyScenario>
InputRequest common_request(const AnyScenario& scenario) {
  // Built field by field: GCC 12 at -O3 takes a nested aggregate's strings for uninitialised.
  InputRequest request;
  request.reading.where = scenario.where;
  request.reading.qos = scenario.qos;
  request.reading.seed = scenario.seed;
  request.reading.drop_bad_rows = scenario.drop_bad_rows;
  request.reading.backlog = scenario.backlog;
  request.limits = scenario.limits;
  request.slurm_conf = scenario.slurm_conf;
  request.slurm_qos = scenario.slurm_qos;
  request.placement = scenario.conditions.placement;
  request.oversize = oversize_from_word(scenario.oversize);
  request.has_services = runs_without_jobs(scenario);
  return request;
}

/// Rows that each table puts where its reader looks for them.
struct RunFields {
  Field limits, oversize, backfill;
};

/// The rows of `scenario`, whose members have these names. The pointers live as long as it.
template <class AnyScenario>
RunFields run_fields(AnyScenario& scenario) {
  return {
      .limits =
          {"limits", "--limits",
           "what jobs may hold at once, besides the cluster file's limits: user{gpus=16,jobs=4},all{qos=[low],gpus=32}",
           &scenario.limits},
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
