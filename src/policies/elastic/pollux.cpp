// SPDX-License-Identifier: Apache-2.0
#include "src/policies/elastic/pollux.hpp"

#include <algorithm>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

struct Step {
  double gain = 0;  // a GPU
  std::uint32_t at = 0, to = 0;

  // The largest gain first, of equals the job listed first.
  friend bool operator<(const Step& a, const Step& b) { return a.gain < b.gain || (a.gain == b.gain && a.at > b.at); }
};

// The step to a larger size that lowers the job's cost most a GPU, of those that fit.
Step best_step(const SizedJob& job, const PolluxObjective& of, std::uint32_t at, MilliGpu free) {
  Step best{.at = at, .to = job.size};
  const double cost = pollux_cost(job, of, job.size);
  for (std::uint32_t to = job.size + 1; to <= job.most; ++to) {
    const MilliGpu more = job.milli(to - job.size);
    if (more > free) break;
    const double gain = (cost - pollux_cost(job, of, to)) / static_cast<double>(std::max<MilliGpu>(more, 1));
    if (gain > best.gain) best = {.gain = gain, .at = at, .to = to};
  }
  return best;
}

class Pollux {
 public:
  Pollux(Time round, Time realloc) : rounds_(round), realloc_(realloc) {}

  [[nodiscard]] static std::string_view name() { return "pollux"; }

  void decide(const View& view, Decision& decision) {
    sized_.observe(view);
    if (!rounds_.begins(view, decision)) return;
    const MilliGpu all = view.cluster().up_gpus() * whole_gpu;
    const auto share = all / static_cast<MilliGpu>(view.running().size() + view.pending_count());
    MilliGpu free = all;
    sized_.reset(view);
    sized_.give_least_sizes(view, free);
    objectives_.clear();
    for (const SizedJob& job : sized_.listed()) {
      objectives_.push_back(job.most == job.least ? PolluxObjective{} : objective_of(job, share, view));
    }
    maximize_speedups(sized_.listed(), objectives_, free);
    sized_.carry_out(view, decision);
  }

  void adopt(const View& view) { sized_.adopt(view); }

 private:
  [[nodiscard]] PolluxObjective objective_of(const SizedJob& job, MilliGpu share, const View& view) const {
    PolluxObjective of;
    const auto tasks = static_cast<std::uint32_t>(job.milli_per_task == 0 ? job.most : share / job.milli_per_task);
    of.fair_rate = job.rate(std::clamp(tasks, job.least, job.most));
    const double age_s = to_seconds(view.now() - view.submit(job.job)), delay_s = to_seconds(realloc_);
    const double spent_s = view.preemptions(job.job) * delay_s;
    // Section 4.2.1: (T - R delta) / (T + delta), for those that run. A job that was changed all the time keeps a trace
    // of its speedup.
    if (job.held != 0) of.change_factor = std::max((age_s - spent_s) / (age_s + delay_s), 0.01);
    return of;
  }

  SizingRounds rounds_;
  Time realloc_;
  SizedJobs sized_;
  std::vector<PolluxObjective> objectives_;  // of the jobs listed
};

}  // namespace

double pollux_cost(const SizedJob& job, const PolluxObjective& of, std::uint32_t size) {
  const double change = job.held == 0 || size == job.held ? 1 : of.change_factor;
  return of.fair_rate / (job.rate(size) * change);
}

void maximize_speedups(std::span<SizedJob> jobs, std::span<const PolluxObjective> of, MilliGpu free) {
  std::priority_queue<Step> steps;
  const auto offer = [&](std::uint32_t at) {
    const Step step = best_step(jobs[at], of[at], at, free);
    if (step.gain > 0) steps.push(step);
  };
  for (std::uint32_t at = 0; at < jobs.size(); ++at) {
    if (jobs[at].size > 0) offer(at);
  }
  while (!steps.empty()) {
    const Step step = steps.top();
    steps.pop();
    SizedJob& job = jobs[step.at];
    const MilliGpu more = job.milli(step.to - job.size);
    if (more <= free) {
      job.size = step.to;
      free -= more;
    }
    offer(step.at);  // a smaller step, if that one did not fit any more
  }
}

PolicyInfo pollux_info() {
  return {.name = "pollux",
          .summary = "elastic: the harmonic mean of the jobs' speedups over an equal share is to be largest",
          .source =
              "Qiao et al., Pollux, OSDI 2021, section 4.2 (FITNESS with p = -1, re-allocation factor); sizes alone, "
              "placed by the run's rule, found by steepest ascent in place of a genetic search",
          .complexity = "O(running x most^2) a round, most: tasks of a job; rigid jobs: O(running)",
          .parameters =
              {{.name = "round_s", .fallback = 60.0, .meaning = "time between decisions", .least = 1e-3, .most = 1e9},
               {.name = "realloc_s",
                .fallback = 30.0,
                .meaning = "what it takes a change of size to cost",
                .least = 0,
                .most = 1e9}},
          .make = [](const PolicyParameters& parameters, const PolicyContext&) -> Result<AnyPolicy> {
            return AnyPolicy(
                Pollux(from_seconds(parameters.number("round_s")), from_seconds(parameters.number("realloc_s"))));
          },
          .preemptive = true};
}

}  // namespace gpusched
