// SPDX-License-Identifier: Apache-2.0
/// SlowStorage: what nodes fetch and keep, and what moves, as docs/stages.md has it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "gpusched/data/cluster.hpp"
#include "gpusched/data/stage_model.hpp"

namespace gpusched::test {

class SlowStorage {
 public:
  /// Nothing moves.
  SlowStorage() = default;
  SlowStorage(const StageModel& model, const JobTable& jobs, const Cluster& cluster)
      : model_(&model), jobs_(&jobs), nodes_(cluster.nodes.size()), counts_(jobs.size()) {
    std::set<std::uint32_t> racks;
    for (const Node& node : cluster.nodes) racks.insert(node.rack);
    for (std::uint32_t i = 0; i < cluster.nodes.size(); ++i) {
      // Where all nodes stand in one rack, each has a link of its own.
      links_.push_back(racks.size() > 1 ? cluster.nodes[i].rack : i);
    }
  }

  [[nodiscard]] bool active() const { return model_ != nullptr; }
  [[nodiscard]] bool moves_checkpoints() const { return active() && model_->checkpoint_bytes_per_gpu > 0; }
  [[nodiscard]] const StartCounts& counts(JobId job) const { return counts_[index(job)]; }

  /// The run waits for something that moves.
  [[nodiscard]] bool waits(JobId job) const { return is_saving(job) || is_fetching(job); }
  [[nodiscard]] bool is_saving(JobId job) const {
    return std::any_of(transfers_.begin(), transfers_.end(),
                       [job](const Transfer& transfer) { return transfer.saves && transfer.job == job; });
  }

  /// A run enters nodes; returns how long it waits once everything moved: the slowest node decides.
  Time enter(JobId job, const std::set<NodeId>& nodes, Time now) {
    Time slowest{};
    bool is_cold = false;
    count_making(job, now);
    for (const NodeId node : nodes) slowest = std::max(slowest, enter(job, node, now, is_cold));
    if (!nodes.empty()) ++(is_cold ? counts_[index(job)].cold : counts_[index(job)].warm);
    return slowest;
  }

  /// A run leaves nodes. Their fetches go on.
  void leave(JobId job, const std::set<NodeId>& nodes, Time now) {
    count_making(job, now);
    for (const NodeId at : nodes) {
      SlowNode& node = nodes_[index(at)];
      for (const std::uint32_t item : items_of(job)) {
        const auto kept = find(node, item);
        if (kept == node.kept.end()) continue;
        kept->users.erase(job);
        kept->waiting.erase(job);
      }
      const auto making = making_.find({job, at});
      const bool is_made = making == making_.end() || making->second == Time{};
      making_.erase({job, at});
      if (model_->keep_alive.us > 0 && is_made) {
        node.idle.emplace_back(model_->image_of(*jobs_, job), now + model_->keep_alive);
      }
      make_room(node, now);
    }
  }

  /// Nothing that the run writes is written on.
  void cancel_saves(JobId job) {
    std::erase_if(transfers_, [job](const Transfer& transfer) { return transfer.saves && transfer.job == job; });
  }

  /// The node went down, and comes back with nothing on it.
  void clear(NodeId node) {
    nodes_[index(node)] = {};
    std::erase_if(transfers_, [node](const Transfer& transfer) { return !transfer.saves && transfer.node == node; });
  }

  /// A checkpoint begins: a transfer from every node of the run, of so many GPUs there.
  void save(JobId job, const std::map<NodeId, MilliGpu>& parts) {
    for (const auto& [node, milli] : parts) {
      transfers_.push_back({.job = job, .node = node, .left = bytes_of(milli), .saves = true});
    }
  }

  /// Seconds that a checkpoint takes while nothing else moves: all of its nodes write for as long as the slowest.
  [[nodiscard]] double checkpoint_s(const std::map<NodeId, MilliGpu>& parts) const {
    std::vector<Transfer> alone;
    for (const auto& [node, milli] : parts) alone.push_back({.node = node, .left = bytes_of(milli)});
    const std::vector<double> rates = rates_of(alone);
    double slowest = 0;
    for (std::size_t i = 0; i < alone.size(); ++i) slowest = std::max(slowest, alone[i].left / rates[i]);
    return slowest;
  }

  /// When the next transfer ends; Time::max(): never.
  [[nodiscard]] Time next_time(Time now) const {
    const std::vector<double> rates = rates_of(transfers_);
    Time next = Time::max();
    for (std::size_t i = 0; i < rates.size(); ++i) next = std::min(next, end_of(transfers_[i], rates[i], now));
    return next;
  }

  void pass(Time span) {
    const std::vector<double> rates = rates_of(transfers_);
    for (std::size_t i = 0; i < rates.size(); ++i) transfers_[i].left -= rates[i] * to_seconds(span);
  }

  /// A transfer that is due ends: by link, then in the order in which they began.
  void end_one(Time now) {
    const std::vector<double> rates = rates_of(transfers_);
    std::size_t due = transfers_.size();
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (end_of(transfers_[i], rates[i], now) > now) continue;
      if (due == transfers_.size() || link_of(transfers_[i]) < link_of(transfers_[due])) due = i;
    }
    const Transfer ended = transfers_[due];
    transfers_.erase(transfers_.begin() + static_cast<std::ptrdiff_t>(due));
    if (ended.saves) return;
    SlowNode& node = nodes_[index(ended.node)];
    const auto kept = find(node, ended.item);
    kept->is_there = true;
    for (const JobId job : std::exchange(kept->waiting, {})) fetched_[job] = now;
    make_room(node, now);
  }

 private:
  struct Kept {
    std::uint32_t item = no_index;
    bool is_there = false;
    std::set<JobId> users = {}, waiting = {};
  };
  struct SlowNode {
    std::vector<Kept> kept;                            // by last start
    std::vector<std::pair<std::uint32_t, Time>> idle;  // containers: image, last instant
  };
  struct Transfer {
    JobId job = no_job;
    NodeId node = no_node;
    std::uint32_t item = no_index;
    double left = 0;  // bytes
    bool saves = false;
  };

  [[nodiscard]] bool is_fetching(JobId job) const {
    for (const SlowNode& node : nodes_) {
      for (const Kept& kept : node.kept) {
        if (kept.waiting.contains(job)) return true;
      }
    }
    return false;
  }

  // A run makes its containers when it has fetched everything.
  void count_making(JobId job, Time now) {
    const Time passed = is_fetching(job) ? Time{} : now - fetched_[job];
    for (auto& [of, left] : making_) {
      if (of.first == job) left = std::max(left - passed, Time{});
    }
    fetched_[job] = now;
  }

  [[nodiscard]] double bytes_of(MilliGpu milli) const {
    return model_->checkpoint_bytes_per_gpu * static_cast<double>(milli) / static_cast<double>(whole_gpu);
  }
  [[nodiscard]] std::vector<std::uint32_t> items_of(JobId job) const {
    std::vector<std::uint32_t> items;
    for (const std::uint32_t item : {model_->image_of(*jobs_, job), model_->weights_of(*jobs_, job)}) {
      if (item != no_index) items.push_back(item);
    }
    return items;
  }
  static std::vector<Kept>::iterator find(SlowNode& node, std::uint32_t item) {
    return std::find_if(node.kept.begin(), node.kept.end(), [item](const Kept& kept) { return kept.item == item; });
  }
  [[nodiscard]] std::uint32_t link_of(const Transfer& transfer) const {
    return model_->has_uplinks() ? links_[index(transfer.node)] : 0;
  }

  Time enter(JobId job, NodeId at, Time now, bool& is_cold) {
    SlowNode& node = nodes_[index(at)];
    make_room(node, now);
    Time after{};
    const std::uint32_t image = model_->image_of(*jobs_, job);
    const auto idle = std::find_if(node.idle.rbegin(), node.idle.rend(),
                                   [image](const auto& container) { return container.first == image; });
    if (idle != node.idle.rend()) {
      node.idle.erase(std::next(idle).base());
    } else {
      after += model_->provision;
      making_[{job, at}] = model_->provision;
      is_cold = is_cold || model_->keep_alive.us > 0;
    }
    for (const std::uint32_t item : items_of(job)) {
      const StageModel::Item& needed = model_->items[item];
      after += needed.load;
      const auto known = find(node, item);
      Kept kept = known == node.kept.end() ? Kept{.item = item} : *known;
      if (known == node.kept.end()) {
        transfers_.push_back({.node = at, .item = item, .left = static_cast<double>(needed.bytes)});
        counts_[index(job)].fetched_bytes += needed.bytes;
      } else {
        node.kept.erase(known);
      }
      kept.users.insert(job);
      if (!kept.is_there) {
        kept.waiting.insert(job);
        after += needed.unpack;
        is_cold = true;
      }
      node.kept.push_back(kept);
    }
    return after;
  }

  // What no run and no idle container uses goes, that of the longest time ago first, until the rest fits.
  void make_room(SlowNode& node, Time now) {
    std::erase_if(node.idle, [now](const auto& container) { return container.second < now; });
    for (;;) {
      std::int64_t bytes = 0;
      for (const Kept& kept : node.kept) bytes += model_->items[kept.item].bytes;
      const auto unused = std::find_if(node.kept.begin(), node.kept.end(), [&](const Kept& kept) {
        return kept.is_there && kept.users.empty() &&
               std::none_of(node.idle.begin(), node.idle.end(),
                            [&](const auto& container) { return container.first == kept.item; });
      });
      if (bytes <= model_->cache_bytes || unused == node.kept.end()) return;
      node.kept.erase(unused);
    }
  }

  // An instant is a whole microsecond; what floating point adds to one is none.
  static Time end_of(const Transfer& transfer, double rate, Time now) {
    return now +
           Time{std::max<std::int64_t>(0, static_cast<std::int64_t>(std::ceil(transfer.left / rate * 1e6 - 1e-3)))};
  }

  // Bytes a second of each: all rise together from 0, and stop rising where something of theirs is full.
  [[nodiscard]] std::vector<double> rates_of(const std::vector<Transfer>& transfers) const {
    std::vector<double> rates(transfers.size());
    std::map<std::uint32_t, double> rising;  // transfers of each link
    std::map<std::uint32_t, double> level_of;
    for (const Transfer& transfer : transfers) ++rising[link_of(transfer)];
    double storage = transfers.empty() ? 0 : model_->storage_bytes_per_s;  // less what those have that rise no more
    while (!rising.empty()) {
      double all = 0, level = model_->transfer_bytes_per_s;
      for (const auto& [link, count] : rising) {
        all += count;
        level = std::min(level, uplink() / count);
      }
      const bool is_full = storage / all <= level;
      level = std::min(level, storage / all);
      const auto before = rising;
      for (const auto& [link, count] : before) {
        if (!is_full && std::min(model_->transfer_bytes_per_s, uplink() / count) > level) continue;
        level_of[link] = level;
        storage -= level * count;
        rising.erase(link);
      }
    }
    for (std::size_t i = 0; i < transfers.size(); ++i) rates[i] = level_of.at(link_of(transfers[i]));
    return rates;
  }
  [[nodiscard]] double uplink() const { return model_->uplink_bytes_per_s; }

  const StageModel* model_ = nullptr;
  const JobTable* jobs_ = nullptr;
  std::vector<std::uint32_t> links_;  // by node
  std::vector<SlowNode> nodes_;
  std::vector<Transfer> transfers_;
  std::vector<StartCounts> counts_;                  // by job
  std::map<std::pair<JobId, NodeId>, Time> making_;  // containers: what is left of that after fetched_
  std::map<JobId, Time> fetched_;
};

}  // namespace gpusched::test
