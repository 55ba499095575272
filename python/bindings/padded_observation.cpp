// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/padded_observation.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>

#include "python/bindings/keywords.hpp"
#include "src/policies/learned/agent_fields.hpp"

namespace gpusched::python {
namespace {

// Groups of nodes that an observation can hold at most: kinds of node times their numbers of idle GPUs.
std::uint32_t most_groups(const Cluster& cluster) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool>, std::uint32_t> kinds;
  for (const Node& node : cluster.nodes) ++kinds[{node.vc, node.vc_group, node.gpu_type, node.gpus, node.counts_only}];
  std::uint32_t groups = 0;
  for (const auto& [kind, nodes] : kinds) groups += std::min(nodes, std::get<3>(kind) + 1);
  return std::max(1u, groups);
}

}  // namespace

PaddedShape padded_shape(const AgendaOptions& options, const Cluster& cluster) {
  const std::uint32_t groups = most_groups(cluster);
  if (options.mode == ActionMode::preempt) return {.tokens = 2 * options.max_jobs, .groups = groups};  // pairs
  return {.tokens = options.choose_nodes ? std::max(options.max_jobs, groups) : options.max_jobs, .groups = groups};
}

void pad(const Observation& seen, std::uint32_t e, const PaddedShape& shape, const PaddedRows& rows,
         std::uint32_t before) {
  const std::uint32_t all = seen.tokens(e), count = std::min(all, shape.tokens);
  const std::size_t first = seen.job_begin[e];
  std::copy_n(seen.jobs.data() + first * job_features, std::size_t{count} * job_features, rows.jobs);
  std::copy_n(seen.prior.data() + first + e, count, rows.prior);
  std::copy_n(seen.mask.data() + first + e, count, rows.mask);
  if (before > count) {
    std::fill(rows.jobs + std::size_t{count} * job_features, rows.jobs + std::size_t{before} * job_features, 0.0f);
    std::fill(rows.prior + count, rows.prior + before, 0.0f);
    std::fill(rows.mask + count, rows.mask + before, std::int8_t{0});
  }
  rows.prior[shape.tokens] = seen.prior[first + e + all];
  rows.mask[shape.tokens] = static_cast<std::int8_t>(seen.mask[first + e + all]);
  const std::size_t first_group = seen.group_begin[e];
  const std::size_t groups = std::min<std::size_t>(seen.group_begin[e + 1] - first_group, shape.groups);
  std::copy_n(seen.groups.data() + first_group * group_features, groups * group_features, rows.groups);
  std::fill(rows.groups + groups * group_features, rows.groups + std::size_t{shape.groups} * group_features, 0.0f);
}

nb::dict padded_observation(const Observation& seen, std::uint32_t e, const PaddedShape& shape, bool batched) {
  const std::size_t tokens = shape.tokens;
  std::vector<float> jobs(tokens * job_features), prior(tokens + 1), groups(shape.groups * group_features);
  std::vector<std::int8_t> mask(tokens + 1);
  pad(seen, e, shape, {.jobs = jobs.data(), .prior = prior.data(), .mask = mask.data(), .groups = groups.data()}, 0);
  const float* const global = seen.global.data() + std::size_t{e} * global_features;
  nb::dict result;
  const auto add = [&](const char* name, auto values, std::vector<std::size_t> dimensions) {
    if (batched) dimensions.insert(dimensions.begin(), 1);
    result[name] = shaped(std::move(values), std::move(dimensions));
  };
  add("jobs", std::move(jobs), {tokens, job_features});
  add("prior", std::move(prior), {tokens + 1});
  add("action_mask", std::move(mask), {tokens + 1});
  add("groups", std::move(groups), {shape.groups, group_features});
  add("global", std::vector<float>(global, global + global_features), {global_features});
  if (!seen.signals.empty()) {
    const float* const signals = seen.signals.data() + std::size_t{e} * signal_features;
    add("signals", std::vector<float>(signals, signals + signal_features), {signal_features});
  }
  return result;
}

FieldTable agent_fields(AgendaOptions& options) { return agenda_fields(options, "", 32768); }

void check_agenda(const AgendaOptions& options) {
  if (const auto wrong = contradiction(options)) throw InputError("mode: " + std::string(*wrong));
}

AgendaOptions agenda_options(const std::string& json) {
  AgendaOptions options;
  set_options(agent_fields(options), json);
  check_agenda(options);
  return options;
}

std::string agent_options_text(const AgendaOptions& options) {
  AgendaOptions copy = options;
  return fields_json(agent_fields(copy), true);
}

}  // namespace gpusched::python
