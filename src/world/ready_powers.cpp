// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "src/world/power_reader.hpp"

namespace gpusched {
namespace {

// GPUs draw all of their power as soon as they are touched; so do processors, of which as many are touched as the
// working cores fill. A core counts twice in the cluster's file, once a thread. PWR has no A10; they are as its G2.
constexpr std::string_view openb = R"({
  "gpus": {"T4": {"idle_w": 10, "full_w": 70, "load": "constant"},
           "G2": {"idle_w": 30, "full_w": 150, "load": "constant"},
           "A10": {"idle_w": 30, "full_w": 150, "load": "constant"},
           "P100": {"idle_w": 25, "full_w": 250, "load": "constant"},
           "V100M16": {"idle_w": 30, "full_w": 300, "load": "constant"},
           "V100M32": {"idle_w": 30, "full_w": 300, "load": "constant"},
           "G3": {"idle_w": 50, "full_w": 400, "load": "constant"}},
  "nodes": {"cpu": {"idle_w": 20, "full_w": 270}, "cores_per_cpu": 64,
            "of": {"T4": {"cpu": {"idle_w": 20, "full_w": 165}, "cores_per_cpu": 48},
                   "P100": {"cpu": {"idle_w": 15, "full_w": 120}, "cores_per_cpu": 32},
                   "V100M16": {"cpu": {"idle_w": 20, "full_w": 185}, "cores_per_cpu": 32},
                   "V100M32": {"cpu": {"idle_w": 20, "full_w": 185}, "cores_per_cpu": 32},
                   "none": {"cpu": {"idle_w": 20, "full_w": 205}, "cores_per_cpu": 52}}}
})";

// A node: 90 to 280 W of its processor, 74.26 W of memory, 4 x 20 W of network, 30 W of storage, 4 GPUs. Each node's
// converter takes 13 W and 2 %; the four rectifiers of a chassis of 16 nodes 17 W each and 4 %, the chassis itself four
// times 250 W. The 9,472 nodes share 25 coolers of 8,473.47 W; another number of nodes is charged its part of them.
// gain: 1 / (0.98 x 0.96) - 1; a node: 13 / (0.98 x 0.96) + 4 x 267 / 0.96 / 16 + 25 x 8473.47 / 9472.
constexpr std::string_view frontier = R"({
  "gpus": {"any": {"idle_w": 88, "full_w": 560}},
  "nodes": {"base_w": 184.26, "cpus": 1, "cpu": {"idle_w": 90, "full_w": 280}},
  "losses": {"gain": 0.06292517006802721, "fixed_w_per_node": 105.71379895919516}
})";

constexpr std::array<ReadyPower, 2> models{
    {{"openb", "Alibaba's openb cluster (PWR: Lettich et al., CCGrid 2025)", openb},
     {"frontier", "nodes of Frontier, four MI250X each, losses and cooling (RAPS: Brewer et al., SC 2024)", frontier}}};

}  // namespace

std::span<const ReadyPower> ready_powers() { return models; }

}  // namespace gpusched
