// SPDX-License-Identifier: Apache-2.0
/// Traces and clusters as Python holds them: shared and immutable.
#pragma once

#include <memory>
#include <string>

#include "gpusched/data/cluster.hpp"
#include "python/bindings/common.hpp"
#include "traces/core/trace.hpp"

namespace gpusched::python {

/// A trace that was read.
struct PyTrace {
  std::shared_ptr<const Trace> trace;
};

/// A cluster, and the text that parse_cluster() makes it from.
struct PyCluster {
  std::shared_ptr<const Cluster> cluster;
  std::string text;
};

/// {column: array, and where it holds numbers of names, column_names: list}. True run times only if `true_times`.
nb::dict job_columns(const JobTable& jobs, bool true_times);

}  // namespace gpusched::python
