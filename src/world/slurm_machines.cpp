// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_machines.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/name_text.hpp"
#include "src/world/cluster_builder.hpp"
#include "src/world/mig_layout.hpp"
#include "traces/core/cluster_units.hpp"
#include "traces/core/slurm_gpus.hpp"

namespace gpusched {

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t stop = std::min(text.find(separator), text.size());
    parts.push_back(trim(text.substr(0, stop)));
    if (stop == text.size()) return parts;
    text.remove_prefix(stop + 1);
  }
}

namespace {

// GPUs of one model on a machine: whole ones, and MIG instances by profile.
struct CardsOfModel {
  std::int64_t whole = 0;
  std::map<std::string, std::int64_t> instances;
  MilliGpu milli = 0;  // of all instances
};
using GpusByModel = std::map<std::string, CardsOfModel>;

// "gpu:a100:8(S:0-1,3),shard:80" without what stands in brackets, which may hold commas.
std::string without_brackets(std::string_view text) {
  std::string kept;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (depth == 0) kept += c;
    if (c == ')') --depth;
  }
  return kept;
}

// "gpu:8", "gpu:a100:8", "gpu:a100:no_consume:8"; nothing when a count is not one.
std::optional<GpusByModel> parse_gres(std::string_view text) {
  GpusByModel gpus;
  const std::string plain = without_brackets(text);
  for (const std::string_view entry : split_at(plain, ',')) {
    const auto parts = split_at(entry, ':');
    if (lower_case(parts.front()) != "gpu") continue;
    const auto count = parts.size() < 2 ? std::optional<std::int64_t>(1) : parse_integer(parts.back());
    if (!count || *count < 0 || *count > most_gpus_of_a_node) return std::nullopt;
    const SlurmGpu gpu = slurm_gpu(parts.size() < 3 ? std::string_view() : parts[1]);
    if (*count == 0) continue;
    CardsOfModel& cards = gpus[name_text(gpu.model)];
    if (gpu.profile.empty()) {
      cards.whole += *count;
    } else {
      cards.instances[gpu.profile] += *count;
      cards.milli += *count * gpu.milli;
    }
  }
  return gpus;
}

// Whether a node of this state takes no job now: DOWN*, IDLE+DRAIN, MAINT, FUTURE and the like, and who does not answer
// (*). A cloud node that is powered down is started when a job comes. (slurm.schedmd.com/sinfo.html, NODE STATE CODES)
bool is_out_of_service(std::string_view state) {
  const std::string words = lower_case(state);
  for (std::string_view word : split_at(words, '+')) {
    const std::size_t letters = std::min(word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), word.size());
    if (word.substr(letters).find_first_of("*$") != std::string_view::npos) return true;
    word = word.substr(0, letters);
    constexpr std::string_view out[] = {"down",  "drain",       "drained",        "draining", "drng",
                                        "fail",  "failing",     "error",          "maint",    "future",
                                        "inval", "maintenance", "not_responding", "unknown",  "blocked",
                                        "unk",   "no_respond",  "futr",           "invalid",  "invalid_reg"};
    if (std::find(std::begin(out), std::end(out), word) != std::end(out)) return true;
  }
  return false;
}

}  // namespace

// Collects machines into a cluster: numbers partitions and GPU types by first appearance.
class SlurmClusterBuilder::Parts {
 public:
  explicit Parts(bool with_down) : with_down_(with_down) {}

  // Error: what is wrong with the machine, and in which field.
  std::optional<Error> add(const SlurmMachine& machine) {
    if (machine.partitions.empty()) {
      ++without_partition_;
      return std::nullopt;
    }
    const auto gpus = parse_gres(machine.gres);
    if (!gpus) {
      return Error{.message = "expected generic resources like gpu:a100:8, found '" + machine.gres + "'",
                   .field = "Gres"};
    }
    if (is_out_of_service(machine.state)) {
      ++out_;
      if (!with_down_) return std::nullopt;
    }
    std::vector<std::uint32_t> owners;
    for (const std::string& partition : machine.partitions) owners.push_back(builder_.vc(partition));
    std::sort(owners.begin(), owners.end());
    owners.erase(std::unique(owners.begin(), owners.end()), owners.end());
    return add_nodes(machine, *gpus, owners);
  }

  SlurmCluster finish() {
    note(without_partition_, "in no partition: left out");
    note(out_, with_down_ ? "down, drained or failing now: counted as if in service"
                          : "down, drained or failing now: left out (cluster import --with-down counts them)");
    note(uncut_, "with MIG instances of unknown cards: counted as whole cards");
    note(split_, "with GPUs of several types: a node for each type, with its part of the cores and memory");
    Cluster& cluster = builder_.cluster();
    // Where every node serves every partition there is one cluster-wide pool of nodes, with queues that share it.
    for (Node& node : cluster.nodes) {
      if (node.vc_group != no_index && cluster.vc_groups[node.vc_group].size() == cluster.vcs.size()) {
        node.vc_group = no_index;
      }
    }
    if (cluster.gpu_types.empty()) cluster.gpu_types.emplace_back(any_gpu_type);
    return {.cluster = std::move(cluster), .notes = std::move(notes_)};
  }

 private:
  void note(std::uint64_t nodes, const char* what) {
    if (nodes > 0) notes_.push_back(std::to_string(nodes) + (nodes == 1 ? " node " : " nodes ") + what);
  }

  // A model's cards on a machine: whole ones first, then those that are cut, as GPUs of one node.
  struct Cards {
    std::int64_t count = 0;
    std::optional<CutCards> cut;
  };
  Cards cards_of(const std::string& model, const CardsOfModel& gpus) {
    if (gpus.instances.empty()) return {.count = gpus.whole, .cut = std::nullopt};
    auto cut = cut_cards(model, gpus.instances);
    const std::int64_t cards = gpus.whole + (cut ? static_cast<std::int64_t>(cut->cards.size()) : 0);
    constexpr std::int64_t most_told_apart = 64;  // devices of a node
    if (!cut || cards > most_told_apart) {
      ++uncut_;
      return {.count = gpus.whole + (gpus.milli + whole_gpu - 1) / whole_gpu, .cut = std::nullopt};
    }
    cut->cards.insert(cut->cards.begin(), static_cast<std::size_t>(gpus.whole), {});
    return {.count = cards, .cut = std::move(cut)};
  }

  std::optional<Error> add_nodes(const SlurmMachine& machine, const GpusByModel& gpus,
                                 const std::vector<std::uint32_t>& owners) {
    if (machine.name.empty()) return Error{.message = "expected the name of a node", .field = "NodeName"};
    std::map<std::string, Cards> by_model;
    std::int64_t all = 0;
    for (const auto& [model, cards] : gpus) all += (by_model[model] = cards_of(model, cards)).count;
    if (gpus.size() > 1) ++split_;
    const auto part = [&](std::int64_t of, std::int64_t cards, std::int64_t scale) {
      if (of < 0) return unlimited;
      return all == 0 ? of * scale : of * scale / all * cards + of * scale % all * cards / all;
    };
    bool is_new = !machine.name.empty() || nameless_++ == 0;  // no name is one, too
    const auto add_one = [&](const std::string& model, const Cards& cards, const std::string& name) {
      Node node{.gpus = static_cast<std::uint32_t>(cards.count), .name = name};
      const std::string type = model.empty() && cards.cut ? std::string(mig_models[cards.cut->model].name) : model;
      node.cpu_milli = part(machine.cores, cards.count, milli_per_core);
      node.memory_mib = part(machine.memory_mib, cards.count, 1);
      if (owners.size() == 1) node.vc = owners.front();
      if (owners.size() > 1) node.vc_group = builder_.vc_group(owners);
      if (cards.cut) node.mig = builder_.mig({.model = cards.cut->model, .cards = cards.cut->cards});
      is_new = builder_.add(std::move(node), cards.count == 0 ? std::string() : type) && is_new;
    };
    if (gpus.empty()) add_one({}, {}, machine.name);
    for (const auto& [model, cards] : by_model) {
      add_one(model, cards, gpus.size() == 1 ? machine.name : machine.name + "/" + model);
    }
    if (is_new) return std::nullopt;
    return Error{.message = "expected a name that no other node has, found '" + machine.name + "'",
                 .field = "NodeName"};
  }

  ClusterBuilder builder_;
  std::vector<std::string> notes_;
  std::uint64_t nameless_ = 0, without_partition_ = 0, out_ = 0, split_ = 0, uncut_ = 0;
  bool with_down_;
};

SlurmClusterBuilder::SlurmClusterBuilder(bool with_down) : parts_(std::make_unique<Parts>(with_down)) {}
SlurmClusterBuilder::~SlurmClusterBuilder() = default;
std::optional<Error> SlurmClusterBuilder::add(const SlurmMachine& machine) { return parts_->add(machine); }
SlurmCluster SlurmClusterBuilder::finish() { return parts_->finish(); }

}  // namespace gpusched
