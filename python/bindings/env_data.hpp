// SPDX-License-Identifier: Apache-2.0
/// What the environments of one VectorEnv run on: traces on clusters under conditions, and the windows of each.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpusched/learn/vector_env.hpp"
#include "python/bindings/common.hpp"
#include "python/bindings/trace.hpp"
#include "src/base/field_table.hpp"
#include "src/conditions/run_conditions.hpp"

namespace gpusched::python {

/// One trace on one cluster. `world` borrows `conditions`.
struct PlacedTrace {
  JobTable jobs;              ///< those that fit the cluster
  RunConditions conditions;   ///< of `jobs`
  EnvWorld world;             ///< in which its windows run
  std::uint32_t first = 0;    ///< jobs of the traces before it: Python numbers the jobs of all of them
  std::uint32_t windows = 0;  ///< where its windows begin
};

/// What environments borrow; kept by each of them and by their states.
struct EnvData {
  std::deque<PlacedTrace> traces;  ///< at least one; their addresses stay
  std::vector<Window> windows;     ///< of all of them, one after the other

  /// The trace of a window, by number.
  [[nodiscard]] std::uint32_t trace_of(std::uint32_t window) const;
  /// The windows of a trace, by number.
  [[nodiscard]] std::span<const Window> windows_of(std::size_t trace) const;
  /// Python's number of the first job of a window.
  [[nodiscard]] std::int64_t first_job(std::uint32_t window) const;
  /// Equal for data of the same windows, and hardly ever for others.
  [[nodiscard]] std::uint64_t fingerprint() const;
};

/// What is asked for by keyword.
struct EnvRequest {
  VectorEnvOptions options;
  WindowOptions windows = {};
  ConditionOptions conditions = {};
  Split split = Split::train;
  std::string oversize = "error";
};

/// Its rows; each path is the keyword. The pointers live as long as `request`.
FieldTable env_fields(EnvRequest& request);

/// What a JSON object of keywords gives. Throws InputError.
EnvRequest env_request(const std::string& json);

/// Traces and clusters in pairs, a single one with each of the others, on which `options` can run then. Throws
/// InputError: what does not fit, windows too long, none that offers a choice.
std::shared_ptr<EnvData> load_env_data(const std::vector<PyTrace>& traces, const std::vector<std::string>& clusters,
                                       EnvRequest& request);

/// What the maker of the environments should know; empty: nothing.
std::string note_of(const EnvData& data);

}  // namespace gpusched::python
