// SPDX-License-Identifier: Apache-2.0
#include "tests/growth/growth_exceptions.hpp"

namespace gpusched::test {
namespace {

constexpr std::string_view jobs = "jobs", nodes = "nodes", vcs = "virtual clusters", shapes = "shapes";

constexpr std::string_view knows_no_vcs = "it knows no virtual clusters, as the program that it repeats";
constexpr std::string_view all_waiting_at_a_round = "every waiting job has a share and a turn at every round";
constexpr std::string_view all_running = "it places, or ranks, all running jobs anew at an event";
constexpr std::string_view each_class = "a class of jobs is one shape of one virtual cluster, and each is tried";

constexpr GrowthException table[] = {
    {"tiresias@code", vcs, 0, knows_no_vcs},
    {"srtf@muri", vcs, 0, knows_no_vcs},
    {"srsf@muri", vcs, 0, knows_no_vcs},
    {"tiresias@muri", vcs, 0, knows_no_vcs},
};

}  // namespace

std::span<const GrowthException> growth_exceptions() { return table; }

}  // namespace gpusched::test
