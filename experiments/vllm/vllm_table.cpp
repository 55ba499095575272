// SPDX-License-Identifier: Apache-2.0
// Prints latencies of a vLLM server, measured and simulated, as csv.
#include <CLI/CLI.hpp>
#include <string>

#include "experiments/signal_option.hpp"
#include "src/base/atomic_file.hpp"
#include "src/calibration/profile/llm_tables.hpp"
#include "src/sim/protocols/vllm_protocol.hpp"

namespace {

using namespace gpusched;

struct Options {
  std::string requests, kernels, meta, log;
  std::int32_t layers = 0, tensor_parallel = 0;
  double link_gb_s = 0, link_us = 0, host_ms = 0;
  std::int64_t hidden = 0, kv_tokens = 0;

  void add_to(CLI::App& app) {
    app.add_option("--requests", requests, "JSON lines: input_toks, output_toks, arrival_time and measured times")
        ->required();
    app.add_option("--kernels", kernels, "folder of dense.csv, attention.csv, per_sequence.csv of one layer")
        ->required();
    app.add_option("--meta", meta, "JSON of what the server was started with")->required();
    app.add_option("--layers", layers, "of the model")->required()->check(CLI::Range(1, 10'000));
    app.add_option("--tensor-parallel", tensor_parallel, "ranks that share a layer; without, as the meta file says")
        ->check(CLI::Range(1, 1024));
    app.add_option("--link-gb-s", link_gb_s, "10^9 bytes a second between ranks")->check(CLI::Range(1e-3, 1e6));
    app.add_option("--link-us", link_us, "latency of an all-reduce")->check(CLI::Range(0.0, 1e6));
    app.add_option("--hidden", hidden, "values of a hidden state")->check(CLI::Range(1, 10'000'000));
    app.add_option("--host-ms", host_ms, "a constant of the server added to each step; below 0: taken off")
        ->check(CLI::Range(-1e4, 1e4));
    app.add_option("--kv-tokens", kv_tokens, "that the cache holds, in place of the meta file's")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
    app.add_option("--log", log, "file for the simulated requests, which --requests reads");
  }
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("vLLM: latencies of a server, measured and simulated from its kernels");
  options.add_to(app);
  CLI11_PARSE(app, argc, argv);

  auto server = read_vllm_server(options.meta);
  if (!server) return complain(server.error());
  const auto requests = read_vllm_requests(options.requests);
  if (!requests) return complain(requests.error());
  const auto tables = read_kernel_tables(options.kernels);
  if (!tables) return complain(tables.error());
  if (options.kv_tokens > 0) {
    server->limits.kv_blocks = options.kv_tokens / server->limits.block_tokens;
    if (server->limits.kv_blocks == 0)
      return complain("--kv-tokens: expected a block of " + std::to_string(server->limits.block_tokens) + " or more");
  } else {
    for (const std::string& line : server->notes) note(line);
  }
  TensorParallel parallel{.ranks = options.tensor_parallel > 0 ? options.tensor_parallel : server->tensor_parallel,
                          .link_gb_s = options.link_gb_s,
                          .link_us = options.link_us,
                          .hidden = options.hidden,
                          .bytes_per_value = server->bytes_per_value};
  if (parallel.ranks > 1 && (parallel.link_gb_s <= 0 || parallel.hidden == 0)) {
    return complain("--link-gb-s and --hidden: expected both where " + std::to_string(parallel.ranks) +
                    " ranks share a layer");
  }
  const LlmStepTimes times{KernelStepTimes(*tables, options.layers, parallel, 1e3 * options.host_ms)};
  const auto simulated = run_vllm(*requests, server->limits, times);
  if (!simulated) return complain(simulated.error());
  if (!options.log.empty()) {
    if (const auto written = replace_file(options.log, simulated->log(*requests)); !written) {
      return complain(written.error(), exit_failed);
    }
  }
  print_row({"figure", "measured", "simulated", "error_percent"});
  for (const VllmFigure& figure : simulated->figures(*requests)) {
    const bool known = figure.measured && *figure.measured > 0;
    print_row({figure.name, figure.measured ? exact_number(*figure.measured) : "", exact_number(figure.simulated),
               known ? exact_number(100 * (figure.simulated / *figure.measured - 1)) : ""});
  }
  return exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
