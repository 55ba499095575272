// SPDX-License-Identifier: Apache-2.0
#include "src/policies/max_min.hpp"

#include <algorithm>
#include <string>

namespace gpusched {

std::uint32_t MaxMin::party_of(const View& view, JobId job) const {
  switch (party_) {
    case FairParty::user: return view.user(job);
    case FairParty::group: return view.group(job);
    case FairParty::vc: break;
  }
  return view.vc(job);
}

void MaxMin::decide(const View& view, Decision& decision) {
  note_events(view);
  blocked_.assign(view.queue_count(), std::vector<std::uint8_t>(view.shape_count(), 0));
  for (auto at = hungry_.begin(); at != hungry_.end();) {
    const std::uint32_t number = at->second;
    Party& party = parties_[number];
    const JobId job = first_that_may_fit(view, party);
    if (job == no_job) {
      ++at;
      continue;
    }
    if (decision.start(job) != Verdict::ok) {
      blocked_[view.queue_of(job)][view.shape_id(job)] = 1;
      continue;
    }
    auto& waiting = party.by_shape[view.shape_id(job)];
    waiting.erase(std::find(waiting.begin(), waiting.end(), job));
    hungry_.erase(at);
    --party.waiting;
    party.held += view.shape(job).gpu_milli();
    if (party.waiting > 0) hungry_.insert({party.held, number});
    // Those passed over before could not start with less taken, and cannot now.
    at = hungry_.begin();
  }
}

void MaxMin::note_events(const View& view) {
  for (const Event& event : view.events()) {
    if (event.job == no_job) continue;
    const std::uint32_t number = party_of(view, event.job);
    if (number >= parties_.size()) parties_.resize(number + 1);
    Party& party = parties_[number];
    hungry_.erase({party.held, number});
    if (event.kind == EventKind::finish || event.kind == EventKind::retry) {
      party.held -= view.shape(event.job).gpu_milli();
    }
    if (event.kind == EventKind::submit || event.kind == EventKind::retry) {
      if (party.by_shape.empty()) party.by_shape.resize(view.shape_count());
      auto& jobs = party.by_shape[view.shape_id(event.job)];
      jobs.insert(std::upper_bound(jobs.begin(), jobs.end(), event.job), event.job);  // a retry is older than the rest
      ++party.waiting;
    }
    if (party.waiting > 0) hungry_.insert({party.held, number});
  }
}

// Of each shape the first waiting job, and of those the earliest submitted, leaving out what is known not to fit now.
JobId MaxMin::first_that_may_fit(const View& view, const Party& party) const {
  JobId best = no_job;
  for (const auto& waiting : party.by_shape) {
    if (waiting.empty()) continue;
    // A shape may fit in one scheduling queue and not in another; the first job not blocked stands for it.
    for (const JobId job : waiting) {
      if (blocked_[view.queue_of(job)][view.shape_id(job)]) {
        if (view.queue_count() == 1) break;
        continue;
      }
      if (index(job) < index(best)) best = job;
      break;
    }
  }
  return best;
}

PolicyInfo max_min_info() {
  return {.name = "max-min",
          .summary = "max-min fairness over GPUs: the user who holds the fewest goes next, no preemption",
          .source = "progressive filling, Bertsekas & Gallager, 'Data Networks', section 6.5, over whole gangs",
          .complexity = "O(waiting parties x shapes)",
          .parameters = {{.name = "by",
                          .fallback = std::string("user"),
                          .meaning = "whose share is kept fair",
                          .words = {"user", "group", "vc"}}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            const std::string& by = parameters.word("by");
            const bool known = by == "user"    ? context.jobs->has_users()
                               : by == "group" ? context.jobs->has_groups()
                                               : context.jobs->has_vcs();
            if (!known) {
              return unexpected("policy 'max-min' shares GPUs between " + by + "s, and the trace names none" +
                                (by == "user" ? "; try max-min{by=vc} or max-min{by=group}" : ""));
            }
            return AnyPolicy(MaxMin(by == "user" ? FairParty::user : by == "group" ? FairParty::group : FairParty::vc));
          },
          .work_conserving = true};
}

}  // namespace gpusched
