// SPDX-License-Identifier: Apache-2.0
#include "src/world/request_arrivals.hpp"

#include <array>
#include <filesystem>
#include <utility>

#include "src/world/signal_reader.hpp"

namespace gpusched {
namespace {

constexpr double longest_arrivals_s = 1e9, most_per_s = 1e6;
constexpr std::size_t most_requests = 200'000'000;

constexpr std::array<NamedValue<ArrivalProcess>, 2> process_names{
    {{"poisson", ArrivalProcess::poisson}, {"even", ArrivalProcess::even}}};

Result<void> read_request_log(const std::string& path, std::vector<ServiceRequest>& requests, RequestLog& log) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  auto read = request_log_from_csv(*text, path);
  if (!read) return Unexpected{read.error()};
  requests = std::move(read->requests);
  log = *std::move(read);
  return {};
}

}  // namespace

std::string path_from(const std::string& file, const std::string& named) {
  const std::filesystem::path path(named);
  return path.is_absolute() ? named : (std::filesystem::path(file).parent_path() / path).string();
}

std::vector<Time> arrivals_at(const Signal& per_s, Time end, ArrivalProcess process, Rng rng) {
  std::vector<Time> arrivals;
  double at_s = 0;
  const auto gap = [&] { return process == ArrivalProcess::even ? 1.0 : rng.exponential(1); };
  double left = process == ArrivalProcess::even ? 0 : gap();  // of the integral of the rate, until the next
  for (Time step{}; step < end;) {
    const Time next = std::min(per_s.next_change(step), end);
    const double rate = per_s.at(step), until_s = to_seconds(next);
    while (rate > 0 && at_s + left / rate < until_s) {
      at_s += left / rate;
      const Time arrival = from_seconds(at_s);
      if (arrival >= end || arrivals.size() == most_requests) return arrivals;
      arrivals.push_back(arrival);
      left = gap();
    }
    left -= rate * (until_s - at_s);
    at_s = until_s;
    step = next;
  }
  return arrivals;
}

Result<void> read_request_source(JsonFields& fields, const std::string& file, const Rng& rng,
                                 std::vector<ServiceRequest>& requests, RequestLog& log) {
  const int sources =
      (fields.has("log") ? 1 : 0) + (fields.has("rate_per_s") ? 1 : 0) + (fields.has("rate_file") ? 1 : 0);
  if (sources != 1) {
    fields.fail(fields.has("log") ? "log" : "rate_per_s", "expected one of log, rate_per_s and rate_file");
    return {};
  }
  if (fields.has("log")) {
    std::string named;
    fields.read("log", named);
    return fields.good() ? read_request_log(path_from(file, named), requests, log) : Result<void>{};
  }
  double rate = 0, duration_s = 0;
  ArrivalProcess process = ArrivalProcess::poisson;
  std::string named;
  fields.read_above_zero("rate_per_s", rate, most_per_s);
  fields.read("rate_file", named);
  fields.read_above_zero("duration_s", duration_s, longest_arrivals_s);
  fields.read_word("arrivals", process, process_names);
  Signal per_s(rate);
  Time end = from_seconds(duration_s);
  if (fields.good() && fields.has("rate_file")) {
    auto read = read_signal(path_from(file, named), {.kind = SignalKind::rate, .begins_at = Time{}});
    if (!read) return Unexpected{read.error()};
    if (read->signal.least_micro() < 0) {
      return Unexpected{
          Error{.message = "expected rates from 0", .file = path_from(file, named), .field = read->column}};
    }
    per_s = read->signal;
    if (!fields.has("duration_s")) end = read->end;
  } else {
    fields.require("duration_s");
  }
  if (!fields.good()) return {};
  for (const Time arrival : arrivals_at(per_s, end, process, rng)) requests.push_back({.arrival = arrival});
  if (requests.empty()) fields.fail("duration_s", "no request comes in this time");
  return {};
}

}  // namespace gpusched
