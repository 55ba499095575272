// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/gavel_protocol.hpp"

#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/base/python_random.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

struct Template {
  std::string model;
  bool distributed = false;  // runs on several GPUs
};

// job_table.py of the artifact, in its order.
std::vector<Template> templates() {
  std::vector<Template> list;
  const auto add = [&](const std::string& name, const std::vector<int>& batch_sizes, bool distributed) {
    for (const int size : batch_sizes) {
      list.push_back({name + " (batch size " + std::to_string(size) + ")", distributed});
    }
  };
  add("ResNet-18", {16, 32, 64, 128, 256}, true);
  add("ResNet-50", {16, 32, 64, 128}, true);
  add("Transformer", {16, 32, 64, 128, 256}, true);
  add("LM", {5, 10, 20, 40, 80}, true);
  add("Recommendation", {512, 1024, 2048, 4096, 8192}, false);
  list.push_back({"A3C", false});
  list.push_back({"CycleGAN", false});
  return list;
}

double uniform(PythonRandom& random, double low, double high) { return low + (high - low) * random.real(); }

// Sizes and durations after Philly (section 7.1).
std::uint32_t draw_gpus(PythonRandom& random) {
  const double r = random.real();
  if (r >= 0.95) return 8;
  if (r > 0.8) return 4;
  return r >= 0.7 ? 2 : 1;
}
double draw_seconds(PythonRandom& random) {
  const bool is_long = random.real() >= 0.8;
  return 60 * std::pow(10, is_long ? uniform(random, 3, 4) : uniform(random, 1.5, 3));
}

// Draws the jobs of one seed, one after another.
class JobDraws {
 public:
  JobDraws(const ThroughputTable& throughputs, std::uint64_t seed)
      : throughputs_(throughputs), known_(templates()), random_(seed + 2) {}  // Scheduler._initialize_seeds

  // The next job, which arrives then. Without `gangs` it has one GPU, whatever was drawn.
  Result<void> add_to(JobTableBuilder& builder, Time submit, bool gangs) {
    const std::uint32_t drawn = draw_gpus(random_), gpus = gangs ? drawn : 1;
    const double seconds = draw_seconds(random_);
    const Template* job = nullptr;
    do {
      job = &known_[random_.below(static_cast<std::uint32_t>(known_.size()))];
    } while (gpus > 1 && !job->distributed);
    const auto* const row = throughputs_.row(job->model, gpus);
    std::string spec;
    std::size_t usable = 0;
    for (const char* type : gavel_gpu_types) {
      if (row == nullptr || !row->contains(type) || row->at(type) <= 0) continue;
      spec += (usable++ == 0 ? "" : "|") + std::string(type);
    }
    if (usable == 0) {
      const std::string what = "expected a throughput of '" + job->model + "' on " + std::to_string(gpus) + " GPUs";
      return Unexpected{Error{.message = what, .file = throughputs_.file}};
    }
    builder.add({.submit = submit,
                 .work = from_seconds(seconds),
                 .shape = {.tasks = gpus, .gpu_milli_per_task = whole_gpu},
                 .gpu_spec = usable == gavel_gpu_types.size() ? std::string_view() : std::string_view(spec),
                 .family = job->model});
    return {};
  }

 private:
  const ThroughputTable& throughputs_;
  std::vector<Template> known_;
  PythonRandom random_;
};

}  // namespace

Result<JobTable> gavel_static_jobs(const ThroughputTable& throughputs, std::uint32_t count, std::uint64_t seed) {
  JobDraws draws(throughputs, seed);
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (auto added = draws.add_to(builder, {}, true); !added) return Unexpected{added.error()};
  }
  return std::move(builder).build();
}

Result<JobTable> gavel_arriving_jobs(const ThroughputTable& throughputs, std::uint32_t count, double mean_gap_s,
                                     std::uint64_t seed) {
  JobDraws draws(throughputs, seed);
  PythonRandom gaps(seed + 3);
  JobTableBuilder builder;
  double now_s = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (auto added = draws.add_to(builder, from_seconds(now_s), false); !added) return Unexpected{added.error()};
    now_s += -std::log(1.0 - gaps.real()) / (1.0 / mean_gap_s);
  }
  return std::move(builder).build();
}

Cluster gavel_cluster(std::uint32_t gpus_of_each_type) {
  Cluster cluster = Cluster::homogeneous(gpus_of_each_type * static_cast<std::uint32_t>(gavel_gpu_types.size()), 1);
  cluster.gpu_types.assign(gavel_gpu_types.begin(), gavel_gpu_types.end());
  for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
    cluster.nodes[node].gpu_type = node / gpus_of_each_type;
  }
  return cluster;
}

namespace {

// The mean over the measured jobs; none when the last job of the table came before all of them ended.
Result<std::optional<double>> mean_completion_s(const ThroughputTable& throughputs, const GavelSweepRun& run,
                                                const JobTable& jobs) {
  const Cluster cluster = gavel_cluster(run.gpus_of_each_type);
  const auto runtime = runtime_model_from_throughputs(throughputs, gavel_gpu_types.front(), jobs, cluster);
  if (!runtime) return Unexpected{runtime.error()};
  const auto specs = parse_policy_list(run.policy);
  if (!specs) return Unexpected{specs.error()};
  auto policy = PolicyRegistry::standard().make(
      specs->front(), {.jobs = &jobs, .cluster = &cluster, .seed = run.seed, .runtime = &runtime->model});
  if (!policy) return Unexpected{policy.error()};
  Engine engine(jobs, cluster, {.seed = run.seed}, {.runtime = &runtime->model});
  std::uint32_t left = run.last - run.first;
  while (left > 0) {
    if (!engine.advance()) return unexpected(run.policy + " never finished its jobs");
    const OracleView view = engine.view();
    for (const Event& event : view.events()) {
      const bool ends = event.kind == EventKind::finish;
      left -= ends && index(event.job) >= run.first && index(event.job) < run.last ? 1 : 0;
    }
    if (view.arrived() == jobs.size() && left > 0) return std::optional<double>();
    Decision decision = engine.decision();
    policy->decide(view, decision);
    engine.apply();
  }
  double sum = 0;
  for (std::uint32_t i = run.first; i < run.last; ++i) sum += to_seconds(engine.end(JobId{i}) - jobs.submit(JobId{i}));
  return std::optional(sum / (run.last - run.first));
}

}  // namespace

Result<double> gavel_mean_completion_s(const ThroughputTable& throughputs, const GavelSweepRun& run) {
  GPUSCHED_ASSERT(run.first < run.last, "no job to measure");
  for (std::uint32_t count = run.last + 500; count < 100 * (run.last + 500); count *= 2) {
    const auto jobs = gavel_arriving_jobs(throughputs, count, run.mean_gap_s, run.seed);
    if (!jobs) return Unexpected{jobs.error()};
    const auto mean = mean_completion_s(throughputs, run, *jobs);
    if (!mean) return Unexpected{mean.error()};
    if (*mean) return **mean;
  }
  return unexpected(run.policy + " leaves jobs waiting for ever, or for a hundred times as many that come after them");
}

}  // namespace gpusched
