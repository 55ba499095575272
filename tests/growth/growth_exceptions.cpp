// SPDX-License-Identifier: Apache-2.0
#include "tests/growth/growth_exceptions.hpp"

namespace gpusched::test {
namespace {

constexpr std::string_view jobs = "jobs", nodes = "nodes", vcs = "virtual clusters", shapes = "shapes";

constexpr std::string_view knows_no_vcs = "it knows no virtual clusters, as the program that it repeats";
constexpr std::string_view share_at_each_round = "every waiting job has a share, and a turn at every round";
constexpr std::string_view all_running =
    "it places or ranks all running jobs anew at an event, and more nodes run more";
constexpr std::string_view each_demand = "it looks at all nodes for each demand that waits";

constexpr std::string_view turn_of_shapes = "each shape of each queue that waits has a turn";

constexpr GrowthException table[] = {
    {"srtf@helios", nodes, 1.5, all_running},
    {"loaning", nodes, 1.85, each_demand},
    {"loaning", vcs, 1.95, each_demand},
    {"loaning", shapes, 2, each_demand},
    {"tiresias-gittins", nodes, 1.65, "the index of every running job changes all the time"},
    {"tiresias@code", vcs, 0, knows_no_vcs},
    {"srtf@muri", nodes, 1.9, all_running},
    {"srtf@muri", vcs, 0, knows_no_vcs},
    {"srsf@muri", nodes, 1.9, all_running},
    {"srsf@muri", vcs, 0, knows_no_vcs},
    {"tiresias@muri", nodes, 1.9, all_running},
    {"tiresias@muri", vcs, 0, knows_no_vcs},
    {"gavel", jobs, 3.1, share_at_each_round},
    {"fifo@gavel", jobs, 3.3, share_at_each_round},
    {"allox", jobs, 3.7, "a matching of 64 waiting jobs, which are not there yet in a short queue: O(jobs^2 x places)"},
    {"allox@gavel", jobs, 10, "a matching of all waiting jobs, as in the artifact: O(jobs^3 x GPUs)"},
    {"elasticflow", jobs, 3.4, "each decision plans all admitted jobs up to their deadlines: O(a^2 log a)"},
    {"elasticflow", nodes, 2.8, "more nodes admit more jobs, which are all planned"},
    {"elasticflow-", nodes, 1.7, "it looks at every running job, and more nodes run more"},
    {"bandit", jobs, 3.0, "a policy that takes over is told of all jobs"},
    // Each attempt in vain compares the first jobs of all classes: to be mended.
    {"static-partition", vcs, 3.2, "parts are tried one by one, each among the classes of all"},
    {"static-partition", shapes, 1.85, "parts are tried one by one, each among the classes of all"},
    {"kueue", shapes, 1.85, turn_of_shapes},
    {"kai", shapes, 1.95, turn_of_shapes},
    {"slurm", jobs, 3, "where many owners are about equal, all their classes are scored"},
    {"k8s", nodes, 1.6, "it scores at least 100 nodes, as its scheduler: all of a small cluster"},
    {"rl:builtin/hpc", jobs, 3.3, "its network scores all waiting jobs at each choice"},
    {"fifo+conservative", jobs, 3.4, "an early end is offered to the reservation of every waiting job"},
    {"slurm+easy", jobs, 3.4, "a pass plans up to 500 waiting jobs, which are not there yet in a short queue"},
};

}  // namespace

std::span<const GrowthException> growth_exceptions() { return table; }

}  // namespace gpusched::test
