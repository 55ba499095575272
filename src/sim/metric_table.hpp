// SPDX-License-Identifier: Apache-2.0
/// The metrics of a run by name: the one list behind reports, files and `evaluate --figure`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpusched/data/power_model.hpp"
#include "gpusched/serving/service_model.hpp"
#include "gpusched/watch/metrics.hpp"

namespace gpusched {

/// Which way a metric is better.
enum class Better : std::uint8_t {
  less,
  more,
  neither,  ///< it describes the run; policies are not compared by it
};

/// Where JSON of a run has a metric.
enum class Told : std::uint8_t {
  always,       ///< null where it is not known
  where_known,  ///< not at all there
};

/// One metric. Its meaning stands in Metrics.
struct MetricInfo {
  std::string name;  ///< key in JSON and csv
  std::variant<std::uint32_t Metrics::*, std::uint64_t Metrics::*, double Metrics::*, std::optional<double> Metrics::*>
      member;
  Better better = Better::less;
  Told told = Told::always;

  /// Nothing where the run does not know it, or it is an average over no job.
  [[nodiscard]] std::optional<double> value(const Metrics& metrics) const;
};

/// All, in the order of reports.
const std::vector<MetricInfo>& metric_table();

/// Measured jobs that no average counts.
struct LeftOutJobs {
  std::optional<double> Metrics::*jobs;
  std::string_view metric;  ///< its name
  std::string_view reason;  ///< "limits refuse", before how many jobs
};

/// All reasons for which a run leaves jobs out.
const std::array<LeftOutJobs, 2>& left_out_jobs();

/// Why there may be none to measure: "limits refuse, or the policy cancels, every job".
std::string why_no_job();

/// The metric of that name, or nullptr.
const MetricInfo* find_metric(const std::string& name);

/// What tells a run the metric of that name: "power with carbon"; empty where power has no part in it.
std::string power_that_tells(const std::string& name);

/// Why a run with this model does not know the metric of that name; empty where it does, or where power has no part in
/// it.
std::string lacks_power_figure(const std::string& name, const PowerModel& power);

/// True when services alone tell a run the metric of that name.
bool is_service_figure(const std::string& name);

/// Why a run with these services does not know the metric of that name; empty where it does, or where services have no
/// part in it.
std::string lacks_service_figure(const std::string& name, const ServiceModel& services);

/// The same of the deadlines of jobs.
std::string lacks_deadline_figure(const std::string& name, const JobTable& jobs, const std::string& trace);

/// The same of searches of trials.
/// \{
bool is_study_figure(const std::string& name);
std::string lacks_study_figure(const std::string& name, const StudyModel& studies);
/// \}

/// The names of the metrics by which policies can be compared.
std::vector<std::string> figure_names();

}  // namespace gpusched
