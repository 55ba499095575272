// SPDX-License-Identifier: Apache-2.0
/// Fidelity: which device profiles set how fast jobs run and what the GPUs draw. The same fields of a replay and of an
/// evaluation.
#pragma once

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/field_table.hpp"
#include "src/calibration/profile/calibrated_runtime.hpp"

namespace gpusched {

/// As the user gave it.
struct Fidelity {
  std::string profiles;           ///< device profiles, [TYPE=]FILE_OR_NAME[,...]; empty: every GPU at the speed of the
                                  ///< trace
  std::string reference_profile;  ///< of the device that the trace's durations are of; empty: the first profile
  double slowdown = 1;            ///< factor on every modelled duration: what the model leaves out
  std::string interference = "profile";  ///< whether jobs that share a GPU slow each other: "profile" or "none"
};

/// Its rows in a table of fields. The pointers live as long as `fidelity`.
FieldTable fidelity_fields(Fidelity& fidelity);

/// The run times and power of these jobs on this cluster: uniform and unknown without profiles. Errors: a profile that
/// cannot be read or does not have what the jobs need, values that need profiles.
Result<CalibratedRuntime> runtime_of(const Fidelity& fidelity, const JobTable& jobs, const Cluster& cluster);

/// What may be files among its words.
std::vector<std::string> files_of(const Fidelity& fidelity);

}  // namespace gpusched
