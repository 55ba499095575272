// SPDX-License-Identifier: Apache-2.0
// A host program with a policy of its own: the widest waiting job that fits goes first. The engine runs under the
// host's clock, which stops every ten seconds.
#include <cstdio>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/policy.hpp"

namespace {

using namespace gpusched;

struct WidestFirst {
  [[nodiscard]] std::string_view name() const { return "widest-first"; }

  void decide(const View& view, Decision& decision) {
    for (;;) {
      JobId widest = no_job;
      for (const JobId job : view.queue(0)) {
        const bool wider = widest == no_job || view.shape(job).tasks > view.shape(widest).tasks;
        if (wider && decision.fits(job)) widest = job;
      }
      if (widest == no_job) return;
      decision.start(widest);
    }
  }
};
static_assert(Policy<WidestFirst> && !is_clairvoyant<WidestFirst>);

JobTable four_jobs() {
  JobTableBuilder builder;
  const int gpus[] = {2, 4, 1, 3};
  for (int i = 0; i < 4; ++i) {
    builder.add({.id = {},
                 .submit = whole_seconds(5 * i),
                 .work = whole_seconds(20),
                 .shape = {.tasks = static_cast<std::uint32_t>(gpus[i]), .gpu_milli_per_task = whole_gpu}});
  }
  return *std::move(builder).build();
}

}  // namespace

int main() {
  const JobTable jobs = four_jobs();
  Engine engine(jobs, Cluster::homogeneous(2, 2));
  WidestFirst policy;
  Decision decision = engine.decision();
  for (Time clock{}; !engine.all_finished(); clock += whole_seconds(10)) {
    while (engine.advance_to(clock)) {
      policy.decide(engine.view(), decision);
      engine.apply();
    }
    std::printf("t=%2.0f s: %u running, %u waiting\n", to_seconds(clock), engine.view().running().size(),
                engine.view().pending_count());
  }
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    std::printf("job %u: %u GPUs, started %2.0f s, ended %2.0f s\n", i, jobs.shape(job).tasks,
                to_seconds(engine.first_start(job)), to_seconds(engine.end(job)));
  }
}
