// SPDX-License-Identifier: Apache-2.0
// The engine with stages, shared storage and uplinks, failures and checkpoints against a slow simulator. The slow one
// is told who starts, moves, is preempted and killed when and where; it works out for itself, in floating point and by
// recomputing everything between any two changes, when each run is ready, saves and ends, and what nodes keep.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/node_failures.hpp"
#include "gpusched/data/stage_model.hpp"
#include "gpusched/engine/engine.hpp"
#include "tests/engine/stays.hpp"
#include "tests/program/run_support.hpp"
#include "tests/support/random_runs.hpp"

namespace gpusched::test {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr double tolerance_s = 1e-3;  // the engine rounds to microseconds at every change

struct Fetch {
  double left;  // bytes; 0: it is there
  std::set<std::uint32_t> users = {};
  bool is_there = false;
  std::uint64_t order = 0;
};
struct SlowNode {
  std::map<std::uint32_t, Fetch> items;                     // by item
  std::vector<std::pair<std::uint32_t, double>> idle = {};  // image, until
};
struct SlowRun {
  std::set<std::uint32_t> nodes;
  std::set<std::pair<std::uint32_t, std::uint32_t>> awaited = {};  // node, item
  std::vector<std::pair<std::uint32_t, double>> saves = {};        // node, bytes left
  std::map<std::uint32_t, double> making = {};                     // containers: node, seconds left after the fetch
  double fixed = 0, loading = 0;
  double since_save = 0;
};
struct SlowJob {
  double work, kept;  // left now, and at the last checkpoint
  double overhead = 0, lost = 0;
  bool must_restart = false, was_killed = false, runs = false, ended = false;
  double ready_since = never;  // when its work was done
  SlowRun run = {};
};

class SlowSimulator {
 public:
  // `links`: of each node, the number of what it shares with others.
  SlowSimulator(const JobTable& jobs, const StageModel& model, const PreemptionCost& cost,
                const std::vector<std::uint32_t>& links)
      : jobs_(&jobs), model_(&model), cost_(cost), links_(links), nodes_(links.size()) {
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      const double work = to_seconds(jobs.work(JobId{i}));
      jobs_left_.push_back({.work = work, .kept = work});
    }
    interval_ = to_seconds(cost.checkpoint_interval);
  }

  void advance(double to) {
    while (now_ < to) {
      const double step = std::min(to - now_, next_change());
      pass(step);
      now_ = step == to - now_ ? to : now_ + step;
      settle();
    }
    settle();
  }

  void start(JobId job, const std::vector<std::pair<std::uint32_t, MilliGpu>>& parts) {
    SlowJob& it = jobs_left_[index(job)];
    it.runs = true;
    it.run = {};
    it.kept = it.work;
    if (it.must_restart) {
      it.run.loading += to_seconds(cost_.restart) + (it.was_killed ? 0 : to_seconds(cost_.checkpoint));
    }
    it.must_restart = it.was_killed = false;
    parts_[index(job)] = parts;
    for (const auto& [node, milli] : parts) enter(index(job), node);
    settle();
  }

  void move(JobId job, const std::vector<std::pair<std::uint32_t, MilliGpu>>& parts) {
    SlowJob& it = jobs_left_[index(job)];
    std::set<std::uint32_t> after;
    for (const auto& [node, milli] : parts) after.insert(node);
    const std::set<std::uint32_t> before = it.run.nodes;
    for (const std::uint32_t node : before) {
      if (!after.contains(node)) leave(index(job), node);
    }
    it.run.fixed = 0;
    parts_[index(job)] = parts;
    for (const std::uint32_t node : after) {
      if (!before.contains(node)) enter(index(job), node);
    }
    settle();
  }

  void preempt(JobId job) {
    SlowJob& it = jobs_left_[index(job)];
    if (interval_ > 0) {
      it.lost += it.kept - it.work;
      it.work = it.kept;
    }
    it.must_restart = true;
    end(index(job));
  }

  void kill(JobId job) {
    SlowJob& it = jobs_left_[index(job)];
    it.lost += it.kept - it.work;
    it.work = it.kept;
    it.must_restart = it.was_killed = true;
    end(index(job));
  }

  // True when the job's work is done now.
  [[nodiscard]] bool finish(JobId job) {
    SlowJob& it = jobs_left_[index(job)];
    const bool done = it.runs && is_working(it) && it.work < tolerance_s;
    it.ended = true;
    end(index(job));
    return done;
  }

  void clear(NodeId node) { nodes_[index(node)] = {}; }

  // Every job whose work is done has ended.
  [[nodiscard]] bool nobody_overdue() const {
    return std::all_of(jobs_left_.begin(), jobs_left_.end(), [&](const SlowJob& it) {
      return !it.runs || !is_working(it) || it.work > 0 || now_ - it.ready_since < tolerance_s;
    });
  }
  [[nodiscard]] const SlowJob& job(JobId job) const { return jobs_left_[index(job)]; }

 private:
  static bool is_working(const SlowJob& it) {
    return it.run.awaited.empty() && it.run.saves.empty() && it.run.fixed <= 0 && it.run.loading <= 0;
  }

  // Bytes a second of a transfer by link: all rise together from 0, and stop rising where something of theirs is full.
  [[nodiscard]] std::map<std::uint32_t, double> rates() const {
    std::map<std::uint32_t, double> rising;  // transfers of each link
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      for (const auto& [item, fetch] : nodes_[n].items) {
        if (fetch.left > 0) ++rising[links_[n]];
      }
    }
    for (const SlowJob& it : jobs_left_) {
      for (const auto& [node, left] : it.run.saves) ++rising[links_[node]];
    }
    std::map<std::uint32_t, double> rates;
    double storage = model_->storage_bytes_per_s;  // less what those have that rise no more
    while (!rising.empty()) {
      double all = 0, level = model_->transfer_bytes_per_s;
      for (const auto& [link, count] : rising) {
        all += count;
        level = std::min(level, model_->uplink_bytes_per_s / count);
      }
      const bool is_full = storage / all <= level;
      level = std::min(level, storage / all);
      const auto before = rising;
      for (const auto& [link, count] : before) {
        if (!is_full && std::min(model_->transfer_bytes_per_s, model_->uplink_bytes_per_s / count) > level) continue;
        rates[link] = level;
        storage -= level * count;
        rising.erase(link);
      }
    }
    return rates;
  }

  [[nodiscard]] double to_next_save(const SlowJob& it) const {
    return saves() ? std::max(interval_ - it.run.since_save, 0.0) : never;
  }
  [[nodiscard]] bool saves() const { return interval_ > 0 && model_->checkpoint_bytes_per_gpu > 0; }

  [[nodiscard]] double next_change() const {
    const std::map<std::uint32_t, double> bytes_per_s = rates();
    double next = never;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      for (const auto& [item, fetch] : nodes_[n].items) {
        if (fetch.left > 0) next = std::min(next, fetch.left / bytes_per_s.at(links_[n]));
      }
    }
    for (const SlowJob& it : jobs_left_) {
      if (!it.runs) continue;
      for (const auto& [node, left] : it.run.saves) next = std::min(next, left / bytes_per_s.at(links_[node]));
      if (!it.run.awaited.empty() || !it.run.saves.empty()) continue;
      if (it.run.fixed > 0) {
        next = std::min(next, it.run.fixed);
      } else if (it.run.loading > 0) {
        next = std::min(next, it.run.loading);
      } else if (it.work > 0) {
        next = std::min({next, it.work, to_next_save(it)});
      }
    }
    return std::max(next, 1e-9);
  }

  void pass(double step) {
    const std::map<std::uint32_t, double> bytes_per_s = rates();
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      for (auto& [item, fetch] : nodes_[n].items) {
        fetch.left = fetch.left > 0 ? less(fetch.left, bytes_per_s.at(links_[n]) * step) : 0;
      }
    }
    for (SlowJob& it : jobs_left_) {
      if (!it.runs) continue;
      for (auto& [node, left] : it.run.making) left = it.run.awaited.empty() ? less(left, step) : left;
      if (!it.run.awaited.empty() || !it.run.saves.empty()) {
        for (auto& [node, left] : it.run.saves) left = less(left, bytes_per_s.at(links_[node]) * step);
        it.overhead += step;
      } else if (it.run.fixed > 0) {
        it.run.fixed = less(it.run.fixed, step);
        it.overhead += step;
      } else if (it.run.loading > 0) {
        it.run.loading = less(it.run.loading, step);
        it.overhead += step;
      } else if (it.work > 0) {
        it.work = less(it.work, step);
        it.run.since_save += step;
        if (it.work == 0) it.ready_since = now_ + step;
      }
    }
  }

  static double less(double amount, double part) { return amount - part < 1e-6 * (1 + part) ? 0 : amount - part; }

  // What follows from what just ended.
  void settle() {
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      bool any_came = false;
      for (auto& [item, fetch] : nodes_[n].items) {
        if (fetch.left > 0) continue;
        any_came = any_came || !fetch.is_there;
        fetch.is_there = true;
        for (SlowJob& it : jobs_left_) it.run.awaited.erase({n, item});
      }
      if (any_came) make_room(nodes_[n]);
    }
    for (std::uint32_t i = 0; i < jobs_left_.size(); ++i) {
      SlowJob& it = jobs_left_[i];
      if (!it.runs) continue;
      std::erase_if(it.run.saves, [](const auto& save) { return save.second <= 0; });
      if (it.run.saves.empty() && it.run.awaited.empty() && is_saving_.erase(i) == 1) {
        it.kept = it.work;
        it.run.since_save = 0;
      }
      if (!is_working(it) || it.work <= tolerance_s || to_next_save(it) > 1e-9) continue;
      is_saving_.insert(i);
      for (const auto& [node, milli] : parts_[i]) {
        it.run.saves.emplace_back(node, model_->checkpoint_bytes_per_gpu * static_cast<double>(milli) / 1000);
      }
    }
  }

  void enter(std::uint32_t job, std::uint32_t n) {
    SlowJob& it = jobs_left_[job];
    SlowNode& node = nodes_[n];
    it.run.nodes.insert(n);
    make_room(node);
    const std::uint32_t image = model_->image_of(*jobs_, JobId{job}), weights = model_->weights_of(*jobs_, JobId{job});
    double fixed = 0;
    const auto idle = std::find_if(node.idle.rbegin(), node.idle.rend(), [&](const auto& container) {
      return container.first == image && container.second >= now_ - 1e-9;
    });
    if (idle == node.idle.rend()) {
      fixed += to_seconds(model_->provision);
      it.run.making[n] = to_seconds(model_->provision);
    } else {
      node.idle.erase(std::next(idle).base());
    }
    for (const std::uint32_t item : {image, weights}) {
      if (item == no_index) continue;
      const StageModel::Item& needed = model_->items[item];
      fixed += to_seconds(needed.load);
      const auto [place, is_new] = node.items.try_emplace(item, Fetch{.left = static_cast<double>(needed.bytes)});
      place->second.users.insert(job);
      place->second.order = ++starts_;
      if (place->second.left > 0) {
        it.run.awaited.insert({n, item});
        fixed += to_seconds(needed.unpack);
      }
    }
    it.run.fixed = std::max(it.run.fixed, fixed);
  }

  void leave(std::uint32_t job, std::uint32_t n) {
    SlowJob& it = jobs_left_[job];
    SlowNode& node = nodes_[n];
    it.run.nodes.erase(n);
    std::erase_if(it.run.awaited, [&](const auto& awaited) { return awaited.first == n; });
    for (auto& [item, fetch] : node.items) fetch.users.erase(job);
    const auto making = it.run.making.find(n);
    const bool is_made = making == it.run.making.end() || making->second <= 0;
    it.run.making.erase(n);
    if (model_->keep_alive.us > 0 && is_made) {
      node.idle.emplace_back(model_->image_of(*jobs_, JobId{job}), now_ + to_seconds(model_->keep_alive));
    }
    make_room(node);
  }

  void make_room(SlowNode& node) {
    std::erase_if(node.idle, [&](const auto& container) { return container.second < now_ - 1e-9; });
    for (;;) {
      double bytes = 0;
      const std::pair<const std::uint32_t, Fetch>* oldest = nullptr;
      for (const auto& entry : node.items) {
        bytes += static_cast<double>(model_->items[entry.first].bytes);
        const bool is_idle = std::any_of(node.idle.begin(), node.idle.end(),
                                         [&](const auto& container) { return container.first == entry.first; });
        if (entry.second.left > 0 || !entry.second.users.empty() || is_idle) continue;
        if (oldest == nullptr || entry.second.order < oldest->second.order) oldest = &entry;
      }
      if (bytes <= static_cast<double>(model_->cache_bytes) || oldest == nullptr) return;
      node.items.erase(oldest->first);
    }
  }

  void end(std::uint32_t job) {
    SlowJob& it = jobs_left_[job];
    const std::set<std::uint32_t> nodes = it.run.nodes;
    for (const std::uint32_t node : nodes) leave(job, node);
    it.runs = false;
    it.run = {};
    is_saving_.erase(job);
    settle();
  }

  const JobTable* jobs_;
  const StageModel* model_;
  PreemptionCost cost_;
  std::vector<std::uint32_t> links_;
  double interval_ = 0, now_ = 0;
  std::uint64_t starts_ = 0;
  std::vector<SlowNode> nodes_;
  std::vector<SlowJob> jobs_left_;
  std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, MilliGpu>>> parts_;
  std::set<std::uint32_t> is_saving_;
};

// Plays a run of the engine, and the slow simulator beside it.
class SideBySide {
 public:
  explicit SideBySide(std::uint64_t seed) : rng_(Rng(seed).split("stages")) {
    draw_jobs();
    draw_stages();
    draw_failures();
    draw_uplinks();
    if (rng_.below(2) == 0) options_.preemption.checkpoint_interval = whole_seconds(5 + below(30));
    options_.preemption.restart = whole_seconds(below(4));
    options_.preemption.checkpoint = whole_seconds(below(4));
  }

  // False when the policy's preemptions keep the jobs from ever getting done.
  bool run() {
    Cluster cluster = Cluster::pool(gpus);
    cluster.nodes.assign(node_count, cluster.nodes.front());
    for (std::uint32_t node = 0; node < node_count; ++node) cluster.nodes[node].rack = racks_[node];
    Engine engine(jobs_, cluster, options_, {.failures = &failures_, .stages = &stages_});
    SlowSimulator slow(jobs_, stages_, options_.preemption, links_);
    Restless policy{.rng = rng_.split("policy")};
    Decision decision = engine.decision();
    while (engine.advance()) {
      if (engine.view().now() > whole_seconds(5'000)) return false;
      clear_until(engine.view().now() - Time{1}, slow);
      slow.advance(to_seconds(engine.view().now()));
      EXPECT_TRUE(slow.nobody_overdue()) << to_seconds(engine.view().now());
      follow(engine, slow);
      policy.decide(engine.view(), decision);
      engine.apply();
      EXPECT_TRUE(engine.consistent());
      follow(engine, slow);
      if (::testing::Test::HasFailure()) return false;
    }
    EXPECT_TRUE(engine.all_finished());
    for (std::uint32_t i = 0; i < jobs_.size(); ++i) {
      const JobId job{i};
      EXPECT_NEAR(to_seconds(engine.overhead(job)), slow.job(job).overhead, 0.01) << i;
      EXPECT_NEAR(to_seconds(engine.lost(job)), slow.job(job).lost, 0.01) << i;
      EXPECT_EQ(engine.ran(job), engine.useful_time(job) + engine.overhead(job) + engine.lost(job)) << i;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t node_count = 4, gpus = 4;

  std::int64_t below(std::uint64_t most) { return static_cast<std::int64_t>(rng_.below(most)); }

  void draw_jobs() {
    std::vector<Row> rows;
    constexpr std::string_view users[] = {"a", "b", "c", "d"}, families[] = {"x", "y"};
    std::int64_t submit = 0;
    for (int i = 0; i < 14; ++i) {
      submit += below(25);
      rows.push_back({.submit = submit,
                      .work = 1 + below(90),
                      .gpus = static_cast<std::uint32_t>(1 + below(6)),
                      .user = users[rng_.below(4)],
                      .family = families[rng_.below(2)]});
    }
    jobs_ = table_of(rows);
  }

  void draw_needs(StageModel::Needs& needs, StageColumn column, std::uint32_t values) {
    needs.column = column;
    for (std::uint32_t value = 0; value < values; ++value) {
      if (rng_.below(6) == 0) {
        needs.items.push_back(no_index);
        continue;
      }
      needs.items.push_back(static_cast<std::uint32_t>(stages_.items.size()));
      stages_.items.push_back(
          {.bytes = 100 + below(2000), .unpack = whole_seconds(below(4)), .load = whole_seconds(below(3))});
    }
  }

  void draw_stages() {
    stages_.transfer_bytes_per_s = static_cast<double>(50 + below(300));
    if (rng_.below(3) > 0) stages_.storage_bytes_per_s = static_cast<double>(80 + below(400));
    stages_.provision = whole_seconds(below(6));
    if (rng_.below(2) == 0) stages_.keep_alive = whole_seconds(below(60));
    if (rng_.below(2) == 0) stages_.cache_bytes = 500 + below(4000);
    draw_needs(stages_.images, StageColumn::user, jobs_.users().size());
    if (rng_.below(2) == 0) draw_needs(stages_.weights, StageColumn::family, jobs_.families().size());
    stages_.checkpoint_bytes_per_gpu = static_cast<double>(1 + below(300));
  }

  // A third of the clusters has none, a third racks, a third an uplink for each node.
  void draw_uplinks() {
    Rng rng = rng_.split("uplinks");
    const std::uint64_t kind = rng.below(3);
    if (kind > 0) stages_.uplink_bytes_per_s = static_cast<double>(40 + rng.below(300));
    const bool has_racks = kind == 1;
    racks_ = has_racks ? std::vector<std::uint32_t>{7, 2, 7, rng.below(2) == 0 ? 2u : 5u}
                       : std::vector<std::uint32_t>(node_count, 0);
    links_ = has_racks ? racks_ : std::vector<std::uint32_t>{0, 1, 2, 3};
  }

  void draw_failures() {
    std::vector<NodeChange> changes;
    for (std::uint32_t node = 0; node < node_count; ++node) {
      std::int64_t at = below(200);
      for (int i = 0; i < 3; ++i) {
        changes.push_back({whole_seconds(at), NodeId{node}, false, rng_.below(4) == 0});
        if (rng_.below(2) == 0) changes.push_back({whole_seconds(at += below(20)), NodeId{node}, false});
        changes.push_back({whole_seconds(at += 1 + below(30)), NodeId{node}, true});
        at += below(200);
      }
    }
    failures_.add_changes(changes);
    for (const NodeChange& change : changes) {
      if (!change.up && !change.drain) stops_.emplace(change.time.us, change.node);
    }
  }

  void follow(const Engine& engine, SlowSimulator& slow) {
    const OracleView view = engine.view();
    for (const Event& event : engine.events()) {
      switch (event.kind) {
        case EventKind::finish:
          EXPECT_TRUE(slow.finish(event.job)) << index(event.job) << " at " << to_seconds(view.now());
          break;
        case EventKind::kill: slow.kill(event.job); break;
        case EventKind::preempt: slow.preempt(event.job); break;
        case EventKind::start: slow.start(event.job, parts_of(view, event.job)); break;
        case EventKind::move: slow.move(event.job, parts_of(view, event.job)); break;
        default: break;
      }
    }
    clear_until(view.now(), slow);
  }

  // A node that stops, drained before or not, keeps nothing. That is no event where it was drained and empty.
  void clear_until(Time time, SlowSimulator& slow) {
    while (!stops_.empty() && stops_.begin()->first <= time.us) {
      slow.advance(1e-6 * static_cast<double>(stops_.begin()->first));
      slow.clear(stops_.begin()->second);
      stops_.erase(stops_.begin());
    }
  }

  static std::vector<std::pair<std::uint32_t, MilliGpu>> parts_of(const OracleView& view, JobId job) {
    std::map<std::uint32_t, MilliGpu> parts;
    view.for_each_grant(job, [&](const Grant& grant) { parts[index(grant.node)] += grant.tasks * whole_gpu; });
    return {parts.begin(), parts.end()};
  }

  Rng rng_;
  JobTable jobs_;
  StageModel stages_;
  std::vector<std::uint32_t> racks_, links_;  // by node
  NodeFailures failures_;
  EngineOptions options_;
  std::multimap<std::int64_t, NodeId> stops_;  // by microsecond
};

TEST(StagesReference, TheEngineIsTheSlowSimulator) {
  int ended = 0;
  for (std::uint64_t seed = 0; seed < random_runs(300); ++seed) {
    SCOPED_TRACE(seed);
    ended += SideBySide(seed).run() ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(ended, 250);
}

}  // namespace
}  // namespace gpusched::test
