// SPDX-License-Identifier: Apache-2.0
// A policy from outside the tree that does, as its parameter says, what no policy should. build_policy.sh runs it.
#include <cstdlib>
#include <gpusched/plugin/policy_plugin.hpp>

using namespace gpusched;

// volatile, as a compiler may leave out what no program may do.
volatile std::uint32_t deep = 0;
std::uint32_t recurse(std::uint32_t depth) { return deep + (depth == no_index ? 0 : recurse(depth + 1) + 1); }

struct OddPolicy {
  explicit OddPolicy(const PluginRun& run) : what(run.word("what")) {
    if (what == "make") throw std::runtime_error("no licence\nfound");
    if (what == "parameter") static_cast<void>(run.number("none"));
  }
  [[nodiscard]] std::string_view name() const { return "odd"; }

  void decide(const View& view, Decision& decision) {
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
      while (!view.queue(queue).empty() && decision.start(view.queue(queue).front()) == Verdict::ok) {
      }
    }
    if (view.now() >= whole_seconds(20)) misbehave(view, decision);
  }

  void misbehave(const View& view, Decision& decision) const {
    const std::vector<NodeTasks> nowhere{{.node = NodeId{77}, .tasks = 1}};
    const std::vector<NodeTasks> too_much{{.node = NodeId{0}, .tasks = 1'000'000}};
    if (what == "throw") throw std::runtime_error("out of ideas");
    if (what == "throw-int") throw 7;
    if (what == "unknown-job") decision.start(JobId{view.job_count()});
    if (what == "no-job") static_cast<void>(view.shape(no_job));
    if (what == "unknown-node") static_cast<void>(view.cluster().node_gpus(NodeId{77}));
    if (what == "work") decision.adjust_work(view.running().front(), Time{} - whole_seconds(1'000'000));
    if (what == "vacate") decision.vacate(view.running().front());
    if (what == "abort") std::abort();
    if (what == "exit") std::exit(0);
    if (what == "null") *reinterpret_cast<volatile int*>(deep) = 1;  // NOLINT
    if (what == "recursion") deep = recurse(deep);
    if (what == "refused") {
      for (const JobId job : view.running()) {
        if (decision.start(job) != Verdict::wrong_phase) throw std::logic_error("a running job was started");
      }
      const JobId later{view.job_count() - 1};
      if (view.arrived() < view.job_count() && decision.start(later) != Verdict::wrong_phase) {
        throw std::logic_error("a job was started before its submission");
      }
      for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
        if (view.queue(queue).empty()) continue;
        const JobId job = view.queue(queue).front();
        if (decision.start_on(job, nowhere) != Verdict::does_not_fit ||
            decision.start_on(job, too_much) != Verdict::does_not_fit) {
          throw std::logic_error("a job was started where there is no room");
        }
      }
      if (decision.wake(view.now()) != Verdict::in_the_past) throw std::logic_error("woken in the past");
    }
  }

  std::string what;
};

GPUSCHED_POLICY_PLUGIN(OddPolicy, {.name = "odd",
                                   .summary = "does what no policy should",
                                   .parameters = {word_parameter("what", "nothing", "what it does from 20 s on"),
                                                  flag_parameter("idle", false, "nothing"),
                                                  number_parameter("size", 1, "nothing", 0, 2)}});
