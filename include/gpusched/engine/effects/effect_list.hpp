// SPDX-License-Identifier: Apache-2.0
/// EffectList: what may happen in a run besides its jobs, joined at compile time. engine_state.hpp lists the effects.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <tuple>
#include <utility>

#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/engine/run_inputs.hpp"

namespace gpusched::detail {

/// What effects are made from. Borrowed while they are made; jobs and inputs for as long as they live.
struct EffectWorld {
  const JobTable& jobs;
  const Cluster& cluster;
  const EngineOptions& options;
  const RunInputs& inputs;
  bool cuts_cards = false;  ///< the layout of some MIG card may change
};

/// One value of each effect. An effect E is a copyable class with a constructor E(const EffectWorld&), a default
/// constructor (nothing happens) and `bool active() const`. Inactive ones are never called. Whatever else it has of the
/// following is called, in the order of the list; `kernel` is the Kernel (kernel.hpp), `state` its EngineState:
///
///   void open(kernel)                       once, before the first event
///   Time next_time() const                  when something happens next by itself
///   void happen(kernel)                     one thing happens; precondition: next_time() is now
///   bool holds_back(kernel, job)            a submitted job may not join its queue yet
///   void joins(kernel, job)                 a job joins its queue for the first time
///   Time begin(kernel, job)                 a run begins on its nodes; returns how long they are not ready, behind
///                                           what other effects do: a node wakes, then makes a container
///   Time moved(kernel, job, before)         the same of a running job that left the nodes `before` for others
///   void end(kernel, job, why)              a run ends; its nodes can still be asked for (Occupancy)
///   void ended(kernel, job)                 a job is done for good
///   void react(kernel)                      after all that happened at an instant, and after a decision
///   std::optional<RatePpm> rate(state, job) const   the job's rate before factors, in place of the runtime model's
///   RatePpm factor(state, job) const        a factor on the rate of a running job; reference_rate = 1
///   bool stands_still(state, job) const     it does no work
///   bool waits(state, job) const            it stands still, and that counts as overhead
///   void touched(kernel, node)              who runs on a node changed (before react()); Occupancy says who runs there
///   Time next_milestone(job) const          work left when something of a run changes by itself; 0: nothing will
///   void pass_milestone(kernel, job)        that comes true
///   void seated(kernel, seat)               a run took a seat (Occupancy) on a node
///   void unseated(kernel, seat)             it gives that up
///   void cleared(kernel, node)              a node went down and comes back with nothing on it; its runs are over
///   bool audit(state, job) const            false: what the effect keeps of a running job is not what it should be
///   bool audit_nodes(cluster) const         the same of nodes; puts withheld ones back
///   void marked(kernel, begins)             the measured span (AccountWindow) begins, or ends
///   void forget_future()                    from now on the engine is what somebody imagines: what nobody knows yet
///                                           will not happen
///   void believed(kernel, job)              likewise: the job's work is another, and that left is about to be set
///   bool counts_costs() const               it lets runs lose work or spend time on overhead
///   std::uint32_t out_of_queues() const     jobs that were submitted and are in no queue because of the effect
///
/// and of constants:
///   keeps_seats    it asks the Occupancy
///   keeps_accounts it reads the account of GPU time
///   holds_jobs_back  it has holds_back(): jobs may join their queues in another order than that of their ids
///   is_endless     its events come for ever, so that they alone keep no run going: only while something else will
///                  happen, or while it `bool is_awaited() const`
///
/// Hooks with a kernel may call its public functions (kernel.hpp, "for effects"; run_account.hpp). When rate(),
/// factor() or stands_still() of a running job changes, the effect calls kernel.adapt_rate(job). Who runs where is what
/// Occupancy says: ClusterState shows nothing free on a node out of service, and in apply() holds already what all
/// commands of the decision take.
template <class... Es>
class EffectList {
 public:
  /// Nothing happens.
  EffectList() = default;
  /// The effects of a run.
  explicit EffectList(const EffectWorld& world) : effects_(Es(world)...) { refresh(); }

  /// The effect of that type.
  template <class E>
  [[nodiscard]] E& get() {
    return std::get<E>(effects_);
  }
  template <class E>
  [[nodiscard]] const E& get() const {
    return std::get<E>(effects_);
  }

  /// True when some effect is active.
  [[nodiscard]] bool any() const { return active_ != 0; }
  /// Asks each effect again whether it is active.
  void refresh() {
    active_ = 0;
    std::uint32_t bit = 1;
    ((active_ |= std::get<Es>(effects_).active() ? bit : 0, bit <<= 1), ...);
  }

  /// Calls visit(effect) for each active effect, in the order of the list.
  template <class Visit>
  void for_each(Visit visit) {
    std::uint32_t bit = 1;
    (((active_ & bit) != 0 ? visit(std::get<Es>(effects_)) : void(), bit <<= 1), ...);
  }
  template <class Visit>
  void for_each(Visit visit) const {
    std::uint32_t bit = 1;
    (((active_ & bit) != 0 ? visit(std::get<Es>(effects_)) : void(), bit <<= 1), ...);
  }

  /// True when some active effect has that constant.
  [[nodiscard]] bool keep_seats() const {
    bool found = false;
    for_each([&found](const auto& effect) {
      if constexpr (requires { effect.keeps_seats; }) found = true;
    });
    return found;
  }
  [[nodiscard]] bool keep_accounts() const {
    bool found = false;
    for_each([&found](const auto& effect) {
      if constexpr (requires { effect.keeps_accounts; }) found = true;
    });
    return found;
  }
  [[nodiscard]] bool hold_jobs_back() const {
    bool found = false;
    for_each([&found](const auto& effect) {
      if constexpr (requires { effect.holds_jobs_back; }) found = true;
    });
    return found;
  }
  [[nodiscard]] bool count_costs() const {
    bool found = false;
    for_each([&found](const auto& effect) {
      if constexpr (requires { effect.counts_costs(); }) found = found || effect.counts_costs();
    });
    return found;
  }

  /// When something happens next, where the engine's own next event comes at `own`; Time::max(): never. `goes_on`: the
  /// run does, whatever is to happen here.
  [[nodiscard]] Time next_time(Time own, bool goes_on) const {
    Time next = own;
    for_each([&next](const auto& effect) {
      if constexpr (
          requires { effect.next_time(); } && !requires { effect.is_endless; }) {
        next = std::min(next, effect.next_time());
      }
    });
    goes_on = goes_on || next != Time::max();
    for_each([&goes_on](const auto& effect) {
      if constexpr (requires { effect.is_endless; }) goes_on = goes_on || effect.is_awaited();
    });
    for_each([&goes_on, &next](const auto& effect) {
      if constexpr (requires { effect.is_endless; }) {
        if (goes_on) next = std::min(next, effect.next_time());
      }
    });
    return next;
  }

 private:
  std::tuple<Es...> effects_;
  std::uint32_t active_ = 0;  // bit i: effect i is
};

}  // namespace gpusched::detail
