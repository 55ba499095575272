// SPDX-License-Identifier: Apache-2.0
/// Everything that a program which embeds the simulator usually wants: data, engine, policies' tools, metrics. The
/// learning environment is not among it: `gpusched/learn/env.hpp`.
#pragma once

#include "gpusched/core/result.hpp"
#include "gpusched/core/rng.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/gpu_demand.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/mig.hpp"
#include "gpusched/data/placement.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/policy/policy.hpp"
#include "gpusched/policy/preemptive_order.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/fragmentation.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "gpusched/watch/interval_log.hpp"
#include "gpusched/watch/metrics.hpp"
