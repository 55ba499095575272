// SPDX-License-Identifier: Apache-2.0
/// OwnerOrder: greedy sharing between owners. Many fair policies are this loop with accounts and a score of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "src/policies/queues/owners.hpp"
#include "src/policies/queues/ranked_classes.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// While a job fits, the owner of the lowest score among those with such a job starts their earliest one. Ties go to
/// the earliest job. O(shapes + log n) an event and O(shapes x log n) a start. `Accounts` is what the policy keeps
/// about owners:
///
///     std::uint32_t owner(const View&, JobId);              whose job it is
///     auto score(const View&, std::uint32_t owner);         a number or Time, which changes with calls for that owner
///                                                           alone; starting a job does not lower it
///     void started(const View&, JobId, std::uint32_t owner);
///     void queued(const View&, JobId, std::uint32_t owner);  if any: the job began to wait
///     void withdrawn(const View&, JobId, std::uint32_t owner);  if any: it waits no more, and did not start
///     void left(const View&, JobId, std::uint32_t owner);    if any: the job gave back its GPUs
///     void inherit(const Accounts& before, const View&);     if any; see AnyPolicy
///
/// Scores may change with time. They then have bounds, without which all owners would be looked at each time:
///
/// - `double standing(const View&, std::uint32_t owner)` falls with calls for that owner alone, and may grow with time;
/// - `std::int64_t fixed(std::uint32_t owner)` never changes;
/// - `auto bound(const View&, double standing, std::int64_t fixed)`: no owner with as much of both scores lower.
template <class Accounts>
class OwnerOrder {
 public:
  OwnerOrder(std::string name, Accounts accounts) : name_(std::move(name)), accounts_(std::move(accounts)) {}

  [[nodiscard]] std::string_view name() const { return name_; }

  void decide(const View& view, Decision& decision) {
    decision.keep_order();
    for (const Event& event : view.events()) note(view.at(event), event);
    waiting_.start_while_any_fits(view, decision, view.options().placement, order(view), [&](JobId job) {
      const std::uint32_t owner = accounts_.owner(view, job);
      accounts_.started(view, job, owner);
      reorder(view, owner);
    });
  }

  void inherit(const OwnerOrder& before, const View& view) requires requires(Accounts of) { of.inherit(of, view); }
  { accounts_.inherit(before.accounts_, view); }

 private:
  using Class = RankedClasses::Class;
  static constexpr bool ages = requires(Accounts accounts, const View& view) { accounts.standing(view, 0u); };

  // By the owners' scores as they were when they last changed.
  struct ByScore : RankedOrder {
    Accounts* accounts;
    const View* view;
    ByScore(Accounts* of, const View* at) : accounts(of), view(at) {}

    [[nodiscard]] std::int64_t major(const Class& jobs) const { return number(accounts->score(*view, jobs.member)); }
    [[nodiscard]] static std::int64_t minor(const Class&) { return 0; }
    [[nodiscard]] static ClassRank score(const Class& jobs) { return jobs.rank; }
    static std::int64_t number(std::int64_t score) { return score; }
    static std::int64_t number(Time score) { return score.us; }
  };
  struct ByAge : ByScore {
    using ByScore::ByScore;
    using Score = std::pair<std::int64_t, QueuePlace>;
    [[nodiscard]] std::int64_t major(const Class& jobs) const { return this->accounts->fixed(jobs.member); }
    [[nodiscard]] double standing(std::uint32_t owner) const { return this->accounts->standing(*this->view, owner); }
    [[nodiscard]] Score score(const Class& jobs) const {
      return {this->accounts->score(*this->view, jobs.member), jobs.jobs.front()};
    }
    [[nodiscard]] Score bound(const RankedClasses::Least& least) const {
      return {this->accounts->bound(*this->view, least.standing, least.rank.major), least.oldest};
    }
  };
  using Order = std::conditional_t<ages, ByAge, ByScore>;

  [[nodiscard]] Order order(const View& view) { return Order(&accounts_, &view); }
  // With ages, every owner has a standing of its own.
  [[nodiscard]] static std::uint32_t party(std::uint32_t owner) { return ages ? owner : 0; }

  void reorder(const View& view, std::uint32_t owner) {
    if (ages) {
      waiting_.reorder_party(owner, order(view));
    } else {
      waiting_.reorder_member(owner, order(view));
    }
  }

  void note(const View& view, const Event& event) {
    if (event.job == no_job) return;
    const std::uint32_t owner = accounts_.owner(view, event.job);
    if constexpr (requires { accounts_.left(view, event.job, owner); }) {
      if (leaves_cluster(event.kind)) {
        accounts_.left(view, event.job, owner);
        reorder(view, owner);
      }
    }
    if (event.kind == EventKind::withdraw) {
      waiting_.erase(view, event.job, order(view));
      if constexpr (requires { accounts_.withdrawn(view, event.job, owner); }) {
        accounts_.withdrawn(view, event.job, owner);
      }
    }
    if (event.kind == EventKind::reprioritize && view.phase(event.job) == JobPhase::pending) {
      waiting_.reprioritize(view, event.job, party(owner), owner, order(view));
    }
    if (!enters_queue(event.kind)) return;
    if constexpr (requires { accounts_.queued(view, event.job, owner); }) {
      accounts_.queued(view, event.job, owner);
      reorder(view, owner);
    }
    waiting_.push(view, event.job, party(owner), owner, order(view));
  }

  std::string name_;
  Accounts accounts_;
  RankedClasses waiting_;
};

/// Completes the registry row of an OwnerOrder: cost, and that it conserves work.
/// `make(parameters, context)` returns Result<Accounts>.
template <class Make>
PolicyInfo owner_order_info(PolicyInfo row, Make make) {
  row.complexity = "O(shapes x log n)";
  row.work_conserving = true;
  row.make = [name = row.name, make](const PolicyParameters& parameters,
                                     const PolicyContext& context) -> Result<AnyPolicy> {
    auto accounts = make(parameters, context);
    if (!accounts) return Unexpected{accounts.error()};
    return AnyPolicy(OwnerOrder(name, *std::move(accounts)));
  };
  return row;
}

/// The row of an order between users, for `Accounts` that need no parameters. A trace without users is an error.
template <class Accounts>
PolicyInfo user_order_info(PolicyInfo row) {
  const std::string name = row.name;
  return owner_order_info(std::move(row), [name](const PolicyParameters&, const PolicyContext& context) {
    if (has_owners(OwnerColumn::user, *context.jobs)) return Result<Accounts>(Accounts());
    return Result<Accounts>(unexpected("policy " + name + ": the trace names no users (column user)"));
  });
}

}  // namespace gpusched
