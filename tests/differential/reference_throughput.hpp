// SPDX-License-Identifier: Apache-2.0
/// Gavel's rounds on a pool of one GPU type, as the paper has them and as its artifact runs them: who runs in which
/// round, by the accounts of time that both keep. Jobs of one GPU. Written from the rules; shares no code with the
/// policies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <set>
#include <tuple>
#include <vector>

#include "tests/program/run_support.hpp"

namespace gpusched::test {

/// `gavel` with objective fifo, walked second by second.
class ReferenceGavelRounds {
 public:
  /// `round` is even, so that half of it is whole seconds.
  ReferenceGavelRounds(std::int64_t gpus, std::int64_t round, std::int64_t between)
      : gpus_(gpus), round_(round), between_(between) {}

  /// First start and end of each job.
  std::vector<Span> run(const std::vector<Row>& rows) {
    for (const Row& row : rows) jobs_.push_back({.submit = row.submit, .left = row.work});
    for (now_ = 0; ended_ < jobs_.size(); ++now_) {
      if (something_happens() && (now_ >= round_end_ || nobody_runs()) && !active_.empty()) begin_round();
      for (const std::size_t job : active_) jobs_[job].left -= jobs_[job].running ? 1 : 0;
    }
    std::vector<Span> spans;
    for (const Job& job : jobs_) spans.push_back({static_cast<double>(job.start), static_cast<double>(job.end)});
    return spans;
  }

 private:
  struct Job {
    std::int64_t submit = 0, left = 0;
    bool running = false, promised = false;
    std::int64_t since = 0, received = 0, deficit = 0;
    std::int64_t start = -1, end = -1;
  };

  bool something_happens() {
    bool happened = wakes_.erase(now_) > 0;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      Job& job = jobs_[i];
      if (job.running && job.left == 0) {
        settle(job);
        job.running = false;
        job.end = now_;
        ++ended_;
        active_.erase(std::find(active_.begin(), active_.end(), i));
        happened = outdated_ = true;
      }
      if (job.submit != now_) continue;
      job.received = round_ / 2;
      active_.push_back(i);
      happened = outdated_ = true;
    }
    return happened;
  }

  [[nodiscard]] bool nobody_runs() const {
    return std::none_of(jobs_.begin(), jobs_.end(), [](const Job& job) { return job.running; });
  }

  void settle(Job& job) {
    job.received += now_ - job.since;
    given_ += now_ - job.since;
    job.since = now_;
  }

  void begin_round() {
    for (const std::size_t job : active_) {
      if (jobs_[job].running) settle(jobs_[job]);
    }
    if (outdated_ && (last_ < 0 || now_ - last_ >= between_)) allocate();
    round_end_ = now_ + round_;
    wakes_.insert(round_end_);
    if (std::all_of(active_.begin(), active_.end(), [&](std::size_t job) { return jobs_[job].running; })) return;
    std::vector<std::size_t> order;
    for (const std::size_t job : active_) {
      if (jobs_[job].promised) order.push_back(job);
    }
    // allocation / (received / given), the allocation being 1: whoever received least. Then the greatest deficit.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::tuple(jobs_[a].received, -jobs_[a].deficit) < std::tuple(jobs_[b].received, -jobs_[b].deficit);
    });
    if (order.size() > static_cast<std::size_t>(gpus_)) order.resize(static_cast<std::size_t>(gpus_));
    for (const std::size_t job : active_) {
      if (std::find(order.begin(), order.end(), job) == order.end()) jobs_[job].running = false;
    }
    for (const std::size_t i : order) {
      Job& job = jobs_[i];
      if (job.start < 0) job.start = now_;
      if (!job.running) job.since = now_;
      job.running = true;
    }
  }

  void allocate() {
    given_ = 0;
    std::int64_t place = 0;
    for (const std::size_t i : active_) {
      Job& job = jobs_[i];
      const std::int64_t promised = job.promised && last_ >= 0 ? now_ - last_ : 0;
      job.deficit += promised - (job.received - round_ / 2);
      job.received = round_ / 2;
      given_ += job.received;
      job.promised = place++ < gpus_;
    }
    last_ = now_;
    outdated_ = false;
  }

  std::int64_t gpus_, round_, between_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> active_;  // in order of arrival
  std::set<std::int64_t> wakes_;
  std::int64_t now_ = 0, round_end_ = 0, last_ = -1, given_ = 0;
  std::size_t ended_ = 0;
  bool outdated_ = true;
};

/// What the artifact allocates.
enum class ReferenceShares : std::uint8_t {
  first_come,  ///< FIFO_Perf: a GPU to each of the first jobs, and nothing else runs
  everybody,   ///< FIFO: all of every GPU to everybody
  shortest,    ///< AlloX on one GPU: it is held for the job with the least left, and others may run there
};

/// The policies of the artifact, from one round to the next.
class ReferenceArtifact {
 public:
  /// `round` is even.
  ReferenceArtifact(std::int64_t gpus, std::int64_t round, std::int64_t between, ReferenceShares shares)
      : gpus_(gpus), round_(round), between_(between), shares_(shares) {}

  /// First start and end of each job. Precondition: in order of submission.
  std::vector<Span> run(const std::vector<Row>& rows) {
    for (const Row& row : rows) jobs_.push_back({.submit = row.submit, .left = row.work, .received = round_ / 2});
    if (jobs_.empty()) return {};
    now_ = begin_ = round_begin_ = jobs_.front().submit;
    while (ended_ < jobs_.size()) {
      for (; came_ < jobs_.size() && jobs_[came_].submit <= now_; ++came_) {
        active_.push_back(came_);
        outdated_ = true;
      }
      if (outdated_ && (last_ < 0 || last_ == begin_ || now_ - last_ >= between_)) allocate();
      std::vector<std::size_t> running = chosen();
      if (running.empty() && came_ < jobs_.size()) {
        now_ = jobs_[came_].submit;
        continue;
      }
      if (running.empty()) {
        allocate();
        running = chosen();
      }
      play(running);
    }
    std::vector<Span> spans;
    for (const Job& job : jobs_) spans.push_back({static_cast<double>(job.start), static_cast<double>(job.end)});
    return spans;
  }

 private:
  struct Job {
    std::int64_t submit = 0, left = 0;
    std::int64_t received = 0, deficit = 0;
    bool promised = false, known = false;
    std::int64_t start = -1, end = -1;
  };

  // Those that run: of the first on the list, the ones that the last allocation knew.
  [[nodiscard]] std::vector<std::size_t> chosen() const {
    std::vector<std::size_t> order;
    for (const std::size_t job : active_) {
      if (shares_ == ReferenceShares::shortest || jobs_[job].promised) order.push_back(job);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](const Job& job) {
        return std::tuple(!job.promised, job.promised ? job.received : 0, -job.deficit);
      };
      return key(jobs_[a]) < key(jobs_[b]);
    });
    if (order.size() > static_cast<std::size_t>(gpus_)) order.resize(static_cast<std::size_t>(gpus_));
    std::erase_if(order, [&](std::size_t job) { return !jobs_[job].known; });
    return order;
  }

  // All time since the end of the round before counts as received by those that run now.
  void play(const std::vector<std::size_t>& running) {
    std::int64_t end = now_;
    for (const std::size_t i : running) {
      Job& job = jobs_[i];
      if (job.start < 0) job.start = now_;
      const std::int64_t stop = now_ + std::min(round_, job.left);
      job.left -= stop - now_;
      job.received += stop - round_begin_;
      end = std::max(end, stop);
      if (job.left > 0) continue;
      job.end = stop;
      ++ended_;
      active_.erase(std::find(active_.begin(), active_.end(), i));
      outdated_ = true;
    }
    round_begin_ = now_ = end;
  }

  void allocate() {
    for (const std::size_t i : active_) {
      Job& job = jobs_[i];
      job.deficit += (job.promised && last_ >= 0 ? now_ - last_ : 0) - (job.received - round_ / 2);
      job.received = round_ / 2;
      job.known = true;
      if (shares_ == ReferenceShares::first_come) job.promised = false;
    }
    last_ = now_;
    outdated_ = false;
    const auto has =
        std::count_if(active_.begin(), active_.end(), [&](std::size_t job) { return jobs_[job].promised; });
    std::vector<std::size_t> next;
    std::copy_if(active_.begin(), active_.end(), std::back_inserter(next),
                 [&](std::size_t job) { return !jobs_[job].promised; });
    if (shares_ == ReferenceShares::shortest) {
      std::stable_sort(next.begin(), next.end(), [&](auto a, auto b) { return jobs_[a].left < jobs_[b].left; });
    }
    const bool all = shares_ == ReferenceShares::everybody;
    for (std::size_t i = 0; i < next.size() && (all || has + static_cast<std::int64_t>(i) < gpus_); ++i) {
      jobs_[next[i]].promised = true;
    }
  }

  std::int64_t gpus_, round_, between_;
  ReferenceShares shares_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> active_;  // in order of arrival
  std::size_t came_ = 0, ended_ = 0;
  std::int64_t now_ = 0, begin_ = 0, round_begin_ = 0, last_ = -1;
  bool outdated_ = true;
};

}  // namespace gpusched::test
