// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/csv_rows.hpp"
#include "src/world/service_reader.hpp"

namespace gpusched {
namespace {

Unexpected bad_cell(std::string_view field, std::string message) {
  return Unexpected{Error{.message = std::move(message), .field = std::string(field)}};
}

// The columns, each by the names that it may have.
enum LogColumn : std::size_t { date, seconds, prompt, output, service, session, column_count };
constexpr std::array<std::array<std::string_view, 2>, column_count> log_columns{{{"TIMESTAMP", "TIMESTAMP"},
                                                                                 {"arrival_s", "arrival_s"},
                                                                                 {"prompt_tokens", "ContextTokens"},
                                                                                 {"output_tokens", "GeneratedTokens"},
                                                                                 {"service_s", "service_s"},
                                                                                 {"session", "session"}}};

class LogRows {
 public:
  Result<void> read(const std::vector<std::string_view>& cells) {
    if (width_ == 0) return read_header(cells);
    if (cells.size() != width_) {
      return bad_cell("", "expected " + std::to_string(width_) + " fields, not " + std::to_string(cells.size()));
    }
    ServiceRequest request;
    if (auto done = read_time(cells, request); !done) return done;
    if (auto done = read_tokens(cells, prompt, request.prompt_tokens); !done) return done;
    if (auto done = read_tokens(cells, output, request.output_tokens); !done) return done;
    if (auto done = read_service(cells, request); !done) return done;
    if (has(session))
      request.session =
          sessions_.try_emplace(std::string(trim(cells[places_[session]])), sessions_.size()).first->second;
    log_.requests.push_back(request);
    return {};
  }

  RequestLog take() && {
    log_.has_service_times = has(service);
    log_.has_tokens = has(prompt) && has(output);
    log_.has_sessions = has(session);
    return std::move(log_);
  }

 private:
  [[nodiscard]] bool has(LogColumn column) const { return places_[column] < width_; }
  [[nodiscard]] std::string_view name(LogColumn column) const { return names_[column]; }

  Result<void> read_header(const std::vector<std::string_view>& cells) {
    width_ = cells.size();
    for (std::size_t column = 0; column < column_count; ++column) {
      places_[column] = width_;
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const auto& names = log_columns[column];
        const auto known = std::find(names.begin(), names.end(), trim(cells[i]));
        if (known == names.end()) continue;
        if (has(static_cast<LogColumn>(column))) return bad_cell(*known, "expected one such column in the header");
        places_[column] = i;
        names_[column] = *known;
      }
    }
    if (!has(date) && !has(seconds))
      return bad_cell("arrival_s", "expected a header with arrival_s, or with TIMESTAMP");
    return {};
  }

  Result<void> read_time(const std::vector<std::string_view>& cells, ServiceRequest& request) {
    const LogColumn column = has(seconds) ? seconds : date;
    const std::string_view text = trim(cells[places_[column]]);
    const std::optional<Time> time = column == seconds ? parse_seconds(text) : parse_calendar(text);
    if (!time || *time > end_of_time || *time < Time{} - end_of_time) {
      return bad_cell(name(column), column == seconds ? "expected seconds, not '" + excerpt(text) + "'"
                                                      : "expected a date and time, not '" + excerpt(text) + "'");
    }
    if (first_ == Time::max()) first_ = *time;
    if (!log_.requests.empty() && *time - first_ < log_.requests.back().arrival) {
      return bad_cell(name(column),
                      "expected a time not before that of the request above, not '" + excerpt(text) + "'");
    }
    request.arrival = *time - first_;
    return {};
  }

  Result<void> read_tokens(const std::vector<std::string_view>& cells, LogColumn column, std::uint32_t& tokens) {
    if (!has(column)) return {};
    const std::string_view text = trim(cells[places_[column]]);
    const auto number = parse_integer(text);
    constexpr std::int64_t most = 1'000'000'000;
    if (!number || *number < 0 || *number > most) {
      return bad_cell(name(column), "expected a number of tokens, from 0, not '" + excerpt(text) + "'");
    }
    tokens = static_cast<std::uint32_t>(*number);
    return {};
  }

  Result<void> read_service(const std::vector<std::string_view>& cells, ServiceRequest& request) {
    if (!has(service)) return {};
    const std::string_view text = trim(cells[places_[service]]);
    const auto time = parse_seconds(text);
    if (!time || *time < Time{} || *time > end_of_time) {
      return bad_cell("service_s", "expected seconds, from 0, not '" + excerpt(text) + "'");
    }
    request.work = *time;
    return {};
  }

  std::size_t width_ = 0;
  std::array<std::size_t, column_count> places_{};
  std::array<std::string_view, column_count> names_{};
  Time first_ = Time::max();
  std::map<std::string, std::uint64_t> sessions_;  // numbered as they come
  RequestLog log_;
};

}  // namespace

Result<RequestLog> request_log_from_csv(std::string_view text, const std::string& file) {
  LogRows rows;
  if (auto done = for_each_csv_row(text, file, [&](const auto& cells) { return rows.read(cells); }); !done) {
    return Unexpected{done.error()};
  }
  RequestLog log = std::move(rows).take();
  if (log.requests.empty()) return Unexpected{Error{.message = "expected at least one request", .file = file}};
  return log;
}

}  // namespace gpusched
