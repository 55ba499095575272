// SPDX-License-Identifier: Apache-2.0
#include "src/sim/service_report.hpp"

#include <array>
#include <string_view>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/optional_text.hpp"
#include "src/sim/rated_run.hpp"
#include "src/sim/replay.hpp"

namespace gpusched {
namespace {

// In the order of RequestPhase.
constexpr std::array<std::string_view, 6> request_outcomes{"coming",    "waiting", "served",
                                                           "completed", "dropped", "timed_out"};

std::string share(const std::optional<double>& value) { return value ? formatted("%.2f%%", 100 * *value) : "-"; }

// A latency of the requests that were answered; nothing where none was.
std::optional<double> of_answered(const ServiceFigures& service, double ServiceFigures::*figure) {
  return service.requests.completed > 0 ? std::optional(service.*figure) : std::nullopt;
}

std::string latency(const std::optional<double>& seconds) {
  return seconds ? formatted(*seconds < 10 ? "%.3f" : "%.1f", *seconds) : "-";
}

}  // namespace

std::string services_table(const std::vector<PolicyRun>& runs, const TextStyle& style) {
  TextTable table({"policy", "service", "requests", "lost", "mean s", "p95 s", "p99 s", "in time", "repl.", "cold",
                   "GPU-h", "bound"},
                  2);
  for (const PolicyRun& run : runs) {
    for (const ServiceFigures& service : run.services) {
      table.add({run.policy, service.name, human_count(service.requests.injected),
                 human_count(service.requests.dropped + service.requests.timed_out),
                 latency(of_answered(service, &ServiceFigures::mean_latency_s)),
                 latency(of_answered(service, &ServiceFigures::p95_latency_s)),
                 latency(of_answered(service, &ServiceFigures::p99_latency_s)),
                 share(service.slo_attainment) + (service.kept == false ? "!" : ""),
                 formatted("%.2f", service.mean_replicas), human_count(service.starts.cold),
                 formatted("%.1f", service.gpu_hours), formatted("%.1f", service.lower_bound_gpu_hours)});
    }
  }
  table.set_important({2, 3, 7, 4, 5, 6});
  if (runs.front().services.size() == 1) {  // of several services, the figures are of different things
    const auto rate = [&](std::size_t column, Best best, auto figure) {
      table.rate(column, best, runs, [&](const PolicyRun& run) { return rated(run, figure(run.services.front())); });
    };
    rate(3, Best::least, [](const ServiceFigures& of) {
      return std::optional(static_cast<double>(of.requests.dropped + of.requests.timed_out));
    });
    rate(4, Best::least, [](const ServiceFigures& of) { return of_answered(of, &ServiceFigures::mean_latency_s); });
    rate(5, Best::least, [](const ServiceFigures& of) { return of_answered(of, &ServiceFigures::p95_latency_s); });
    rate(6, Best::least, [](const ServiceFigures& of) { return of_answered(of, &ServiceFigures::p99_latency_s); });
    rate(7, Best::most, [](const ServiceFigures& of) { return of.slo_attainment; });
    rate(10, Best::least, [](const ServiceFigures& of) { return std::optional(of.gpu_hours); });
  }
  return "\n" + table.text(style) +
         "requests of services; lost: dropped and timed out; seconds from arrival to answer; in time: answered as "
         "promised (!: fewer than promised); bound: GPU-hours that any number of replicas needs\n";
}

Json service_json(const ServiceFigures& service) {
  const RequestCounts& requests = service.requests;
  const auto of_all = [&service](double ServiceFigures::*figure) { return number_json(of_answered(service, figure)); };
  const auto token = [&](double TokenFigures::*figure) {
    return service.tokens ? Json((*service.tokens).*figure) : Json(nullptr);
  };
  return {{"injected", requests.injected},
          {"completed", requests.completed},
          {"dropped", requests.dropped},
          {"timed_out", requests.timed_out},
          {"in_system_at_end", requests.waiting + requests.served},
          {"retries", service.retries},
          {"mean_latency_s", of_all(&ServiceFigures::mean_latency_s)},
          {"median_latency_s", of_all(&ServiceFigures::median_latency_s)},
          {"p95_latency_s", of_all(&ServiceFigures::p95_latency_s)},
          {"p99_latency_s", of_all(&ServiceFigures::p99_latency_s)},
          {"mean_wait_s", of_all(&ServiceFigures::mean_wait_s)},
          {"mean_first_token_s", token(&TokenFigures::mean_first_token_s)},
          {"p99_first_token_s", token(&TokenFigures::p99_first_token_s)},
          {"mean_per_token_s", token(&TokenFigures::mean_per_token_s)},
          {"p99_per_token_s", token(&TokenFigures::p99_per_token_s)},
          {"slo_attainment", number_json(service.slo_attainment)},
          {"slo_kept", service.kept ? Json(*service.kept) : Json(nullptr)},
          {"cold_starts", service.starts.cold},
          {"warm_starts", service.starts.warm},
          {"preempted_replicas", service.starts.preempted},
          {"killed_replicas", service.starts.killed},
          {"mean_replicas", service.mean_replicas},
          {"gpu_hours", service.gpu_hours},
          {"lower_bound_gpu_hours", service.lower_bound_gpu_hours}};
}

Json services_json(const std::vector<ServiceFigures>& services, const std::optional<PowerAccount>& power) {
  Json all = Json::object();
  std::vector<Bill> bills;
  for (const ServiceFigures& service : services) {
    all[service.name] = service_json(service);
    bills.push_back(service.bill);
  }
  if (power) add_bills(*power, bills, all);
  return all;
}

std::string names_of_row(const Json& row) {
  std::string text;
  for (const auto& [name, value] : row.items()) text += ',' + name;
  return text;
}

std::string cells_of_row(const Json& row) {
  std::string text;
  for (const auto& [name, value] : row.items()) {
    text += ',';
    if (!value.is_null()) text += value.is_number_float() ? formatted("%.6f", value.get<double>()) : value.dump();
  }
  return text;
}

std::string services_csv(const std::vector<ServiceFigures>& services, const std::optional<PowerAccount>& power) {
  std::string text;
  const Json rows = services_json(services, power);
  for (const auto& [service, row] : rows.items()) {
    if (text.empty()) text = "service" + names_of_row(row) + '\n';
    append_csv_field(text, service);
    text += cells_of_row(row) + '\n';
  }
  return text;
}

std::string requests_header() { return "request,arrival_s,start_s,first_token_s,end_s,outcome,replica,retries\n"; }

void append_requests(std::string& text, const RequestLedger& queue,
                     const std::function<std::string(std::uint32_t)>& first) {
  text.reserve(text.size() + queue.records().size() * 64);
  for (std::uint32_t request = 0; request < queue.records().size(); ++request) {
    const RequestRecord& record = queue.records()[request];
    text += first(request);
    append_seconds(text += ',', queue.arrival(request));
    text += ',';
    if (record.start != Time::max()) append_seconds(text, record.start);
    text += ',';
    if (record.first_token != Time::max()) append_seconds(text, record.first_token);
    text += ',';
    if (record.end != Time::max()) append_seconds(text, record.end);
    text += ',';
    text += request_outcomes[static_cast<std::size_t>(record.phase)];
    text += ',';
    if (record.replica != no_index) append_integer(text, record.replica);
    append_integer(text += ',', record.retries);
    text += '\n';
  }
}

std::string requests_csv(const Engine& engine) {
  std::string text = "service," + requests_header();
  const ServiceModel& model = engine.services().model();
  for (std::uint32_t i = 0; i < model.services.size(); ++i) {
    std::string name;
    append_csv_field(name, model.services[i].name);
    append_requests(text, engine.services().requests(i),
                    [&](std::uint32_t request) { return name + ',' + std::to_string(request); });
  }
  return text;
}

}  // namespace gpusched
