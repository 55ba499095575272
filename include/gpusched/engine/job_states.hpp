// SPDX-License-Identifier: Apache-2.0
/// JobStates: the changing parts of a run's jobs, an engine's own or shared by the engines of one host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gpusched/engine/job_state.hpp"

namespace gpusched {

namespace detail {

/// The queue that a job with a host joined last.
struct Stay {
  Time joined{};                    ///< when
  std::uint32_t number = no_index;  ///< of its place there (QueuePlace)
  std::uint32_t at = no_index;      ///< number of the engine; no_index: the job is at none
};

}  // namespace detail

/// The jobs of one table for the engines of one host (RunInputs::hosted), which keep them together: a job is at one
/// engine at a time, and engines of thousands of jobs each hold no more than those. A value.
struct HostedJobs {
  /// None.
  HostedJobs() = default;
  /// So many that were not submitted yet.
  explicit HostedJobs(std::uint32_t jobs) : states(jobs), stays(jobs) {}
  std::vector<detail::JobState> states;  ///< by job
  std::vector<detail::Stay> stays;       ///< by job
};

namespace detail {

/// A copy is an engine's own, whatever it is a copy of.
class JobStates {
 public:
  JobStates() = default;
  JobStates(JobStates&&) noexcept = default;
  JobStates& operator=(JobStates&&) noexcept = default;
  JobStates(const JobStates& other) { *this = other; }
  JobStates& operator=(const JobStates& other) {
    if (this == &other) return *this;
    own_.states.assign(other.states_, other.states_ + other.size_);
    own_.stays.clear();
    if (other.is_hosted()) own_.stays.assign(other.stays_, other.stays_ + other.size_);
    states_ = own_.states.data();
    stays_ = other.is_hosted() ? own_.stays.data() : nullptr;
    size_ = other.size_;
    engine_ = other.engine_;
    gone_ = other.gone_;
    return *this;
  }
  ~JobStates() = default;

  /// Of an engine alone.
  void open(std::uint32_t jobs) {
    own_.states.resize(jobs);
    states_ = own_.states.data();
    size_ = jobs;
  }
  /// Of the engine of that number, which shares `jobs` with others of its host. Borrowed.
  void share(HostedJobs& jobs, std::uint32_t engine) {
    own_ = {};
    states_ = jobs.states.data();
    stays_ = jobs.stays.data();
    size_ = static_cast<std::uint32_t>(jobs.states.size());
    engine_ = engine;
  }

  /// What a vector has.
  /// \{
  JobState& operator[](std::uint32_t job) { return states_[job]; }
  const JobState& operator[](std::uint32_t job) const { return states_[job]; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  /// \}

  [[nodiscard]] bool is_hosted() const { return stays_ != nullptr; }
  /// Where nobody hosts the jobs, all are here.
  [[nodiscard]] bool is_here(std::uint32_t job) const { return stays_ == nullptr || stays_[job].at == engine_; }
  /// The same, with a job that is elsewhere as one that was never here.
  [[nodiscard]] const JobState& seen(std::uint32_t job) const { return is_here(job) ? states_[job] : nobody; }

  // ---- jobs that are hosted ----

  /// The number of this engine.
  [[nodiscard]] std::uint32_t engine() const { return engine_; }
  /// At no engine.
  [[nodiscard]] bool is_nowhere(std::uint32_t job) const { return stays_[job].at == no_index; }
  /// The job's stay here: the present one, or that which ended at this instant; else none.
  [[nodiscard]] Stay stay(std::uint32_t job) const {
    if (stays_[job].at == engine_) return stays_[job];
    for (const Gone& gone : gone_) {
      if (gone.job == job) return gone.stay;
    }
    return {};
  }
  void enter(std::uint32_t job, Time now, std::uint32_t number) {
    stays_[job] = {.joined = now, .number = number, .at = engine_};
  }
  /// It joins its queue anew.
  void renumber(std::uint32_t job, std::uint32_t number) { stays_[job].number = number; }
  void exit(std::uint32_t job) {
    gone_.push_back({job, stays_[job]});
    stays_[job].at = no_index;
  }
  /// Another instant begins.
  void forget_gone() { gone_.clear(); }

 private:
  struct Gone {
    std::uint32_t job;
    Stay stay;
  };
  static constexpr JobState nobody{};

  JobState* states_ = nullptr;  // own_ or shared
  Stay* stays_ = nullptr;       // likewise; null: nobody hosts the jobs
  std::uint32_t size_ = 0;
  std::uint32_t engine_ = 0;
  HostedJobs own_;
  std::vector<Gone> gone_;  // at this instant: policies are yet to take them out of their orders
};

}  // namespace detail
}  // namespace gpusched
