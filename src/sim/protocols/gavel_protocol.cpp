// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/gavel_protocol.hpp"

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "src/sim/protocols/python_random.hpp"

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

}  // namespace

Result<JobTable> gavel_static_jobs(const ThroughputTable& throughputs, std::uint32_t count, std::uint64_t seed) {
  const std::vector<Template> known = templates();
  PythonRandom random(seed + 2);  // Scheduler._initialize_seeds
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t gpus = draw_gpus(random);
    const double seconds = draw_seconds(random);
    const Template* job = nullptr;
    do {
      job = &known[random.below(static_cast<std::uint32_t>(known.size()))];
    } while (gpus > 1 && !job->distributed);
    const auto* const row = throughputs.row(job->model, gpus);
    std::string spec;
    std::size_t usable = 0;
    for (const char* type : gavel_gpu_types) {
      if (row == nullptr || !row->contains(type) || row->at(type) <= 0) continue;
      spec += (usable++ == 0 ? "" : "|") + std::string(type);
    }
    if (usable == 0) {
      const std::string what = "expected a throughput of '" + job->model + "' on " + std::to_string(gpus) + " GPUs";
      return Unexpected{Error{.message = what, .file = throughputs.file}};
    }
    builder.add({.work = from_seconds(seconds),
                 .shape = {.tasks = gpus, .gpu_milli_per_task = whole_gpu},
                 .gpu_spec = usable == gavel_gpu_types.size() ? std::string_view() : std::string_view(spec),
                 .family = job->model});
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

}  // namespace gpusched
