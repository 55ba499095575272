// SPDX-License-Identifier: Apache-2.0
/// A slow, obvious world of nodes and cards to compare the engine with where who owns a job, several resources or the
/// place of a job matter. It walks second by second, calls a rule whenever something happened, and shares no code with
/// the engine: Row and Cluster are its input alone. Whole seconds, thousandths of a GPU or core, MiB.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {

/// Where one task of a job lies: its cards, none on a pool or for a task without GPUs.
struct WorldTask {
  std::size_t node = 0;
  std::vector<std::size_t> cards = {};
};

/// A start as a log line: who, when and on which (node, card); card -1 = a task on a node that does not name its cards.
struct WorldStart {
  std::int64_t second = 0;
  std::int64_t job = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> places = {};
  friend bool operator==(const WorldStart&, const WorldStart&) = default;
};

inline std::ostream& operator<<(std::ostream& out, const WorldStart& start) {
  out << "\n  " << start.second << " s: job " << start.job << " on";
  for (const auto& [node, card] : start.places) out << ' ' << node << '/' << card;
  return out;
}

struct WorldJob {
  std::int64_t id = 0;
  std::int64_t submit = 0;
  std::vector<std::int64_t> attempts = {};
  std::int64_t tasks = 1;
  std::int64_t gpu = 0, cpu = 0, memory = 0;  ///< of each task
  std::string user = {}, vc = {};
  std::int64_t priority = 0;

  bool waiting = false;
  bool running = false;
  bool paused = false;        ///< holds its place and does not work
  bool freed = false;         ///< running, but its place was taken from it for a trial
  bool must_restart = false;  ///< was preempted
  std::int64_t slow = 1;      ///< seconds that a second of its work takes where it runs
  std::int64_t part = 0;      ///< seconds gone into the present second of work
  std::int64_t loading = 0;   ///< seconds of work of the present run that are its restart
  std::size_t attempt = 0;
  std::int64_t remaining = 0;               ///< seconds of the attempt, overheads included
  std::int64_t started = -1;                ///< of the present run
  std::int64_t started_by = 0;              ///< the number of the rule's call that did it
  std::int64_t first_start_by = 0;          ///< likewise
  bool must_restart_before = false;         ///< the last start
  std::int64_t first_start = -1, end = -1;  ///< -1 = not yet
  std::vector<std::int64_t> seconds = {};   ///< those in which it ran
  std::vector<WorldTask> places = {};

  [[nodiscard]] std::int64_t gpus_milli() const { return tasks * gpu; }
  [[nodiscard]] bool shares_card() const { return gpu % 1000 != 0; }
};

struct WorldNode {
  bool pool = false;
  std::int64_t size = 0;                 ///< GPUs
  std::vector<std::int64_t> cards = {};  ///< what is left of each; empty in a pool
  std::int64_t pool_left = 0;
  std::int64_t cpu = 0, memory = 0;  ///< left
  std::string owner = {};            ///< virtual cluster; "" = anyone
  std::size_t type = 0;              ///< of GPU
  std::int64_t rack = 0, site = 0;
  std::size_t island = 0;  ///< cards of an island; 0 = no islands

  [[nodiscard]] std::int64_t free_milli() const {
    std::int64_t sum = pool_left;
    for (const std::int64_t left : cards) sum += left;
    return sum;
  }
  [[nodiscard]] std::int64_t idle_cards() const {
    return pool ? pool_left / 1000 : std::count(cards.begin(), cards.end(), 1000);
  }
};

/// How far apart the tasks of a job are, and how slow that makes it: WorldJob::slow.
using WorldSlowness = std::function<std::int64_t(const WorldJob&, const std::vector<WorldNode>&)>;

struct WorldCosts {
  std::int64_t restart = 0;
  std::int64_t checkpoint_interval = 0;
};

class World {
 public:
  /// Called after all that happened in a second, and again in that second after jobs of no work ended.
  using Rule = std::function<void(World&)>;

  /// With `slowness` gangs are kept in racks, and the costs of a restart are rounded down to whole seconds of work.
  World(const std::vector<Row>& rows, const Cluster& cluster, WorldCosts costs = {}, WorldSlowness slowness = {})
      : costs_(costs), slowness_(std::move(slowness)) {
    for (const Node& given : cluster.nodes) {
      WorldNode node{.pool = given.counts_only, .size = given.gpus, .cpu = given.cpu_milli, .memory = given.memory_mib};
      if (node.pool) node.pool_left = node.size * 1000;
      if (!node.pool) node.cards.assign(given.gpus, 1000);
      if (given.vc != no_index) node.owner = cluster.vcs[given.vc].name;
      node.type = given.gpu_type;
      node.rack = given.rack;
      node.site = cluster.site_of(given.rack);
      node.island = given.island_gpus;
      nodes.push_back(std::move(node));
    }
    for (const VirtualCluster& vc : cluster.vcs) quotas_[vc.name] = vc.quota;
    for (const Row& row : rows) add_job(row);
  }

  std::vector<WorldJob> jobs;
  std::vector<WorldNode> nodes;
  std::int64_t now = 0;
  std::set<std::int64_t> timers;  ///< seconds at which the rule wants to be called
  std::vector<WorldStart> starts;
  std::vector<std::pair<std::int64_t, std::int64_t>> stops;  ///< (second, job)

  /// Second by second until every job ended or `horizon` has passed.
  void run(const Rule& rule, std::int64_t horizon = 100'000) {
    for (; ended_ < jobs.size() && now < horizon; ++now) {
      for (bool first = true;; first = false) {  // a job of no work ends in the second in which it starts
        bool something = end_jobs();
        if (first) {
          const bool timed = timers.erase(now) > 0;
          const bool submitted = submit_jobs();
          something = something || timed || submitted;
        }
        if (!something) break;
        ++decisions_;
        rule(*this);
      }
      for (WorldJob& job : jobs) {
        if (!job.running) continue;
        job.seconds.push_back(now);
        if (job.paused || ++job.part < job.slow) continue;
        job.part = 0;
        --job.remaining;
      }
    }
  }

  /// Waiting jobs by id.
  std::vector<WorldJob*> waiting() {
    std::vector<WorldJob*> list;
    for (WorldJob& job : jobs) {
      if (job.waiting) list.push_back(&job);
    }
    return list;
  }
  std::vector<WorldJob*> running() {
    std::vector<WorldJob*> list;
    for (WorldJob& job : jobs) {
      if (job.running) list.push_back(&job);
    }
    return list;
  }

  /// The queue that a job waits in: its virtual cluster if the machines know it.
  [[nodiscard]] std::string queue_of(const WorldJob& job) const { return quotas_.contains(job.vc) ? job.vc : ""; }

  [[nodiscard]] std::int64_t total_gpus() const {
    std::int64_t sum = 0;
    for (const WorldNode& node : nodes) sum += node.size;
    return sum;
  }

  [[nodiscard]] bool may_use(const WorldNode& node, const WorldJob& job) const {
    return node.owner.empty() || queue_of(job).empty() || node.owner == job.vc;
  }
  /// Tasks of `job` that the node could take now and may.
  [[nodiscard]] std::int64_t fit(const WorldNode& node, const WorldJob& job) const {
    if (!may_use(node, job)) return 0;
    std::int64_t tasks = job.tasks;
    if (job.cpu > 0) tasks = std::min(tasks, node.cpu / job.cpu);
    if (job.memory > 0) tasks = std::min(tasks, node.memory / job.memory);
    if (job.gpu == 0) return tasks;
    if (!job.shares_card()) return std::min(tasks, node.idle_cards() / (job.gpu / 1000));
    std::int64_t here = node.pool_left / job.gpu;
    for (const std::int64_t left : node.cards) here += left / job.gpu;
    return std::min(tasks, here);
  }

  /// May the virtual cluster of `job` hold so much more?
  [[nodiscard]] bool within_quota(const WorldJob& job) const {
    const auto quota = quotas_.find(job.vc);
    if (quota == quotas_.end()) return true;
    std::int64_t held = job.gpus_milli();
    for (const WorldJob& other : jobs) {
      if (other.running && !other.freed && other.vc == job.vc) held += other.gpus_milli();
    }
    return held <= quota->second;
  }

  /// Starts a waiting job where the rule "consolidate" puts it: on the fullest node that holds all tasks that are left,
  /// else as many as fit on the emptiest; fewest cards idle is full, or for shares of cards least left on them. Ties go
  /// to the first node. With `pack`, the rule "best-fit": else as many as fit on the fullest that holds any.
  bool start(WorldJob& job, bool pack = false) {
    if (!within_quota(job)) return false;
    std::vector<WorldTask> places;
    const std::vector<WorldNode> before = nodes;
    std::size_t last = nodes.size();
    for (std::int64_t left = job.tasks; left > 0;) {
      const std::size_t node = slowness_ ? choose_near(job, left, last) : choose_node(job, left, pack, nodes.size());
      last = node;
      const std::int64_t here = node == nodes.size() ? 0 : std::min(left, fit(nodes[node], job));
      if (here == 0) {
        nodes = before;
        return false;
      }
      for (const WorldTask& task : take_all(node, job, here)) places.push_back(task);
      left -= here;
    }
    begin(job, std::move(places));
    return true;
  }

  /// Was it started in this call of the rule?
  [[nodiscard]] bool just_started(const WorldJob& job) const { return job.running && job.started_by == decisions_; }

  /// Starts a waiting job with a task on each of these (node, card), where card matters for shares alone (-1: the
  /// fullest that fits). Precondition: they fit.
  void start_on(WorldJob& job, const std::vector<std::pair<std::size_t, std::int64_t>>& tasks) {
    std::vector<WorldTask> places;
    places.reserve(tasks.size());
    for (const auto& [node, card] : tasks) places.push_back(take(node, job, card));
    begin(job, std::move(places));
  }

  /// Frees what a running job holds; then it must be resume()d or stop()ped.
  void free(WorldJob& job) {
    for (const WorldTask& task : job.places) change(task, job, +1);
    job.freed = true;
  }
  /// Takes a freed job's place again, unless some of it is gone.
  bool resume(WorldJob& job) {
    if (!within_quota(job)) return false;
    const std::vector<WorldNode> before = nodes;
    for (const WorldTask& task : job.places) {
      change(task, job, -1);
      const WorldNode& node = nodes[task.node];
      const bool gone = std::any_of(node.cards.begin(), node.cards.end(), [](std::int64_t left) { return left < 0; });
      if (gone || node.pool_left < 0 || node.cpu < 0 || node.memory < 0) {
        nodes = before;
        return false;
      }
    }
    job.freed = false;
    return true;
  }
  /// Takes the places of `from` one by one until the job starts; then those get theirs back that need not have gone,
  /// and the others wait.
  bool start_by_force(WorldJob& job, const std::vector<WorldJob*>& from, bool pack = false) {
    std::vector<WorldJob*> freed;
    bool started = start(job, pack);
    for (WorldJob* const victim : from) {
      if (started) break;
      free(*victim);
      freed.push_back(victim);
      started = start(job, pack);
    }
    for (WorldJob* const victim : freed) {
      if (!resume(*victim)) stop(*victim);
    }
    return started;
  }
  /// A running job goes on elsewhere: all its tasks on that node. Precondition: they fit.
  void move(WorldJob& job, std::size_t node) {
    for (const WorldTask& task : job.places) change(task, job, +1);
    job.places.clear();
    for (std::int64_t task = 0; task < job.tasks; ++task) job.places.push_back(take(node, job));
  }
  /// A waiting job never runs again.
  void give_up(WorldJob& job) {
    job.waiting = false;
    job.end = now;
    ++ended_;
  }
  /// Makes a freed job wait again.
  void stop(WorldJob& job) {
    job.running = job.freed = false;
    job.waiting = true;
    job.places.clear();
    if (job.started_by == decisions_) return take_back(job);
    job.must_restart = true;
    stops.push_back({now, job.id});
    const std::int64_t ran = (now - job.started) / job.slow, worked = std::max<std::int64_t>(ran - job.loading, 0);
    const std::int64_t interval = costs_.checkpoint_interval;
    const std::int64_t kept = interval == 0 ? worked : worked - worked % interval;
    job.remaining += ran - job.loading - kept;
  }

 private:
  // Started and stopped at once: it never ran.
  void take_back(WorldJob& job) {
    const auto of_job = [&](const WorldStart& start) { return start.job == job.id; };
    starts.erase(std::find_if(starts.rbegin(), starts.rend(), of_job).base() - 1);
    if (job.first_start_by == decisions_) job.first_start = -1;
    job.must_restart = job.must_restart_before;
    if (job.must_restart) job.remaining -= job.loading;
  }

  void add_job(const Row& row) {
    const bool plain = row.shape == Shape{};
    jobs.push_back({.id = static_cast<std::int64_t>(jobs.size()),
                    .submit = row.submit,
                    .attempts = row.attempts.empty() ? std::vector<std::int64_t>{row.work} : row.attempts,
                    .tasks = plain ? row.gpus : row.shape.tasks,
                    .gpu = plain ? 1000 : row.shape.gpu_milli_per_task,
                    .cpu = plain ? 0 : row.shape.cpu_milli_per_task,
                    .memory = plain ? 0 : row.shape.memory_mib_per_task,
                    .user = std::string(row.user),
                    .vc = std::string(row.vc),
                    .priority = row.priority});
  }

  bool end_jobs() {
    bool any = false;
    for (WorldJob& job : jobs) {
      if (!job.running || job.paused || job.remaining > 0) continue;
      any = true;
      free(job);
      job.places.clear();
      job.running = job.freed = false;
      if (++job.attempt == job.attempts.size()) {
        job.end = now;
        ++ended_;
      } else {
        job.remaining = job.attempts[job.attempt];
        job.waiting = true;
      }
    }
    return any;
  }

  bool submit_jobs() {
    bool any = false;
    for (WorldJob& job : jobs) {
      if (job.submit != now) continue;
      job.remaining = job.attempts.front();
      job.waiting = any = true;
    }
    return any;
  }

  // Among the nodes of the rack that `like` stands in, or all.
  [[nodiscard]] std::size_t choose_node(const WorldJob& job, std::int64_t left, bool pack, std::size_t like) const {
    const auto free = [&](std::size_t i) { return job.shares_card() ? nodes[i].free_milli() : nodes[i].idle_cards(); };
    std::size_t whole = nodes.size(), fullest = nodes.size(), emptiest = nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (like < nodes.size() && nodes[i].rack != nodes[like].rack) continue;
      const std::int64_t here = fit(nodes[i], job);
      if (here >= left && (whole == nodes.size() || free(i) < free(whole))) whole = i;
      if (here > 0 && (fullest == nodes.size() || free(i) < free(fullest))) fullest = i;
      if (here > 0 && (emptiest == nodes.size() || free(i) > free(emptiest))) emptiest = i;
    }
    return whole < nodes.size() ? whole : pack ? fullest : emptiest;
  }

  // The rule "rack": one node for all, else nodes of the rack of the last node while it has room, else of the next best
  // rack: in the same site if there is room, one that holds the rest with least to spare, else in the site that does,
  // else in the site with most room, the rack with most.
  [[nodiscard]] std::size_t choose_near(const WorldJob& job, std::int64_t left, std::size_t last) const {
    if (last == nodes.size()) {
      const std::size_t whole = choose_node(job, left, false, nodes.size());
      if (whole == nodes.size() || fit(nodes[whole], job) >= left) return whole;
    } else if (room([&](const WorldNode& node) { return node.rack == nodes[last].rack; }, job) > 0) {
      return choose_node(job, left, false, last);
    }
    std::size_t best = nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (room([&](const WorldNode& node) { return node.rack == nodes[i].rack; }, job) == 0) continue;
      if (best == nodes.size() || nearer(i, best, job, left, last)) best = i;
    }
    return best == nodes.size() ? best : choose_node(job, left, false, best);
  }

  // Is the rack of node `a` a better choice than that of `b`?
  [[nodiscard]] bool nearer(std::size_t a, std::size_t b, const WorldJob& job, std::int64_t left,
                            std::size_t last) const {
    if (last < nodes.size()) {
      const bool a_here = nodes[a].site == nodes[last].site, b_here = nodes[b].site == nodes[last].site;
      if (a_here != b_here) return a_here;
    }
    const auto rack = [&](std::size_t i) {
      return room([&](const WorldNode& node) { return node.rack == nodes[i].rack; }, job);
    };
    const auto site = [&](std::size_t i) {
      return room([&](const WorldNode& node) { return node.site == nodes[i].site; }, job);
    };
    const std::int64_t in_a = rack(a), in_b = rack(b), around_a = site(a), around_b = site(b);
    if ((in_a >= left) != (in_b >= left)) return in_a >= left;
    if (in_a >= left) return in_a != in_b ? in_a < in_b : nodes[a].rack < nodes[b].rack;
    if ((around_a >= left) != (around_b >= left)) return around_a >= left;
    if (around_a != around_b) return around_a >= left ? around_a < around_b : around_a > around_b;
    return in_a != in_b ? in_a > in_b : nodes[a].rack < nodes[b].rack;
  }

  // Tasks of the job that fit on some nodes together.
  template <class Among>
  [[nodiscard]] std::int64_t room(Among among, const WorldJob& job) const {
    std::int64_t tasks = 0;
    for (const WorldNode& node : nodes) tasks += among(node) ? fit(node, job) : 0;
    return tasks;
  }

  // Cards for tasks of whole GPUs on a node with islands: of the one with the fewest idle cards that has enough for all
  // of them, else as many as it has of the one with most, and so on.
  std::vector<WorldTask> take_all(std::size_t node, const WorldJob& job, std::int64_t tasks) {
    std::vector<WorldTask> taken;
    if (nodes[node].island == 0 || job.shares_card() || job.gpu == 0) {
      for (std::int64_t task = 0; task < tasks; ++task) taken.push_back(take(node, job));
      return taken;
    }
    std::vector<std::vector<std::size_t>> islands(nodes[node].cards.size() / nodes[node].island);
    for (std::size_t card = 0; card < nodes[node].cards.size(); ++card) {
      if (nodes[node].cards[card] == 1000) islands[card / nodes[node].island].push_back(card);
    }
    std::vector<std::size_t> cards;
    for (std::size_t need = static_cast<std::size_t>(tasks * job.gpu / 1000); need > 0;) {
      std::vector<std::size_t>* best = &islands.front();
      for (std::vector<std::size_t>& island : islands) {
        const bool better = (island.size() >= need) != (best->size() >= need) ? island.size() >= need
                            : island.size() >= need                           ? island.size() < best->size()
                                                                              : island.size() > best->size();
        if (better) best = &island;
      }
      const std::size_t here = std::min(need, best->size());
      cards.insert(cards.end(), best->begin(), best->begin() + static_cast<std::ptrdiff_t>(here));
      best->erase(best->begin(), best->begin() + static_cast<std::ptrdiff_t>(here));
      need -= here;
    }
    const auto each = static_cast<std::ptrdiff_t>(job.gpu / 1000);
    for (std::ptrdiff_t task = 0; task < tasks; ++task) {
      taken.push_back({.node = node, .cards = {cards.begin() + task * each, cards.begin() + (task + 1) * each}});
      change(taken.back(), job, -1);
    }
    return taken;
  }

  // Whole GPUs: the first idle cards. A share: `card`, or the card with the least left that holds it, first on ties.
  WorldTask take(std::size_t node, const WorldJob& job, std::int64_t card = -1) {
    WorldTask task{.node = node};
    const std::vector<std::int64_t>& cards = nodes[node].cards;
    if (job.shares_card()) {
      std::size_t best = card < 0 ? cards.size() : static_cast<std::size_t>(card);
      for (std::size_t i = 0; card < 0 && i < cards.size(); ++i) {
        if (cards[i] >= job.gpu && (best == cards.size() || cards[i] < cards[best])) best = i;
      }
      if (best < cards.size()) task.cards.push_back(best);
    } else {
      for (std::size_t i = 0; i < cards.size() && static_cast<std::int64_t>(task.cards.size()) < job.gpu / 1000; ++i) {
        if (cards[i] == 1000) task.cards.push_back(i);
      }
    }
    change(task, job, -1);
    return task;
  }

  void change(const WorldTask& task, const WorldJob& job, std::int64_t sign) {
    WorldNode& node = nodes[task.node];
    node.cpu += sign * job.cpu;
    node.memory += sign * job.memory;
    if (node.pool) node.pool_left += sign * job.gpu;
    for (const std::size_t card : task.cards) node.cards[card] += sign * std::min<std::int64_t>(job.gpu, 1000);
  }

  void begin(WorldJob& job, std::vector<WorldTask> places) {
    WorldStart start{.second = now, .job = job.id};
    for (const WorldTask& task : places) {
      const auto node = static_cast<std::int64_t>(task.node);
      for (const std::size_t card : task.cards) start.places.push_back({node, static_cast<std::int64_t>(card)});
      if (task.cards.empty()) start.places.push_back({node, -1});
    }
    std::sort(start.places.begin(), start.places.end());
    starts.push_back(std::move(start));
    if (job.first_start < 0) {
      job.first_start = now;
      job.first_start_by = decisions_;
    }
    job.places = std::move(places);
    job.slow = slowness_ ? slowness_(job, nodes) : 1;
    job.part = 0;
    job.loading = job.must_restart ? costs_.restart / job.slow : 0;
    job.remaining += job.loading;
    job.must_restart_before = job.must_restart;
    job.must_restart = false;
    job.waiting = false;
    job.running = true;
    job.started = now;
    job.started_by = decisions_;
  }

  WorldCosts costs_;
  WorldSlowness slowness_;
  std::map<std::string, std::int64_t> quotas_;
  std::size_t ended_ = 0;
  std::int64_t decisions_ = 0;
};

}  // namespace gpusched::test
