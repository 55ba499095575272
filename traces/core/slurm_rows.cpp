// SPDX-License-Identifier: Apache-2.0
#include "traces/core/slurm_rows.hpp"

#include "src/base/field_parser.hpp"

namespace gpusched {

void take_slurm_state(std::string_view state, LoggedTimes& times) {
  const auto is = [&](std::string_view word) { return state.starts_with(word); };
  times.waits = is("PENDING") || ((is("REQUEUE") || is("SPECIAL_EXIT")) && times.start == Time::max());
  times.runs = is("RUNNING") || is("SUSPENDED") || is("STOPPED") || is("SIGNALING") || is("CONFIGURING");
  times.cancelled = is("CANCELLED") || is("REVOKED") || is("DEADLINE");
}

namespace {

// Where the GPUs are of no type: of the other's, in their number if that is one type.
void take_types(SlurmTres& demand, const SlurmTres& other) {
  if (demand.gpus.empty() || demand.names_types() || !other.names_types()) return;
  const std::int64_t count = demand.gpu_count();
  if (other.gpus.size() == 1) {
    demand.gpus.front() = other.gpus.front();
    demand.gpus.front().count = count;
  } else if (other.gpu_count() >= count) {
    demand.gpus = other.gpus;
  }
}

}  // namespace

SlurmTres slurm_demand(const SlurmTres& requested, const SlurmTres& allocated, std::int64_t nodes) {
  const std::int64_t wanted = requested.gpu_count(), given = allocated.gpu_count();
  const bool by_request = (given == wanted || given == 0) && (wanted > 0 || requested.cores > 0);
  SlurmTres demand = by_request ? requested : allocated;
  demand.shares = requested.shares || allocated.shares;
  demand.exceeds_request = wanted > 0 && given > wanted;
  take_types(demand, by_request ? allocated : requested);
  if (nodes > 0) demand.nodes = nodes;
  return demand;
}

bool split_slurm_id(std::string_view text, LoggedRun& run) {
  const std::size_t plus = text.find('+');
  run.id = text.substr(0, plus);
  run.component = 0;
  if (plus == std::string_view::npos) return true;
  const auto offset = parse_integer(text.substr(plus + 1));
  if (!offset || *offset < 0) return false;
  run.component = *offset;
  return true;
}

}  // namespace gpusched
