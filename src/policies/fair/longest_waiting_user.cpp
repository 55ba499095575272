// SPDX-License-Identifier: Apache-2.0
// Longest-waiting user first. CONTRIBUTING.md names this file as the model of a fair policy.
#include <vector>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/queues/owners.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

class LongestWaitingUser {
 public:
  [[nodiscard]] static std::string_view name() { return "longest-waiting-user"; }

  void decide(const View& view, Decision& decision) {
    users_.resize(view.users().size());
    for (const Event& event : view.events()) {
      if (!enters_queue(event.kind)) continue;
      User& user = users_[view.user(event.job)];
      if (user.waiting_jobs++ == 0) user.since = view.now();
      waiting_.push(view, event.job, view.user(event.job));
    }
    const auto waits_since = [this](const ClassQueues::Class& jobs) { return users_[jobs.owner].since; };
    waiting_.start_while_any_fits(view, decision, waits_since, [&](JobId job) {
      users_[view.user(job)].since = view.now();
      --users_[view.user(job)].waiting_jobs;
    });
  }

 private:
  struct User {
    Time since{};  // no job of the user started since then, and one waited all the time
    std::uint32_t waiting_jobs = 0;
  };
  std::vector<User> users_;
  ClassQueues waiting_;
};

}  // namespace

PolicyInfo longest_waiting_user_info() {
  return {.name = "longest-waiting-user",
          .summary = "the user who waited longest for a start goes next, with the earliest of their jobs that fits",
          .source =
              "textbook round-robin between users; a user waits since the later of their last start and the moment "
              "from which they had a waiting job; ties go to the earliest job",
          .complexity = "O(users x shapes + log n)",
          .parameters = {},
          .make = [](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            if (has_owners(OwnerColumn::user, *context.jobs)) return AnyPolicy(LongestWaitingUser());
            return unexpected("policy longest-waiting-user: the trace names no users (column user)");
          },
          .work_conserving = true};
}

}  // namespace gpusched
