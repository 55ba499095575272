// SPDX-License-Identifier: Apache-2.0
/// Fits the model of Lublin and Feitelson to a trace: `gpusched trace generate --model lublin --like FILE`.
#pragma once

#include <cstdint>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "traces/synthetic/lublin.hpp"
#include "traces/synthetic/trace_fit.hpp"

namespace gpusched {

/// The parameters that make the sizes, run times and arrivals of `jobs` most likely, each of the three alone, and an
/// estimate_factor of twice the median of (requested time / run time - 1), 0 without requested times:
/// serial_prob, pow2_prob, ulow, umed and uprob from the sizes, with uhi the log2 of `processors` (0: of the largest
/// job); a1, b1, a2, b2, pa and pb from run times and sizes; anum and bnum from the times of day (days begin as
/// options.week_start does); aarr and barr from the gaps, with arar 1, since only its product with aarr matters. The
/// limits are the published ones, or above the longest of the trace. Shares of a GPU count as one. Errors: fewer than
/// 100 jobs, fewer than 20 of more than one GPU, a job of more than `processors`, or all submitted within an hour.
Result<LublinModel> fit_lublin(const JobTable& jobs, std::uint64_t processors, const FitOptions& options = {});

}  // namespace gpusched
