// SPDX-License-Identifier: Apache-2.0
/// Stages: the changing part of StageModel: which containers, images and weights lie on which node, and what moves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/stage_model.hpp"
#include "gpusched/engine/effects/effect_list.hpp"
#include "gpusched/engine/effects/shared_network.hpp"
#include "gpusched/engine/job_state.hpp"

namespace gpusched::detail {

/// GPUs that a run holds on one node.
struct NodePart {
  NodeId node = no_node;
  MilliGpu milli = 0;
};

/// An effect: a run waits until its nodes have its container, image and weights, and checkpoints are transfers, which
/// slow each other. A start costs O(items kept) a node.
class Stages {
 public:
  static constexpr bool keeps_seats = true;
  static constexpr bool counts_costs() { return true; }

  /// Every run works at once.
  Stages() = default;
  explicit Stages(const EffectWorld& world) {
    if (world.inputs.stages != nullptr) *this = Stages(*world.inputs.stages, world.jobs, world.cluster);
  }
  /// `model` and `jobs` must outlive this.
  Stages(const StageModel& model, const JobTable& jobs, const Cluster& cluster) {
    if (model.is_empty()) return;
    model_ = &model;
    jobs_ = &jobs;
    nodes_.resize(cluster.nodes.size());
    runs_.resize(jobs.size());
    const std::uint32_t links = model.has_uplinks() ? number_uplinks(cluster) : 1;
    network_ = SharedNetwork(bandwidths(), links);
    transfers_.resize(links);
  }

  /// False when every run works at once and checkpoints move no data.
  [[nodiscard]] bool active() const { return model_ != nullptr; }
  /// True when periodic checkpoints are transfers.
  [[nodiscard]] bool moves_checkpoints() const { return active() && model_->checkpoint_bytes_per_gpu > 0; }
  /// Seconds that a checkpoint of the run takes while nothing else is moved, and all of its nodes write for as long as
  /// the slowest of them. Precondition: moves_checkpoints().
  [[nodiscard]] double checkpoint_s(std::span<const NodePart> parts) const {
    std::map<std::uint32_t, std::uint32_t> writers;  // by link
    for (const NodePart& part : parts) ++writers[link_of(part.node)];
    LinksByTransfers links;
    for (const auto& [link, count] : writers) ++links[count];
    const Bandwidths widths = bandwidths();
    const double most = std::min(widths.transfer, storage_share(widths, links));
    double slowest = 0;
    for (const NodePart& part : parts) {
      slowest = std::max(slowest, bytes_of(part.milli) / std::min(most, widths.link / writers.at(link_of(part.node))));
    }
    return slowest;
  }
  /// Precondition: active().
  [[nodiscard]] const StartCounts& counts(JobId job) const { return runs_[index(job)].counts; }
  /// When the next transfer ends; Time::max() = never.
  [[nodiscard]] Time next_time() const { return network_.next_time(); }

  // The transfer that is due ends.
  template <class Kernel>
  GPUSCHED_RARE void happen(Kernel& kernel) {
    const Time now = network_.next_time();
    const SharedNetwork::Transfer ended = network_.pop();
    const Transfer transfer = transfers_[ended.link][ended.number];
    if (transfer.job != no_job) {
      std::erase(runs_[index(transfer.job)].saves, ended);
      count_down(kernel, transfer.job);
      return;
    }
    Node& node = nodes_[index(transfer.node)];
    const auto kept = std::find_if(node.kept.begin(), node.kept.end(),
                                   [&ended](const Kept& other) { return other.transfer == ended.number; });
    kept->transfer = no_index;
    const std::vector<JobId> waiting = std::exchange(kept->waiting, {});
    make_room(node, now);
    for (const JobId job : waiting) {
      Run& run = runs_[index(job)];
      if (run.pending - 1 == run.saves.size()) run.fetched = now;
      count_down(kernel, job);
    }
  }

  template <class Kernel>
  Time begin(Kernel& kernel, JobId job) {
    return enter_nodes(kernel, job, {});
  }

  // The nodes that it had are ready. It leaves what it waited for on others.
  template <class Kernel>
  Time moved(Kernel& kernel, JobId job, const std::vector<NodeId>& before) {
    const bool waited = runs_[index(job)].waits;
    if (kernel.state[job].rate == 0) kernel.settle_now(job);  // perhaps it waits for another reason from now on
    count_making(runs_[index(job)], kernel.state.now);
    const std::vector<NodeId> after = kernel.state.occupancy.nodes_of(job);
    for (const NodeId node : before) {
      if (std::find(after.begin(), after.end(), node) == after.end()) leave(node, job, kernel.state.now);
    }
    const Time ready = enter_nodes(kernel, job, before);
    if (waited && !runs_[index(job)].waits) go_on(kernel, job);
    return ready;
  }

  // Nothing that the run writes is written on, but its nodes finish what they fetch.
  template <class Kernel>
  void end(Kernel& kernel, JobId job, EndOfRun) {
    Run& run = runs_[index(job)];
    const Time now = kernel.state.now;
    count_making(run, now);
    for (const SharedNetwork::Transfer save : std::exchange(run.saves, {})) network_.cancel(now, save);
    for (const NodeId node : kernel.state.occupancy.nodes_of(job)) leave(node, job, now);
    run.pending = 0;
    run.waits = run.is_saving = false;
    run.making.clear();
  }

  // The node went down and comes back with nothing on it; its runs are over.
  template <class Kernel>
  void cleared(Kernel& kernel, NodeId node) {
    for (const Kept& kept : nodes_[index(node)].kept) {
      if (kept.transfer != no_index) network_.cancel(kernel.state.now, {link_of(node), kept.transfer});
    }
    nodes_[index(node)] = {};
  }

  /// A checkpoint of the run begins; it stands still until that is written. Preconditions: moves_checkpoints(), the run
  /// works and is settled.
  void save(JobId job, std::span<const NodePart> parts, Time now) {
    Run& run = runs_[index(job)];
    run.waits = run.is_saving = true;
    for (const NodePart& part : parts) {
      run.saves.push_back(add_transfer({.job = job, .node = part.node}, bytes_of(part.milli), now));
      ++run.pending;
    }
  }

  template <class State>
  [[nodiscard]] bool stands_still(const State&, JobId job) const {
    return runs_[index(job)].waits;
  }
  template <class State>
  [[nodiscard]] bool waits(const State&, JobId job) const {
    return runs_[index(job)].waits;
  }

 private:
  // An item on a node, or on its way there.
  struct Kept {
    std::uint32_t item = no_index;
    std::uint32_t transfer = no_index;  // of the node's link, until it is there
    std::uint32_t users = 0;            // runs
    std::vector<JobId> waiting = {};    // runs that began before it was there
  };
  struct Idle {
    std::uint32_t image = no_index;
    Time until{};  // its last instant
  };
  struct Node {
    std::vector<Kept> kept;  // by last start, the latest last
    std::vector<Idle> idle;  // containers, by `until`
  };
  // A container that a run makes: what of that was left when the run had fetched everything (Run::fetched).
  struct Making {
    NodeId node = no_node;
    Time left{};
  };
  struct Run {
    StartCounts counts;
    std::vector<Making> making;  // where containers are kept
    Time fetched{};              // when it had fetched everything
    std::vector<SharedNetwork::Transfer> saves;
    std::uint32_t pending = 0;  // transfers without which it does not go on
    bool waits = false;         // it stands still until a transfer ends
    bool is_saving = false;     // a checkpoint moves
  };
  struct Transfer {
    JobId job = no_job;  // of a checkpoint; a fetch has none
    NodeId node = no_node;
  };
  struct Entry {
    Time after{};  // the transfers
    bool is_cold = false, makes_container = false;
  };

  [[nodiscard]] double bytes_of(MilliGpu milli) const {
    return model_->checkpoint_bytes_per_gpu * static_cast<double>(milli) / static_cast<double>(whole_gpu);
  }

  [[nodiscard]] Bandwidths bandwidths() const {
    // Without uplinks the storage is the one link of all nodes.
    if (!model_->has_uplinks()) return {.transfer = model_->transfer_bytes_per_s, .link = model_->storage_bytes_per_s};
    return {.transfer = model_->transfer_bytes_per_s,
            .link = model_->uplink_bytes_per_s,
            .storage = model_->storage_bytes_per_s};
  }

  // Numbers the racks, or the nodes where all stand in one rack, and returns how many there are.
  std::uint32_t number_uplinks(const Cluster& cluster) {
    std::map<std::uint32_t, std::uint32_t> links;  // by rack
    for (const gpusched::Node& node : cluster.nodes) links.try_emplace(node.rack, 0);
    std::uint32_t count = 0;
    for (auto& [rack, link] : links) link = count++;
    links_.reserve(cluster.nodes.size());
    for (std::uint32_t node = 0; node < cluster.nodes.size(); ++node) {
      links_.push_back(count > 1 ? links.at(cluster.nodes[node].rack) : node);
    }
    return count > 1 ? count : std::max(static_cast<std::uint32_t>(cluster.nodes.size()), 1u);
  }

  [[nodiscard]] std::uint32_t link_of(NodeId node) const { return links_.empty() ? 0 : links_[index(node)]; }

  SharedNetwork::Transfer add_transfer(Transfer transfer, double bytes, Time now) {
    const SharedNetwork::Transfer begun = network_.begin(now, link_of(transfer.node), bytes);
    std::vector<Transfer>& known = transfers_[begun.link];
    if (begun.number >= known.size()) known.resize(begun.number + 1);
    known[begun.number] = transfer;
    return begun;
  }

  template <class Kernel>
  void count_down(Kernel& kernel, JobId job) {
    if (--runs_[index(job)].pending == 0) go_on(kernel, job);
  }

  // The last transfer that the job waited for ended.
  template <class Kernel>
  void go_on(Kernel& kernel, JobId job) {
    Run& run = runs_[index(job)];
    kernel.settle_now(job);
    run.waits = false;
    if (std::exchange(run.is_saving, false)) kernel.end_save(job);
    kernel.adapt_rate(job);
  }

  // A run begins on its nodes, of which those of `before` are ready. Returns how long it waits after its transfers:
  // until the slowest of its nodes has a container, has unpacked and loaded.
  template <class Kernel>
  Time enter_nodes(Kernel& kernel, JobId job, const std::vector<NodeId>& before) {
    Run& run = runs_[index(job)];
    Time slowest{};
    bool is_cold = false, enters = before.empty();
    for (const NodeId node : kernel.state.occupancy.nodes_of(job)) {
      if (std::find(before.begin(), before.end(), node) != before.end()) continue;
      const Entry entry = enter(node, job, kernel.state.now);
      slowest = std::max(slowest, entry.after);
      is_cold = is_cold || entry.is_cold;
      if (entry.makes_container) run.making.push_back({.node = node, .left = model_->provision});
      enters = true;
    }
    if (enters) ++(is_cold ? run.counts.cold : run.counts.warm);
    run.waits = run.pending > 0;
    run.fetched = kernel.state.now;  // if they have
    return slowest;
  }

  Entry enter(NodeId at, JobId job, Time now) {
    Node& node = nodes_[index(at)];
    make_room(node, now);
    Entry entry;
    const std::uint32_t image = model_->image_of(*jobs_, job);
    if (!take_container(node, image)) {
      entry.after = model_->provision;
      entry.is_cold = entry.makes_container = model_->keep_alive.us > 0;
    }
    use(at, image, job, now, entry);
    use(at, model_->weights_of(*jobs_, job), job, now, entry);
    return entry;
  }

  // Containers are made once everything is fetched, whatever else the run waits for.
  static void count_making(Run& run, Time now) {
    const bool is_fetching = run.pending > run.saves.size();
    const Time passed = is_fetching ? Time{} : now - run.fetched;
    for (Making& making : run.making) making.left = std::max(making.left - passed, Time{});
    run.fetched = now;
  }
  // The run leaves the node. True when there is a container: nobody else gets one that was not made. Precondition: what
  // is made is counted up to now.
  static bool takes_leave_of_container(Run& run, NodeId node) {
    const auto making =
        std::find_if(run.making.begin(), run.making.end(), [node](const Making& other) { return other.node == node; });
    if (making == run.making.end()) return true;
    const bool is_made = making->left == Time{};
    run.making.erase(making);
    return is_made;
  }

  // Of the idle containers with that image, the one that was used last.
  static bool take_container(Node& node, std::uint32_t image) {
    const auto last =
        std::find_if(node.idle.rbegin(), node.idle.rend(), [&image](const Idle& idle) { return idle.image == image; });
    if (last == node.idle.rend()) return false;
    node.idle.erase(std::next(last).base());
    return true;
  }

  static std::vector<Kept>::iterator find(Node& node, std::uint32_t item) {
    return std::find_if(node.kept.begin(), node.kept.end(), [&item](const Kept& kept) { return kept.item == item; });
  }

  // A run needs the item: who comes while it is on its way waits for the rest of it.
  void use(NodeId at, std::uint32_t item, JobId job, Time now, Entry& entry) {
    if (item == no_index) return;
    Node& node = nodes_[index(at)];
    Run& run = runs_[index(job)];
    const StageModel::Item& needed = model_->items[item];
    entry.after = later_by(entry.after, needed.load);
    auto place = find(node, item);
    if (place == node.kept.end()) {
      node.kept.push_back({.item = item});
      place = node.kept.end() - 1;
      place->transfer = add_transfer({.node = at}, static_cast<double>(needed.bytes), now).number;
      run.counts.fetched_bytes += needed.bytes;
    }
    std::rotate(place, place + 1, node.kept.end());
    Kept& kept = node.kept.back();
    ++kept.users;
    if (kept.transfer == no_index) return;
    entry.is_cold = true;
    entry.after = later_by(entry.after, needed.unpack);
    kept.waiting.push_back(job);
    ++run.pending;
  }

  void leave(NodeId at, JobId job, Time now) {
    Node& node = nodes_[index(at)];
    for (const std::uint32_t item : {model_->image_of(*jobs_, job), model_->weights_of(*jobs_, job)}) {
      const auto kept = find(node, item);
      if (item == no_index || kept == node.kept.end()) continue;
      --kept->users;
      if (const auto waiting = std::find(kept->waiting.begin(), kept->waiting.end(), job);
          waiting != kept->waiting.end()) {
        kept->waiting.erase(waiting);
        --runs_[index(job)].pending;
      }
    }
    if (model_->keep_alive.us > 0 && takes_leave_of_container(runs_[index(job)], at))
      node.idle.push_back({model_->image_of(*jobs_, job), later_by(now, model_->keep_alive)});
    make_room(node, now);
  }

  // What no run and no idle container uses goes, that of the longest time ago first, until the rest fits the cache.
  void make_room(Node& node, Time now) {
    std::erase_if(node.idle, [&now](const Idle& idle) { return idle.until < now; });
    if (model_->cache_bytes == StageModel::unlimited) return;
    const auto is_used = [&node](const Kept& kept) {
      return kept.users > 0 || kept.transfer != no_index ||
             std::any_of(node.idle.begin(), node.idle.end(),
                         [&kept](const Idle& idle) { return idle.image == kept.item; });
    };
    std::int64_t bytes = 0;
    for (const Kept& kept : node.kept) bytes += model_->items[kept.item].bytes;
    for (auto kept = node.kept.begin(); kept != node.kept.end() && bytes > model_->cache_bytes;) {
      if (is_used(*kept)) {
        ++kept;
        continue;
      }
      bytes -= model_->items[kept->item].bytes;
      kept = node.kept.erase(kept);
    }
  }

  const StageModel* model_ = nullptr;  // borrowed; null = every run works at once
  const JobTable* jobs_ = nullptr;     // borrowed
  SharedNetwork network_;
  std::vector<std::uint32_t> links_;  // by node; empty: all use the first
  std::vector<Node> nodes_;
  std::vector<Run> runs_;                         // by job
  std::vector<std::vector<Transfer>> transfers_;  // by link and number
};

}  // namespace gpusched::detail
