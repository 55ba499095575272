// SPDX-License-Identifier: Apache-2.0
/// OwnerOrder: greedy sharing between owners. Many fair policies are this loop with accounts and a score of their own.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// While a job fits, the owner of the lowest score among those with such a job starts their earliest one. Ties go to
/// the earliest job. O(owners x shapes + log n) an event. `Accounts` is what the policy keeps about owners:
///
///     std::uint32_t owner(const View&, JobId);              whose job it is
///     auto score(const View&, std::uint32_t owner);         starting a job lowers no score at that instant
///     void started(const View&, JobId, std::uint32_t owner);
///     void queued(const View&, JobId, std::uint32_t owner);  if any: the job began to wait
///     void left(const View&, JobId, std::uint32_t owner);    if any: the job gave back its GPUs
template <class Accounts>
class OwnerOrder {
 public:
  OwnerOrder(std::string name, Accounts accounts) : name_(std::move(name)), accounts_(std::move(accounts)) {}

  [[nodiscard]] std::string_view name() const { return name_; }

  void decide(const View& view, Decision& decision) {
    for (const Event& event : view.events()) note(view, event);
    const auto score = [&](const ClassQueues::Class& jobs) { return accounts_.score(view, jobs.owner); };
    waiting_.start_while_any_fits(view, decision, score,
                                  [&](JobId job) { accounts_.started(view, job, accounts_.owner(view, job)); });
  }

 private:
  void note(const View& view, const Event& event) {
    if (event.job == no_job) return;
    const std::uint32_t owner = accounts_.owner(view, event.job);
    if constexpr (requires { accounts_.left(view, event.job, owner); }) {
      if (leaves_cluster(event.kind)) accounts_.left(view, event.job, owner);
    }
    if (!enters_queue(event.kind)) return;
    if constexpr (requires { accounts_.queued(view, event.job, owner); }) accounts_.queued(view, event.job, owner);
    waiting_.push(view, event.job, owner);
  }

  std::string name_;
  Accounts accounts_;
  ClassQueues waiting_;
};

/// Completes the registry row of an OwnerOrder: cost, and that it conserves work.
/// `make(parameters, context)` returns Result<Accounts>.
template <class Make>
PolicyInfo owner_order_info(PolicyInfo row, Make make) {
  row.complexity = "O(owners x shapes + log n)";
  row.work_conserving = true;
  row.make = [name = row.name, make](const PolicyParameters& parameters,
                                     const PolicyContext& context) -> Result<AnyPolicy> {
    auto accounts = make(parameters, context);
    if (!accounts) return Unexpected{accounts.error()};
    return AnyPolicy(OwnerOrder(name, *std::move(accounts)));
  };
  return row;
}

/// The same between users, for `Accounts` that need no parameters. A trace without users is an error.
template <class Accounts>
PolicyInfo user_order_info(PolicyInfo row) {
  return owner_order_info(std::move(row), [name = row.name](const PolicyParameters&, const PolicyContext& context) {
    if (has_owners(OwnerColumn::user, *context.jobs)) return Result<Accounts>(Accounts());
    return Result<Accounts>(unexpected("policy " + name + ": the trace names no users (column user)"));
  });
}

}  // namespace gpusched
