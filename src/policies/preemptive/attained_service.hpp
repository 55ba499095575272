// SPDX-License-Identifier: Apache-2.0
/// Policies that need no run times: they rank jobs by the GPU service attained so far. `las`, `tiresias` and
/// `tiresias-gittins` do what the papers say; what published programs do instead is in src/policies/published.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/policy/preemptive_order.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// Attained GPU service cut into levels; a lower level comes first.
class ServiceLevels {
 public:
  /// A level for each `quantum_gpu_us` of service: level k holds [k, k + 1) quanta.
  static ServiceLevels even(std::int64_t quantum_gpu_us) { return ServiceLevels({}, quantum_gpu_us); }
  /// Level k ends at limits_gpu_us[k]; the last has no end. Precondition: ascending.
  static ServiceLevels cut_at(std::vector<std::int64_t> limits_gpu_us) {
    return ServiceLevels(std::move(limits_gpu_us), 0);
  }

  [[nodiscard]] std::uint32_t level(std::int64_t gpu_us) const {
    if (quantum_ > 0) return static_cast<std::uint32_t>(gpu_us / quantum_);
    return static_cast<std::uint32_t>(std::upper_bound(limits_.begin(), limits_.end(), gpu_us) - limits_.begin());
  }
  /// Service at which `level` ends; the largest integer when it does not.
  [[nodiscard]] std::int64_t end(std::uint32_t level) const {
    if (quantum_ > 0) return (std::int64_t{level} + 1) * quantum_;
    return level < limits_.size() ? limits_[level] : std::numeric_limits<std::int64_t>::max();
  }
  /// Service at which `level` begins.
  [[nodiscard]] std::int64_t begin(std::uint32_t level) const { return level == 0 ? 0 : end(level - 1); }
  /// Number of levels; 0 = without end.
  [[nodiscard]] std::uint32_t count() const {
    return quantum_ > 0 ? 0 : static_cast<std::uint32_t>(limits_.size() + 1);
  }

 private:
  ServiceLevels(std::vector<std::int64_t> limits, std::int64_t quantum)
      : limits_(std::move(limits)), quantum_(quantum) {}

  std::vector<std::int64_t> limits_;
  std::int64_t quantum_;
};

/// What sets the policies of this family apart.
struct AttainedServiceOptions {
  std::string name;
  /// Nothing: even levels of default_quantum_gpu_us().
  std::optional<ServiceLevels> levels = ServiceLevels::even(1);
  /// Order within a level: by first start, jobs that never ran last (Tiresias), or by when the job entered the level,
  /// so that equals take turns (LAS).
  bool by_first_start = false;
  /// PromoteKnob: a waiting job returns to level 0 when it has waited this many times as long as it ran since it was
  /// last in level 0; 0 = never.
  double promote_knob = 0;
  /// Order within a level by falling Gittins index of the job's own service (2D-Gittins), ties by submission.
  bool gittins = false;
  std::int64_t look_ahead_gpu_us = 0;  ///< of the Gittins index
  /// GPU service of jobs (GPU-microseconds) that the Gittins index knows before the first job finishes.
  std::vector<std::int64_t> known_gpu_us = {};
  /// Known services are those of the jobs to come: nothing is learned from finished jobs, and the policy is
  /// clairvoyant.
  bool knows_distribution = false;
  /// Model families of high skew, by the beginning of their name: their tasks are consolidated, all others fill
  /// fragments. Empty: all jobs go by the run's placement rule.
  std::vector<std::string> skewed = {};
};

/// A quantum of service (GPU-microseconds) with which jobs that take turns make progress under the run's preemption
/// cost: 3600 GPU-seconds or, if that is more, what the largest job of the trace attains in twice the time that a
/// preemption costs it at most (writing, loading, and work lost since the last checkpoint).
[[nodiscard]] std::int64_t default_quantum_gpu_us(const View& view);

/// A sample of services, from which the distribution of a job's service is estimated.
class ServiceSample {
 public:
  /// Where an index looked: how many services are up to what was attained, and up to the look-ahead beyond that.
  struct Place {
    std::uint32_t first = 0;
    std::uint32_t beyond = 0;
  };

  ServiceSample() = default;
  explicit ServiceSample(std::vector<std::int64_t> services);

  /// Gittins index of a job whose service S is drawn from the sample and which attained `attained` of it, with a fixed
  /// look-ahead: P(S - attained <= look_ahead) / E min(S - attained, look_ahead), both given S > attained. In jobs a
  /// service unit; 0 when no service of the sample is larger. O(log n).
  [[nodiscard]] double gittins_index(std::int64_t attained, std::int64_t look_ahead) const {
    Place place;
    return gittins_index(attained, look_ahead, place);
  }
  /// The same, O(1) where the place is that of a little less service.
  [[nodiscard]] double gittins_index(std::int64_t attained, std::int64_t look_ahead, Place& place) const;

 private:
  void move_to(std::int64_t service, std::uint32_t& place) const;

  std::vector<std::int64_t> services_;  // ascending
  std::vector<double> sums_;            // [i] of the first i
};

/// Preemptive, greedy in the order (level, place in the level). A running job enters its next level at the instant at
/// which its service reaches it. Levels are updated only when the order of jobs is needed, and the policy wakes only
/// when a running job may fall behind a waiting one; an event costs O(shapes x log n).
class AttainedService {
 public:
  AttainedService(AttainedServiceOptions options, const NameTable& families);

  [[nodiscard]] std::string_view name() const { return options_.name; }
  [[nodiscard]] bool clairvoyant() const { return options_.knows_distribution; }
  void decide(const View& view, Decision& decision);

 private:
  struct Key {
    std::uint32_t level = 0;
    std::int64_t order = 0;  // within the level: a time in microseconds, or what gittins_order() says
    friend bool operator==(const Key&, const Key&) = default;
    friend bool operator<(const Key& a, const Key& b) {
      return a.level != b.level ? a.level < b.level : a.order < b.order;
    }
  };
  struct Job {
    Time ran_base{};  // View::ran() at the last promotion
    Time origin{};    // start of the present run, moved back by what ran since the last promotion
    Time crossing = Time::max();
    Time promotion = Time::max();
    std::int64_t entered = 0;  // when it entered its level
    std::uint32_t level = 0;
    bool came = false;
    ServiceSample::Place place;
  };
  // A time at which a job is due for something; stale when the job's own time differs.
  struct Due {
    Time time;
    JobId job;
    friend bool operator<(const Due& a, const Due& b) {  // for a heap whose top is the earliest
      return a.time != b.time ? b.time < a.time : index(b.job) < index(a.job);
    }
  };
  // A running job in the order in which those of its shape enter any level.
  struct Run {
    Time origin;
    JobId job;
    friend bool operator<(const Run& a, const Run& b) {
      return a.origin != b.origin ? a.origin < b.origin : index(a.job) < index(b.job);
    }
  };
  struct Hooks;

  [[nodiscard]] Key key_of(const View& view, JobId id);
  void note_events(const View& view);
  void catch_up(const View& view, JobId id);
  void cross_levels(const View& view);
  void promote_starved(const View& view);
  void learn_distribution(const View& view);
  void bring_indices_up_to_now(const View& view);
  [[nodiscard]] std::int64_t gittins_order(const View& view, JobId id);
  [[nodiscard]] Time time_to(const Shape& shape, std::uint32_t level) const;
  void plan_crossing(const Shape& shape, JobId id);
  void plan_promotion(const View& view, JobId id);
  [[nodiscard]] Time next_overtaking(const View& view);
  void note_boundaries(const View& view, std::uint32_t queue);
  std::set<Run>& runs_of(const View& view, JobId id);
  [[nodiscard]] Run run_of(JobId id) const { return {jobs_[index(id)].origin, id}; }
  void ask_to_wake(const View& view, Decision& decision);
  static void push(std::vector<Due>& heap, Due due);
  static void pop(std::vector<Due>& heap);

  AttainedServiceOptions options_;
  ServiceLevels levels_ = ServiceLevels::even(1);
  std::vector<std::uint8_t> is_skewed_;  // by family; empty: the run's rule
  PreemptiveOrder<Key> order_;
  std::vector<Job> jobs_;
  std::vector<std::set<Run>> runs_;          // [queue x shape], of running jobs
  std::vector<Due> crossings_, promotions_;  // heaps
  Time overtaking_ = Time::max();            // when a running job may next fall behind a waiting one
  std::vector<std::uint32_t> boundaries_;    // of the present queue: levels on whose entering that may happen
  // With gittins:
  std::vector<std::int64_t> services_;  // all that is known
  ServiceSample sample_;                // of services_, as of when the sample was last taken
  std::size_t next_sample_size_ = 1;
  bool indices_are_of_now_ = false;  // of running jobs, at this decision
  Time due_ = Time::max();           // the next crossing or promotion that matters
  Time next_wake_ = Time::max();
};

}  // namespace gpusched
