// SPDX-License-Identifier: Apache-2.0
/// The reference of agents that preempt, from the definition alone: at every instant at which a job comes, leaves or
/// enters another level, all jobs are sorted by their scores and the whole order is walked.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/policies/learned/trained_model.hpp"
#include "tests/differential/reference_world.hpp"

namespace gpusched::test {

class ReferenceRanking {
 public:
  /// `known_s`: of each job, the run time that the agent knows.
  ReferenceRanking(TrainedModel model, std::vector<double> known_s, const Cluster& cluster)
      : model_(std::move(model)), known_s_(std::move(known_s)) {
    for (const VirtualCluster& vc : cluster.vcs) queues_.push_back(vc.name);
    queues_.emplace_back();  // of those that the machines do not know
  }

  void operator()(World& world) {
    jobs_.resize(world.jobs.size());
    bool changed = false;
    for (const WorldJob& job : world.jobs) mine(job).seen_level = level(ending_begins_, service(job));
    for (const WorldJob& job : world.jobs) changed = note_end(world, job) || changed;
    for (const WorldJob& job : world.jobs) changed = score(world, job) || changed;
    if (changed) fill(world);
    if (!world.waiting().empty()) wake_at_next_level(world);
  }

 private:
  struct Job {
    std::size_t attempts = 0;  // that ended
    std::size_t service_level = 0, wait_level = 0;
    std::size_t seen_level = 0;  // whole doublings of service, when last looked at
    bool scored = false;
    double as_waiting = 0, as_running = 0;
    double key = 0;  // in the present order
  };
  using Demand = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

  // ---- what is known of a job ----

  [[nodiscard]] static double ran(const WorldJob& job) { return static_cast<double>(job.seconds.size()); }
  [[nodiscard]] static double gpus(const WorldJob& job) { return static_cast<double>(job.gpus_milli()) / 1000; }
  [[nodiscard]] static double service(const WorldJob& job) {
    return ran(job) * static_cast<double>(job.gpus_milli()) / 1000;
  }
  [[nodiscard]] static double waited(const WorldJob& job, std::int64_t now) {
    return static_cast<double>(now - job.submit) - ran(job);
  }
  [[nodiscard]] double known(const WorldJob& job) const { return known_s_[static_cast<std::size_t>(job.id)]; }
  [[nodiscard]] double left(const WorldJob& job) const {
    return ran(job) < known(job) ? known(job) - ran(job) : std::max(ran(job), 1.0);
  }
  Job& mine(const WorldJob& job) { return jobs_[static_cast<std::size_t>(job.id)]; }

  // Where levels begin: at 0, at 60, and in every doubling after that at `steps` equal distances.
  [[nodiscard]] static std::vector<double> level_begins(int steps) {
    std::vector<double> begins{0};
    for (double doubling = 60; doubling < 1e6; doubling *= 2) {
      for (int step = 0; step < steps; ++step) begins.push_back(doubling + doubling * step / steps);
    }
    return begins;
  }
  [[nodiscard]] static std::size_t level(const std::vector<double>& begins, double amount) {
    return static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), amount) - begins.begin()) - 1;
  }

  // While nobody waits nobody looks at levels.
  void wake_at_next_level(World& world) const {
    double least = 1e9;
    for (const WorldJob& job : world.jobs) {
      if (job.running && job.gpu > 0) {
        const double next = service_begins_[level(service_begins_, service(job)) + 1];
        least = std::min(least, (next - service(job)) / gpus(job));
      } else if (job.waiting) {
        const double now = waited(job, world.now);
        least = std::min(least, wait_begins_[level(wait_begins_, now) + 1] - now);
      }
    }
    world.timers.insert(world.now + std::llround(least));
  }

  // An attempt that ended asks for new scores; a job that ended is learned from.
  bool note_end(const World& world, const WorldJob& job) {
    if (mine(job).attempts == job.attempt) return false;
    mine(job) = {.attempts = job.attempt, .seen_level = mine(job).seen_level};
    if (job.end < 0) return true;
    finished_.push_back({demand(job), level(ending_begins_, service(job))});
    ask_near(world, job);
    return true;
  }

  // The order gittins looks again at the sixteen of its kind that came before a job that ended, and after it.
  void ask_near(const World& world, const WorldJob& ended) {
    if (model_.agenda.heuristic != Heuristic::gittins) return;
    for (const auto& [other, places] : like(world, ended)) {
      if (places <= 16 && (other->waiting || other->running)) mine(*other).scored = false;
    }
  }

  // ---- life tables ----

  // Jobs of the same kind that have come, with how many places they are away.
  [[nodiscard]] std::vector<std::pair<const WorldJob*, std::size_t>> like(const World& world,
                                                                          const WorldJob& job) const {
    std::vector<const WorldJob*> kind;
    for (const WorldJob& other : world.jobs) {
      const bool came = other.waiting || other.running || other.end >= 0;
      if (came && other.vc == job.vc && demand(other) == demand(job)) kind.push_back(&other);
    }
    const auto place_of = [&](const WorldJob& of) {
      return std::find_if(kind.begin(), kind.end(), [&](const WorldJob* other) { return other->id == of.id; }) -
             kind.begin();
    };
    std::vector<std::pair<const WorldJob*, std::size_t>> others;
    for (const WorldJob* other : kind) {
      const auto places = std::abs(place_of(*other) - place_of(job));
      if (places > 0) others.emplace_back(other, static_cast<std::size_t>(places));
    }
    return others;
  }

  // Of the jobs, by weight, that left a level, those that ended in it.
  struct Table {
    double left = 0, ended = 0;
    [[nodiscard]] double drawn_towards(double share, double weight) const {
      return (ended + weight * share) / (left + weight);
    }
  };

  [[nodiscard]] double level_share(const World& world, const WorldJob& job, std::size_t k, bool own_level) const {
    Table all, shape, kind, far, near;
    for (const WorldJob& other : world.jobs) {
      const std::size_t seen = jobs_[static_cast<std::size_t>(other.id)].seen_level;
      const double left = seen > k || (other.end >= 0 && seen == k) ? 1 : 0;
      const double ended = other.end >= 0 && seen == k ? 1 : 0;
      const bool alike = demand(other) == demand(job);
      for (Table* table : {&all, alike ? &shape : nullptr, alike && other.vc == job.vc ? &kind : nullptr}) {
        if (table == nullptr) continue;
        table->left += left;
        table->ended += ended;
      }
    }
    double share = kind.drawn_towards(shape.drawn_towards(all.drawn_towards(0.16, 2), 20), 20);
    if (own_level) {
      const double own = service(job);
      const double rest = own < 60 ? 1 - own / 60 : std::log2(ending_begins_[k + 1] / own);
      share = 1 - std::pow(1 - share, std::clamp(rest, 0.1, 1.0));
    }
    for (const auto& [other, places] : like(world, job)) {
      const std::size_t in = jobs_[static_cast<std::size_t>(other->id)].seen_level;
      const bool done = other->end >= 0;
      if (done && service(*other) <= service(job)) continue;
      const double left = in > k || (done && in == k) ? 1 : 0;
      const double ended = done && in == k ? 1 : 0;
      const auto away = static_cast<double>(places);
      if (places <= 64) far.left += left * std::pow(0.94, away), far.ended += ended * std::pow(0.94, away);
      if (places <= 16) near.left += left * std::pow(0.78, away), near.ended += ended * std::pow(0.78, away);
    }
    return near.drawn_towards(far.drawn_towards(share, 2), 1);
  }

  // Over the job's own level and the six after it. In single precision: equal indices are summed up in another order
  // there.
  [[nodiscard]] double log_gittins(const World& world, const WorldJob& job) const {
    const std::size_t first = level(ending_begins_, service(job));
    double alive = 1, ended = 0, served = 0, best = 0, from = 0;
    for (std::size_t k = first; k <= first + 6; ++k) {
      const double share = level_share(world, job, k, k == first);
      const double to = std::max(ending_begins_[k + 1] - service(job), from + (k == first ? 1 : 0));
      ended += alive * share;
      served += alive * (share * (to - from) / 2 + (1 - share) * (to - from));
      alive *= 1 - share;
      best = std::max(best, ended / served);
      from = ending_begins_[k + 1] - service(job);
    }
    return double{static_cast<float>(std::log(best))};
  }

  [[nodiscard]] static Demand demand(const WorldJob& job) { return {job.tasks, job.gpu, job.cpu, job.memory}; }

  // Of the finished jobs that reached a level, those that ended in it: of one demand, drawn towards those of all, drawn
  // towards one half.
  [[nodiscard]] double ending_share(const WorldJob& job) const {
    const std::size_t reached_level = level(ending_begins_, service(job));
    double reached = 0, ended = 0, alike_reached = 0, alike_ended = 0;
    for (const auto& [of, last] : finished_) {
      if (last < reached_level) continue;
      const double alike = of == demand(job) ? 1 : 0, here = last == reached_level ? 1 : 0;
      reached += 1;
      ended += here;
      alike_reached += alike;
      alike_ended += alike * here;
    }
    const double all = (ended + 2 * 0.5) / (reached + 2);
    return (alike_ended + 4 * all) / (alike_reached + 4);
  }

  // ---- scores ----

  // Anew when it entered another level since it was last looked at.
  bool score(const World& world, const WorldJob& job) {
    if (!job.waiting && !job.running) return false;
    const Job before = mine(job);
    mine(job).service_level = level(service_begins_, service(job));
    mine(job).wait_level = level(wait_begins_, waited(job, world.now));
    if (before.scored && before.service_level == mine(job).service_level && before.wait_level == mine(job).wait_level) {
      return false;
    }
    mine(job).scored = true;
    mine(job).as_waiting = network(world, job, 0);
    mine(job).as_running = std::max(mine(job).as_waiting, network(world, job, 1));
    return true;
  }

  // In the order in which rank_terms count them.
  [[nodiscard]] std::array<double, 9> features(const WorldJob& job, double running) {
    const double overrun = std::log(ran(job) / std::max(known(job), 1.0));
    return {running,
            static_cast<double>(mine(job).service_level) / 4 / 10,
            static_cast<double>(mine(job).wait_level) / 10,
            std::log(1 + gpus(job)) / 5,
            std::log(1 + known(job)) / 10,
            std::log(1 + left(job)) / 10,
            ran(job) > known(job) ? overrun / 10 : 0,
            std::log(ending_share(job)) / 5,
            std::log(1 + static_cast<double>(job.attempt)) / 3};
  }

  [[nodiscard]] double prior(const World& world, const WorldJob& job, double running) {
    const double run = known(job) > 0 ? known(job) : 1;
    const auto submit = static_cast<double>(job.submit);
    switch (model_.agenda.heuristic) {
      case Heuristic::fcfs: return -submit / 3600;
      case Heuristic::sjf: return -std::log(1 + run);
      case Heuristic::saf: return -std::log(1 + run * gpus(job));
      case Heuristic::f1: return -std::log10(run) * gpus(job) / 870 - std::log10(std::max(submit, 0.1));
      case Heuristic::las: return -static_cast<double>(mine(job).service_level) / 4;
      case Heuristic::gittins: return log_gittins(world, job) + running;
      case Heuristic::srtf: break;
    }
    return -std::log(1 + left(job));
  }

  // alpha times the prior, a weight for each term, a constant.
  [[nodiscard]] double network(const World& world, const WorldJob& job, double running) {
    std::array<double, 9> x = features(job, running);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] -= static_cast<double>(model_.normaliser.job_mean[i]);
      x[i] *= static_cast<double>(model_.normaliser.job_scale[i]);
    }
    const auto parameter = [&](std::size_t i) { return static_cast<double>(model_.parameters[i]); };
    double sum = parameter(0) * prior(world, job, running) + parameter(rank_terms.size() + 1);
    for (std::size_t t = 0; t < rank_terms.size(); ++t) {
      const double by = rank_terms[t].times == IndexTerm::one ? 1 : x[rank_terms[t].by];
      sum += parameter(t + 1) * x[rank_terms[t].feature] * by;
    }
    return sum;
  }

  // ---- the order ----

  // The virtual clusters one after the other, and all again when somebody's place was taken: what is left of it, others
  // may use.
  void fill(World& world) {
    for (const WorldJob& job : world.jobs) mine(job).key = job.running ? mine(job).as_running : mine(job).as_waiting;
    for (bool again = true; again;) {
      again = false;
      for (const std::string& queue : queues_) {
        for (const std::size_t id : order(world, queue)) again = place(world, id) || again;
      }
    }
    for (WorldJob& job : world.jobs) {
      if (job.freed) world.stop(job);
    }
  }

  [[nodiscard]] std::vector<std::size_t> order(const World& world, const std::string& queue) const {
    std::vector<std::size_t> ids;
    for (const WorldJob& job : world.jobs) {
      if ((job.waiting || job.running) && world.queue_of(job) == queue) ids.push_back(static_cast<std::size_t>(job.id));
    }
    std::stable_sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) { return jobs_[a].key > jobs_[b].key; });
    return ids;
  }

  // The job keeps its place, or gets it back, or starts where it fits, else where it fits when those that run behind it
  // have gone, the last first, no more than needed. Says whether some had to go.
  bool place(World& world, std::size_t id) {
    if (world.jobs[id].running && !world.jobs[id].freed) return false;
    if (world.jobs[id].freed && world.resume(world.jobs[id])) return false;
    World trial = world;
    if (trial.jobs[id].freed) trial.stop(trial.jobs[id]);
    std::vector<std::size_t> behind = order(trial, trial.queue_of(trial.jobs[id]));
    behind.erase(behind.begin(), std::find(behind.begin(), behind.end(), id) + 1);
    bool took = false;
    bool started = trial.start(trial.jobs[id]);
    for (; !started && !behind.empty(); behind.pop_back()) {
      WorldJob& victim = trial.jobs[behind.back()];
      if (!victim.running || victim.freed) continue;
      trial.free(victim);
      took = true;
      started = trial.start(trial.jobs[id]);
    }
    if (!started) return false;
    world = std::move(trial);
    jobs_[id].key = jobs_[id].as_running;
    return took;
  }

  TrainedModel model_;
  std::vector<double> known_s_;
  std::vector<std::string> queues_;
  std::vector<double> service_begins_ = level_begins(4), wait_begins_ = level_begins(1), ending_begins_ = wait_begins_;
  std::vector<Job> jobs_;
  std::vector<std::pair<Demand, std::size_t>> finished_;
};

}  // namespace gpusched::test
