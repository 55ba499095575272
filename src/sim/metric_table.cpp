// SPDX-License-Identifier: Apache-2.0
#include "src/sim/metric_table.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "src/base/nearest_name.hpp"

namespace gpusched {

std::optional<double> MetricInfo::value(const Metrics& metrics) const {
  return std::visit(
      [&](const auto pointer) -> std::optional<double> {
        const auto& held = metrics.*pointer;
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(held)>, std::optional<double>>) {
          return held;
        } else {
          return static_cast<double>(held);
        }
      },
      member);
}

const std::vector<MetricInfo>& metric_table() {
  static const std::vector<MetricInfo> table{
      {"jobs", &Metrics::jobs, Better::neither},
      {"avg_jct_s", &Metrics::avg_jct_s},
      {"median_jct_s", &Metrics::median_jct_s},
      {"p95_jct_s", &Metrics::p95_jct_s},
      {"p99_jct_s", &Metrics::p99_jct_s},
      {"avg_wait_s", &Metrics::avg_wait_s},
      {"p99_wait_s", &Metrics::p99_wait_s},
      {"avg_bounded_slowdown", &Metrics::avg_bounded_slowdown},
      {"worst_decile_slowdown", &Metrics::worst_decile_slowdown},
      {"makespan_s", &Metrics::makespan_s},
      {"last_end_s", &Metrics::last_end_s},
      {"gpu_utilization", &Metrics::gpu_utilization, Better::more},
      {"gpu_allocation", &Metrics::gpu_allocation, Better::more},
      {"preemptions", &Metrics::preemptions},
      {"energy_kwh", &Metrics::energy_kwh},
      {"gpu_fragmentation", &Metrics::gpu_fragmentation},
      {"jain_fairness", &Metrics::jain_fairness, Better::more},
      {"max_finish_time_ratio", &Metrics::max_finish_time_ratio},
      {"events", &Metrics::events, Better::neither},
      {"gpu_overhead", &Metrics::gpu_overhead},
      {"gpu_lost", &Metrics::gpu_lost},
      {"gpu_withheld", &Metrics::gpu_withheld, Better::neither},
      {"goodput", &Metrics::goodput, Better::more},
      {"kills", &Metrics::kills},
      {"cancelled_jobs", &Metrics::cancelled_jobs, Better::neither},
      {"policy_cancelled_jobs", &Metrics::policy_cancelled_jobs, Better::neither, Told::where_known},
      {"refused_jobs", &Metrics::refused_jobs, Better::neither, Told::where_known},
      {"cold_starts", &Metrics::cold_starts},
      {"warm_starts", &Metrics::warm_starts, Better::neither},
      {"fetched_gib", &Metrics::fetched_gib},
      {"deadline_miss_rate", &Metrics::deadline_miss_rate},
      {"avg_tardiness_s", &Metrics::avg_tardiness_s},
      {"carbon_kg", &Metrics::carbon_kg, Better::less, Told::where_known},
      {"cost_usd", &Metrics::cost_usd, Better::less, Told::where_known},
      {"peak_kw", &Metrics::peak_kw, Better::less, Told::where_known},
      {"slo_attainment", &Metrics::slo_attainment, Better::more, Told::where_known},
      {"p99_latency_s", &Metrics::p99_latency_s, Better::less, Told::where_known},
      {"trial_loss", &Metrics::trial_loss, Better::less, Told::where_known},
      {"study_span_s", &Metrics::study_span_s, Better::less, Told::where_known},
      {"study_gpu_hours", &Metrics::study_gpu_hours, Better::less, Told::where_known},
      {"target_s", &Metrics::target_s, Better::less, Told::where_known},
      {"targets_met", &Metrics::targets_met, Better::more, Told::where_known},
  };
  return table;
}

const std::array<LeftOutJobs, 2>& left_out_jobs() {
  static const std::array<LeftOutJobs, 2> table{
      {{&Metrics::refused_jobs, "refused_jobs", "limits refuse"},
       {&Metrics::policy_cancelled_jobs, "policy_cancelled_jobs", "the policy cancels"}}};
  return table;
}

std::string why_no_job() {
  std::vector<std::string> reasons;
  for (const LeftOutJobs& left_out : left_out_jobs()) reasons.emplace_back(left_out.reason);
  return joined(reasons, ", or ") + ", every job";
}

const MetricInfo* find_metric(const std::string& name) {
  const std::vector<MetricInfo>& table = metric_table();
  const auto place = std::find_if(table.begin(), table.end(), [&](const MetricInfo& m) { return m.name == name; });
  return place == table.end() ? nullptr : &*place;
}

std::string power_that_tells(const std::string& name) {
  if (name == "carbon_kg") return "power with carbon";
  if (name == "cost_usd") return "power with usd_per_mwh or rent";
  if (name != "energy_kwh" && name != "peak_kw") return "";
  return "power, or device profiles with the power of every GPU type";
}

std::string lacks_power_figure(const std::string& name, const PowerModel& power) {
  const std::string needed = power_that_tells(name);
  const bool is_known = name == "carbon_kg"  ? power.knows_carbon()
                        : name == "cost_usd" ? power.knows_money()
                                             : !power.is_empty();
  return needed.empty() || is_known ? "" : name + " is not known here; give " + needed;
}

bool is_service_figure(const std::string& name) { return name == "slo_attainment" || name == "p99_latency_s"; }

std::string lacks_service_figure(const std::string& name, const ServiceModel& services) {
  const auto promises = [](const ServiceSpec& service) { return service.promise.has_value(); };
  const bool is_known = name == "slo_attainment"
                            ? std::any_of(services.services.begin(), services.services.end(), promises)
                            : !services.is_empty();
  if (!is_service_figure(name) || is_known) return "";
  return name + " is not known here; give services" + (name == "slo_attainment" ? " with a promise" : "");
}

std::string lacks_deadline_figure(const std::string& name, const JobTable& jobs, const std::string& trace) {
  if ((name != "deadline_miss_rate" && name != "avg_tardiness_s") || jobs.has_deadlines()) return "";
  return name + " is not known here: no job of " + trace + " has a deadline";
}

bool is_study_figure(const std::string& name) {
  return name == "trial_loss" || name == "study_span_s" || name == "study_gpu_hours" || name == "target_s" ||
         name == "targets_met";
}

std::string lacks_study_figure(const std::string& name, const StudyModel& studies) {
  const bool of_target = name == "target_s" || name == "targets_met";
  const auto has_target = [](const StudySpec& study) { return study.target.has_value(); };
  const bool is_known =
      of_target ? std::any_of(studies.studies.begin(), studies.studies.end(), has_target) : !studies.is_empty();
  if (!is_study_figure(name) || is_known) return "";
  return name + " is not known here; give trials" + (of_target ? " with a target_loss" : "");
}

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const MetricInfo& metric : metric_table()) {
    if (metric.better != Better::neither) names.push_back(metric.name);
  }
  return names;
}

}  // namespace gpusched
