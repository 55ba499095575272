// SPDX-License-Identifier: Apache-2.0
/// The workload model of U. Lublin and D. G. Feitelson, "The workload on parallel supercomputers: modeling the
/// characteristics of rigid jobs", Journal of Parallel and Distributed Computing 63(11), 2003, pages 1105-1122: sizes,
/// run times that depend on them, and arrivals with a daily cycle. Names and values are those of the authors' program
/// (m_lublin99.c, Parallel Workloads Archive). docs/generator.md gives the formulas.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"
#include "gpusched/data/job_table.hpp"
#include "src/base/field_table.hpp"
#include "traces/synthetic/gamma_distribution.hpp"
#include "traces/synthetic/synthetic.hpp"

namespace gpusched {

/// The model's parameters; the values are the published ones of batch jobs on 128 processors. JSON form: read_lublin()
/// and write_lublin().
struct LublinModel {
  std::string about;               ///< one paragraph for people
  std::uint64_t processors = 128;  ///< of the machine; no job has more
  std::uint64_t default_jobs = 10'000;

  // Sizes. The log2 of a parallel job's size is uniform in [ulow, umed] with probability uprob, else in [umed, uhi].
  double serial_prob = 0.2927;  ///< share of jobs of one processor
  double pow2_prob = 0.6686;    ///< share of parallel jobs whose log2 is rounded; of all jobs, not of the parallel ones
  double ulow = 1.2;
  double umed = 5;
  double uhi = 7;
  double uprob = 0.875;

  // Run times. Their natural logarithm is gamma(a1, b1) with probability pa * size + pb, kept within [0, 1], else
  // gamma(a2, b2). A pair is shape and scale.
  double a1 = 6.57, b1 = 0.823;
  double a2 = 639.1, b2 = 0.0156;
  double pa = -0.003, pb = 0.6986;
  double most_log_run = 12;  ///< larger logarithms are drawn again: 45 hours

  /// Above 0, users ask for the run time times 1 + estimate_factor * u, u uniform in [0, 1): the "f-model" of A. W.
  /// Mu'alem and D. G. Feitelson, IEEE Transactions on Parallel and Distributed Systems 12(6), 2001. 0: no requests.
  double estimate_factor = 0;

  // Arrivals. The natural logarithm of the gap to the next job, in seconds weighted by the daily cycle, is
  // gamma(aarr * arar, barr): aarr describes the rush hours, arar ("arrive rush all ratio") corrects it to the whole
  // day. The weights of the cycle's half hours follow from gamma(anum, bnum).
  double aarr = 6.0415, barr = 0.8531;
  double anum = 6.1271, bnum = 5.2740;
  double arar = 1.0519;
  double most_log_gap = 13;  ///< larger logarithms are drawn again: 5 days

  [[nodiscard]] GammaDistribution short_runs() const { return {a1, b1}; }
  [[nodiscard]] GammaDistribution long_runs() const { return {a2, b2}; }
  [[nodiscard]] GammaDistribution gaps() const { return {aarr * arar, barr}; }
  [[nodiscard]] GammaDistribution slot_counts() const { return {anum, bnum}; }
  /// The probability that a job of that size has a run time of short_runs().
  [[nodiscard]] double short_share(double size) const;

  friend bool operator==(const LublinModel&, const LublinModel&) = default;
};

/// The parameters as written behind `lublin{...}` and in files, with their ranges; the rows point into `model`.
FieldTable lublin_fields(LublinModel& model);

/// The model that "umed=5.5,type=all,processors=256" describes, in any order: the published parameters of jobs of that
/// type (batch, the default; interactive; all), moved to that number of processors, and what else is given. With the
/// number of processors, uhi and umed move by as many doublings. Errors: not such a text, or as check_lublin().
Result<LublinModel> lublin_model(std::string_view settings);

/// Success, or the first thing wrong with the model, with its parameter.
Result<void> check_lublin(const LublinModel& model);

/// Whether a JSON text says that it is a LublinModel.
bool is_lublin(std::string_view json);
/// Reads the JSON text of a model, strictly. The result has passed check_lublin().
Result<LublinModel> read_lublin(std::string_view json, const std::string& file);
/// The JSON text of a model; read_lublin() gives back an equal one.
std::string write_lublin(const LublinModel& model);

/// Distribution function of log2 of a parallel job's size, before rounding.
double two_stage_uniform_cdf(const LublinModel& model, double log2_size);
/// The probability of each size. Precondition: 1 <= size <= model.processors.
double size_probability(const LublinModel& model, std::uint64_t size);

/// Draws a trace; time 0 is a midnight, times are whole seconds, as in the authors' program. A shorter trace is the
/// beginning of a longer one. With an offered load, all gaps are multiplied by one factor before the daily cycle is
/// applied, so that the trace has that load and keeps its cycle, and submissions are exact to the microsecond. Errors:
/// options out of range, a trace of more than 1e8 hours, or a model that check_lublin() refuses.
Result<JobTable> generate_lublin(const LublinModel& model, const SyntheticOptions& options);

}  // namespace gpusched
