// SPDX-License-Identifier: Apache-2.0
// Ten sites of 1,000 nodes of 8 GPUs, each with the Philly jobs, submitted at the same instants and, in a second round,
// a second later at each site than at the one before it: a federation beside the ten one after the other, by turns,
// processor time.
//   build/release/bench/sites_bench [TURNS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
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
  std::vector<JobTable> own;  // the jobs of each site
  JobTable all;               // of all
  Cluster cluster{.nodes = std::vector<Node>(1000, Node{.gpus = 8})};
  SiteWorld world;
};

// `shift_s`: how much later a site's jobs come than those of the one before it.
Input input_of(const std::vector<bench::PlainJob>& jobs, std::int64_t shift_s) {
  struct Row {
    bench::PlainJob job;
    SiteId home;
  };
  Input input;
  std::vector<Row> rows;
  for (SiteId site = 0; site < site_count; ++site) {
    std::vector<bench::PlainJob> own = jobs;
    for (bench::PlainJob& job : own) {
      job.submit_s += shift_s * site;
      rows.push_back({job, site});
    }
    input.own.push_back(bench::to_job_table(own));
    input.world.sites.push_back({.name = std::to_string(site)});
  }
  // At one instant site by site, and at each in the order of the trace.
  std::stable_sort(rows.begin(), rows.end(),
                   [](const Row& a, const Row& b) { return a.job.submit_s < b.job.submit_s; });
  std::vector<bench::PlainJob> all;
  for (const Row& row : rows) {
    all.push_back(row.job);
    input.world.jobs.push_back({.home = row.home});
  }
  input.all = bench::to_job_table(all);
  const SiteLink link{.bytes_per_s = 1e9};
  input.world.links.assign(std::size_t{site_count} * site_count, link);
  return input;
}

double seconds_since(std::clock_t begin) { return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; }

double alone(const Input& input) {
  const std::clock_t begin = std::clock();
  for (SiteId site = 0; site < site_count; ++site) {
    Engine engine(input.own[site], input.cluster);
    Fifo policy;
    if (!simulate(engine, policy)) std::abort();
  }
  return seconds_since(begin);
}

double federated(const Input& input, const AnyRouter& router) {
  const std::clock_t begin = std::clock();
  const std::vector<SiteSetup> sites(site_count, {.cluster = &input.cluster, .policy = AnyPolicy(Fifo{})});
  Federation federation(input.all, input.world, sites, router);
  if (federation.run([](SiteId, const OracleView&, std::span<const Event>) {}) != FederationEnd::finished) std::abort();
  return seconds_since(begin);
}

void measure(const char* what, const Input& input, int turns) {
  double least[3] = {1e9, 1e9, 1e9};
  for (int turn = 0; turn < turns; ++turn) {
    least[0] = std::min(least[0], alone(input));
    least[1] = std::min(least[1], federated(input, AnyRouter(LocalOnly{})));
    least[2] = std::min(least[2], federated(input, AnyRouter(LeastLoaded{})));
  }
  std::printf("%s: ten alone %.3f s, local %.3f s (%+.0f %%), least-loaded %.3f s (%+.0f %%)\n", what, least[0],
              least[1], 100 * (least[1] / least[0] - 1), least[2], 100 * (least[2] / least[0] - 1));
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<bench::PlainJob> jobs = bench::read_plain(bench::philly_path());
  if (jobs.empty()) {
    std::fprintf(stderr, "%s is absent\n", bench::philly_path().c_str());
    return 1;
  }
  const int turns = argc > 1 ? std::atoi(argv[1]) : 3;
  measure("same instants", input_of(jobs, 0), turns);
  measure("a second apart", input_of(jobs, 1), turns);
  return 0;
}
