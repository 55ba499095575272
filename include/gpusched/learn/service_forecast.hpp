// SPDX-License-Identifier: Apache-2.0
/// ServiceForecast: how much GPU service a job still needs, by what jobs like it needed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "gpusched/learn/doubling_levels.hpp"

namespace gpusched {

/// Life tables of GPU service, in levels that double: of the jobs that left a level, how many ended in it. One of all
/// jobs, one of each shape, one of each kind (virtual cluster and shape), and for each question those of the jobs of
/// its kind that were submitted just before and after, which are often a batch of equals. Each is shrunk towards the
/// one before. Jobs that have not ended count for the levels that they have passed (Kaplan and Meier, 1958). A value.
class ServiceForecast {
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

  /// A job came. Call it once for each.
  void submit(const View& view, JobId id) {
    if (jobs_.empty()) {
      jobs_.resize(view.job_count());
      shapes_.resize(view.shape_count());
    }
    const auto [place, is_new] =
        kind_ids_.try_emplace({view.vc(id), view.shape_id(id)}, static_cast<std::uint32_t>(kinds_.size()));
    if (is_new) kinds_.emplace_back();
    std::vector<JobId>& like = kinds_[place->second].jobs;
    jobs_[index(id)] = {.kind = place->second, .place = static_cast<std::uint32_t>(like.size())};
    like.push_back(id);
  }

  /// The job may have entered another level.
  void pass(const View& view, JobId id) {
    Job& job = jobs_[index(id)];
    const std::uint32_t now_in = level_of(view.attained_gpu_us(id));
    for (; job.level < now_in; ++job.level) count(view, id, 0);
  }

  /// The job ended. Those near it have another index from now on (for_each_near()).
  void finish(const View& view, JobId id) {
    pass(view, id);
    jobs_[index(id)].ended_us = view.attained_gpu_us(id);
    count(view, id, 1);
  }

  /// Calls visit(JobId) for the jobs of the nearest circle around `id` that have not ended, in order of submission.
  template <class Visit>
  void for_each_near(JobId id, Visit visit) const {
    const Job& job = jobs_[index(id)];
    const std::vector<JobId>& like = kinds_[job.kind].jobs;
    const std::uint32_t span = nearness.back().span;
    const std::size_t end = std::min<std::size_t>(like.size(), std::size_t{job.place} + span + 1);
    for (std::size_t i = job.place - std::min(job.place, span); i < end; ++i) {
      if (jobs_[index(like[i])].ended_us < 0) visit(like[i]);
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
  // Of the jobs that left a level, those that ended in it.
  struct LifeTable {
    std::array<std::uint32_t, most_levels> left{}, ended{};
  };
  struct Kind {
    LifeTable table;
    std::vector<JobId> jobs;  // in order of submission
  };
  struct Job {
    std::int64_t ended_us = -1;  // service of a job that ended
    std::uint32_t kind = 0, place = 0;
    std::uint32_t level = 0;
  };

  [[nodiscard]] static std::uint32_t level_of(std::int64_t service_us) {
    return std::min(levels.level(service_us), most_levels - 1);
  }
  [[nodiscard]] static double seconds(std::int64_t service_us) { return static_cast<double>(service_us) * 1e-6; }

  void count(const View& view, JobId id, std::uint32_t ended) {
    const Job& job = jobs_[index(id)];
    for (LifeTable* const table : {&all_, &shapes_[view.shape_id(id)], &kinds_[job.kind].table}) {
      table->left[job.level] += 1;
      table->ended[job.level] += ended;
    }
  }

  [[nodiscard]] double kind_share(const View& view, JobId id, std::uint32_t level) const {
    const auto shrunk = [level](const LifeTable& table, double towards, double weight) {
      return (table.ended[level] + weight * towards) / (table.left[level] + weight);
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
    struct Table {
      Shares left{}, ended{};
    };
    std::array<Table, nearness.size()> tables{};
    const Job& job = jobs_[index(id)];
    const std::int64_t own_us = view.attained_gpu_us(id);
    const std::vector<JobId>& like = kinds_[job.kind].jobs;
    std::array<double, nearness.size()> weights;
    weights.fill(1);
    for (std::uint32_t places = 1; places <= nearness.front().span; ++places) {
      for (std::size_t circle = 0; circle < nearness.size(); ++circle) weights[circle] *= nearness[circle].decay;
      for (const std::size_t at : {std::size_t{job.place} - places, std::size_t{job.place} + places}) {
        if (at >= like.size()) continue;  // the unsigned difference wraps around
        const Job& other = jobs_[index(like[at])];
        const bool ended = other.ended_us >= 0;
        const std::uint32_t last = other.level;
        if (ended ? other.ended_us <= own_us : last <= first) continue;
        for (std::size_t circle = 0; circle < nearness.size(); ++circle) {
          if (places > nearness[circle].span) continue;
          Table& table = tables[circle];
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
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> kind_ids_;  // by virtual cluster and shape
  std::vector<Kind> kinds_;
  std::vector<LifeTable> shapes_;
  LifeTable all_;
};

}  // namespace gpusched
