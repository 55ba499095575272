// SPDX-License-Identifier: Apache-2.0
/// Packing of pods with shares of GPUs, as in the FGD paper and its simulator (Weng et al., "Beware of Fragmentation",
/// USENIX ATC'23; alibaba/clusterdata, kubernetes-scheduler-simulator): `fgd` and the baselines it was compared with.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/packing/fragmentation.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// How nodes that pass the filter (GPU type, CPU, memory, cards) are scored; the highest score wins. c, g: the pod's
/// milli-CPU and milli-GPU; C, G: the node's free ones before placing.
enum class PackingRule : std::uint8_t {
  fgd,             ///< least growth of fragmentation: int(100 / (1 + exp(-(before - after) / 1000)))
  best_fit,        ///< 100 x (1 - ((C - c) / 128000 + (G - g) / 8000) / 2)
  dot_prod,        ///< 100 x (1 - (C / 128000 x c / 128000 + G / 8000 x g / 8000) / 2)
  gpu_packing,     ///< cards in use first, then nodes in use, then the idle node with the fewest cards
  gpu_clustering,  ///< nodes that hold pods of the same class (shared, one GPU, two GPUs, ...)
  random,          ///< a passing node drawn uniformly
};

/// Chooses the node, and the card of a share, for each pod.
class NodePacker {
 public:
  struct Choice {
    NodeId node = no_node;  ///< no_node: fits nowhere
    std::uint32_t device = no_index;
  };

  /// `seed` orders the nodes: once for a run they are put in a random order, and the first of the best wins. `pods`:
  /// what PackingRule::fgd expects to see; the other rules ignore it.
  NodePacker(PackingRule rule, std::uint64_t seed, std::vector<TypicalPod> pods)
      : rule_(rule), rng_(Rng(seed).split("packing")), pods_(std::move(pods)) {}

  /// The best node for one task of `shape` among those not in `taken`. O(nodes); scores are kept until a node changes.
  Choice choose(const View& view, JobId job, const std::vector<NodeTasks>& taken);

  /// Tasks of `shape` came to (+1) or left (-1) a node: its scores are stale.
  void changed(NodeId node, const Shape& shape, int tasks);

 private:
  struct Score {
    std::int32_t value = 0;
    std::uint32_t device = no_index;
    std::uint32_t version = 0;  // of the node when this was computed; 0 = never
  };

  void prepare(const View& view);
  Choice choose_random(const View& view, const Shape& shape, std::uint32_t queue, const std::vector<NodeTasks>& taken);
  const Score& score(const View& view, const Shape& shape, std::uint32_t shape_id, NodeId node);
  [[nodiscard]] Score compute(const ClusterState& cluster, const Shape& shape, NodeId node);
  [[nodiscard]] Score compute_fgd(const ClusterState& cluster, const Shape& shape, NodeId node);
  [[nodiscard]] std::int32_t gpu_packing(const ClusterState& cluster, const Shape& shape, NodeId node) const;
  [[nodiscard]] std::int32_t gpu_clustering(const ClusterState& cluster, const Shape& shape, NodeId node) const;

  PackingRule rule_;
  Rng rng_;
  std::vector<TypicalPod> pods_;
  std::vector<NodeId> order_;             // of the nodes, random
  std::vector<std::uint32_t> version_;    // by node, from 1
  std::vector<std::vector<Score>> kept_;  // [shape][node]
  std::vector<double> fragmentation_;     // by node, fgd only; < 0 = stale
  // [node][class]: pods there; class 0 = shared, k = k cards.
  std::vector<std::vector<std::uint32_t>> class_counts_;
  std::vector<MilliGpu> cards_;  // scratch of compute_fgd
};

/// Places waiting jobs in order of submission, passing over those that fit nowhere, each by NodePacker; never preempts.
/// The tasks of a gang go one after another to the best node not yet used, as many to each as it takes, but one where
/// the rule chose its card; a gang that runs out of nodes so goes by the run's placement rule.
/// O(waiting shapes x nodes) an event at which capacity is freed, else O(nodes) a new job.
class Packing {
 public:
  Packing(PackingRule rule, std::uint64_t seed, std::vector<TypicalPod> pods)
      : rule_(rule), packer_(rule, seed, std::move(pods)) {}

  [[nodiscard]] std::string_view name() const;
  void decide(const View& view, Decision& decision);

 private:
  bool try_start(const View& view, Decision& decision, JobId job);
  bool start_gang(const View& view, Decision& decision, JobId job);
  void start_waiting(const View& view, Decision& decision);
  std::deque<JobId>& waiting_of(const View& view, JobId job);

  PackingRule rule_;
  NodePacker packer_;
  std::vector<std::vector<NodeTasks>> nodes_of_;  // by running job
  std::vector<std::deque<JobId>> waiting_;        // [scheduling queue x shape], in order of submission
  std::vector<std::uint8_t> blocked_;             // scratch, alike
};

}  // namespace gpusched
