// SPDX-License-Identifier: Apache-2.0
// The user who waited longest first. CONTRIBUTING.md names this file as the model of a fair policy.
#include "src/policies/fair/owner_order.hpp"

namespace gpusched {
namespace {

// A user waits since their last start, or since they had a waiting job again, whichever is later.
struct LongestWaitingUser {
  PerOwner<Time> since;
  PerOwner<Time> withdrew{Time::max()};  // the last job that waited, at that instant
  PerOwner<std::uint32_t> waiting_jobs;

  static std::uint32_t owner(const View& view, JobId job) { return view.user(job); }
  Time score(const View&, std::uint32_t user) { return since[user]; }
  void queued(const View& view, JobId, std::uint32_t user) {
    // A job that is given another size is withdrawn and comes back at one instant.
    if (waiting_jobs[user]++ == 0 && withdrew[user] != view.now()) since[user] = view.now();
  }
  void withdrawn(const View& view, JobId, std::uint32_t user) {
    if (--waiting_jobs[user] == 0) withdrew[user] = view.now();
  }
  void started(const View& view, JobId, std::uint32_t user) {
    since[user] = view.now();
    --waiting_jobs[user];
  }
};

}  // namespace

PolicyInfo longest_waiting_user_info() {
  return user_order_info<LongestWaitingUser>(
      {.name = "longest-waiting-user",
       .summary = "the user who waited longest for a start goes next, with the earliest of their jobs that fits",
       .source = "textbook round-robin between users; a user waits since the later of their last start and the moment "
                 "from which they had a waiting job; ties go to the earliest job"});
}

}  // namespace gpusched
