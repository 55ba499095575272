// SPDX-License-Identifier: Apache-2.0
// Ten sites of 1,000 nodes of 8 GPUs, each with the Philly jobs: a federation beside the ten one after the other, by
// turns.
//   build/release/bench/sites_bench [TURNS]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/philly_jobs.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/sites/federation.hpp"
#include "gpusched/sites/routers.hpp"
#include "src/policies/orders/fifo.hpp"

namespace {

using namespace gpusched;

constexpr SiteId site_count = 10;

struct Input {
  JobTable one, all;  // the jobs of one site, and of ten
  Cluster cluster{.nodes = std::vector<Node>(1000, Node{.gpus = 8})};
  SiteWorld world;
};

Input read() {
  const std::vector<bench::PlainJob> jobs = bench::read_plain(bench::philly_path());
  Input input;
  if (jobs.empty()) return input;
  std::vector<bench::PlainJob> ten;
  for (const bench::PlainJob& job : jobs) ten.insert(ten.end(), site_count, job);
  input.one = bench::to_job_table(jobs);
  input.all = bench::to_job_table(ten);
  for (SiteId site = 0; site < site_count; ++site) input.world.sites.push_back({.name = std::to_string(site)});
  const SiteLink link{.bytes_per_s = 1e9};
  input.world.links.assign(std::size_t{site_count} * site_count, link);
  for (std::uint32_t i = 0; i < input.all.size(); ++i) input.world.jobs.push_back({.home = i % site_count});
  return input;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double alone(const Input& input) {
  const auto begin = std::chrono::steady_clock::now();
  for (SiteId site = 0; site < site_count; ++site) {
    Engine engine(input.one, input.cluster);
    Fifo policy;
    if (!simulate(engine, policy)) std::abort();
  }
  return seconds_since(begin);
}

double federated(const Input& input, const AnyRouter& router) {
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<SiteSetup> sites(site_count, {.cluster = &input.cluster, .policy = AnyPolicy(Fifo{})});
  Federation federation(input.all, input.world, sites, router);
  if (federation.run([](SiteId, const OracleView&, std::span<const Event>) {}) != FederationEnd::finished) std::abort();
  return seconds_since(begin);
}

}  // namespace

int main(int argc, char** argv) {
  const Input input = read();
  if (input.one.size() == 0) {
    std::fprintf(stderr, "%s is absent\n", bench::philly_path().c_str());
    return 1;
  }
  double least[3] = {1e9, 1e9, 1e9};
  for (int turn = argc > 1 ? std::atoi(argv[1]) : 3; turn > 0; --turn) {
    least[0] = std::min(least[0], alone(input));
    least[1] = std::min(least[1], federated(input, AnyRouter(LocalOnly{})));
    least[2] = std::min(least[2], federated(input, AnyRouter(LeastLoaded{})));
  }
  std::printf("ten alone %.3f s, local %.3f s (%+.0f %%), least-loaded %.3f s (%+.0f %%)\n", least[0], least[1],
              100 * (least[1] / least[0] - 1), least[2], 100 * (least[2] / least[0] - 1));
  return 0;
}
