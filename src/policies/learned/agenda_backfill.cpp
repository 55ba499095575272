// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/agenda_backfill.hpp"

#include <algorithm>
#include <utility>

namespace gpusched {
namespace {

constexpr auto any_length = [](const auto&) { return Time::max(); };

}  // namespace

void AgendaBackfill::wait(const View& view, JobId job, double key, Time known) {
  if (lanes_.empty()) lanes_.resize(std::size_t{view.queue_count()} * view.shape_count());
  const std::uint32_t lane = view.queue_of(job) * view.shape_count() + view.shape_id(job);
  const auto turn = static_cast<std::uint32_t>(turns_.size());
  turns_.push_back({job, lane, known, key});
  Lane& own = lanes_[lane];
  if (own.by_key.size() == 0) active_.push_back(lane);
  own.milli = view.shape(job).gpu_milli();
  own.by_key.push(entry(turn, &Lane::by_key), view.now());
  if (blocks_) own.by_turn.push(entry(turn, &Lane::by_turn), view.now());
}

// The last turn of the job is the one that it has now.
void AgendaBackfill::withdraw(const View& view, JobId job) {
  const auto last = std::find_if(turns_.rbegin(), turns_.rend(), [&](const Turn& turn) { return turn.job == job; });
  const auto turn = static_cast<std::uint32_t>(turns_.rend() - last - 1);
  if (turn == chosen_) chosen_ = no_index;
  leave(turn, view.now());
}

void AgendaBackfill::decide(const View& view, Decision& decision) {
  for (const std::uint32_t lane : active_) lanes_[lane].full = false;
  if (blocks_) {
    serve_chosen(view, decision);
    return;
  }
  while (start_one(view, decision)) {
  }
}

// EASY: the first job in order has a reservation. If it does not fit, the first other job starts that fits and that by
// its known run time ends before the reservation, or needs no more than the reserved job will leave.
bool AgendaBackfill::start_one(const View& view, Decision& decision) {
  const std::uint32_t head = first(&Lane::by_key, view.now(), any_length);
  if (head == no_index) return false;
  if (start(head, view, decision)) return true;
  const Time reserved = reservation(head, view);
  const MilliGpu spare =
      view.cluster().free_gpu_milli() + ends_.freed_by(reserved.us) - lanes_[turns_[head].lane].milli;
  return start_first(&Lane::by_key, view, decision,
                     [&](const Lane& lane) { return lane.milli <= spare ? Time::max() : reserved - view.now(); });
}

// SC'20: the reservation is computed once, when the job is chosen. Until the job starts, others start in the order in
// which they began to wait, if they should end strictly before the reservation.
void AgendaBackfill::serve_chosen(const View& view, Decision& decision) {
  for (;;) {
    const bool anew = chosen_ == no_index;
    if (anew) chosen_ = first(&Lane::by_key, view.now(), any_length);
    if (chosen_ == no_index) return;
    if (!start(chosen_, view, decision)) {
      if (anew) reserved_ = reservation(chosen_, view);
      break;
    }
    chosen_ = no_index;
  }
  const auto before_it = [&](const Lane&) { return reserved_ - view.now() - Time{1}; };
  while (start_first(&Lane::by_turn, view, decision, before_it)) {
  }
}

// The first turn in `order` whose known run time is at most limit(its lane); no_index when there is none.
template <class Limit>
std::uint32_t AgendaBackfill::first(Order order, Time now, Limit limit) {
  std::uint32_t best = no_index;
  for (const std::uint32_t lane : active_) {
    const std::uint32_t turn = index((lanes_[lane].*order).first(limit(lanes_[lane]), now));
    if (turn != no_index && (best == no_index || before(turn, best, order))) best = turn;
  }
  return best;
}

// Starts the first such turn that fits; false when there is none.
template <class Limit>
bool AgendaBackfill::start_first(Order order, const View& view, Decision& decision, Limit limit) {
  constexpr Time nothing_is_as_short{-1};
  for (;;) {
    const std::uint32_t turn =
        first(order, view.now(), [&](const Lane& lane) { return lane.full ? nothing_is_as_short : limit(lane); });
    if (turn == no_index) return false;
    if (start(turn, view, decision)) return true;
  }
}

bool AgendaBackfill::start(std::uint32_t turn, const View& view, Decision& decision) {
  const auto& [job, lane, known, key] = turns_[turn];
  if (lanes_[lane].full || decision.start(job) != Verdict::ok) {
    lanes_[lane].full = true;
    return false;
  }
  ends_.start({(view.now() + known).us, lanes_[lane].milli, job});
  leave(turn, view.now());
  return true;
}

void AgendaBackfill::leave(std::uint32_t turn, Time now) {
  const std::uint32_t lane = turns_[turn].lane;
  lanes_[lane].by_key.erase(entry(turn, &Lane::by_key), now);
  if (blocks_) lanes_[lane].by_turn.erase(entry(turn, &Lane::by_turn), now);
  if (lanes_[lane].by_key.size() > 0) return;
  std::swap(*std::find(active_.begin(), active_.end(), lane), active_.back());
  active_.pop_back();
}

// When, by the known ends, enough GPUs are free for a job that does not fit now; the present when they never are.
Time AgendaBackfill::reservation(std::uint32_t turn, const View& view) {
  const MilliGpu missing = lanes_[turns_[turn].lane].milli - view.cluster().free_gpu_milli();
  return Time{ends_.until_freed(missing).value_or(view.now().us)};
}

// In by_turn all weights are equal, so that the number of the turn decides.
LengthTree::Entry AgendaBackfill::entry(std::uint32_t turn, Order order) const {
  return {.claim = {.weight = order == &Lane::by_key ? turns_[turn].key : 0.0, .job = JobId{turn}},
          .length = turns_[turn].known};
}

bool AgendaBackfill::before(std::uint32_t a, std::uint32_t b, Order order) const {
  return ClaimOrder{}.before(entry(a, order).claim, entry(b, order).claim, Time{});
}

}  // namespace gpusched
