// SPDX-License-Identifier: Apache-2.0
/// What the tests of environments, networks and training share.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/learn/agenda.hpp"
#include "gpusched/learn/window.hpp"
#include "src/policies/learned/score_network.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {

/// Jobs of few shapes and heavy-tailed run times, some below 10 s, from four users and, if asked, two virtual clusters.
inline JobTable some_jobs(std::uint64_t seed, std::uint32_t count, bool with_vcs = false) {
  Rng rng = Rng(seed).split("jobs");
  const std::string_view users[] = {"ann", "bob", "cy", "di"};
  const std::string_view vcs[] = {"a", "b"};
  JobTableBuilder builder;
  double submit = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    submit += rng.exponential(20);
    builder.add({.submit = from_seconds(submit),
                 .work = from_seconds(rng.lognormal(4, 2)),
                 .shape = {.tasks = static_cast<std::uint32_t>(1 + rng.below(4)), .gpu_milli_per_task = whole_gpu},
                 .user = users[rng.below(4)],
                 .vc = with_vcs ? vcs[rng.below(2)] : std::string_view{}});
  }
  return *std::move(builder).build();
}

/// All jobs as one window, with none before them.
inline Window whole(const JobTable& jobs) { return {.jobs = jobs.slice(0, jobs.size()), .history = {}}; }

/// Jobs of 1 to 4 GPUs, of two families by turns: "even" and "odd".
inline JobTable jobs_of_two_families(std::uint32_t count) {
  const JobTable plain = some_jobs(4, count);
  JobTableBuilder builder;
  for (std::uint32_t i = 0; i < count; ++i) {
    const JobId job{i};
    builder.add({.submit = plain.submit(job),
                 .work = plain.work(job),
                 .shape = plain.shape(job),
                 .family = i % 2 == 0 ? "even" : "odd"});
  }
  return *std::move(builder).build();
}

/// Two nodes of 4 GPUs of type "first", two of type "second".
inline Cluster cluster_of_two_types() {
  Cluster cluster = Cluster::homogeneous(4, 4);
  cluster.gpu_types = {"first", "second"};
  cluster.nodes[2].gpu_type = cluster.nodes[3].gpu_type = 1;
  return cluster;
}

/// "odd" is twice as fast on the second type as on the first, "even" a quarter as fast. Run times are of the first.
inline RuntimeModel speeds_of_two_families(const JobTable& jobs) {
  RuntimeModel runtime(static_cast<std::uint32_t>(jobs.families().size()), 2);
  for (const JobId job : {JobId{0}, JobId{1}}) {
    runtime.set(jobs.family(job), 1,
                jobs.families()[jobs.family(job)] == "odd" ? 2 * reference_rate : reference_rate / 4);
  }
  return runtime;
}

/// One of the allowed actions of the open choice.
inline std::uint32_t random_action(const Agenda& agenda, Rng& rng) {
  std::uint32_t action = 0;
  do action = static_cast<std::uint32_t>(rng.below(agenda.size() + 1));
  while (!agenda.allowed(action));
  return action;
}

/// Parameters that are all far from zero.
inline std::vector<float> random_parameters(const NetworkSpec& spec, std::uint64_t seed) {
  Rng rng = Rng(seed).split("parameters");
  std::vector<float> parameters(layout_of(spec).size);
  for (float& value : parameters) value = static_cast<float>(0.4 * rng.normal());
  return parameters;
}

/// `states` states of 2 to 12 jobs, 1 to 4 groups, with at least two allowed actions each.
inline Observation random_observation(std::uint32_t states, std::uint64_t seed) {
  Rng rng = Rng(seed).split("observation");
  Observation seen;
  seen.shape(states, [&](std::uint32_t) {
    return std::pair{static_cast<std::uint32_t>(2 + rng.below(11)), static_cast<std::uint32_t>(1 + rng.below(4))};
  });
  for (auto* values : {&seen.jobs, &seen.prior, &seen.groups, &seen.global, &seen.privileged}) {
    for (float& value : *values) value = static_cast<float>(rng.normal());
  }
  for (std::uint32_t s = 0; s < states; ++s) {
    std::uint8_t* mask = seen.slot(s).mask;
    for (std::uint32_t i = 0; i <= seen.tokens(s); ++i) mask[i] = rng.below(3) == 0 ? 0 : 1;
    mask[0] = mask[1] = 1;
  }
  return seen;
}

}  // namespace gpusched::test
