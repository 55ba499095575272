// SPDX-License-Identifier: Apache-2.0
/// SlowStudies: studies beside jobs on a pool of GPUs, second by second, from the definitions alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace gpusched::test {

enum class SlowKind { promotion, stopping, hyperband, halving, random };

struct SlowStudy {
  SlowKind kind = SlowKind::promotion;
  std::uint32_t trials = 1, workers = 1, eta = 2, rungs = 1, gpus = 1;
  std::int64_t least = 1, begin = 0;
  std::vector<std::int64_t> unit;         // seconds, by trial
  std::vector<std::vector<double>> loss;  // by trial and rung
  std::optional<double> target;
  bool stops = false, late = true;

  [[nodiscard]] std::int64_t units(std::uint32_t rung) const {
    std::int64_t all = least;
    while (rung-- > 0) all *= eta;
    return all;
  }
};

struct SlowStudyJob {
  std::int64_t submit = 0, work = 0;
  std::uint32_t gpus = 1;
};

/// Who waits or runs: a job, or a trial on its way to a rung.
struct SlowItem {
  int study = -1;  // -1: a job
  std::uint32_t number = 0, rung = 0;
  std::int64_t joined = 0, start = -1, due = 0, plan = 0, from = 0;
  bool operator==(const SlowItem& other) const {
    return study == other.study && number == other.number && rung == other.rung;
  }
};

struct SlowResult {
  std::int64_t time = 0;
  std::uint32_t trial = 0, rung = 0;
  double loss = 0;
  std::int64_t gpu_seconds = 0;
};

struct SlowTask {
  std::uint32_t trial = 0, rung = 0;
  std::int64_t start = 0, end = 0;
};

class SlowStudies {
 public:
  std::uint32_t gpus = 1;
  std::vector<SlowStudyJob> jobs;
  std::vector<SlowStudy> studies;

  // What came of it.
  std::vector<std::int64_t> job_ends;
  std::vector<std::vector<SlowResult>> results;
  std::vector<std::vector<SlowTask>> tasks;  // that ran, by end
  std::vector<std::int64_t> closed;
  std::uint64_t revised = 0;

  void run() {
    searches_.resize(studies.size());
    results.resize(studies.size());
    tasks.resize(studies.size());
    closed.assign(studies.size(), -1);
    job_ends.assign(jobs.size(), -1);
    for (std::size_t i = 0; i < studies.size(); ++i) open(static_cast<int>(i));
    for (now_ = 0; !over(); ++now_) instant();
  }

 private:
  struct Search {
    std::vector<std::vector<std::pair<double, std::uint32_t>>> told;  // by rung
    std::set<std::pair<std::uint32_t, std::uint32_t>> promoted;       // rung, trial
    std::set<std::uint32_t> fresh;                                    // trials that nobody asked for
    // Rounds of searches with barriers: who is to be trained, and for which rung.
    std::vector<std::vector<std::uint32_t>> brackets;
    std::size_t bracket = 0;
    std::uint32_t rung = 0;
    std::vector<std::uint32_t> round, rest;
    std::vector<std::pair<double, std::uint32_t>> heard;
    std::uint32_t active = 0;
    bool over = false, news = false;
  };

  void open(int i) {
    const SlowStudy& study = studies[i];
    Search& search = searches_[i];
    search.told.resize(study.rungs);
    if (study.kind == SlowKind::hyperband || study.kind == SlowKind::halving) {
      std::uint32_t trial = 0;
      for (std::uint32_t s = study.rungs; s-- > 0;) {
        std::uint64_t power = 1;
        for (std::uint32_t k = 0; k < s; ++k) power *= study.eta;
        search.brackets.emplace_back();
        for (std::uint64_t n = (study.rungs * power + s) / (s + 1); n > 0; --n)
          search.brackets.back().push_back(trial++);
        if (study.kind == SlowKind::halving) break;
      }
      open_bracket(i);
      return;
    }
    for (std::uint32_t trial = 0; trial < study.trials; ++trial) search.fresh.insert(trial);
  }
  void open_bracket(int i) {
    Search& search = searches_[i];
    search.heard.clear();
    search.round.clear();
    search.rest.clear();
    if (search.bracket == search.brackets.size()) return;
    search.round = search.rest = search.brackets[search.bracket];
    search.rung = static_cast<std::uint32_t>(search.bracket);
  }

  // What a worker trains next: trial, rung and the units done before.
  std::optional<SlowItem> ask(int i) {
    const SlowStudy& study = studies[i];
    Search& search = searches_[i];
    const auto item = [&](std::uint32_t trial, std::uint32_t rung, bool from_begin) {
      SlowItem found;
      found.study = i;
      found.number = trial;
      found.rung = rung;
      found.from = from_begin || rung == 0 ? 0 : study.units(rung - 1);
      return found;
    };
    if (study.kind == SlowKind::promotion) {
      for (int rung = static_cast<int>(study.rungs) - 2; rung >= 0; --rung) {
        std::vector<std::pair<double, std::uint32_t>> sorted = search.told[rung];
        std::sort(sorted.begin(), sorted.end());
        sorted.resize(sorted.size() / study.eta);
        for (const auto& [loss, trial] : sorted) {
          if (!search.promoted.insert({rung, trial}).second) continue;
          return item(trial, static_cast<std::uint32_t>(rung) + 1, false);
        }
      }
    }
    if (study.kind == SlowKind::hyperband || study.kind == SlowKind::halving) return ask_round(i, item);
    if (search.fresh.empty()) return std::nullopt;
    const std::uint32_t trial = *search.fresh.begin();
    search.fresh.erase(trial);
    return item(trial, study.kind == SlowKind::random ? study.rungs - 1 : 0, true);
  }
  template <class Item>
  std::optional<SlowItem> ask_round(int i, Item item) {
    const SlowStudy& study = studies[i];
    Search& search = searches_[i];
    if (search.rest.empty() && search.heard.size() == search.round.size() && !search.round.empty()) {
      const std::size_t kept = search.heard.size() / study.eta;
      if (search.rung + 1 == study.rungs || kept == 0) {
        ++search.bracket;
        open_bracket(i);
      } else {
        std::sort(search.heard.begin(), search.heard.end());
        search.round.clear();
        for (std::size_t k = 0; k < kept; ++k) search.round.push_back(search.heard[k].second);
        search.rest = search.round;
        search.heard.clear();
        ++search.rung;
      }
    }
    if (search.rest.empty()) return std::nullopt;
    const std::uint32_t trial = search.rest.front();
    search.rest.erase(search.rest.begin());
    return item(trial, search.rung, search.rung == search.bracket);
  }

  // True: the trial goes on where it is.
  bool tell(const SlowItem& item) {
    const SlowStudy& study = studies[item.study];
    Search& search = searches_[item.study];
    const double loss = study.loss[item.number][item.rung];
    std::int64_t spent = 0;
    for (const SlowTask& task : tasks[item.study]) spent += (task.end - task.start) * study.gpus;
    for (const SlowItem& other : running_) {
      if (other.study == item.study) spent += (now_ - other.start) * study.gpus;
    }
    results[item.study].push_back({now_, item.number, item.rung, loss, spent});
    search.news = true;
    if (study.stops && study.target && loss <= *study.target) search.over = true;
    search.heard.emplace_back(loss, item.number);
    std::vector<std::pair<double, std::uint32_t>>& told = search.told[item.rung];
    bool goes_on = false;
    if (study.kind == SlowKind::stopping && item.rung + 1 < study.rungs) {
      std::vector<double> before;
      for (const auto& [other, trial] : told) before.push_back(other);
      std::sort(before.begin(), before.end());
      if (before.empty()) {
        goes_on = true;
      } else {
        const double at = static_cast<double>(before.size() - 1) / study.eta;
        const auto low = static_cast<std::size_t>(at);
        const double part = at - static_cast<double>(low);
        const double cut = part == 0 ? before[low] : before[low] + part * (before[low + 1] - before[low]);
        goes_on = loss <= cut;
      }
    }
    told.emplace_back(loss, item.number);
    return goes_on;
  }

  void fill(int i) {
    Search& search = searches_[i];
    while (!search.over && search.active < studies[i].workers) {
      const std::optional<SlowItem> item = ask(i);
      if (!item) break;
      ++search.active;
      asked_.push_back(*item);
    }
    if (search.active == 0) search.over = true;
  }

  void end(SlowItem item) {
    std::erase(running_, item);
    free_ += item.study < 0 ? jobs[item.number].gpus : studies[item.study].gpus;
    if (item.study < 0) {
      job_ends[item.number] = now_;
      return;
    }
    const bool whole = studies[item.study].kind == SlowKind::stopping;
    tasks[item.study].push_back({item.number, whole ? 0 : item.rung, item.start, now_});
    --searches_[item.study].active;
    fill(item.study);
  }

  void due(const SlowItem& at) {
    SlowItem item = at;
    if (item.study < 0) return end(item);
    const SlowStudy& study = studies[item.study];
    if (tell(item)) {
      SlowItem& goes_on = *std::find(running_.begin(), running_.end(), item);
      ++goes_on.rung;
      goes_on.plan = ++plans_;
      goes_on.due = now_ + study.unit[item.number] * (study.units(item.rung + 1) - study.units(item.rung));
      return;
    }
    end(item);
  }

  void close(int i) {
    closed[i] = now_;
    for (std::size_t k = 0; k < running_.size();) {
      if (running_[k].study != i) {
        ++k;
        continue;
      }
      const SlowItem item = running_[k];
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(k));
      free_ += studies[i].gpus;
      tasks[i].push_back({item.number, studies[i].kind == SlowKind::stopping ? 0 : item.rung, item.start, now_});
    }
    const auto is_its = [i](const SlowItem& item) { return item.study == i; };
    std::erase_if(queue_, is_its);
    std::erase_if(asked_, is_its);
  }

  void ask_again(int i) {
    Search& search = searches_[i];
    std::vector<SlowItem> before;
    for (const SlowItem& item : queue_) {
      if (item.study == i && item.joined < now_) before.push_back(item);
    }
    if (before.empty()) return;
    for (const SlowItem& item : before) {
      if (item.rung == 0) {
        search.fresh.insert(item.number);
      } else {
        search.promoted.erase({item.rung - 1, item.number});
      }
      --search.active;
    }
    const std::size_t asked = asked_.size();
    fill(i);
    std::vector<SlowItem> kept;
    for (std::size_t k = asked; k < asked_.size();) {
      if (std::find(before.begin(), before.end(), asked_[k]) == before.end()) {
        ++k;
        continue;
      }
      kept.push_back(asked_[k]);
      asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(k));
    }
    for (const SlowItem& item : before) {
      if (std::find(kept.begin(), kept.end(), item) != kept.end()) continue;
      std::erase(queue_, item);
      ++revised;
    }
  }

  void instant() {
    for (;;) {
      const SlowItem* next = nullptr;
      for (const SlowItem& item : running_) {
        if (item.due == now_ && (next == nullptr || item.plan < next->plan)) next = &item;
      }
      if (next == nullptr) break;
      due(*next);
    }
    for (std::size_t i = 0; i < studies.size(); ++i) {
      if (studies[i].begin == now_) fill(static_cast<int>(i));
    }
    for (std::size_t i = 0; i < studies.size(); ++i) {
      Search& search = searches_[i];
      if (closed[i] >= 0 || now_ < studies[i].begin) continue;
      const bool news = std::exchange(search.news, false);
      if (!search.over && news && studies[i].kind == SlowKind::promotion && studies[i].late) {
        ask_again(static_cast<int>(i));
      }
      if (search.over) close(static_cast<int>(i));
    }
    if (now_ == 0) {  // they are submitted with the first job, in order of studies, trials and rungs
      std::sort(asked_.begin(), asked_.end(), [](const SlowItem& a, const SlowItem& b) {
        return std::pair(a.study, a.number) < std::pair(b.study, b.number);
      });
    }
    for (SlowItem item : std::exchange(asked_, {})) {
      item.joined = now_;
      queue_.push_back(item);
    }
    for (std::uint32_t j = 0; j < jobs.size(); ++j) {
      if (jobs[j].submit != now_) continue;
      SlowItem item;
      item.number = j;
      queue_.push_back(item);
    }
    start();
  }

  void start() {
    if (now_ == 0) free_ = static_cast<std::int64_t>(gpus);
    for (std::size_t k = 0; k < queue_.size();) {
      SlowItem item = queue_[k];
      const std::uint32_t needs = item.study < 0 ? jobs[item.number].gpus : studies[item.study].gpus;
      if (needs > free_) {
        ++k;
        continue;
      }
      free_ -= needs;
      item.start = now_;
      item.plan = ++plans_;
      if (item.study < 0) {
        item.due = now_ + jobs[item.number].work;
      } else {
        const SlowStudy& study = studies[item.study];
        item.due = now_ + study.unit[item.number] * (study.units(item.rung) - item.from);
      }
      running_.push_back(item);
      queue_.erase(queue_.begin() + static_cast<std::ptrdiff_t>(k));
    }
  }

  [[nodiscard]] bool over() const {
    return std::all_of(job_ends.begin(), job_ends.end(), [](std::int64_t end) { return end >= 0; }) &&
           std::all_of(closed.begin(), closed.end(), [](std::int64_t end) { return end >= 0; });
  }

  std::int64_t now_ = 0, free_ = 0, plans_ = 0;
  std::vector<Search> searches_;
  std::vector<SlowItem> queue_, running_, asked_;
};

}  // namespace gpusched::test
