// SPDX-License-Identifier: Apache-2.0
/// A policy as a shared library, for `gpusched replay --policy ./mine.so`: one C++ file that includes this header
/// before others of gpusched, defines a policy (gpusched/policy/policy.hpp) and ends with GPUSCHED_POLICY_PLUGIN(Mine,
/// {...}). docs/own-policy.md tells how to build it.
#pragma once

// Ids out of range, and calls out of order, throw in such a library (config.hpp).
#ifndef GPUSCHED_OWN_POLICY
#ifdef GPUSCHED_VERSION
#error "include gpusched/plugin/policy_plugin.hpp before other headers of gpusched"
#endif
#define GPUSCHED_OWN_POLICY
#endif

#include <concepts>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/plugin/plugin_boundary.hpp"
#include "gpusched/policy/policy.hpp"

namespace gpusched {

/// A parameter that is true or false, as in `./mine.so{greedy=true}`.
constexpr GpuschedParameter flag_parameter(const char* name, bool fallback, const char* meaning) {
  return {name, meaning, gpusched_flag, fallback ? 1.0 : 0.0, 0, 1, nullptr, nullptr};
}

/// A parameter that is a number from `least` to `most`: `./mine.so{alpha=2}`.
constexpr GpuschedParameter number_parameter(const char* name, double fallback, const char* meaning, double least,
                                             double most) {
  return {name, meaning, gpusched_number, fallback, least, most, nullptr, nullptr};
}

/// A parameter that is a word, one of `words` ("fast|slow") if they are given.
constexpr GpuschedParameter word_parameter(const char* name, const char* fallback, const char* meaning,
                                           const char* words = nullptr) {
  return {name, meaning, gpusched_word, 0, 0, 0, fallback, words};
}

/// What a library says of its policy.
struct PolicyPluginInfo {
  const char* name = "";                           ///< the policy's name
  const char* summary = "";                        ///< what it does, one line
  std::vector<GpuschedParameter> parameters = {};  ///< what may stand between braces
  bool preemptive = false;                         ///< it may preempt
};

/// The run that a policy is made for: its parameters, complete and in range, the cluster and the seed. A policy of type
/// P is made as P(const PluginRun&) where it has such a constructor, else as P(). Borrowed for the constructor's call.
class PluginRun {
 public:
  /// Used by GPUSCHED_POLICY_PLUGIN.
  PluginRun(const PolicyPluginInfo& info, const GpuschedPolicyRun& run) : info_(&info), run_(&run) {}

  /// The value of that parameter. Throws std::logic_error when the library declares none of that name and type.
  /// \{
  [[nodiscard]] bool flag(std::string_view name) const { return value(name, gpusched_flag).number != 0; }
  [[nodiscard]] double number(std::string_view name) const { return value(name, gpusched_number).number; }
  [[nodiscard]] std::string word(std::string_view name) const { return value(name, gpusched_word).word; }
  /// \}
  /// The cluster of the run.
  [[nodiscard]] const Cluster& cluster() const { return *run_->cluster; }
  /// Seed of the run's random numbers, for Rng: the same run draws the same.
  [[nodiscard]] std::uint64_t seed() const { return run_->seed; }

 private:
  [[nodiscard]] const GpuschedValue& value(std::string_view name, std::uint32_t kind) const {
    for (std::uint32_t i = 0; i < run_->value_count; ++i) {
      if (info_->parameters[i].name == name && info_->parameters[i].kind == kind) return run_->values[i];
    }
    throw std::logic_error("the policy reads a parameter '" + std::string(name) + "' of another type than it declares");
  }

  const PolicyPluginInfo* info_;
  const GpuschedPolicyRun* run_;
};

namespace detail {

/// Behind the boundary: the functions of GpuschedPolicyPlugin for a policy of type P.
template <Policy P>
class PluginFunctions {
 public:
  /// The table of functions. `info` is kept.
  static const GpuschedPolicyPlugin* table(PolicyPluginInfo&& info) noexcept {
    static const PolicyPluginInfo kept = std::move(info);
    static const GpuschedPolicyPlugin plugin = described(kept);
    info_ = &kept;
    return &plugin;
  }

 private:
  static GpuschedPolicyPlugin described(const PolicyPluginInfo& info) {
    GpuschedPolicyPlugin plugin{.struct_size = sizeof(GpuschedPolicyPlugin),
                                .version = GPUSCHED_PLUGIN_VERSION,
                                .library_version = GPUSCHED_VERSION,
                                .compiler = plugin_compiler,
                                .standard_library = plugin_standard_library,
                                .build = plugin_build,
                                .headers = GPUSCHED_HEADERS_HASH,
                                .sizes = {},
                                .name = info.name,
                                .summary = info.summary,
                                .parameters = info.parameters.data(),
                                .parameter_count = static_cast<std::uint32_t>(info.parameters.size()),
                                .clairvoyant = is_clairvoyant<P> ? 1u : 0u,
                                .preemptive = info.preemptive ? 1u : 0u,
                                .make = make,
                                .copy = copy,
                                .destroy = destroy,
                                .decide = decide};
    std::memcpy(plugin.sizes, state_sizes, sizeof plugin.sizes);
    return plugin;
  }

  static void tell(const char* what, char* error, std::size_t size) noexcept {
    if (size == 0) return;
    std::strncpy(error, what, size - 1);
    error[size - 1] = 0;
  }

  // The result of `work`, or `failed` and what it threw as text.
  template <class Result, class Work>
  static Result guarded(Result failed, char* error, std::size_t size, Work work) noexcept {
    try {
      return work();
    } catch (const std::exception& thrown) {
      tell(thrown.what(), error, size);
    } catch (...) {
      tell("threw something that is no std::exception", error, size);
    }
    return failed;
  }

  static void* make(const GpuschedPolicyRun* run, char* error, std::size_t size) noexcept {
    return guarded<void*>(nullptr, error, size, [&run]() -> void* {
      if constexpr (std::constructible_from<P, const PluginRun&>) {
        return new P(PluginRun(*info_, *run));
      } else {
        return new P();
      }
    });
  }

  static void* copy(const void* policy, char* error, std::size_t size) noexcept {
    return guarded<void*>(nullptr, error, size, [&policy]() -> void* { return new P(*static_cast<const P*>(policy)); });
  }

  static void destroy(void* policy) noexcept {
    guarded(0, nullptr, 0, [&policy] {
      delete static_cast<P*>(policy);
      return 0;
    });
  }

  static std::uint32_t decide(void* policy, const OracleView* view, Decision* decision, char* error,
                              std::size_t size) noexcept {
    return guarded(1u, error, size, [&policy, &view, &decision] {
      any_vacated = false;
      static_cast<P*>(policy)->decide(*view, *decision);
      if (any_vacated) check_all_placed(*view);
      return 0u;
    });
  }

  static void check_all_placed(const OracleView& view) {
    for (const JobId job : view.running()) {
      if (view.grants(job) == no_index) throw std::logic_error("it vacated a job that it neither moved nor preempted");
    }
  }

  static inline const PolicyPluginInfo* info_ = nullptr;
};

}  // namespace detail
}  // namespace gpusched

/// Makes the library's one entry: GPUSCHED_POLICY_PLUGIN(Mine, {.name = "mine", .summary = "...", .parameters =
/// {...}}).
#define GPUSCHED_POLICY_PLUGIN(Type, ...)                                                                  \
  extern "C" __attribute__((visibility("default"))) const GpuschedPolicyPlugin* gpusched_policy_plugin() { \
    return ::gpusched::detail::PluginFunctions<Type>::table(::gpusched::PolicyPluginInfo __VA_ARGS__);     \
  }                                                                                                        \
  static_assert(true, "a semicolon follows")
