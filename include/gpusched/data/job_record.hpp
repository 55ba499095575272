// SPDX-License-Identifier: Apache-2.0
/// Shape and JobRecord: one job as a reader or a test writes it down for a JobTable.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// What a job asks for: a gang of equal tasks, started all together or not at all. A task lives on one node; the
/// tasks of a gang may live on different ones. A job that asks for "N GPUs, anywhere" is a gang of N one-GPU tasks.
struct Shape {
  std::uint32_t tasks = 1;               ///< >= 1
  MilliGpu gpu_milli_per_task = 0;       ///< 0 (no GPU), 1..999 (a share of one GPU) or a multiple of 1000
  std::int64_t cpu_milli_per_task = 0;   ///< thousandths of a core
  std::int64_t memory_mib_per_task = 0;  ///< MiB
  std::uint32_t gpu_spec = 0;            ///< index into JobTable::gpu_specs(); 0 = any GPU

  /// All GPUs of the gang, in thousandths.
  [[nodiscard]] constexpr MilliGpu gpu_milli() const { return tasks * gpu_milli_per_task; }
  /// True when tasks share a GPU instead of owning whole ones.
  [[nodiscard]] constexpr bool is_share() const { return gpu_milli_per_task % whole_gpu != 0; }

  /// Field by field; the order has no meaning beyond being total.
  /// \{
  friend bool operator==(const Shape&, const Shape&) = default;
  friend auto operator<=>(const Shape&, const Shape&) = default;  // NOLINT(modernize-use-nullptr): misread by tidy 14
  /// \}
};

/// How the trace says a job ended; used only to split reports.
enum class JobStatus : std::uint8_t { unknown, passed, failed, killed };

/// The word that reports and files use for a status.
constexpr std::string_view to_string(JobStatus status) {
  switch (status) {
    case JobStatus::passed: return "passed";
    case JobStatus::failed: return "failed";
    case JobStatus::killed: return "killed";
    case JobStatus::unknown: break;
  }
  return "unknown";
}

/// One job as a reader or a test writes it down. Names may be empty ("unknown").
struct JobRecord {
  std::string_view id = {};                 ///< empty: numbered by its row
  Time submit{};                            ///< any origin; kept as it is
  Time work{};                              ///< true run time on the reference device, all attempts together; >= 0
  Time estimate = Time::max();              ///< run time that the user asked for; max() = none given
  Time start = Time::max();                 ///< when it started on the recorded cluster; max() = not recorded
  Shape shape{};                            ///< what it asks for; gpu_spec below replaces Shape::gpu_spec
  std::string_view user = {};               ///< who submitted it
  std::string_view group = {};              ///< recurring-job group (PAI) or project
  std::string_view vc = {};                 ///< virtual cluster, queue or partition
  std::string_view qos = {};                ///< quality of service, for limits (LimitRule)
  std::string_view name = {};               ///< job name, for estimators that look for similar names
  std::string_view gpu_spec = {};           ///< allowed GPU types, as GpuDemand takes them; empty = any
  std::string_view family = {};             ///< model family or job class, for RuntimeModel
  JobStatus status = JobStatus::unknown;    ///< how the trace says it ended
  std::int32_t priority = 0;                ///< larger is more urgent
  Time deadline = Time::max();              ///< max() = none
  std::span<const Time> attempts = {};      ///< work of each attempt in order; empty = one attempt of `work`
  std::span<const std::string> after = {};  ///< ids of jobs that must have ended before this one may run
  Time after_delay{};                       ///< and how long ago
};

}  // namespace gpusched
