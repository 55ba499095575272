// SPDX-License-Identifier: Apache-2.0
#include "src/policies/themis.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "src/policies/class_queues.hpp"

namespace gpusched {

void Themis::decide(const OracleView& view, Decision& decision) {
  if (estimator_) estimator_->observe(view);
  note_arrivals(view);
  if (view.pending_count() == 0) return;
  if (view.now().us % options_.lease.us == 0) {
    options_.auction ? auction_all(view, decision) : lease_all(view, decision);
  } else {
    const bool room = view.cluster().free_gpu_milli() > 0 || cpu_only_jobs_;
    if (!options_.auction && room) start_waiting(view, decision);
    if (options_.auction && room) {
      collect(view, false);
      start_in_order(view, decision);
    }
    if (options_.auction) replace_expired(view, decision);
  }
  if (view.pending_count() == 0) return;
  const Time next = next_wake(view);
  if (next != planned_wake_ && decision.wake(next) == Verdict::ok) planned_wake_ = next;
}

// The next multiple of the lease, or the end of a lease that was paid for.
Time Themis::next_wake(const View& view) const {
  Time next{(view.now().us / options_.lease.us + 1) * options_.lease.us};
  if (!options_.auction) return next;
  for (const JobId job : view.running()) {
    const Time end = lease_end_[index(job)];
    if (end > view.now() && end < next) next = end;
  }
  return next;
}

void Themis::note_arrivals(const OracleView& view) {
  if (ideal_s_.empty()) {
    ideal_s_.resize(view.job_count());
    lease_end_.assign(view.job_count(), Time::max());
    if (estimator_) estimate_.resize(view.job_count());
    waiting_.assign(std::size_t{view.queue_count()} * view.shape_count(), KineticTournament(true));
    slots_.assign(view.job_count(), no_index);
  }
  for (const Candidate& stopped : stopped_) wait(view, stopped.job);
  stopped_.clear();
  for (const Event& event : view.events()) {
    if (event.kind == EventKind::retry && !options_.auction) wait(view, event.job);
    if (event.kind == EventKind::retry) lease_end_[index(event.job)] = Time::max();
    if (event.kind != EventKind::submit) continue;
    cpu_only_jobs_ = cpu_only_jobs_ || view.shape(event.job).gpu_milli() == 0;
    const auto jobs = static_cast<double>(view.arrived() - view.finished());
    const double share = static_cast<double>(view.cluster().total_gpus() * whole_gpu) / jobs;
    const double slowdown = std::max(1.0, static_cast<double>(view.shape(event.job).gpu_milli()) / share);
    if (estimator_) estimate_[index(event.job)] = estimator_->estimate(view, event.job);
    const Time alone = estimator_ ? estimate_[index(event.job)] : view.work(event.job);
    // A microsecond is the least time there is: it keeps rho finite.
    ideal_s_[index(event.job)] = std::max(to_seconds(alone), 1e-6) * slowdown;
    if (!options_.auction) wait(view, event.job);
  }
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

// In falling order of rho; ties go to the earlier submitted.
void Themis::collect(const OracleView& view, bool with_running) {
  candidates_.clear();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) candidates_.push_back({rho(view, job), job, false});
  }
  if (with_running) {
    for (const JobId job : view.running()) candidates_.push_back({rho(view, job), job, true});
  }
  std::sort(candidates_.begin(), candidates_.end(), before);
}

// While a job waits, its rho is the time since (submission - time left) over its ideal.
void Themis::wait(const OracleView& view, JobId job) {
  const Claim claim{1 / ideal_s_[index(job)], view.submit(job) - left(view, job), job};
  slots_[index(job)] = waiting_[group_of(view, job)].push(claim, view.now());
}

// Turns for the groups of which `takes(queue, shape)` is true.
template <class Takes>
void Themis::open_turns(const OracleView& view, Takes takes) {
  turns_.clear();
  for (std::size_t group = 0; group < waiting_.size(); ++group) {
    if (waiting_[group].empty()) continue;
    const auto queue = static_cast<std::uint32_t>(group / view.shape_count());
    const auto shape = static_cast<std::uint32_t>(group % view.shape_count());
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
    const Candidate next{rho(view, job), job, false};
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

// Those who were not taken wait on.
void Themis::close_turns(const OracleView& view) {
  for (const Turn& turn : turns_) {
    for (const Candidate& candidate : turn.first) wait(view, candidate.job);
  }
  turns_.clear();
}

void Themis::lease_all(const OracleView& view, Decision& decision) {
  candidates_.clear();
  for (const JobId job : view.running()) candidates_.push_back({rho(view, job), job, true});
  std::sort(candidates_.begin(), candidates_.end(), before);
  stop_losers(view, decision);
  start_waiting(view, decision);
}

// Who holds a lease is a matter of count; all that lose theirs leave before anyone starts.
void Themis::stop_losers(const OracleView& view, Decision& decision) {
  MilliGpu free = view.cluster().total_gpus() * whole_gpu;
  const auto counts = [&](MilliGpu wanted) { return wanted > 0 && wanted <= free; };
  open_turns(view, [&](std::uint32_t, std::uint32_t shape) { return counts(view.shape_of_id(shape).gpu_milli()); });
  std::vector<JobId> winners;
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
      winners.push_back(turn->first.back().job);
      free -= view.shape(winners.back()).gpu_milli();
      take_turn(view, *turn);
    } else {
      break;
    }
  }
  for (const JobId job : winners) wait(view, job);
}

// In falling order of rho, with the jobs that this lease stopped, which may get their places back.
void Themis::start_waiting(const OracleView& view, Decision& decision) {
  open_turns(view, [&](std::uint32_t queue, std::uint32_t shape) {
    return view.cluster().may_fit(view.shape_of_id(shape), queue);
  });
  blocked_.assign(waiting_.size(), 0);
  const auto block = [&](std::size_t group) {
    blocked_[group] = 1;
    std::erase_if(turns_, [&](const Turn& turn) {
      if (turn.group != group) return false;
      for (const Candidate& candidate : turn.first) wait(view, candidate.job);
      return true;
    });
  };
  auto stopped = stopped_.begin();
  for (;;) {
    Turn* const turn = next_turn();
    if (stopped != stopped_.end() && (turn == nullptr || before(*stopped, turn->first.back()))) {
      const std::size_t group = group_of(view, stopped->job);
      if (!blocked_[group] && decision.restore(stopped->job) != Verdict::ok &&
          decision.start(stopped->job) != Verdict::ok) {
        block(group);
      }
      ++stopped;
    } else if (turn == nullptr) {
      break;
    } else if (decision.start(turn->first.back().job) == Verdict::ok) {
      take_turn(view, *turn);
    } else {
      block(turn->group);
    }
  }
  close_turns(view);
  std::erase_if(stopped_, [&](const Candidate& candidate) { return view.phase(candidate.job) != JobPhase::pending; });
}

void Themis::auction_all(const OracleView& view, Decision& decision) {
  collect(view, true);
  hold_auction(view);
  MilliGpu free = view.cluster().total_gpus() * whole_gpu;
  for (const Candidate& candidate : candidates_) {
    const MilliGpu wanted = view.shape(candidate.job).gpu_milli();
    if (wanted <= free) {
      free -= wanted;
    } else if (candidate.running) {
      decision.preempt(candidate.job);
    }
  }
  start_in_order(view, decision);
  for (const Candidate& candidate : candidates_) {
    if (view.phase(candidate.job) != JobPhase::running) lease_end_[index(candidate.job)] = Time::max();
  }
}

// Winners first, the others in falling order of rho.
void Themis::hold_auction(const OracleView& view) {
  for (const Candidate& candidate : candidates_) lease_end_[index(candidate.job)] = Time::max();
  const double bidders = std::ceil((1 - options_.filter) * static_cast<double>(candidates_.size()) - 1e-9);
  bids_.clear();
  for (std::size_t i = 0; i < candidates_.size() && static_cast<double>(i) < std::max(bidders, 1.0); ++i) {
    const JobId job = candidates_[i].job;
    const MilliGpu gpus = view.shape(job).gpu_milli();
    const double gain = std::log1p(to_seconds(options_.lease) / std::max(shared_s(view, job), 1e-6));
    if (gpus > 0) bids_.push_back({.gain = gain, .gpus = gpus, .candidate = i});
  }
  std::sort(bids_.begin(), bids_.end(), [](const Bid& a, const Bid& b) {
    const double per_gpu_a = a.gain / static_cast<double>(a.gpus), per_gpu_b = b.gain / static_cast<double>(b.gpus);
    return per_gpu_a != per_gpu_b ? per_gpu_a > per_gpu_b : a.candidate < b.candidate;
  });
  MilliGpu free = view.cluster().total_gpus() * whole_gpu;
  for (Bid& bid : bids_) {
    bid.won = bid.gpus <= free;
    if (bid.won) free -= bid.gpus;
  }
  set_payments(view, free);
  std::vector<Candidate> order;
  for (const Bid& bid : bids_) {
    if (bid.won) order.push_back(candidates_[bid.candidate]);
  }
  const auto won = [&](const Candidate& candidate) { return lease_end_[index(candidate.job)] != Time::max(); };
  std::copy_if(candidates_.begin(), candidates_.end(), std::back_inserter(order),
               [&](const Candidate& candidate) { return !won(candidate); });
  candidates_ = std::move(order);
}

void Themis::set_payments(const OracleView& view, MilliGpu free) {
  for (const Bid& winner : bids_) {
    if (!winner.won) continue;
    MilliGpu room = free + winner.gpus;
    double others_gain = 0;
    for (const Bid& loser : bids_) {
      if (loser.won || loser.gpus > room) continue;
      room -= loser.gpus;
      others_gain += loser.gain;
    }
    const double kept_s = to_seconds(options_.lease) * std::exp(-others_gain);
    lease_end_[index(candidates_[winner.candidate].job)] = view.now() + std::max(from_seconds(kept_s), Time{1});
  }
}

// Waiting jobs, in falling order of rho, take the place of jobs whose paid lease is over, in rising order.
void Themis::replace_expired(const OracleView& view, Decision& decision) {
  std::vector<Candidate> expired;
  for (const JobId job : view.running()) {
    if (lease_end_[index(job)] <= view.now()) expired.push_back({rho(view, job), job, true});
  }
  if (expired.empty()) return;
  std::sort(expired.begin(), expired.end(), [](const Candidate& a, const Candidate& b) {
    return a.rho != b.rho ? a.rho < b.rho : index(a.job) > index(b.job);
  });
  collect(view, false);
  blocked_.assign(std::size_t{view.queue_count()} * view.shape_count(), 0);
  for (const Candidate& waiting : candidates_) {
    auto& blocked = blocked_[view.queue_of(waiting.job) * view.shape_count() + view.shape_id(waiting.job)];
    if (blocked || expired.empty()) continue;
    std::vector<JobId> victims;
    victims.reserve(expired.size());
    for (const Candidate& candidate : expired) victims.push_back(candidate.job);
    for (const JobId gone : make_room(waiting.job, view.options().placement, victims, decision)) {
      lease_end_[index(gone)] = Time::max();
      std::erase_if(expired, [&](const Candidate& candidate) { return candidate.job == gone; });
    }
    if (view.phase(waiting.job) != JobPhase::running) blocked = 1;
  }
  start_in_order(view, decision);  // a gang that stopped may leave more than was wanted
}

void Themis::start_in_order(const OracleView& view, Decision& decision) {
  blocked_.assign(std::size_t{view.queue_count()} * view.shape_count(), 0);
  for (const Candidate& candidate : candidates_) {
    if (view.phase(candidate.job) != JobPhase::pending) continue;
    auto& blocked = blocked_[view.queue_of(candidate.job) * view.shape_count() + view.shape_id(candidate.job)];
    if (blocked) continue;
    const bool placed = (candidate.running && decision.restore(candidate.job) == Verdict::ok) ||
                        decision.start(candidate.job) == Verdict::ok;
    if (!placed) blocked = 1;
  }
}

PolicyInfo themis_info() {
  PolicyInfo info{
      .name = "themis",
      .summary = "finish-time fairness: leases GPUs to the jobs that sharing slows most",
      .source =
          "Themis (NSDI'20), sections 3 and 4; N as of the submission; a job is an app, bids for its "
          "gang, and pays in time",
      .complexity = "O(shapes + log^2 n) an event, O(running x log n) a lease; with the auction O(n log n) an event",
      .parameters = {{.name = "lease_s",
                      .fallback = 1200.0,
                      .meaning = "seconds for which GPUs are leased",
                      .least = 1e-3,
                      .most = 1e9},
                     {.name = "auction",
                      .fallback = false,
                      .meaning = "auction the leases (partial allocation, hidden payments)"},
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
