// SPDX-License-Identifier: Apache-2.0
/// What a reader of a mean over windows should know of them.
#pragma once

#include <string>
#include <vector>

#include "src/sim/window_comparison.hpp"

namespace gpusched {

/// Sentences that begin with the contestant's name: jobs that no average counts, windows in which the queue grows
/// ("fifo: saturated, the queue grows for as long as jobs arrive, in 3 of 40 windows: means depend on their length"),
/// windows that do not know a figure of `options`, or of which the reference does not.
std::vector<std::string> window_notes(const Contestant& contestant, const Contestant& reference,
                                      const ReportOptions& options);

}  // namespace gpusched
