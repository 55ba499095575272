// SPDX-License-Identifier: Apache-2.0
/// A policy from a shared library outside the tree: `--policy ./mine.so` (gpusched/plugin/policy_plugin.hpp).
#pragma once

#include <string>
#include <string_view>

#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// True when a policy's name is the path of a shared library: it begins with ./, ../ or /, or ends in .so.
bool names_policy_library(std::string_view name);

/// The row of the policy in that library, which stays loaded until the process ends. Each path is loaded once; the
/// answer, an error included, stays the same. Errors, with the path as their file: no such file, no library, no entry
/// of gpusched, built for another version, with other headers or another compiler. Thread-safe.
Result<const PolicyInfo*> policy_of_library(const std::string& path);

}  // namespace gpusched
