// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/pollux_elastic.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

std::vector<std::int64_t> packed(std::int64_t gpus, std::int64_t gpus_per_node) {
  std::vector<std::int64_t> placement;
  for (std::int64_t left = gpus; left > 0; left -= placement.back()) {
    placement.push_back(std::min(left, gpus_per_node));
  }
  return placement;
}

// Batch sizes to choose from: each a few percent larger than the one before.
std::set<std::int64_t> batch_grid(const PolluxApplication& application) {
  constexpr int steps = 50;
  const auto least = static_cast<double>(application.smallest_batch());
  const auto most = static_cast<double>(application.largest_batch());
  std::set<std::int64_t> grid;
  for (int i = 0; i <= steps; ++i)
    grid.insert(std::llround(least * std::pow(most / least, static_cast<double>(i) / steps)));
  return grid;
}

/// Jobs that are alike: one family.
class Family {
 public:
  Family(const PolluxJob& job, const PolluxApplication& application, PolluxBatches batches, std::int64_t gpus_per_node)
      : application_(&application), gpus_(job.gpus), gpus_per_node_(gpus_per_node), batches_{job.batch_size} {
    if (batches == PolluxBatches::tuned) batches_.merge(batch_grid(application));
  }

  // The seconds that training takes with the GPUs of the row, until the end of each epoch; none: not measured.
  [[nodiscard]] std::optional<std::vector<double>> ends_s() const {
    std::vector<double> ends;
    double now_s = 0, before = 0;
    for (std::size_t epoch = 0; epoch < application_->progress.size(); ++epoch) {
      const double speed = goodput(epoch, gpus_);
      if (speed == 0) return std::nullopt;
      now_s += (application_->progress[epoch] - before) / speed;
      before = application_->progress[epoch];
      ends.push_back(now_s);
    }
    return ends;
  }

  [[nodiscard]] Json entry(const std::vector<double>& ends, std::int64_t most_gpus) const {
    Json phases = Json::array();
    for (std::size_t epoch = 0; epoch < ends.size(); ++epoch) {
      const double until = epoch + 1 == ends.size() ? 1 : ends[epoch] / ends.back();
      if (until <= 0 || (!phases.empty() && until <= phases.back()["until"].get<double>())) continue;  // takes no time
      if (until >= 1 && epoch + 1 < ends.size()) continue;
      Json points = Json::array();
      for (std::int64_t gpus = 1; gpus <= most_gpus; ++gpus) {
        if (const double speed = goodput(epoch, gpus); speed > 0) points.push_back({gpus, speed});
      }
      phases.push_back({{"until", until}, {"speedup", std::move(points)}});
    }
    return {{"phases", std::move(phases)}};
  }

 private:
  // The best of the batch sizes; 0: none was measured.
  [[nodiscard]] double goodput(std::size_t epoch, std::int64_t gpus) const {
    double best = 0;
    for (const std::int64_t batch : batches_) {
      best = std::max(best, pollux_goodput(*application_, epoch, packed(gpus, gpus_per_node_), batch).value_or(0));
    }
    return best;
  }

  const PolluxApplication* application_;
  std::int64_t gpus_, gpus_per_node_;
  std::set<std::int64_t> batches_;
};

}  // namespace

Result<PolluxElasticFiles> pollux_elastic(const std::vector<PolluxJob>& jobs, const PolluxProfiles& profiles,
                                          PolluxBatches batches, std::int64_t gpus_per_node, std::int64_t most_gpus) {
  std::map<std::string, double> run_s;  // by family
  Json families = Json::object();
  PolluxElasticFiles files{.jobs_csv = "job_id,submit_s,work_s,tasks,gpu_milli_per_task,family\n", .elastic_json = {}};
  for (const PolluxJob& job : jobs) {
    const std::string name = job.application + "-" + std::to_string(job.gpus) + "-" + std::to_string(job.batch_size);
    if (!run_s.contains(name)) {
      const Family family(job, profiles.at(job.application), batches, gpus_per_node);
      const auto ends = family.ends_s();
      if (!ends) return unexpected("job '" + job.name + "': its size was not measured");
      run_s[name] = ends->back();
      families[name] = family.entry(*ends, most_gpus);
    }
    files.jobs_csv += job.name + "," + std::to_string(job.submit_s) + "," + exact_seconds(from_seconds(run_s[name])) +
                      "," + std::to_string(job.gpus) + ",1000," + name + "\n";
  }
  files.elastic_json = Json{{"families", std::move(families)}}.dump() + "\n";
  return files;
}

}  // namespace gpusched
