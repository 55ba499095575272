// SPDX-License-Identifier: Apache-2.0
/// A replay in the Trace Event Format, which Perfetto and chrome://tracing open.
/// Source: N. Duca and D. Sinclair, "Trace Event Format", Google.
#pragma once

#include <string>
#include <string_view>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/atomic_file.hpp"
#include "src/sim/gpu_log.hpp"

namespace gpusched {

/// What a trace file is of; for its "otherData".
struct TraceEventsSource {
  std::string_view policy, trace;
};

/// Gives `sink` one JSON object, piece by piece, in about 64 KiB each. A process is a node, a thread a GPU, a complete
/// event ("X") one job on one GPU; process 1 holds the counters. Timestamps are the simulator's microseconds. Jobs that
/// share a GPU overlap in ways that a thread cannot nest, so that each share has a thread, the lowest that is free. On
/// a node that only counts its GPUs threads are numbered slots, and an event is all that a job holds of the node. Names
/// are shown as visible_line() does. The same log gives the same bytes.
void write_trace_events(const GpuLog& log, const JobTable& jobs, const Cluster& cluster,
                        const TraceEventsSource& source, const PieceSink& sink);

}  // namespace gpusched
