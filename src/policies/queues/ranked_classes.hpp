// SPDX-License-Identifier: Apache-2.0
/// RankedClasses: waiting jobs of owners whose turn depends on what they hold, kept in order as holdings change, so
/// that an instant costs what changed and not the number of owners.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/queues/class_queues.hpp"

namespace gpusched {

/// The place of a class among those of its party, smallest first.
struct ClassRank {
  std::int64_t major = 0;
  std::int64_t minor = 0;
  QueuePlace first = {};  ///< of its first job
  // NOLINTNEXTLINE(modernize-use-nullptr): as Shape's
  friend auto operator<=>(const ClassRank&, const ClassRank&) = default;
};

/// Waiting jobs by class: equal party, member, priority, scheduling queue and demand; within a class, first come first
/// served. A party is what has a standing (an owner, a queue, a virtual cluster), a member is whoever is ranked within
/// it. Classes of one kind (scheduling queue and demand, unless the order says otherwise) fit together, or none does.
///
/// An `Order` says who comes first. Its scores are totally ordered by <; the class of the lowest score is served.
///   Kind kind(const Class&)                                by whom a lack of room is shared;
///   std::int64_t major(const Class&), minor(const Class&)  the rank, until reorder_member();
///   double standing(std::uint32_t party)                   a number that only bounds scores, until reorder_party(): it
///                                                          may have grown since it was asked, but not fallen;
///   Outlook outlook(const Class&, double best)             of a party's class of the lowest rank in a kind: a number
///                                                          that bounds its scores until the order's clock() reaches a
///                                                          value, or reorder_party(). `best`: such a number of the
///                                                          class last served of the kind;
///   double clock()                                         does not fall;
///   Score score(const Class&)                              exact, at this moment. Within a party and kind, classes of
///                                                          lower rank have lower scores;
///   Score bound(const Least&)                              no class with so much of each, or more, has a lower score.
/// The kinds keep a tree over their parties, with the least standing, outlook and rank of each subtree: the class of
/// the lowest score is found by looking only where the bound promises one. O(log parties) where bounds are exact.
class RankedClasses {
 public:
  using Kind = std::pair<std::uint32_t, std::uint32_t>;

  struct Class {
    std::uint32_t party = 0;
    std::uint32_t member = 0;
    std::int32_t priority = 0;
    std::uint32_t queue = 0;
    std::uint32_t demand = 0;           ///< View::demand()
    std::vector<QueuePlace> jobs = {};  ///< a heap with the earliest at the front
    std::uint32_t kind = no_index;      ///< where it stands
    std::uint32_t slot = no_index;      ///< likewise
    std::uint32_t at = no_index;        ///< likewise
    ClassRank rank = {};                ///< as it stands there

    [[nodiscard]] JobId first() const { return jobs.front().job; }
  };

  /// Bounds of a class's scores.
  struct Outlook {
    double now = 0;                                          ///< at this moment
    double least = 0;                                        ///< at most `now`
    double until = std::numeric_limits<double>::infinity();  ///< of the clock: until then `least` holds
  };

  /// What is known of the classes of some parties: the least of each.
  struct Least {
    double standing = std::numeric_limits<double>::infinity();
    /// Of first classes, with the first job of each.
    std::pair<double, QueuePlace> outlook = {std::numeric_limits<double>::infinity(), {}};
    ClassRank rank = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max(), {}};
    QueuePlace oldest = {};  ///< the least `first`; nobody's: none waits

    friend bool operator==(const Least&, const Least&) = default;
  };

  template <class Order>
  void push(const View& view, JobId job, std::uint32_t party, std::uint32_t member, Order order) {
    const std::uint32_t number = number_of(view, job, party, member, order);
    if (class_of_.empty()) class_of_.resize(view.job_count(), no_index);
    class_of_[index(job)] = number;
    std::vector<QueuePlace>& jobs = classes_[number].jobs;
    jobs.push_back(view.queue_place(job));
    std::push_heap(jobs.begin(), jobs.end(), std::greater<>());
    if (jobs.front().job == job) place(number, order);
  }

  /// The standing of the party changed. O(its kinds x log parties).
  template <class Order>
  void reorder_party(std::uint32_t party, Order order) {
    if (party >= stands_.size()) return;
    for (const Stand& stand : stands_[party]) {
      KindTree& kind = kinds_[stand.kind];
      Leaf& leaf = kind.leaves[stand.slot];
      if (leaf.classes.empty()) continue;
      leaf.standing = order.standing(party);
      look(kind, stand.slot, order);
    }
  }

  /// The ranks of the member's classes changed. O(its classes x log n).
  template <class Order>
  void reorder_member(std::uint32_t member, Order order) {
    if (member >= of_member_.size()) return;
    for (const std::uint32_t number : of_member_[member]) {
      if (!classes_[number].jobs.empty()) place(number, order);
    }
  }

  /// Calls `attempt(class)`, which tries to start the class's first job, for the class of the lowest score, until none
  /// is left to try: a kind without room is done for this instant. Kinds of which `may_fit(kind)` is false must have no
  /// room, and cost one question. Preconditions: a start lowers no score, or `attempt` gives Attempt::started_anew,
  /// which costs as much as the first election; `attempt` reorders those whose standing or rank it changed, and never
  /// gives Attempt::not_allowed.
  template <class Order, class MayFit, class Try>
  void start_best(Order order, MayFit may_fit, Try attempt) {
    using Score = decltype(order.score(classes_[0]));
    using Turn = std::tuple<Score, std::uint32_t, std::uint32_t>;  // class, kind
    std::vector<Turn> turns;
    const auto elect = [&](std::uint32_t kind) {
      const auto best = best_of<Score>(kind, order);
      if (!best) return;
      turns.emplace_back(best->first, best->second, kind);
      std::push_heap(turns.begin(), turns.end(), std::greater<>());
    };
    for (std::uint32_t kind = 0; kind < kinds_.size(); ++kind) {
      if (kinds_[kind].active > 0 && may_fit(kinds_[kind].key)) elect(kind);
    }
    while (!turns.empty()) {
      std::pop_heap(turns.begin(), turns.end(), std::greater<>());
      const auto [score, number, kind] = turns.back();
      turns.pop_back();
      if (score == order.score(classes_[number])) {  // else a start changed it, and another may come first
        const Attempt outcome = attempt(std::as_const(classes_[number]));
        if (outcome == Attempt::no_room) continue;
        pop(number, order);
        if (outcome == Attempt::started_anew) {
          std::vector<std::uint32_t> kinds;
          kinds.reserve(turns.size());
          for (const Turn& turn : turns) kinds.push_back(std::get<2>(turn));
          turns.clear();
          for (const std::uint32_t other : kinds) elect(other);
        }
      }
      elect(kind);
    }
  }

  /// The greedy loop of a fair policy: while a job fits, the class of the lowest score starts its first job where
  /// `rule` puts it, and `started(job)` counts it. Jobs that do not fit are passed over.
  template <class Order, class Started>
  void start_while_any_fits(const View& view, Decision& decision, Placement rule, Order order, Started started) {
    const auto may_fit = [&](const Kind& kind) {
      return view.cluster().may_fit(view.shape_of_demand(kind.second), kind.first);
    };
    start_best(order, may_fit, [&](const Class& jobs) {
      if (decision.start(jobs.first(), rule) != Verdict::ok) return Attempt::no_room;
      started(jobs.first());
      return Attempt::started;
    });
  }

  /// Classes that have waiting jobs, in a repeatable order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const std::uint32_t number : active_) visit(classes_[number]);
  }

  /// Takes `job` out, which need not be the first of its class, whatever it was given since it came. O(jobs of the
  /// class).
  template <class Order>
  void erase(const View& view, JobId job, Order order) {
    const std::uint32_t number = class_of_[index(job)];
    std::vector<QueuePlace>& jobs = classes_[number].jobs;
    std::iter_swap(std::find(jobs.begin(), jobs.end(), view.queue_place(job)), jobs.end() - 1);
    jobs.pop_back();
    std::make_heap(jobs.begin(), jobs.end(), std::greater<>());
    place(number, order);
  }

  /// `job` has another priority now (EventKind::reprioritize), and perhaps another party: moves it to the class of
  /// that. One that came to wait at this instant is in there. O(jobs of the class).
  template <class Order>
  void reprioritize(const View& view, JobId job, std::uint32_t party, std::uint32_t member, Order order) {
    erase(view, job, order);
    push(view, job, party, member, order);
  }

  /// Scores and bounds computed so far: what the elections cost.
  [[nodiscard]] std::uint64_t scored() const { return scored_; }

 private:
  struct Leaf {
    std::uint32_t party = 0;
    double standing = 0;
    RankedClasses::Outlook outlook = {};                         // of the first class
    std::set<std::pair<ClassRank, std::uint32_t>> classes = {};  // with waiting jobs

    [[nodiscard]] std::uint32_t first() const { return classes.begin()->second; }
    [[nodiscard]] Least least() const {
      if (classes.empty()) return {};
      const ClassRank& rank = classes.begin()->first;
      return {.standing = standing, .outlook = {outlook.least, rank.first}, .rank = rank, .oldest = rank.first};
    }
  };
  // The parties of a kind, as the leaves of a binary tree: node k has children 2k and 2k + 1.
  struct KindTree {
    Kind key;
    std::uint32_t active = 0;                        // classes with waiting jobs
    std::map<std::uint32_t, std::uint32_t> slots{};  // by party
    std::vector<Leaf> leaves{};
    std::vector<Least> nodes{};  // twice a power of two; those of leaves are the second half
    double best = -std::numeric_limits<double>::infinity();    // the outlook of the class last elected
    std::vector<std::pair<double, std::uint32_t>> outdated{};  // a heap: when an outlook of a slot ends, the next first

    [[nodiscard]] std::size_t capacity() const { return nodes.size() / 2; }
    void update(std::uint32_t slot) {
      std::size_t at = capacity() + slot;
      Least least = leaves[slot].least();
      while (at > 0 && least != nodes[at]) {
        nodes[at] = least;
        at /= 2;
        if (at > 0) least = merged(nodes[2 * at], nodes[2 * at + 1]);
      }
    }
    std::uint32_t add(std::uint32_t party) {
      const auto slot = static_cast<std::uint32_t>(leaves.size());
      slots.emplace(party, slot);
      leaves.push_back({.party = party});
      if (slot < capacity()) return slot;
      nodes.assign(std::max<std::size_t>(2, 2 * nodes.size()), Least{});
      for (std::uint32_t known = 0; known < slot; ++known) nodes[capacity() + known] = leaves[known].least();
      for (std::size_t at = capacity(); at-- > 1;) nodes[at] = merged(nodes[2 * at], nodes[2 * at + 1]);
      return slot;
    }
  };
  // Where a party stands.
  struct Stand {
    std::uint32_t kind = 0;
    std::uint32_t slot = 0;
  };
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::uint32_t, std::uint32_t>;

  static Least merged(const Least& a, const Least& b) {
    return {.standing = std::min(a.standing, b.standing),
            .outlook = std::min(a.outlook, b.outlook),
            .rank = std::min(a.rank, b.rank),
            .oldest = std::min(a.oldest, b.oldest)};
  }

  template <class Order>
  std::uint32_t number_of(const View& view, JobId job, std::uint32_t party, std::uint32_t member, Order order) {
    const std::int32_t priority = view.priority(job);
    const Key key(party, member, priority, view.queue_of(job), view.demand(job));
    const auto [known, added] = numbers_.try_emplace(key, static_cast<std::uint32_t>(classes_.size()));
    if (added) {
      classes_.push_back({.party = party,
                          .member = member,
                          .priority = priority,
                          .queue = view.queue_of(job),
                          .demand = view.demand(job)});
      add_class(known->second, order.kind(classes_.back()));
    }
    return known->second;
  }

  void add_class(std::uint32_t number, const Kind& key) {
    Class& added = classes_[number];
    const auto [kind, is_new] = kind_numbers_.try_emplace(key, static_cast<std::uint32_t>(kinds_.size()));
    if (is_new) kinds_.push_back({.key = key});
    added.kind = kind->second;
    KindTree& tree = kinds_[added.kind];
    const auto slot = tree.slots.find(added.party);
    added.slot = slot != tree.slots.end() ? slot->second : tree.add(added.party);
    if (added.party >= stands_.size()) stands_.resize(added.party + 1);
    if (slot == tree.slots.end()) stands_[added.party].push_back({added.kind, added.slot});
    if (added.member >= of_member_.size()) of_member_.resize(added.member + 1);
    of_member_[added.member].push_back(number);
  }

  // Puts the class where its first job and its rank belong, or takes it out when it has no job left.
  template <class Order>
  void place(std::uint32_t number, Order order) {
    Class& placed = classes_[number];
    KindTree& kind = kinds_[placed.kind];
    Leaf& leaf = kind.leaves[placed.slot];
    if (leaf.classes.erase({placed.rank, number}) > 0) deactivate(number);
    if (!placed.jobs.empty()) {
      if (leaf.classes.empty()) leaf.standing = order.standing(placed.party);
      placed.rank = {order.major(placed), order.minor(placed), placed.jobs.front()};
      leaf.classes.insert({placed.rank, number});
      activate(number);
    }
    look(kind, placed.slot, order);
  }

  // Asks for the outlook of the first class of a leaf.
  template <class Order>
  void look(KindTree& kind, std::uint32_t slot, Order& order) {
    Leaf& leaf = kind.leaves[slot];
    const double planned = std::exchange(leaf.outlook, {}).until;
    if (!leaf.classes.empty()) leaf.outlook = order.outlook(std::as_const(classes_[leaf.first()]), kind.best);
    if (leaf.outlook.until != planned && std::isfinite(leaf.outlook.until)) {
      kind.outdated.emplace_back(leaf.outlook.until, slot);
      std::push_heap(kind.outdated.begin(), kind.outdated.end(), std::greater<>());
    }
    kind.update(slot);
  }

  template <class Order>
  void renew_outlooks(KindTree& kind, Order& order) {
    const double clock = order.clock();
    std::vector<std::pair<double, std::uint32_t>>& heap = kind.outdated;
    renewed_.clear();
    while (!heap.empty() && heap.front().first <= clock) {
      const auto [until, slot] = heap.front();
      std::pop_heap(heap.begin(), heap.end(), std::greater<>());
      heap.pop_back();
      if (kind.leaves[slot].outlook.until != until) continue;  // asked since
      kind.leaves[slot].outlook.until = std::numeric_limits<double>::infinity();
      renewed_.push_back(slot);
    }
    for (const std::uint32_t slot : renewed_) look(kind, slot, order);
  }

  void activate(std::uint32_t number) {
    ++kinds_[classes_[number].kind].active;
    classes_[number].at = static_cast<std::uint32_t>(active_.size());
    active_.push_back(number);
  }

  void deactivate(std::uint32_t number) {
    --kinds_[classes_[number].kind].active;
    active_[classes_[number].at] = active_.back();  // the last takes its place
    classes_[active_.back()].at = classes_[number].at;
    active_.pop_back();
  }

  template <class Order>
  void pop(std::uint32_t number, Order order) {
    std::vector<QueuePlace>& jobs = classes_[number].jobs;
    std::pop_heap(jobs.begin(), jobs.end(), std::greater<>());
    jobs.pop_back();
    place(number, order);
  }

  template <class Score>
  using Best = std::optional<std::pair<Score, std::uint32_t>>;

  // The class of the lowest score of a kind, or nothing.
  template <class Score, class Order>
  Best<Score> best_of(std::uint32_t kind, Order& order) {
    Best<Score> best;
    if (kinds_[kind].active == 0) return best;
    renew_outlooks(kinds_[kind], order);
    search(kinds_[kind], 1, order, best);
    return best;
  }

  template <class Score, class Order>
  void search(KindTree& kind, std::size_t at, Order& order, Best<Score>& best) {
    if (at >= kind.capacity()) {
      const auto slot = static_cast<std::uint32_t>(at - kind.capacity());
      Leaf& leaf = kind.leaves[slot];
      ++scored_;
      const Score score = order.score(std::as_const(classes_[leaf.first()]));
      leaf.standing = std::max(leaf.standing, order.standing(leaf.party));  // better bounds, for the searches to come
      look(kind, slot, order);
      if (best && !(score < best->first)) return;
      best.emplace(score, leaf.first());
      kind.best = leaf.outlook.now;
      return;
    }
    struct Side {
      Score bound;
      std::size_t at;
    };
    std::optional<Side> sides[2];
    for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
      const Least& least = kind.nodes[2 * at + side];
      if (least.oldest.job == no_job) continue;
      ++scored_;
      sides[side] = Side{order.bound(least), 2 * at + side};
    }
    if (sides[0] && sides[1] && sides[1]->bound < sides[0]->bound) std::swap(sides[0], sides[1]);
    for (const std::optional<Side>& side : sides) {
      if (side && (!best || side->bound < best->first)) search(kind, side->at, order, best);
    }
  }

  std::map<Key, std::uint32_t> numbers_;
  std::map<Kind, std::uint32_t> kind_numbers_;
  std::vector<Class> classes_;
  std::vector<std::uint32_t> class_of_;  // by job: where it waits, or waited last
  std::vector<std::uint32_t> active_;    // classes with waiting jobs
  std::vector<KindTree> kinds_;
  std::vector<std::vector<Stand>> stands_;             // by party
  std::vector<std::vector<std::uint32_t>> of_member_;  // classes
  std::vector<std::uint32_t> renewed_;                 // by renew_outlooks()
  std::uint64_t scored_ = 0;
};

/// The order of policies whose parties have no standing of their own: classes by rank alone, all of one party.
struct RankedOrder {
  using Score = ClassRank;
  [[nodiscard]] static RankedClasses::Kind kind(const RankedClasses::Class& jobs) { return {jobs.queue, jobs.demand}; }
  [[nodiscard]] static double standing(std::uint32_t) { return 0; }
  [[nodiscard]] static RankedClasses::Outlook outlook(const RankedClasses::Class&, double) { return {}; }
  [[nodiscard]] static double clock() { return 0; }
  [[nodiscard]] static Score bound(const RankedClasses::Least& least) { return least.rank; }
};

}  // namespace gpusched
