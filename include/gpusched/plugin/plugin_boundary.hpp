// SPDX-License-Identifier: Apache-2.0
/// The boundary between the program and a shared library that holds a policy: one C function, which returns a table of
/// functions and what the library was built with. A policy includes policy_plugin.hpp instead.
///
/// The policy reads the engine's state by the inline functions of these headers. Library and program must therefore
/// come from the same headers, compiler and standard library; the loader compares all of that before it calls anything
/// else.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpusched/core/config.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/plugin/headers_hash.hpp"

/// The version of the structs below. The first two fields of GpuschedPolicyPlugin keep their meaning in all versions.
#define GPUSCHED_PLUGIN_VERSION 1
/// The one function that the library exports, a GpuschedPolicyEntry.
#define GPUSCHED_PLUGIN_ENTRY "gpusched_policy_plugin"

extern "C" {

/// Types of a parameter: the `kind` of a GpuschedParameter.
enum GpuschedParameterKind : std::uint32_t { gpusched_flag = 0, gpusched_number = 1, gpusched_word = 2 };

/// A parameter that the policy takes.
struct GpuschedParameter {
  const char* name;           ///< with its unit at the end: quantum_s
  const char* meaning;        ///< one line
  std::uint32_t kind;         ///< a GpuschedParameterKind
  double fallback;            ///< the default of a number, or of a flag (0 or 1)
  double least;               ///< a number is at least this
  double most;                ///< and at most this
  const char* fallback_word;  ///< the default of a word; null for others
  const char* words;          ///< the allowed words, "fast|slow"; null: any
};

/// The value of a parameter.
struct GpuschedValue {
  double number;     ///< of a number, or of a flag (0 or 1)
  const char* word;  ///< of a word; null for others
};

/// The run that a policy is made for. Borrowed for the call.
struct GpuschedPolicyRun {
  const gpusched::Cluster* cluster;  ///< of the run
  std::uint64_t seed;                ///< of the run's random numbers
  const GpuschedValue* values;       ///< one for each parameter, in their order
  std::uint32_t value_count;         ///< of `values`
};

/// What the library holds. Functions that may fail write one line into `error`, of at most `size` bytes with its final
/// 0; no exception leaves the library.
struct GpuschedPolicyPlugin {
  std::uint32_t struct_size;  ///< sizeof(GpuschedPolicyPlugin)
  std::uint32_t version;      ///< GPUSCHED_PLUGIN_VERSION

  const char* library_version;   ///< GPUSCHED_VERSION
  const char* compiler;          ///< "GNU 12"
  const char* standard_library;  ///< "libstdc++"
  const char* build;             ///< switches that change the headers' meaning
  const char* headers;           ///< GPUSCHED_HEADERS_HASH
  std::uint32_t sizes[8];        ///< bytes of types of the engine's state: gpusched::detail::state_sizes

  const char* name;                     ///< the policy's name
  const char* summary;                  ///< what it does, one line
  const GpuschedParameter* parameters;  ///< what may stand between braces
  std::uint32_t parameter_count;        ///< of `parameters`
  std::uint32_t clairvoyant;            ///< 1: it reads true run times
  std::uint32_t preemptive;             ///< 1: it may preempt

  void* (*make)(const GpuschedPolicyRun* run, char* error, std::size_t size);  ///< null on failure
  void* (*copy)(const void* policy, char* error, std::size_t size);            ///< null on failure
  void (*destroy)(void* policy);                                               ///< what make() or copy() returned
  /// 0: done; 1: failed.
  std::uint32_t (*decide)(void* policy, const gpusched::OracleView* view, gpusched::Decision* decision, char* error,
                          std::size_t size);
};

/// The type of the function that the library exports.
using GpuschedPolicyEntry = const GpuschedPolicyPlugin* (*)();

}  // extern "C"

namespace gpusched::detail {

#define GPUSCHED_TEXT_OF(number) #number
#define GPUSCHED_TEXT(number) GPUSCHED_TEXT_OF(number)
#if defined(__clang__)
inline constexpr const char* plugin_compiler = "Clang " GPUSCHED_TEXT(__clang_major__);
#elif defined(__GNUC__)
inline constexpr const char* plugin_compiler = "GNU " GPUSCHED_TEXT(__GNUC__);
#else
inline constexpr const char* plugin_compiler = "an unknown compiler";
#endif
#undef GPUSCHED_TEXT
#undef GPUSCHED_TEXT_OF

#if defined(_LIBCPP_VERSION)
inline constexpr const char* plugin_standard_library = "libc++";
#elif defined(_GLIBCXX_DEBUG)
inline constexpr const char* plugin_standard_library = "libstdc++ with _GLIBCXX_DEBUG";
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
inline constexpr const char* plugin_standard_library = "libstdc++ with the ABI before C++11";
#elif defined(__GLIBCXX__)
inline constexpr const char* plugin_standard_library = "libstdc++";
#else
inline constexpr const char* plugin_standard_library = "an unknown standard library";
#endif

#ifdef GPUSCHED_VALIDATE
inline constexpr const char* plugin_build = "GPUSCHED_VALIDATE";
#else
inline constexpr const char* plugin_build = "plain";
#endif

/// Bytes of what both sides read. The headers' hash does not show compiler options that change layouts.
inline constexpr std::uint32_t state_sizes[8] = {sizeof(JobTable),     sizeof(Cluster),  sizeof(EngineState),
                                                 sizeof(ClusterState), sizeof(JobState), sizeof(Command),
                                                 sizeof(OracleView),   sizeof(Decision)};

}  // namespace gpusched::detail
