// SPDX-License-Identifier: Apache-2.0
/// A model of any kind that a synthetic trace is drawn from: sessions of users (SyntheticModel), the model of Lublin
/// and Feitelson (LublinModel), or searches for hyperparameters (HyperbandModel).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/hyperband.hpp"
#include "traces/synthetic/lublin.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {

using TraceModel = std::variant<SyntheticModel, LublinModel, HyperbandModel>;

/// What `--model` takes besides files: builtin_model_names(), lublin and hyperband.
std::vector<std::string> trace_model_names();

/// "philly", "lublin", or "lublin{umed=5.5,type=all}". Errors: an unknown name, with the nearest; as lublin_model()
/// or hyperband_model().
Result<TraceModel> named_trace_model(std::string_view text);

/// Reads the JSON text of a model of any kind, strictly.
Result<TraceModel> read_trace_model(std::string_view json, const std::string& file);
/// The JSON text of a model; read_trace_model() gives back an equal one.
std::string write_trace_model(const TraceModel& model);

/// The model's own defaults: jobs, load and cluster size.
SyntheticOptions default_options(const TraceModel& model);
/// The cluster that default_options() refers to, as --cluster takes it.
std::string default_cluster(const TraceModel& model);

/// Draws a trace, as generate_synthetic(), generate_lublin() or generate_hyperband().
Result<JobTable> generate_trace(const TraceModel& model, const SyntheticOptions& options);

/// What `--trace synthetic:NAME` means: the named model with its defaults; of "NAME:JOBS" so many jobs.
Result<Trace> synthetic_trace(std::string_view name, std::uint64_t seed);

}  // namespace gpusched
