// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/vllm_protocol.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string_view>

#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

// The value below the first of `paths`, names divided by slashes, that is there and not null.
const Json* find(const Json& json, std::initializer_list<std::string_view> paths) {
  for (std::string_view path : paths) {
    const Json* at = &json;
    while (at != nullptr && !path.empty()) {
      const std::size_t end = std::min(path.find('/'), path.size());
      const auto member = at->is_object() ? at->find(std::string(path.substr(0, end))) : at->end();
      at = at->is_object() && member != at->end() && !member->is_null() ? &*member : nullptr;
      path.remove_prefix(std::min(end + 1, path.size()));
    }
    if (at != nullptr) return at;
  }
  return nullptr;
}

// Reads the values of one object; the first that is wrong stays.
class Values {
 public:
  Values(const Json& json, std::string file, std::uint64_t line) : json_(json), file_(std::move(file)), line_(line) {}

  std::optional<std::int64_t> count(std::initializer_list<std::string_view> paths, bool required) {
    const Json* value = find(json_, paths);
    if (value == nullptr) return absent(*paths.begin(), required, "a whole number from 1");
    if (value->is_number_integer() && value->get<std::int64_t>() >= 1 && value->get<std::int64_t>() <= 1'000'000'000) {
      return value->get<std::int64_t>();
    }
    return fail(*paths.begin(), "a whole number from 1 to 1000000000", *value), std::nullopt;
  }
  std::optional<double> seconds(std::string_view key, bool required) {
    const Json* value = find(json_, {key});
    if (value == nullptr) return absent(key, required, "seconds");
    if (value->is_number() && value->get<double>() >= 0 && value->get<double>() <= 1e12) return value->get<double>();
    return fail(key, "seconds from 0", *value), std::nullopt;
  }
  bool flag(std::string_view path, bool without) {
    const Json* value = find(json_, {path});
    if (value == nullptr) return without;
    if (!value->is_boolean()) return fail(path, "true or false", *value), without;
    return value->get<bool>();
  }
  std::string text(std::string_view path) {
    const Json* value = find(json_, {path});
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(path, "a text", *value), std::string();
    return value->get<std::string>();
  }
  void refuse(std::string_view key, std::string message) {
    if (!error_) error_ = Error{.message = std::move(message), .file = file_, .line = line_, .field = std::string(key)};
  }
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  std::nullopt_t absent(std::string_view key, bool required, const std::string& expected) {
    if (required) refuse(key, "expected " + expected + ", found nothing");
    return std::nullopt;
  }
  void fail(std::string_view key, const std::string& expected, const Json& found) {
    refuse(key, "expected " + expected + ", found " + json_excerpt(found));
  }

  const Json& json_;
  std::string file_;
  std::uint64_t line_;
  std::optional<Error> error_;
};

// A line of the log. `first_s`: when the first request arrived; below 0: this is it.
VllmRequest read_request(Values& values, double& first_s, std::size_t row) {
  VllmRequest read;
  read.id = values.text("request_id");
  if (read.id.empty()) read.id = std::to_string(row);
  read.request.id = row;
  read.request.prompt_tokens = static_cast<std::int32_t>(values.count({"input_toks"}, true).value_or(1));
  read.request.output_tokens = static_cast<std::int32_t>(values.count({"output_toks"}, true).value_or(1));
  const auto queued = values.seconds("queued_ts", false), first = values.seconds("first_token_ts", false),
             last = values.seconds("last_token_ts", false);
  auto arrival = values.seconds("arrival_time", !queued);
  if (!arrival) arrival = queued;
  if (arrival && first_s < 0) first_s = *arrival;
  if (arrival) read.request.arrival = from_seconds(*arrival - first_s);
  if (queued && first && last) {
    read.measured = {*queued, *first, *last};
    if (*first < *queued) values.refuse("first_token_ts", "expected queued_ts <= first_token_ts");
    if (*last < *first) values.refuse("last_token_ts", "expected first_token_ts <= last_token_ts");
  }
  return read;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double rank = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<std::size_t>(rank);
  const std::size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (rank - static_cast<double>(low));
}

struct Latencies {
  std::vector<double> whole, first, per_token;

  void add(double queued_s, double first_s, double last_s, std::int32_t tokens) {
    whole.push_back(last_s - queued_s);
    first.push_back(first_s - queued_s);
    if (tokens > 1) per_token.push_back((last_s - first_s) / (tokens - 1));
  }
};

Result<void> check(const VllmRequest& request, const LlmOutcome& outcome) {
  const bool ordered = outcome.request.arrival <= outcome.queued && outcome.queued <= outcome.scheduled &&
                       outcome.scheduled <= outcome.first_token && outcome.first_token <= outcome.last_token;
  if (ordered) return {};
  return unexpected("request " + request.id + ": its instants are not in order");
}

}  // namespace

Result<std::vector<VllmRequest>> read_vllm_requests(const std::string& file) {
  const auto text = read_text_file(file);
  if (!text) return Unexpected{text.error()};
  std::vector<VllmRequest> requests;
  double first_s = -1;
  std::uint64_t line = 0;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    const std::string_view record = std::string_view(*text).substr(at, end - at);
    at = end + 1;
    ++line;
    if (record.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto json = parse_json_strictly(record, file);
    if (!json) return Unexpected{Error{.message = json.error().message, .file = file, .line = line}};
    Values values(*json, file, line);
    const VllmRequest request = read_request(values, first_s, requests.size());
    const bool falls = !requests.empty() && request.request.arrival < requests.back().request.arrival;
    if (request.request.arrival < Time{} || falls)
      values.refuse("arrival_time", "expected one that is not before the request above");
    if (!requests.empty() && request.measured.has_value() != requests.front().measured.has_value()) {
      values.refuse("last_token_ts", "expected all requests or none with queued_ts, first_token_ts and last_token_ts");
    }
    if (values.error()) return Unexpected{*values.error()};
    requests.push_back(request);
  }
  if (requests.empty()) return Unexpected{Error{.message = "expected requests, one JSON object a line", .file = file}};
  return requests;
}

Result<VllmServer> read_vllm_server(const std::string& file) {
  const auto text = read_text_file(file);
  if (!text) return Unexpected{text.error()};
  const auto json = parse_json_strictly(*text, file);
  if (!json) return Unexpected{json.error()};
  Values values(*json, file, 0);
  VllmServer server;
  const auto sequences =
      values.count({"engine_kwargs/max_num_seqs", "resolved_config/scheduler_config/max_num_seqs"}, true);
  const auto tokens = values.count(
      {"engine_kwargs/max_num_batched_tokens", "resolved_config/scheduler_config/max_num_batched_tokens"}, true);
  const auto block = values.count({"kv_cache/block_size", "resolved_config/cache_config/block_size"}, false);
  auto blocks = values.count({"kv_cache/num_gpu_blocks", "resolved_config/cache_config/num_gpu_blocks"}, false);
  const auto kv_tokens = values.count({"kv_cache/num_kv_tokens"}, false);
  const auto parallel = values.count(
      {"engine_kwargs/tensor_parallel_size", "resolved_config/parallel_config/tensor_parallel_size"}, false);
  server.limits.chunked = values.flag("resolved_config/scheduler_config/enable_chunked_prefill", true);
  server.limits.whole_prompt_fits = values.flag("resolved_config/scheduler_config/scheduler_reserve_full_isl", true);
  const std::string type = values.text("engine_kwargs/dtype");
  if (values.error()) return Unexpected{*values.error()};
  server.limits.sequences = static_cast<std::int32_t>(*sequences);
  server.limits.step_tokens = *tokens;
  server.limits.block_tokens = static_cast<std::int32_t>(block.value_or(16));
  if (!blocks && kv_tokens) blocks = *kv_tokens / server.limits.block_tokens;
  if (blocks) server.limits.kv_blocks = *blocks;
  if (!blocks) server.notes.push_back(file + " does not say how large the cache is: it never fills");
  server.tensor_parallel = static_cast<std::int32_t>(parallel.value_or(1));
  server.bytes_per_value = type == "float32" ? 4 : 2;
  return server;
}

std::vector<VllmFigure> VllmRun::figures(const std::vector<VllmRequest>& requests) const {
  Latencies simulated, measured;
  for (const LlmOutcome& outcome : outcomes) {
    const VllmRequest& request = requests[outcome.request.id];
    const std::int32_t tokens = outcome.request.output_tokens;
    simulated.add(to_seconds(outcome.queued), to_seconds(outcome.first_token), to_seconds(outcome.last_token), tokens);
    if (const auto& m = request.measured) measured.add(m->queued_s, m->first_token_s, m->last_token_s, tokens);
  }
  const auto figure = [&](const char* name, std::vector<double> Latencies::*which, auto of) {
    const bool known = !(measured.*which).empty();
    return VllmFigure{name, known ? std::optional<double>(of(measured.*which)) : std::nullopt, of(simulated.*which)};
  };
  return {figure("mean_latency_s", &Latencies::whole, mean),
          figure("p99_latency_s", &Latencies::whole,
                 [](const std::vector<double>& values) { return quantile(values, .99); }),
          figure("mean_first_token_s", &Latencies::first, mean),
          figure("mean_per_token_s", &Latencies::per_token, mean),
          {"preemptions", std::nullopt, static_cast<double>(counts.preemptions)}};
}

std::string VllmRun::log(const std::vector<VllmRequest>& requests) const {
  std::string text;
  for (const LlmOutcome& outcome : outcomes) {
    text += "{\"request_id\": " + json_text(Json(requests[outcome.request.id].id), -1);
    text.pop_back();  // its line end
    text += ", \"input_toks\": " + std::to_string(outcome.request.prompt_tokens) +
            ", \"output_toks\": " + std::to_string(outcome.request.output_tokens);
    const std::pair<const char*, Time> instants[] = {{"arrival_time", outcome.request.arrival},
                                                     {"queued_ts", outcome.queued},
                                                     {"scheduled_ts", outcome.scheduled},
                                                     {"first_token_ts", outcome.first_token},
                                                     {"last_token_ts", outcome.last_token}};
    for (const auto& [name, time] : instants) text += std::string(", \"") + name + "\": " + exact_seconds(time);
    text += "}\n";
  }
  return text;
}

Result<VllmRun> run_vllm(const std::vector<VllmRequest>& requests, const LlmLimits& limits, const LlmStepTimes& times) {
  LlmReplica replica(limits, times);
  for (const VllmRequest& request : requests) {
    if (replica.fits(request.request)) continue;
    return unexpected("request " + request.id + ": its " + std::to_string(request.request.prompt_tokens) + " + " +
                      std::to_string(request.request.output_tokens) + " tokens exceed the cache of " +
                      std::to_string(limits.kv_blocks) + " blocks of " + std::to_string(limits.block_tokens));
  }
  std::size_t next = 0;
  while (next < requests.size() || replica.has_work()) {
    const Time now =
        next < requests.size() ? std::min(requests[next].request.arrival, replica.next_time()) : replica.next_time();
    for (; next < requests.size() && requests[next].request.arrival == now; ++next) {
      replica.advance(now);
      replica.submit(requests[next].request, now);
    }
    replica.advance(now);
  }
  if (!replica.consistent()) return unexpected("the replica lost requests or blocks");
  VllmRun run{{replica.done().begin(), replica.done().end()}, replica.counts()};
  std::sort(run.outcomes.begin(), run.outcomes.end(),
            [](const LlmOutcome& a, const LlmOutcome& b) { return a.request.id < b.request.id; });
  if (run.outcomes.size() != requests.size()) return unexpected("not every request was answered");
  for (const LlmOutcome& outcome : run.outcomes) {
    if (auto ordered = check(requests[outcome.request.id], outcome); !ordered) return Unexpected{ordered.error()};
  }
  return run;
}

}  // namespace gpusched
