// SPDX-License-Identifier: Apache-2.0
#include "src/policies/packing/packing.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "src/policies/seam/seed_parameter.hpp"

namespace gpusched {
namespace {

// The simulator scales by one size for every node: 128 cores and eight GPUs.
constexpr double scale_cpu_milli = 128'000;
constexpr double scale_gpu_milli = 8'000;

constexpr std::int32_t fits_not = std::numeric_limits<std::int32_t>::min();

// Nodes that do not bound their CPU count as nodes of the scale.
double free_cpu(const ClusterState& cluster, NodeId node) {
  return std::min(static_cast<double>(cluster.node_free_cpu_milli(node)), scale_cpu_milli);
}

bool is_taken(const std::vector<NodeTasks>& taken, NodeId node) {
  return std::any_of(taken.begin(), taken.end(), [&](const NodeTasks& part) { return part.node == node; });
}

std::int32_t best_fit(const ClusterState& cluster, const Shape& shape, NodeId node) {
  const double cpu = free_cpu(cluster, node) - static_cast<double>(shape.cpu_milli_per_task);
  const auto gpu = static_cast<double>(cluster.node_free_gpu_milli(node) - shape.gpu_milli_per_task);
  return static_cast<std::int32_t>(100 * (1 - (0.5 * cpu / scale_cpu_milli + 0.5 * gpu / scale_gpu_milli)));
}

std::int32_t dot_prod(const ClusterState& cluster, const Shape& shape, NodeId node) {
  const double cpu =
      free_cpu(cluster, node) / scale_cpu_milli * static_cast<double>(shape.cpu_milli_per_task) / scale_cpu_milli;
  const double gpu = static_cast<double>(cluster.node_free_gpu_milli(node)) / scale_gpu_milli *
                     static_cast<double>(shape.gpu_milli_per_task) / scale_gpu_milli;
  return static_cast<std::int32_t>(100 * (1 - (cpu + gpu) / 2));
}

// 0 = shared, k = k whole cards. Precondition: the pod asks for a GPU.
std::uint32_t class_of(const Shape& shape) { return shape.is_share() ? 0 : cards_of(shape); }

}  // namespace

void NodePacker::prepare(const View& view) {
  if (!order_.empty()) return;
  const ClusterState& cluster = view.cluster();
  const std::uint32_t nodes = cluster.node_count();
  std::uint32_t most_gpus = 0;
  using Model = std::tuple<std::uint32_t, std::int64_t, std::int64_t, bool, std::uint32_t>;
  std::map<Model, std::uint32_t> models;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    order_.push_back(NodeId{i});
    const detail::NodeState& node = cluster.node(NodeId{i});
    most_gpus = std::max(most_gpus, node.gpus);
    const std::uint32_t power_kind = power_ ? power_->rises.kind_of(NodeId{i}) : 0;
    const Model model(node.node_class, node.cpu_capacity, node.memory_capacity, node.has_devices, power_kind);
    model_.push_back(models.try_emplace(model, static_cast<std::uint32_t>(models.size())).first->second);
  }
  models_ = static_cast<std::uint32_t>(models.size());
  rng_.split("order").shuffle(order_.data(), order_.size());
  place_.resize(nodes);
  for (std::uint32_t place = 0; place < nodes; ++place) place_[index(order_[place])] = place;
  capacity_ = std::bit_ceil(nodes);
  caught_.assign(nodes, 0);
  fragmentation_.assign(nodes, -1);
  class_counts_.assign(nodes, std::vector<std::uint32_t>(most_gpus + 1, 0));
}

NodePacker::Choice NodePacker::choose(const View& view, JobId job, const std::vector<NodeTasks>& taken) {
  prepare(view);
  const Shape& shape = view.shape(job);
  if (rule_ == PackingRule::random) return choose_random(view, shape, view.queue_of(job), taken);
  Ranking& ranking = ranking_of(view, job);
  ranking.job = job;
  hide(view, ranking, taken);
  if (ranking.best[1] == fits_not) return {};
  const bool mixes = rule_ == PackingRule::pwr_fgd;
  const NodeId node = order_[mixes ? place_of_best_mix(ranking) : place_of_best(ranking)];
  ++scored_;
  return {node, compute(view, ranking, node).device};
}

std::uint32_t NodePacker::place_of_best(const Ranking& ranking) const {
  std::uint32_t at = 1;
  while (at < capacity_) at = 2 * at + (ranking.best[2 * at] == ranking.best[at] ? 0 : 1);
  return at - capacity_;
}

// As the plugin does it: PWR's scores, rises in whole watts with the other sign, are stretched to 0..100 over the nodes
// that pass, in whole numbers rounded down, or are all 100 if they are equal.
std::uint32_t NodePacker::place_of_best_mix(const Ranking& ranking) const {
  const auto nodes = static_cast<std::uint32_t>(order_.size());
  std::int64_t least = std::numeric_limits<std::int64_t>::max(), most = std::numeric_limits<std::int64_t>::min();
  for (std::uint32_t place = 0; place < nodes; ++place) {
    if (ranking.best[capacity_ + place] == fits_not) continue;
    least = std::min<std::int64_t>(least, ranking.watts[place]);
    most = std::max<std::int64_t>(most, ranking.watts[place]);
  }
  std::uint32_t best = no_index;
  double best_sum = 0;
  for (std::uint32_t place = 0; place < nodes; ++place) {
    const std::int32_t fgd = ranking.best[capacity_ + place];
    if (fgd == fits_not) continue;
    const std::int64_t pwr = most == least ? 100 : (most - ranking.watts[place]) * 100 / (most - least);
    const double sum = power_->alpha * static_cast<double>(pwr) + (1 - power_->alpha) * fgd;
    if (best != no_index && sum <= best_sum) continue;
    best = place;
    best_sum = sum;
  }
  return best;
}

// Where no node bounds memory, and so for every rule's score, it does not tell kinds apart.
NodePacker::Ranking& NodePacker::ranking_of(const View& view, JobId job) {
  Shape task = view.shape(job);
  task.tasks = 1;
  task.memory_mib_per_task = view.shape_of_demand(view.demand(job)).memory_mib_per_task;
  const std::uint32_t queue = view.queue_of(job), family = power_ ? view.family(job) : 0;
  if (const auto known = numbers_.find({queue, task, family}); known != numbers_.end()) return rankings_[known->second];
  constexpr std::size_t most_kept = std::size_t{1} << 26;  // scores, 256 MiB
  if (rankings_.size() * 2 * capacity_ > most_kept) {
    rankings_.clear();
    numbers_.clear();
    alike_.clear();
    hidden_.clear();
  }
  const auto [alike, is_new] = alike_.try_emplace({view.cluster().allowed_classes(task, queue), task, family},
                                                  static_cast<std::uint32_t>(rankings_.size()));
  numbers_.emplace(Kind{queue, task, family}, alike->second);
  if (is_new) rankings_.push_back({.queue = queue, .task = task, .best = {}, .watts = {}});
  return rankings_[alike->second];
}

// The score of the node as it is, or fits_not.
NodePacker::Score NodePacker::score(const View& view, const Ranking& ranking, NodeId node) {
  const ClusterState& cluster = view.cluster();
  if (cluster.tasks_that_fit(node, ranking.task) == 0 || !cluster.node_allowed(node, ranking.task, ranking.queue)) {
    return {.value = fits_not};
  }
  ++scored_;
  return compute(view, ranking, node);
}

void NodePacker::fill(const View& view, Ranking& ranking) {
  std::vector<std::optional<Score>> of_model(models_);  // while a node is idle
  ranking.best.assign(2 * std::size_t{capacity_}, fits_not);
  if (rule_ == PackingRule::pwr_fgd) ranking.watts.assign(order_.size(), 0);
  for (std::uint32_t place = 0; place < order_.size(); ++place) {
    const detail::NodeState& node = view.cluster().node(order_[place]);
    const bool unused =
        node.idle == node.gpus && node.cpu_milli == node.cpu_capacity && node.memory_mib == node.memory_capacity;
    std::optional<Score>& known = of_model[model_[index(order_[place])]];
    const Score here = unused && known ? *known : score(view, ranking, order_[place]);
    if (unused) known = here;
    ranking.best[capacity_ + place] = here.value;
    if (!ranking.watts.empty()) ranking.watts[place] = here.watts;
  }
  for (std::size_t at = capacity_; at-- > 1;) {
    ranking.best[at] = std::max(ranking.best[2 * at], ranking.best[2 * at + 1]);
  }
}

void NodePacker::set(Ranking& ranking, std::uint32_t place, const Score& score) const {
  std::size_t at = capacity_ + place;
  ranking.best[at] = score.value;
  if (!ranking.watts.empty()) ranking.watts[place] = score.watts;
  for (at /= 2; at > 0; at /= 2) {
    const std::int32_t best = std::max(ranking.best[2 * at], ranking.best[2 * at + 1]);
    if (best == ranking.best[at]) return;
    ranking.best[at] = best;
  }
}

// Scores the nodes that changed since this ranking was asked last.
void NodePacker::catch_up(const View& view, Ranking& ranking) {
  const std::uint64_t now = forgotten_ + changes_.size();
  if (ranking.best.empty() || ranking.seen < forgotten_) {
    fill(view, ranking);
  } else {
    ++catches_;
    for (std::size_t i = ranking.seen - forgotten_; i < changes_.size(); ++i) {
      const std::uint32_t node = index(changes_[i]);
      if (std::exchange(caught_[node], catches_) == catches_) continue;
      set(ranking, place_[node], score(view, ranking, changes_[i]));
    }
  }
  ranking.seen = now;
}

// Brings the ranking up to now and leaves the nodes of the present gang out of it.
void NodePacker::hide(const View& view, Ranking& ranking, const std::vector<NodeTasks>& taken) {
  if (taken.empty()) {
    for (const NodeId node : hidden_)
      set(rankings_[hidden_in_], place_[index(node)], score(view, rankings_[hidden_in_], node));
    hidden_.clear();
    hidden_in_ = static_cast<std::size_t>(&ranking - rankings_.data());
    catch_up(view, ranking);
  }
  for (std::size_t i = hidden_.size(); i < taken.size(); ++i) {
    set(ranking, place_[index(taken[i].node)], {.value = fits_not});
    hidden_.push_back(taken[i].node);
  }
}

NodePacker::Choice NodePacker::choose_random(const View& view, const Shape& shape, std::uint32_t queue,
                                             const std::vector<NodeTasks>& taken) {
  const ClusterState& cluster = view.cluster();
  Choice chosen;
  std::uint64_t seen = 0;
  for (const NodeId node : order_) {
    if (cluster.tasks_that_fit(node, shape) == 0 || is_taken(taken, node)) continue;
    if (!cluster.node_allowed(node, shape, queue)) continue;
    if (rng_.below(++seen) == 0) chosen.node = node;  // a reservoir of one is a uniform draw
  }
  if (chosen.node == no_node || !shape.is_share() || !cluster.node_has_devices(chosen.node)) return chosen;
  seen = 0;
  for (std::uint32_t device = 0; device < cluster.node_gpus(chosen.node); ++device) {
    if (!cluster.device_takes(chosen.node, device, shape)) continue;
    if (rng_.below(++seen) == 0) chosen.device = device;
  }
  return chosen;
}

NodePacker::Score NodePacker::compute(const View& view, const Ranking& ranking, NodeId node) {
  const ClusterState& cluster = view.cluster();
  const Shape& shape = ranking.task;
  switch (rule_) {
    case PackingRule::fgd: return compute_fgd(cluster, shape, node);
    case PackingRule::best_fit: return {.value = best_fit(cluster, shape, node)};
    case PackingRule::dot_prod: return {.value = dot_prod(cluster, shape, node)};
    case PackingRule::gpu_packing: return {.value = gpu_packing(cluster, shape, node)};
    case PackingRule::gpu_clustering: return {.value = gpu_clustering(cluster, shape, node)};
    case PackingRule::pwr: return compute_pwr(view, ranking, node);
    case PackingRule::pwr_fgd: {
      Score score = compute_fgd(cluster, shape, node);  // tells the card
      score.watts = -compute_pwr(view, ranking, node).value;
      return score;
    }
    case PackingRule::random: break;
  }
  return {};
}

// Of the cards that take a share, the first of the least rise.
NodePacker::Score NodePacker::compute_pwr(const View& view, const Ranking& ranking, NodeId node) {
  const ClusterState& cluster = view.cluster();
  const auto rise = [&](std::uint32_t device) { return power_->rises.watts(view, ranking.job, node, device); };
  if (!ranking.task.is_share() || !cluster.node_has_devices(node)) return {.value = -rise(no_index)};
  Score best;
  for (std::uint32_t device = 0; device < cluster.node_gpus(node); ++device) {
    if (!cluster.device_takes(node, device, ranking.task)) continue;
    const std::int32_t value = -rise(device);
    if (best.device == no_index || value > best.value) best = {.value = value, .device = device};
  }
  return best;
}

NodePacker::Score NodePacker::compute_fgd(const ClusterState& cluster, const Shape& shape, NodeId node) {
  cards_.clear();
  for (std::uint32_t device = 0; cluster.node_has_devices(node) && device < cluster.node_gpus(node); ++device) {
    cards_.push_back(cluster.node_device_left(node, device));
  }
  NodeCapacity capacity{cluster.node_free_cpu_milli(node), cards_, node};
  double& before = fragmentation_[index(node)];
  if (before < 0) before = fragmentation(pods_, capacity, cluster);
  capacity.cpu_milli -= shape.cpu_milli_per_task;
  const auto value_now = [&] {
    return static_cast<std::int32_t>(
        100 / (1 + std::exp(-(before - fragmentation(pods_, capacity, cluster)) / static_cast<double>(whole_gpu))));
  };
  if (!shape.is_share()) {
    std::uint32_t needed = cards_of(shape);
    for (MilliGpu& left : cards_) {
      if (needed == 0) break;
      if (left < whole_gpu) continue;
      left = 0;
      --needed;
    }
    return {.value = value_now()};
  }
  Score best;
  for (std::uint32_t device = 0; device < cards_.size(); ++device) {
    if (!cluster.device_takes(node, device, shape)) continue;
    // A card with as much left as an earlier one scores the same, and the first wins.
    bool is_scored = false;
    for (std::uint32_t earlier = 0; earlier < device && !is_scored; ++earlier) {
      is_scored = cards_[earlier] == cards_[device] && cluster.device_takes(node, earlier, shape);
    }
    if (is_scored) continue;
    cards_[device] -= shape.gpu_milli_per_task;
    const std::int32_t value = value_now();
    cards_[device] += shape.gpu_milli_per_task;
    if (best.device == no_index || value > best.value) best = {.value = value, .device = device};
  }
  return best;
}

// Precondition of both: the node passed the filter.
std::int32_t NodePacker::gpu_packing(const ClusterState& cluster, const Shape& shape, NodeId node) const {
  if (shape.gpu_milli_per_task == 0) return 0;
  const std::uint32_t cards = cluster.node_gpus(node);
  const std::uint32_t idle = cluster.node_idle_gpus(node);
  if (idle == cards) return 33 - static_cast<std::int32_t>(cards);
  // By least left that fits, a share goes to the fullest card it fits and whole GPUs to idle ones.
  if (!shape.is_share()) return std::max(50 - static_cast<std::int32_t>(cards_of(shape)), 33);
  MilliGpu least = whole_gpu;
  for (std::uint32_t device = 0; cluster.node_has_devices(node) && device < cards; ++device) {
    const MilliGpu left = cluster.node_device_left(node, device);
    if (cluster.device_takes(node, device, shape)) least = std::min(least, left);
  }
  if (least == whole_gpu) return 49;  // max(50 - 1, 33): one idle card
  const MilliGpu percent = least * 100 / whole_gpu;
  return static_cast<std::int32_t>(std::max<MilliGpu>(100 - percent / 10, 50));
}

std::int32_t NodePacker::gpu_clustering(const ClusterState& cluster, const Shape& shape, NodeId node) const {
  if (shape.gpu_milli_per_task == 0) return 0;
  const double used = scale_gpu_milli - static_cast<double>(cluster.node_free_gpu_milli(node));
  const auto base = static_cast<std::int32_t>(std::floor(25 * used / scale_gpu_milli));
  const std::vector<std::uint32_t>& counts = class_counts_[index(node)];
  const bool same = counts[class_of(shape)] > 0;
  const auto classes = std::count_if(counts.begin(), counts.end(), [](std::uint32_t count) { return count > 0; });
  if (classes == 0) return base + 25;
  if (!same) return base;
  return base + (classes == 1 ? 75 : 50);
}

void NodePacker::changed(NodeId node) {
  if (fragmentation_.empty()) return;                                   // nothing was looked at yet
  if (changes_.size() >= std::max<std::size_t>(order_.size(), 1024)) {  // a ranking that knows none is filled as fast
    forgotten_ += changes_.size();
    changes_.clear();
  }
  changes_.push_back(node);
  fragmentation_[index(node)] = -1;
}

void NodePacker::changed(NodeId node, const Shape& shape, int tasks) {
  changed(node);
  if (shape.gpu_milli_per_task == 0) return;
  std::uint32_t& count = class_counts_[index(node)][class_of(shape)];
  count = static_cast<std::uint32_t>(static_cast<int>(count) + tasks);
}

std::string_view Packing::name() const {
  static constexpr std::array<std::string_view, 8> names = {
      "fgd", "bestfit", "dotprod", "gpu-packing", "gpu-clustering", "random-node", "pwr", "pwr+fgd"};
  return names[static_cast<std::size_t>(rule_)];
}

void Packing::decide(const View& view, Decision& decision) {
  decision.keep_order();
  if (nodes_of_.empty()) nodes_of_.resize(view.job_count());
  bool freed = std::exchange(was_cut_short_, false);
  std::vector<JobId> came;
  for (const Event& event : view.events()) {
    freed = freed || brings_room(event.kind);
    if (event.job == no_job && event.node != no_node) packer_.changed(event.node);
    const View then = view.at(event);
    if (event.kind == EventKind::submit) came.push_back(event.job);
    if (event.kind == EventKind::withdraw && std::erase(came, event.job) == 0) waiting_.erase(then, event.job);
    if (!leaves_cluster(event.kind)) continue;
    for (const NodeTasks& part : nodes_of_[index(event.job)]) {
      packer_.left(part.node, event.job);
      packer_.changed(part.node, then.shape(event.job), -static_cast<int>(part.tasks));
    }
    nodes_of_[index(event.job)].clear();
    freed = true;
    if (event.kind != EventKind::finish) waiting_.push(then, event.job, then.queue_place(event.job).number);
  }
  if (freed) start_waiting(view, decision);
  for (const JobId job : came) {
    // One that waits for the same thing has the right of way.
    if (waiting_.waits_like(view, job) || !try_start(view, decision, job)) {
      waiting_.push(view, job, view.queue_place(job).number);
    }
  }
}

// A gang that finds no room so is tried by the run's placement rule, which looks everywhere or not.
void Packing::start_waiting(const View& view, Decision& decision) {
  const bool settles = rule_ != PackingRule::random && settles_larger(view.options().placement, view);
  waiting_.start_in_order(true, settles, [&](JobId job) { return try_start(view, decision, job); });
}

// The scores are of single pods and see no earlier pod of the same gang: tasks that must meet on a node go by the run's
// placement rule.
bool Packing::start_gang(const View& view, Decision& decision, JobId job) {
  if (!is_started(decision.start(job))) return false;
  packer_.began(view, job);
  view.for_each_grant(job, [&](const Grant& grant) {
    packer_.changed(grant.node, view.shape(job), static_cast<int>(grant.tasks));
    nodes_of_[index(job)].push_back({.node = grant.node, .tasks = grant.tasks});
  });
  return true;
}

// A limit cuts the decision short (Decision::keep_order()): the next one tries all that wait.
bool Packing::is_started(Verdict verdict) {
  was_cut_short_ = was_cut_short_ || verdict == Verdict::over_limit;
  return verdict == Verdict::ok;
}

bool Packing::try_start(const View& view, Decision& decision, JobId job) {
  const Shape& shape = view.shape(job);
  if (!view.cluster().may_fit(shape, view.queue_of(job))) return false;
  std::vector<NodeTasks> nodes;
  for (std::uint32_t left = shape.tasks; left > 0;) {
    const NodePacker::Choice choice = packer_.choose(view, job, nodes);
    if (choice.node == no_node) return shape.tasks > 1 && start_gang(view, decision, job);
    const bool one_card = choice.device != no_index;
    const std::uint32_t fit = one_card ? 1 : std::min(left, view.cluster().tasks_that_fit(choice.node, shape));
    nodes.push_back({choice.node, fit, choice.device});
    left -= fit;
  }
  if (!is_started(decision.start_on(job, nodes))) return false;
  packer_.began(view, job);
  for (const NodeTasks& part : nodes) packer_.changed(part.node, shape, static_cast<int>(part.tasks));
  nodes_of_[index(job)] = std::move(nodes);
  return true;
}

namespace {

bool looks_at_power(PackingRule rule) { return rule == PackingRule::pwr || rule == PackingRule::pwr_fgd; }

std::vector<ParameterInfo> packing_parameters(PackingRule rule) {
  if (rule == PackingRule::random) return {seed_parameter("of the nodes drawn")};
  if (rule == PackingRule::pwr_fgd) return {{"alpha", 0.1, "part of PWR's score, beside fgd's", 0, 1}};
  return {};
}

Result<AnyPolicy> make_packing(PackingRule rule, const PolicyParameters& parameters, const PolicyContext& context) {
  std::vector<TypicalPod> pods;
  if (rule == PackingRule::fgd || rule == PackingRule::pwr_fgd) pods = typical_pods(*context.jobs);
  const double seed = rule == PackingRule::random ? parameters.number("seed") : 0;
  std::optional<NodePacker::Power> power;
  if (looks_at_power(rule)) {
    if (context.power == nullptr || context.power->is_empty()) {
      return unexpected("policy " + std::string(Packing(rule, 0, {}).name()) +
                        " looks at what nodes draw; expected --power FILE");
    }
    const auto families = static_cast<std::uint32_t>(context.jobs->families().size());
    power = NodePacker::Power{.rises = PowerRises(*context.power, *context.cluster, families),
                              .alpha = rule == PackingRule::pwr ? 1 : parameters.number("alpha")};
  }
  return AnyPolicy(Packing(rule, drawing_seed(seed, context), std::move(pods), std::move(power)));
}

PolicyInfo packing_info(PackingRule rule, std::string summary, std::string source) {
  const bool sees_all = rule == PackingRule::random || rule == PackingRule::pwr_fgd;
  return {.name = std::string(Packing(rule, 0, {}).name()),
          .summary = std::move(summary),
          .source = std::move(source),
          .complexity = sees_all ? "O(nodes) a job" : "O(log nodes) a job and kind of pod",
          .parameters = packing_parameters(rule),
          .make = [rule](const PolicyParameters& parameters,
                         const PolicyContext& context) { return make_packing(rule, parameters, context); },
          .work_conserving = true,
          .chooses_nodes = true,
          .asymmetries = {{Symmetry::node_order, "of equal nodes the seed draws one, or an order for all of the run"}}};
}

}  // namespace

PolicyInfo fgd_info() {
  return packing_info(PackingRule::fgd, "places each pod where fragmentation of GPUs grows least",
                      "FGD (ATC'23); typical pods are counted over the whole trace, as in the authors' simulator");
}
PolicyInfo best_fit_info() {
  return packing_info(PackingRule::best_fit, "places each pod on the node with the least left of CPU and GPU",
                      "BestFit baseline of FGD (ATC'23)");
}
PolicyInfo dot_prod_info() {
  return packing_info(PackingRule::dot_prod, "places each pod by the dot product of its demand and what is free",
                      "DotProd baseline of FGD (ATC'23), after Tetris (SIGCOMM'14)");
}
PolicyInfo gpu_packing_info() {
  return packing_info(PackingRule::gpu_packing, "places each pod on GPUs in use first, then on nodes in use",
                      "GpuPacking baseline of FGD (ATC'23), after MLaaS (NSDI'22)");
}
PolicyInfo gpu_clustering_info() {
  return packing_info(PackingRule::gpu_clustering, "places each pod beside pods of the same GPU demand",
                      "GpuClustering baseline of FGD (ATC'23), after Gandiva (OSDI'18)");
}
PolicyInfo random_node_info() {
  return packing_info(PackingRule::random, "places each pod on a random node that fits",
                      "Random baseline of FGD (ATC'23)");
}

PolicyInfo pwr_info() {
  return packing_info(PackingRule::pwr, "places each pod where the draw of a node rises least",
                      "PWR (CCGrid'25) and its plugin PWRScore: whole watts by --power; nodes count as awake");
}
PolicyInfo pwr_fgd_info() {
  return packing_info(PackingRule::pwr_fgd,
                      "alpha x pwr's score over the nodes that fit, from 0 to 100, + (1 - alpha) x fgd's",
                      "PWR + FGD (CCGrid'25); the card by fgd");
}

}  // namespace gpusched
