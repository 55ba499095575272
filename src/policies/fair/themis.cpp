// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/themis.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/policies/queues/class_queues.hpp"
#include "src/policies/queues/periods.hpp"

namespace gpusched {

void Themis::decide(const OracleView& view, Decision& decision) {
  if (estimator_) estimator_->observe(view);
  note_arrivals(view);
  if (view.pending_count() == 0) return;
  if (view.now().us % options_.lease.us == 0) {
    lease_all(view, decision);
  } else {
    const bool room = view.cluster().free_gpu_milli() > 0 || cpu_only_jobs_;
    if (room) start_waiting(view, decision);
    replace_expired(view, decision);
  }
  if (view.pending_count() == 0) return;
  const Time next = next_wake(view);
  if (next != planned_wake_ && decision.wake(next) == Verdict::ok) planned_wake_ = next;
}

// The next multiple of the lease, or the end of a lease that was paid for.
Time Themis::next_wake(const View& view) const {
  const Time next = multiple_after(view.now(), options_.lease);
  const auto to_end = leases_.upper_bound({view.now(), no_job});
  return to_end != leases_.end() && to_end->first < next ? to_end->first : next;
}

void Themis::begin_lease(JobId job, Time end) {
  lease_end_[index(job)] = end;
  leases_.insert({end, job});
}

// A job that has none is left as it is.
void Themis::end_lease(JobId job) {
  leases_.erase({lease_end_[index(job)], job});
  lease_end_[index(job)] = Time::max();
}

void Themis::note_arrivals(const OracleView& view) {
  if (ideal_s_.empty()) {
    ideal_s_.resize(view.job_count());
    jobs_then_.resize(view.job_count());
    lease_end_.assign(view.job_count(), Time::max());
    if (estimator_) estimate_.resize(view.job_count());
    waiting_.assign(std::size_t{view.queue_count()} * view.demand_count(), KineticTournament(true));
    slots_.assign(view.job_count(), no_index);
  }
  for (const Event& event : view.events()) {
    const auto then = view.at(event);
    if (leaves_cluster(event.kind)) end_lease(event.job);
    if (returns_to_queue(event.kind)) wait(then, event.job);
    if (event.kind == EventKind::withdraw) withdraw(then, event.job);
    if (event.kind != EventKind::submit) continue;
    cpu_only_jobs_ = cpu_only_jobs_ || then.shape(event.job).gpu_milli() == 0;
    std::uint32_t& jobs = jobs_then_[index(event.job)];  // as of its first submission, whatever size its user gives it
    if (jobs == 0) jobs = view.pending_count() + view.running().size();
    const double share = static_cast<double>(view.cluster().total_gpus() * whole_gpu) / jobs;
    const double slowdown = std::max(1.0, static_cast<double>(then.shape(event.job).gpu_milli()) / share);
    if (estimator_) estimate_[index(event.job)] = estimator_->estimate(then, event.job);
    const Time alone = estimator_ ? estimate_[index(event.job)] : view.work(event.job);
    // A microsecond is the least time there is: it keeps rho finite.
    ideal_s_[index(event.job)] = std::max(to_seconds(alone), 1e-6) * slowdown;
    wait(then, event.job);
  }
  for (const Candidate& stopped : std::exchange(stopped_, {})) wait(view, stopped.job);
}

// One that the last decision stopped was not taken in yet.
void Themis::withdraw(const OracleView& view, JobId job) {
  if (std::erase_if(stopped_, [job](const Candidate& stopped) { return stopped.job == job; }) > 0) return;
  waiting_[group_of(view, job)].erase(slots_[index(job)], view.now());
}

// One that outlives its estimate is about to end.
Time Themis::left(const OracleView& view, JobId job) const {
  return estimator_ ? Time{std::max<std::int64_t>(estimate_[index(job)].us - view.ran(job).us, 0)}
                    : view.remaining(job);
}

// Time in the system if the job ran from now on without a stop.
double Themis::shared_s(const OracleView& view, JobId job) const {
  return to_seconds(view.now() - view.submit(job) + left(view, job));
}

double Themis::rho(const OracleView& view, JobId job) const { return shared_s(view, job) / ideal_s_[index(job)]; }

Themis::Candidate Themis::candidate(const OracleView& view, JobId job, bool running) const {
  return {rho(view, job), job, running, view.queue_place(job).number};
}

// While a job waits, its rho is the time since (submission - time left) over its ideal.
void Themis::wait(const OracleView& view, JobId job) {
  const Claim claim{1 / ideal_s_[index(job)], view.submit(job) - left(view, job), job, view.queue_place(job).number};
  slots_[index(job)] = waiting_[group_of(view, job)].push(claim, view.now());
}

// Turns for the groups of which `takes(queue, shape)` is true.
template <class Takes>
void Themis::open_turns(const OracleView& view, Takes takes) {
  turns_.clear();
  for (std::size_t group = 0; group < waiting_.size(); ++group) {
    if (waiting_[group].empty()) continue;
    const auto queue = static_cast<std::uint32_t>(group / view.demand_count());
    const auto shape = static_cast<std::uint32_t>(group % view.demand_count());
    if (!takes(queue, shape)) continue;
    turns_.push_back({.group = group});
    [[maybe_unused]] const bool any = refill(view, turns_.back());
  }
}

// The tournament knows rho but for its rounding: all that may tie are taken, and put in order. False when none is left.
bool Themis::refill(const OracleView& view, Turn& turn) {
  constexpr double nearly = 1 - 1e-13;
  KineticTournament& jobs = waiting_[turn.group];
  while (!jobs.empty()) {
    const JobId job = jobs[jobs.first(view.now())].job;
    const Candidate next = candidate(view, job, false);
    if (!turn.first.empty() && next.rho < turn.first.front().rho * nearly) break;
    jobs.erase(slots_[index(job)], view.now());
    turn.first.push_back(next);
  }
  std::sort(turn.first.begin(), turn.first.end(), [](const Candidate& a, const Candidate& b) { return before(b, a); });
  return !turn.first.empty();
}

// Null when all turns are over.
Themis::Turn* Themis::next_turn() {
  const auto first = std::min_element(turns_.begin(), turns_.end(), [](const Turn& a, const Turn& b) {
    return before(a.first.back(), b.first.back());
  });
  return first == turns_.end() ? nullptr : &*first;
}

// Its first job has had its turn.
void Themis::take_turn(const OracleView& view, Turn& turn) {
  turn.first.pop_back();
  if (!turn.first.empty() || refill(view, turn)) return;
  std::swap(turn, turns_.back());
  turns_.pop_back();
}

// Nothing more of the group fits; those whose turn it was wait on.
void Themis::block(const OracleView& view, std::size_t group) {
  blocked_[group] = 1;
  std::erase_if(turns_, [&](const Turn& turn) {
    if (turn.group != group) return false;
    for (const Candidate& candidate : turn.first) wait(view, candidate.job);
    return true;
  });
}

// Those who were not taken wait on.
void Themis::close_turns(const OracleView& view) {
  for (const Turn& turn : turns_) {
    for (const Candidate& candidate : turn.first) wait(view, candidate.job);
  }
  turns_.clear();
}

void Themis::lease_all(const OracleView& view, Decision& decision) {
  if (options_.auction) hold_auction(view);
  candidates_.clear();
  for (const JobId job : view.running()) {
    if (!won(job)) candidates_.push_back(candidate(view, job, true));
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
  stop_losers(view, decision);
  start_waiting(view, decision);
}

// Leases are counted; all jobs that lose theirs leave before any starts.
void Themis::stop_losers(const OracleView& view, Decision& decision) {
  MilliGpu free = view.cluster().total_gpus() * whole_gpu;
  for (const Bid& winner : winners_) free -= winner.gpus;
  const auto counts = [&](MilliGpu wanted) { return wanted > 0 && wanted <= free; };
  open_turns(view, [&](std::uint32_t, std::uint32_t shape) { return counts(view.shape_of_demand(shape).gpu_milli()); });
  std::vector<JobId> chosen;
  const auto lost = [&](const Turn& turn) {
    if (counts(view.shape(turn.first.back().job).gpu_milli())) return false;
    for (const Candidate& candidate : turn.first) wait(view, candidate.job);
    return true;
  };
  auto running = candidates_.begin();
  for (;;) {
    std::erase_if(turns_, lost);
    Turn* const turn = next_turn();
    if (running != candidates_.end() && (turn == nullptr || before(*running, turn->first.back()))) {
      const MilliGpu wanted = view.shape(running->job).gpu_milli();
      if (wanted <= free) {
        free -= wanted;
      } else {
        decision.preempt(running->job);
        stopped_.push_back(*running);
      }
      ++running;
    } else if (turn != nullptr) {
      chosen.push_back(turn->first.back().job);
      free -= view.shape(chosen.back()).gpu_milli();
      take_turn(view, *turn);
    } else {
      break;
    }
  }
  for (const JobId job : chosen) wait(view, job);
}

// Winners of an auction first, then in falling order of rho, with the jobs that this lease stopped, which may get their
// places back.
void Themis::start_waiting(const OracleView& view, Decision& decision) {
  open_turns(view, [&](std::uint32_t queue, std::uint32_t shape) {
    return view.cluster().may_fit(view.shape_of_demand(shape), queue);
  });
  blocked_.assign(waiting_.size(), 0);
  start_winners(view, decision);
  auto stopped = stopped_.begin();
  for (;;) {
    Turn* const turn = next_turn();
    if (stopped != stopped_.end() && (turn == nullptr || before(*stopped, turn->first.back()))) {
      const std::size_t group = group_of(view, stopped->job);
      if (!blocked_[group] && decision.restore(stopped->job) != Verdict::ok &&
          decision.start(stopped->job) != Verdict::ok) {
        block(view, group);
      }
      ++stopped;
    } else if (turn == nullptr) {
      break;
    } else if (decision.start(turn->first.back().job) == Verdict::ok) {
      take_turn(view, *turn);
    } else {
      block(view, turn->group);
    }
  }
  close_turns(view);
  std::erase_if(stopped_, [&](const Candidate& candidate) { return view.phase(candidate.job) != JobPhase::pending; });
}

void Themis::start_winners(const OracleView& view, Decision& decision) {
  for (const Bid& winner : winners_) {
    const JobId job = winner.from.job;
    const std::size_t group = group_of(view, job);
    if (winner.from.running || (!blocked_[group] && decision.start(job) == Verdict::ok)) continue;
    block(view, group);
    end_lease(job);
    wait(view, job);
  }
  winners_.clear();
}

// Fills winners_, and takes those of them that wait out of their tournaments.
void Themis::hold_auction(const OracleView& view) {
  for (const auto& [end, job] : leases_) lease_end_[index(job)] = Time::max();
  leases_.clear();
  MilliGpu free = view.cluster().total_gpus() * whole_gpu;
  std::vector<Bid> losers;
  for (const Bid& bid : take_bids(view)) {
    const bool wins = bid.gpus <= free;
    if (wins) free -= bid.gpus;
    (wins ? winners_ : losers).push_back(bid);
  }
  set_payments(view, losers, free);
  for (const Bid& winner : winners_) {
    const JobId job = winner.from.job;
    if (!winner.from.running) waiting_[group_of(view, job)].erase(slots_[index(job)], view.now());
  }
}

// Of the jobs of worst rho, the greatest gain a GPU first.
std::vector<Themis::Bid> Themis::take_bids(const OracleView& view) {
  candidates_.clear();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) candidates_.push_back(candidate(view, job, false));
  }
  for (const JobId job : view.running()) candidates_.push_back(candidate(view, job, true));
  const double wanted = std::ceil((1 - options_.filter) * static_cast<double>(candidates_.size()) - 1e-9);
  const auto bidders = candidates_.begin() + static_cast<std::ptrdiff_t>(std::max(wanted, 1.0));
  if (bidders != candidates_.end()) std::nth_element(candidates_.begin(), bidders, candidates_.end(), before);
  std::vector<Bid> bids;
  for (auto candidate = candidates_.begin(); candidate != bidders; ++candidate) {
    const MilliGpu gpus = view.shape(candidate->job).gpu_milli();
    const double gain = std::log1p(to_seconds(options_.lease) / std::max(shared_s(view, candidate->job), 1e-6));
    if (gpus > 0) bids.push_back({.from = *candidate, .gain = gain, .gpus = gpus});
  }
  std::sort(bids.begin(), bids.end(), [](const Bid& a, const Bid& b) {
    const double per_gpu_a = a.gain / static_cast<double>(a.gpus), per_gpu_b = b.gain / static_cast<double>(b.gpus);
    return per_gpu_a != per_gpu_b ? per_gpu_a > per_gpu_b : before(a.from, b.from);
  });
  return bids;
}

void Themis::set_payments(const OracleView& view, const std::vector<Bid>& losers, MilliGpu free) {
  MilliGpu least = unlimited;
  for (const Bid& loser : losers) least = std::min(least, loser.gpus);
  for (const Bid& winner : winners_) {
    MilliGpu room = free + winner.gpus;
    double others_gain = 0;
    for (auto loser = losers.begin(); loser != losers.end() && room >= least; ++loser) {
      if (loser->gpus > room) continue;
      room -= loser->gpus;
      others_gain += loser->gain;
    }
    const double kept_s = to_seconds(options_.lease) * std::exp(-others_gain);
    begin_lease(winner.from.job, view.now() + std::max(from_seconds(kept_s), Time{1}));
  }
}

// Waiting jobs, in falling order of rho, take the place of jobs whose paid lease is over, in rising order.
void Themis::replace_expired(const OracleView& view, Decision& decision) {
  candidates_.clear();
  const auto past = leases_.upper_bound({view.now(), no_job});
  if (past == leases_.begin()) return;
  std::for_each(leases_.begin(), past,
                [&](const auto& lease) { candidates_.push_back(candidate(view, lease.second, true)); });
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return before(b, a); });
  std::vector<JobId> expired, gone;
  for (const Candidate& candidate : candidates_) expired.push_back(candidate.job);
  open_turns(view, [](std::uint32_t, std::uint32_t) { return true; });
  blocked_.assign(waiting_.size(), 0);
  while (!expired.empty()) {
    Turn* const turn = next_turn();
    if (turn == nullptr) break;
    const JobId job = turn->first.back().job;
    for (const JobId victim : make_room(job, view.options().placement, expired, decision)) {
      end_lease(victim);
      std::erase(expired, victim);
      gone.push_back(victim);
    }
    view.phase(job) == JobPhase::running ? take_turn(view, *turn) : block(view, turn->group);
  }
  close_turns(view);
  start_waiting(view, decision);  // a gang that stopped may leave more than was wanted
  for (const JobId job : gone) stopped_.push_back(candidate(view, job, true));
}

PolicyInfo themis_info() {
  PolicyInfo info{
      .name = "themis",
      .summary = "finish-time fairness: auctions leases of GPUs among the jobs that sharing slows most",
      .source =
          "Themis (NSDI'20), sections 3 and 4; N as of the submission; a job is an app, bids for its "
          "gang, and pays in time",
      .complexity = "O(shapes + log^2 n) an event, O(running x log n) a lease; with the auction O(n log n) a lease",
      .parameters = {{.name = "lease_s",
                      .fallback = 1200.0,
                      .meaning = "seconds of a lease; leases end together, at multiples of that on the trace's clock",
                      .least = 1e-3,
                      .most = 1e9},
                     {.name = "auction",
                      .fallback = true,
                      .meaning = "auction the leases (partial allocation, hidden payments); false: by rho alone"},
                     {.name = "filter",
                      .fallback = 0.8,
                      .meaning = "auction=true: f, the fraction of jobs, of best rho, that make no bid",
                      .most = 1}},
      .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
        const Themis::Options options{.lease = from_seconds(parameters.number("lease_s")),
                                      .auction = parameters.flag("auction"),
                                      .filter = parameters.number("filter")};
        if (parameters.word("estimate") == "exact") return AnyPolicy(Themis(options));
        auto estimator = make_duration_estimator(parameters, context);
        if (!estimator) return unexpected("policy themis, " + estimator.error().to_string());
        return AnyPolicy(Themis(options, *std::move(estimator)));
      },
      .preemptive = true,
      .work_conserving = true};
  for (ParameterInfo& parameter : estimate_parameters("exact")) info.parameters.push_back(std::move(parameter));
  return info;
}

}  // namespace gpusched
