// SPDX-License-Identifier: Apache-2.0
/// Packing of pods with shares of GPUs, as in the FGD paper and its simulator (Weng et al., "Beware of Fragmentation",
/// USENIX ATC'23; alibaba/clusterdata, kubernetes-scheduler-simulator): `fgd` and the baselines it was compared with;
/// and PWR, which CCGrid 2025 put beside it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "src/policies/packing/fragmentation.hpp"
#include "src/policies/packing/power_rises.hpp"
#include "src/policies/queues/job_heaps.hpp"
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
  pwr,             ///< least rise of the node's draw (PowerRises)
  pwr_fgd,         ///< a x P + (1 - a) x fgd's; P: pwr's score over the nodes that pass, from 0 to 100, rounded down
};

/// Chooses the node, and the card of a share, for each pod.
class NodePacker {
 public:
  struct Choice {
    NodeId node = no_node;  ///< no_node: fits nowhere
    std::uint32_t device = no_index;
  };

  /// What the rules that look at power need; `alpha`: the part of PWR under PackingRule::pwr_fgd.
  struct Power {
    PowerRises rises;
    double alpha = 1;
  };

  /// `seed` orders the nodes: once for a run they are put in a random order, and the first of the best wins. `pods`:
  /// what PackingRule::fgd expects to see; the other rules ignore it. Precondition: `power` for the rules that name it.
  NodePacker(PackingRule rule, std::uint64_t seed, std::vector<TypicalPod> pods, std::optional<Power> power = {})
      : rule_(rule), rng_(Rng(seed).split("packing")), pods_(std::move(pods)), power_(std::move(power)) {}

  /// The best node for one task of the job among those not in `taken`, which is empty for its first task and grows by a
  /// node a call. O(log nodes), and as much for each node that changed since the last pod of this kind; O(nodes) for
  /// the first of a kind, and always under PackingRule::random and pwr_fgd.
  Choice choose(const View& view, JobId job, const std::vector<NodeTasks>& taken);

  /// Tasks of `shape` came to (+1) or left (-1) a node: its scores are stale.
  void changed(NodeId node, const Shape& shape, int tasks);
  /// The job began where its grants are; it left the node. For the rules that look at power, before changed().
  /// \{
  void began(const View& view, JobId job) {
    if (power_) power_->rises.began(view, job);
  }
  void left(NodeId node, JobId job) {
    if (power_) power_->rises.left(node, job);
  }
  /// \}
  /// The node went out of service or came back.
  void changed(NodeId node);

  /// Scores computed so far: what the choices cost.
  [[nodiscard]] std::uint64_t scored() const { return scored_; }

 private:
  struct Score {
    std::int32_t value = 0;
    std::uint32_t device = no_index;
    std::int32_t watts = 0;  // pwr_fgd only: that the task adds
  };
  // The scores of all nodes for tasks that ask for the same: a tree of maxima whose leaves are the nodes in `order_`.
  struct Ranking {
    std::uint32_t queue = 0;  // one of those that may use the same nodes
    Shape task{};
    JobId job = no_job;               // that was placed last
    std::vector<std::int32_t> best;   // node k has children 2k and 2k + 1
    std::vector<std::int32_t> watts;  // pwr_fgd only: by place, where the score is not fits_not
    std::uint64_t seen = 0;           // changes that it knows of
  };
  using Kind = std::tuple<std::uint32_t, Shape, std::uint32_t>;  // scheduling queue, one task, family where that counts
  // The same without what nodes do not tell apart: the classes of them that the queue may use.
  using Alike = std::tuple<std::vector<std::uint32_t>, Shape, std::uint32_t>;

  void prepare(const View& view);
  Choice choose_random(const View& view, const Shape& shape, std::uint32_t queue, const std::vector<NodeTasks>& taken);
  Ranking& ranking_of(const View& view, JobId job);
  void fill(const View& view, Ranking& ranking);
  void catch_up(const View& view, Ranking& ranking);
  void hide(const View& view, Ranking& ranking, const std::vector<NodeTasks>& taken);
  void set(Ranking& ranking, std::uint32_t place, const Score& score) const;
  [[nodiscard]] std::uint32_t place_of_best(const Ranking& ranking) const;
  [[nodiscard]] std::uint32_t place_of_best_mix(const Ranking& ranking) const;
  [[nodiscard]] Score score(const View& view, const Ranking& ranking, NodeId node);
  [[nodiscard]] Score compute(const View& view, const Ranking& ranking, NodeId node);
  [[nodiscard]] Score compute_fgd(const ClusterState& cluster, const Shape& shape, NodeId node);
  [[nodiscard]] Score compute_pwr(const View& view, const Ranking& ranking, NodeId node);
  [[nodiscard]] std::int32_t gpu_packing(const ClusterState& cluster, const Shape& shape, NodeId node) const;
  [[nodiscard]] std::int32_t gpu_clustering(const ClusterState& cluster, const Shape& shape, NodeId node) const;

  PackingRule rule_;
  Rng rng_;
  std::vector<TypicalPod> pods_;
  std::optional<Power> power_;
  std::vector<NodeId> order_;         // of the nodes, random
  std::vector<std::uint32_t> place_;  // of each node in it
  std::vector<std::uint32_t> model_;  // by node: nodes of one model are alike while they are idle
  std::uint32_t models_ = 0;
  std::uint32_t capacity_ = 0;  // leaves of a ranking: a power of two
  std::map<Kind, std::uint32_t> numbers_;
  std::map<Alike, std::uint32_t> alike_;
  std::vector<Ranking> rankings_;
  std::vector<NodeId> changes_;  // in order; `forgotten_` others came before
  std::uint64_t forgotten_ = 0;
  std::vector<std::uint64_t> caught_;  // by node: the last catch_up() that scored it
  std::uint64_t catches_ = 0;
  std::vector<NodeId> hidden_;  // nodes of the present gang, left out of ranking `hidden_in_`
  std::size_t hidden_in_ = 0;
  std::vector<double> fragmentation_;  // by node, fgd only; < 0 = stale
  // [node][class]: pods there; class 0 = shared, k = k cards.
  std::vector<std::vector<std::uint32_t>> class_counts_;
  std::vector<MilliGpu> cards_;  // scratch of compute_fgd
  std::uint64_t scored_ = 0;
};

/// Places waiting jobs in order of submission, passing over those that fit nowhere, each by NodePacker; never preempts.
/// The tasks of a gang go one after another to the best node not yet used, as many to each as it takes, but one where
/// the rule chose its card; a gang that runs out of nodes so goes by the run's placement rule.
/// A choice of NodePacker for each demand that does not fit and asks for less than those tried before it (DemandTree)
/// at an event at which capacity is freed, else one for a new job.
class Packing {
 public:
  Packing(PackingRule rule, std::uint64_t seed, std::vector<TypicalPod> pods,
          std::optional<NodePacker::Power> power = {})
      : rule_(rule), packer_(rule, seed, std::move(pods), std::move(power)) {}

  [[nodiscard]] std::string_view name() const;
  void decide(const View& view, Decision& decision);

 private:
  bool try_start(const View& view, Decision& decision, JobId job);
  bool is_started(Verdict verdict);
  bool start_gang(const View& view, Decision& decision, JobId job);
  void start_waiting(const View& view, Decision& decision);

  PackingRule rule_;
  NodePacker packer_;
  std::vector<std::vector<NodeTasks>> nodes_of_;  // by running job
  bool was_cut_short_ = false;                    // the last decision, by a limit
  JobHeaps<std::uint32_t> waiting_{true};         // ids follow submission
};

}  // namespace gpusched
