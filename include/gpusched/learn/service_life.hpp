// SPDX-License-Identifier: Apache-2.0
/// ServiceLife: how much GPU service jobs need, and a job still needs, by what jobs like it needed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/learn/doubling_levels.hpp"
#include "gpusched/policy/recent_runs.hpp"

namespace gpusched {

/// Life tables of GPU service, in levels that double: of the jobs that left a level, how many ended in it. One of all
/// jobs and one of each shape, which finish() fills. With forecasts, which submit() begins for a job, also one of each
/// kind (virtual cluster and shape), and for each question those of the jobs of its kind that were submitted just
/// before and after, which are often a batch of equals. Each is shrunk towards the one before. Forecasts count jobs
/// that have not ended for the levels that they have passed (Kaplan and Meier, 1958). Jobs that ended before the run
/// may be learned first. Jobs that ended count half after each half-life. A value.
class ServiceLife {
 public:
  /// Levels of service, in GPU-microseconds: below a GPU-minute, then each doubling.
  static constexpr DoublingLevels levels{whole_seconds(60).us, 1};
  /// Levels above the job's own that the index looks at.
  static constexpr std::uint32_t look_ahead = 6;
  /// Weight of the table of all jobs in that of a shape, and of the shape's in that of a kind, in jobs.
  static constexpr double table_prior = 20;
  /// How much a job tells of another of its kind, by how many places they are apart in order of submission.
  struct Nearness {
    std::uint32_t span;  ///< places beyond which it tells nothing
    double decay;        ///< decay^places is its weight, in jobs
    double prior;        ///< weight of the table before, in jobs
  };
  /// From far to near.
  static constexpr std::array<Nearness, 2> nearness{{{64, 0.94, 2}, {16, 0.78, 1}}};
  /// Jobs that are alike: of one virtual cluster and shape.
  struct KindId {
    std::uint32_t vc;     ///< number of the virtual cluster
    std::uint32_t shape;  ///< number of the shape
    /// By virtual cluster, then shape.
    friend auto operator<=>(const KindId&, const KindId&) = default;
  };

  /// All jobs that ended count alike.
  ServiceLife() = default;
  /// `half_life_jobs`: ended jobs after which one counts half as much; 0: all count alike.
  explicit ServiceLife(double half_life_jobs) : weight_(half_life_jobs) {}

  /// A job that was submitted and ended before the run: `number` orders such jobs by submission. Call it before the
  /// first submit().
  void learn(KindId kind_id, JobId number, std::int64_t service_us) {
    const std::uint32_t last = level_of(service_us);
    Kind& kind = kinds_[kind_number(kind_id)];
    add_ended(kind_id.shape, last, &kind);
    const auto place = std::upper_bound(kind.past.begin(), kind.past.end(), number,
                                        [](JobId a, const PastJob& b) { return a < b.number; });
    kind.past.insert(place, {.number = number, .service = {.ended_us = service_us, .level = last}});
    // No other job is near enough to a later one.
    if (kind.past.size() > nearness.front().span) kind.past.erase(kind.past.begin());
  }

  /// Of the finished jobs of a shape that reached the level of this service, the share that ended in it: shrunk, with
  /// the weight of four jobs, towards that of all jobs, and that towards one half.
  [[nodiscard]] float ended_share(std::uint32_t shape, std::int64_t service_us) const {
    const std::uint32_t level = level_of(service_us);
    const auto shrunk = [this, &level](const Table& table, float towards, float weight) {
      return (static_cast<float>(table.past_ended[level] / weight_.now()) + weight * towards) /
             (static_cast<float>(table.past_left[level] / weight_.now()) + weight);
    };
    const float all = shrunk(all_, 0.5f, 2);
    return shape < shapes_.size() ? shrunk(shapes_[shape], all, 4) : all;
  }

  /// A job came of which forecasts are asked. Call it once for each.
  void submit(const View& view, JobId id) {
    if (jobs_.empty()) {
      jobs_.resize(view.job_count());
      shapes_.resize(std::max<std::size_t>(shapes_.size(), view.shape_count()));
    }
    const std::uint32_t number = kind_number({.vc = view.vc(id), .shape = view.shape_id(id)});
    Kind& kind = kinds_[number];
    jobs_[index(id)] = {.service = {}, .kind = number, .place = static_cast<std::uint32_t>(kind.size()), .seen = true};
    kind.jobs.push_back(id);
  }

  /// The job may have entered another level. Precondition: submit(id).
  void pass(const View& view, JobId id) {
    Job& job = jobs_[index(id)];
    const std::uint32_t now_in = level_of(view.attained_gpu_us(id));
    for (; job.service.level < now_in; ++job.service.level) {
      for (Table* const table : tables_of(view, id)) table->left[job.service.level] += 1;
    }
  }

  /// The job ended. Those near it have another index from now on (for_each_near()).
  void finish(const View& view, JobId id) {
    Kind* const kind = end_forecast(view, id);
    add_ended(view.shape_id(id), level_of(view.attained_gpu_us(id)), kind);
  }

  /// The job was taken away before it ended: for forecasts it ended here. Precondition: submit(id).
  void withdraw(const View& view, JobId id) {
    pass(view, id);
    Job& job = jobs_[index(id)];
    job.service.ended_us = view.attained_gpu_us(id);
    for (Table* const table : tables_of(view, id)) {
      table->left[job.service.level] += 1;
      table->ended[job.service.level] += 1;
    }
  }

  /// As submit() of a job that came some time ago, whose end, if it ended, finish() was told then.
  void catch_up(const View& view, JobId id) {
    submit(view, id);
    if (view.phase(id) != JobPhase::done) return pass(view, id);
    if (view.is_cancelled(id)) return withdraw(view, id);
    Kind* const kind = end_forecast(view, id);
    add(kind->table, level_of(view.attained_gpu_us(id)));
  }

  /// Calls visit(JobId) for the jobs of the nearest circle around `id` that have not ended, in order of submission.
  template <class Visit>
  void for_each_near(JobId id, Visit visit) const {
    const Job& job = jobs_[index(id)];
    const Kind& kind = kinds_[job.kind];
    const std::size_t past = kind.past.size(), span = nearness.back().span;
    const std::size_t end = std::min(kind.size(), job.place + span + 1);
    for (std::size_t place = std::max(past, job.place - std::min<std::size_t>(job.place, span)); place < end; ++place) {
      const JobId near = kind.jobs[place - past];
      if (jobs_[index(near)].service.ended_us < 0) visit(near);
    }
  }

  /// The largest, over spans of service d, of P(the job ends within d) / E min(d, what it needs): jobs a GPU-second
  /// (Gittins, 1979), for spans that end where a level does. O(levels + span). Precondition: submit(id).
  [[nodiscard]] double gittins_index(const View& view, JobId id) const {
    const std::int64_t attained_us = view.attained_gpu_us(id);
    const std::uint32_t first = level_of(attained_us);
    const std::uint32_t end = std::min<std::uint32_t>(first + look_ahead + 1, most_levels);
    Shares shares{};
    for (std::uint32_t k = first; k < end; ++k) shares[k] = kind_share(view, id, k);
    shares[first] = 1 - std::pow(1 - shares[first], left_of_level(attained_us));
    draw_towards_near(view, id, first, end, shares);
    return gittins_index(shares, first, end, seconds(attained_us));
  }

 private:
  static constexpr std::uint32_t most_levels = 48;
  using Shares = std::array<double, most_levels>;
  // Jobs that left a level, and those of them that ended in it: finished ones, which weigh what weight_ was then, and
  // those of the run that have not finished.
  struct Table {
    std::array<double, most_levels> past_left{}, past_ended{};
    std::array<std::uint32_t, most_levels> left{}, ended{};
  };
  // How far a job has come.
  struct Service {
    std::int64_t ended_us = -1;  // of a job that ended
    std::uint32_t level = 0;
  };
  struct PastJob {
    JobId number{};
    Service service;
  };
  // Its jobs are placed by submission: first those of the past that may matter, then those of the run.
  struct Kind {
    Table table;
    std::vector<PastJob> past;
    std::vector<JobId> jobs;
    [[nodiscard]] std::size_t size() const { return past.size() + jobs.size(); }
  };
  struct Job {
    Service service;
    std::uint32_t kind = 0, place = 0;
    bool seen = false;  // submit() was called
  };

  std::uint32_t kind_number(KindId id) {
    const auto [place, is_new] = kind_numbers_.try_emplace(id, static_cast<std::uint32_t>(kinds_.size()));
    if (is_new) kinds_.emplace_back();
    return place->second;
  }
  [[nodiscard]] const Service& service_at(const Kind& kind, std::size_t place) const {
    if (place < kind.past.size()) return kind.past[place].service;
    return jobs_[index(kind.jobs[place - kind.past.size()])].service;
  }

  [[nodiscard]] static std::uint32_t level_of(std::int64_t service_us) {
    return std::min(levels.level(service_us), most_levels - 1);
  }
  [[nodiscard]] static double seconds(std::int64_t service_us) { return static_cast<double>(service_us) * 1e-6; }

  [[nodiscard]] std::array<Table*, 3> tables_of(const View& view, JobId id) {
    return {&all_, &shapes_[view.shape_id(id)], &kinds_[jobs_[index(id)].kind].table};
  }

  void add(Table& table, std::uint32_t last) const {
    for (std::uint32_t level = 0; level <= last; ++level) table.past_left[level] += weight_.now();
    table.past_ended[last] += weight_.now();
  }
  // A finished job; `kind` is null without forecasts.
  void add_ended(std::uint32_t shape, std::uint32_t last, Kind* kind) {
    weight_.step();
    if (shapes_.size() <= shape) shapes_.resize(shape + 1);
    add(all_, last);
    add(shapes_[shape], last);
    if (kind != nullptr) add(kind->table, last);
    if (weight_.is_due()) renew();
  }
  void renew() {
    const double factor = weight_.renew();
    const auto fade = [factor](Table& table) {
      for (double& count : table.past_left) count *= factor;
      for (double& count : table.past_ended) count *= factor;
    };
    fade(all_);
    for (Table& table : shapes_) fade(table);
    for (Kind& kind : kinds_) fade(kind.table);
  }

  // Takes the levels that the job has passed out of what has not finished; its kind, or null without forecasts.
  Kind* end_forecast(const View& view, JobId id) {
    if (jobs_.empty() || !jobs_[index(id)].seen) return nullptr;
    Job& job = jobs_[index(id)];
    for (std::uint32_t level = 0; level < job.service.level; ++level) {
      for (Table* const table : tables_of(view, id)) table->left[level] -= 1;
    }
    job.service = {.ended_us = view.attained_gpu_us(id), .level = level_of(view.attained_gpu_us(id))};
    return &kinds_[job.kind];
  }

  [[nodiscard]] double kind_share(const View& view, JobId id, std::uint32_t level) const {
    const auto shrunk = [this, &level](const Table& table, double towards, double weight) {
      const double ended = table.past_ended[level] / weight_.now() + table.ended[level];
      const double left = table.past_left[level] / weight_.now() + table.left[level];
      return (ended + weight * towards) / (left + weight);
    };
    constexpr double unknown = 0.16, unknown_jobs = 2;  // about what ends in a doubling of heavy-tailed service
    const double of_all = shrunk(all_, unknown, unknown_jobs);
    const double of_shape = shrunk(shapes_[view.shape_id(id)], of_all, table_prior);
    return shrunk(kinds_[jobs_[index(id)].kind].table, of_shape, table_prior);
  }

  // What is left of the level that the service lies in, as a share of its logarithm; no less than a tenth.
  [[nodiscard]] static double left_of_level(std::int64_t service_us) {
    if (service_us < levels.first) return std::max(0.1, 1 - seconds(service_us) / seconds(levels.first));
    const std::int64_t end = levels.begin(level_of(service_us) + 1);
    return std::clamp(std::log2(seconds(end) / seconds(service_us)), 0.1, 1.0);
  }

  void draw_towards_near(const View& view, JobId id, std::uint32_t first, std::uint32_t end, Shares& shares) const {
    struct Near {
      Shares left{}, ended{};
    };
    std::array<Near, nearness.size()> tables{};
    const Job& job = jobs_[index(id)];
    const std::int64_t own_us = view.attained_gpu_us(id);
    const Kind& kind = kinds_[job.kind];
    std::array<double, nearness.size()> weights;
    weights.fill(1);
    for (std::uint32_t places = 1; places <= nearness.front().span; ++places) {
      for (std::size_t circle = 0; circle < nearness.size(); ++circle) weights[circle] *= nearness[circle].decay;
      for (const std::size_t at : {std::size_t{job.place} - places, std::size_t{job.place} + places}) {
        if (at >= kind.size()) continue;  // the unsigned difference wraps around
        const Service& other = service_at(kind, at);
        const bool ended = other.ended_us >= 0;
        const std::uint32_t last = other.level;
        if (ended ? other.ended_us <= own_us : last <= first) continue;
        for (std::size_t circle = 0; circle < nearness.size(); ++circle) {
          if (places > nearness[circle].span) continue;
          Near& table = tables[circle];
          for (std::uint32_t k = first; k < std::min(last, end); ++k) table.left[k] += weights[circle];
          if (!ended || last >= end) continue;
          table.left[last] += weights[circle];
          table.ended[last] += weights[circle];
        }
      }
    }
    for (std::size_t circle = 0; circle < nearness.size(); ++circle) {
      const double prior = nearness[circle].prior;
      for (std::uint32_t k = first; k < end; ++k) {
        shares[k] = (tables[circle].ended[k] + prior * shares[k]) / (tables[circle].left[k] + prior);
      }
    }
  }

  // A job that ends in a level is taken to end in the middle of what is left of it.
  [[nodiscard]] static double gittins_index(const Shares& shares, std::uint32_t first, std::uint32_t end,
                                            double own_s) {
    double surviving = 1, ending = 0, served_s = 0, best = 0, begin_s = own_s;
    for (std::uint32_t k = first; k < end; ++k) {
      const double end_s = seconds(levels.begin(k + 1));
      const double length_s = std::max(1.0, end_s - begin_s);
      ending += surviving * shares[k];
      served_s += surviving * length_s * (1 - shares[k] / 2);
      surviving *= 1 - shares[k];
      best = std::max(best, ending / served_s);
      begin_s = end_s;
    }
    return best;
  }

  std::vector<Job> jobs_;
  std::map<KindId, std::uint32_t> kind_numbers_;
  std::vector<Kind> kinds_;
  std::vector<Table> shapes_;
  Table all_;
  FadingWeight weight_;
};

}  // namespace gpusched
