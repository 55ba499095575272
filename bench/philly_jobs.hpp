// SPDX-License-Identifier: Apache-2.0
/// The Philly jobs as plain records, read in a simple and fast way: input of the benchmarks, and the bare loop that
/// they are compared with.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/data/job_table.hpp"

namespace gpusched::bench {

struct PlainJob {
  std::int64_t submit_s;
  std::int64_t run_s;
  int gpus;
};

/// Where philly_jobs.csv lies: $GPUSCHED_TRACES or ../shared/traces beside the checkout.
inline std::string philly_path() {
  const char* traces = std::getenv("GPUSCHED_TRACES");
  return (traces != nullptr ? std::string(traces) : std::string(GPUSCHED_SOURCE_DIR "/../shared/traces")) +
         "/philly/philly_jobs.csv";
}

/// strtol over the whole file; empty when it is absent.
inline std::vector<PlainJob> read_plain(const std::string& path) {
  std::vector<PlainJob> jobs;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) return jobs;
  std::fseek(file, 0, SEEK_END);
  std::string text(static_cast<std::size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  if (std::fread(text.data(), 1, text.size(), file) != text.size()) text.clear();
  std::fclose(file);
  char* at = text.data();
  char* const end = at + text.size();
  const auto next_line = [&] {
    while (at < end && *at != '\n') ++at;
    ++at;
  };
  for (next_line(); at < end; next_line()) {
    std::strtol(at, &at, 10);
    const std::int64_t submit = std::strtol(at + 1, &at, 10);
    const auto gpus = static_cast<int>(std::strtol(at + 1, &at, 10));
    jobs.push_back({submit, std::strtol(at + 1, &at, 10), gpus});
  }
  return jobs;
}

/// The bare loop, the minimum that any simulator must do: strict FIFO on a pool with one heap and a counter. Returns
/// the sum of completion times in seconds.
inline std::int64_t bare_fifo(const std::vector<PlainJob>& jobs, int gpus) {
  using Finish = std::pair<std::int64_t, int>;  // time, GPUs
  std::priority_queue<Finish, std::vector<Finish>, std::greater<>> running;
  std::int64_t total_jct_s = 0;
  std::size_t arrived = 0;
  std::size_t started = 0;
  while (started < jobs.size() || !running.empty()) {
    const bool arrival_next =
        arrived < jobs.size() && (running.empty() || jobs[arrived].submit_s < running.top().first);
    const std::int64_t now = arrival_next ? jobs[arrived].submit_s : running.top().first;
    for (; !running.empty() && running.top().first == now; running.pop()) gpus += running.top().second;
    while (arrived < jobs.size() && jobs[arrived].submit_s == now) ++arrived;
    for (; started < arrived && jobs[started].gpus <= gpus; ++started) {
      gpus -= jobs[started].gpus;
      running.push({now + jobs[started].run_s, jobs[started].gpus});
      total_jct_s += now + jobs[started].run_s - jobs[started].submit_s;
    }
  }
  return total_jct_s;
}

/// The same jobs for the engine.
inline JobTable to_job_table(const std::vector<PlainJob>& jobs) {
  JobTableBuilder builder;
  builder.reserve(jobs.size());
  for (const PlainJob& job : jobs) {
    builder.add({.id = {},
                 .submit = whole_seconds(job.submit_s),
                 .work = whole_seconds(job.run_s),
                 .shape = {.tasks = static_cast<std::uint32_t>(job.gpus), .gpu_milli_per_task = whole_gpu}});
  }
  return *std::move(builder).build();
}

}  // namespace gpusched::bench
