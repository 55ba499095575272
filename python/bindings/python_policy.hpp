// SPDX-License-Identifier: Apache-2.0
/// A Python callable as a policy of the registry.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "python/bindings/common.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched::python {

/// One callable and what its calls cost. Made and destroyed with the interpreter's lock held; shared with the policies
/// that call it, which end before.
struct Callable {
  nb::object function;
  std::string name;                      ///< in the registry
  std::atomic<std::uint64_t> calls = 0;  ///< decisions so far
  std::atomic<std::uint64_t> call_ns = 0;
  std::atomic<bool>* stop = nullptr;  ///< set at the first exception, which ends all runs
  std::mutex mutex;
  std::exception_ptr failure;  ///< the first exception

  /// Notes it, if it is the first, and ends all runs.
  void fail(std::exception_ptr reason);
  /// Notes a decision.
  void count(std::chrono::nanoseconds spent);
  /// Throws it, if there is one.
  void rethrow() const {
    if (failure) std::rethrow_exception(failure);
  }
};

/// True when a callable may stand under that name: it can be written in a list of policies, and none is called so.
bool is_free_policy_name(const std::string& name);

/// Adds a row for each of {name: callable}; one with an attribute `options_json` is an agent (agents.py), which chooses
/// as in VectorEnv. `stop` must outlive the runs.
std::vector<std::unique_ptr<Callable>> add_callables(PolicyRegistry& registry, const nb::dict& callables,
                                                     std::atomic<bool>& stop);

}  // namespace gpusched::python
