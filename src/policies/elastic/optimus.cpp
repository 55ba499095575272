// SPDX-License-Identifier: Apache-2.0
// Optimus: GPUs go one by one to the job whose end they bring nearest.
#include <functional>
#include <queue>
#include <string_view>
#include <utility>

#include "src/policies/elastic/sizing.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

class Optimus {
 public:
  explicit Optimus(Time round) : rounds_(round) {}

  [[nodiscard]] static std::string_view name() { return "optimus"; }

  void decide(const OracleView& view, Decision& decision) {
    sized_.observe(view);
    if (!rounds_.begins(view, decision)) return;
    MilliGpu free = view.cluster().up_gpus() * whole_gpu;
    sized_.reset(view);
    sized_.give_least_sizes(view, free);
    std::vector<SizedJob>& jobs = sized_.listed();
    std::priority_queue<std::pair<double, std::uint32_t>> gains;  // seconds a GPU, and ~position of the job
    const auto offer = [&](std::uint32_t at) {
      const double gain = gain_of_a_task(jobs[at], to_seconds(view.remaining(jobs[at].job)));
      if (gain > 0) gains.emplace(gain, ~at);
    };
    for (std::uint32_t at = 0; at < jobs.size(); ++at) {
      if (jobs[at].size > 0) offer(at);
    }
    while (!gains.empty()) {
      const std::uint32_t at = ~gains.top().second;
      gains.pop();
      SizedJob& job = jobs[at];
      if (job.milli_per_task > free) continue;
      ++job.size;
      free -= job.milli_per_task;
      offer(at);
    }
    sized_.carry_out(view, decision);
  }

  void adopt(const View& view) { sized_.adopt(view); }

 private:
  // How much nearer the job's end comes with a task more, a GPU.
  static double gain_of_a_task(const SizedJob& job, double left_s) {
    if (job.size == job.most || job.milli_per_task == 0) return 0;
    return (left_s / job.rate(job.size) - left_s / job.rate(job.size + 1)) / static_cast<double>(job.milli_per_task);
  }

  SizingRounds rounds_;
  SizedJobs sized_;
};

}  // namespace

PolicyInfo optimus_info() {
  return {.name = "optimus",
          .summary = "elastic: GPUs go one by one to the job whose end they bring nearest",
          .source =
              "Peng et al., Optimus, EuroSys 2018, section 4.2; knows the work left, which Optimus estimates from "
              "loss curves; tasks are all alike (no parameter servers)",
          .complexity = "O(running + GPUs log n) a round",
          .parameters =
              {{.name = "round_s", .fallback = 600.0, .meaning = "time between decisions", .least = 1e-3, .most = 1e9}},
          .make = [](const PolicyParameters& parameters, const PolicyContext&) -> Result<AnyPolicy> {
            return AnyPolicy(Optimus(from_seconds(parameters.number("round_s"))));
          },
          .preemptive = true};
}

}  // namespace gpusched
