// SPDX-License-Identifier: Apache-2.0
/// What can be wrong with the windows that an agent is to act in.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/learn/env.hpp"
#include "gpusched/learn/window.hpp"

namespace gpusched {

/// Error, of the option `field`: no window offers a choice on any of the clusters, so that no episode could begin.
/// `interrupted`: as of offers_choice().
Result<void> check_choices(std::span<const Window> windows, std::span<const Cluster> clusters,
                           const EnvOptions& options, const std::string& field,
                           const std::function<bool()>& interrupted = {});

/// A sentence for the user when no window asks for more GPUs at once than the cluster has, so that no job need wait and
/// hardly any choice matters; else empty.
std::string uncontended_note(std::span<const Window> windows, const Cluster& cluster);

}  // namespace gpusched
