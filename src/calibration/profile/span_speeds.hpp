// SPDX-License-Identifier: Apache-2.0
/// How much slower gangs are that are apart, from a few numbers that hold for all of them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "gpusched/core/named_value.hpp"
#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_changes.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/span_model.hpp"

namespace gpusched {

/// Where the run times of a trace were measured.
enum class SpanReference : std::uint8_t {
  node,       ///< with the whole gang on one node, also of gangs that no node holds
  narrowest,  ///< at the narrowest span that the gang can have on the cluster
};
inline constexpr std::array<NamedValue<SpanReference>, 2> span_reference_names{
    {{"node", SpanReference::node}, {"narrowest", SpanReference::narrowest}}};

/// The most GPUs that the cluster has together at each span: of an island, a node, a rack, a site, and all. O(nodes).
using GpusTogether = std::array<std::uint64_t, span_count>;
GpusTogether gpus_together(const Cluster& cluster);

/// The narrowest span at which there are so many GPUs together.
Span narrowest_span(const GpusTogether& together, std::uint64_t gpus);

/// The speeds relative to that at `base`; 1 at narrower spans.
SpanSpeeds relative_to(const SpanSpeeds& speeds, Span base);

/// "nodes=0.9,racks=0.7": the speed of a gang at each span, as a part of its speed on one node (in one island). A span
/// that is not named is as slow as the next narrower one. Errors: no such span, a number that is not above 0 and at
/// most 1, a span named twice or faster than a narrower one.
Result<SpanSpeeds> parse_span_speeds(std::string_view text);

/// A model that gives all gangs of `jobs`, and of the sizes that `changes` give them, these speeds.
SpanModel span_model_of_speeds(const SpanSpeeds& speeds, SpanReference reference, const JobTable& jobs,
                               const Cluster& cluster, const JobChanges& changes = {});

}  // namespace gpusched
