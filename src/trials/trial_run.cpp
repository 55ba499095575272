// SPDX-License-Identifier: Apache-2.0
#include "src/trials/trial_run.hpp"

#include <set>
#include <utility>

namespace gpusched {
namespace {

// A task under way; those that end earlier are less, of one instant those that began first.
struct UnderWay {
  TrialUnits end = 0;
  std::uint64_t number = 0;
  TrialTask task;
  friend bool operator<(const UnderWay& a, const UnderWay& b) {
    return std::pair(a.end, a.number) < std::pair(b.end, b.number);
  }
};

}  // namespace

TrialRun run_trials(TrialSearch& search, const TrialRungs& rungs, std::uint32_t workers, const TrialLoss& loss) {
  TrialRun run{.by_rung = std::vector<std::uint32_t>(rungs.count()), .first_full = {}, .records = {}};
  std::set<UnderWay> under_way;
  std::uint64_t begun = 0;
  TrialUnits now = 0;
  std::uint32_t free = workers;
  const auto begin = [&](const TrialTask& task) {
    under_way.insert({now + task.to - task.from, begun++, task});
    run.work += task.to - task.from;
    ++run.by_rung[task.rung];
  };
  for (;;) {
    while (free > 0) {
      const std::optional<TrialTask> task = search.next();
      if (!task) break;
      begin(*task);
      --free;
    }
    if (under_way.empty()) break;
    const UnderWay done = *under_way.begin();
    under_way.erase(under_way.begin());
    now = run.end = done.end;
    const double result = loss(done.task.trial, done.task.to);
    if (!run.first_full && done.task.to == rungs.most) run.first_full = now;
    if (run.records.empty() || result < run.records.back().loss) {
      run.records.push_back({.time = now, .work = run.work, .trial = done.task.trial, .loss = result});
    }
    TrialTask follow;
    if (search.tell(done.task, result, follow)) {
      begin(follow);
    } else {
      ++free;
    }
  }
  return run;
}

}  // namespace gpusched
