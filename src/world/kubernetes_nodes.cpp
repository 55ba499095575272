// SPDX-License-Identifier: Apache-2.0
#include "src/world/kubernetes_nodes.hpp"

#include <algorithm>

#include "src/base/field_parser.hpp"
#include "src/base/name_text.hpp"
#include "src/base/number_text.hpp"
#include "src/world/cluster_builder.hpp"
#include "src/world/mig_layout.hpp"
#include "traces/core/cluster_units.hpp"
#include "traces/core/json_records.hpp"
#include "traces/core/kubernetes_json.hpp"

namespace gpusched {
namespace {

// A label's name holds slashes, so that it is no path.
std::string label_of(const JsonRecord& node, const char* name) {
  const JsonRecord* const labels = find_json(node, "metadata/labels");
  if (labels == nullptr || !labels->is_object()) return {};
  const auto place = labels->find(name);
  return place != labels->end() && place->is_string() ? place->get<std::string>() : std::string();
}

bool is_ready(const JsonRecord& node) {
  const JsonRecord* const unschedulable = find_json(node, "spec/unschedulable");
  if (unschedulable != nullptr && unschedulable->is_boolean() && unschedulable->get<bool>()) return false;
  const JsonRecord* const conditions = find_json(node, "status/conditions");
  if (conditions == nullptr || !conditions->is_array()) return true;
  return std::none_of(conditions->begin(), conditions->end(), [](const JsonRecord& condition) {
    return json_word(condition, "type") == "Ready" && json_word(condition, "status") != "True";
  });
}

bool takes_no_pods(const JsonRecord& node) {
  const JsonRecord* const taints = find_json(node, "spec/taints");
  if (taints == nullptr || !taints->is_array()) return false;
  return std::any_of(taints->begin(), taints->end(), [](const JsonRecord& taint) {
    const std::string key = json_word(taint, "key"), effect = json_word(taint, "effect");
    const bool of_control = key == "node-role.kubernetes.io/control-plane" || key == "node-role.kubernetes.io/master";
    return of_control && effect.starts_with("No");
  });
}

class NodesReader {
 public:
  NodesReader(std::string file, bool with_down) : file_(std::move(file)), with_down_(with_down) {}

  void take(const JsonRecord& node, std::uint64_t line) {
    const std::string kind = json_word(node, "kind");
    if (error_ || (!kind.empty() && kind != "Node")) return;
    line_ = line;
    if (takes_no_pods(node)) {
      ++of_control_;
      return;
    }
    if (!is_ready(node)) {
      ++out_;
      if (!with_down_) return;
    }
    const std::string name = name_text(json_word(node, "metadata/name"));
    if (name.empty()) return fail("metadata/name", "missing");
    const JsonRecord* const allocatable = find_json(node, "status/allocatable");
    std::string wrong;
    auto has = kubernetes_resources(allocatable != nullptr ? allocatable : find_json(node, "status/capacity"), wrong);
    if (!has) return fail(wrong, "expected a quantity like 8, 500m or 64Gi");
    add(node, name, *has);
  }

  Result<SlurmCluster> finish() {
    if (error_) return Unexpected{*error_};
    if (builder_.cluster().nodes.empty()) {
      return Unexpected{Error{
          .message = out_ > 0 ? "lists no node in service; cluster import --with-down counts others" : "lists no node",
          .file = file_}};
    }
    SlurmCluster result{.cluster = std::move(builder_.cluster()), .notes = {}};
    const auto note = [&](std::uint64_t nodes, const std::string& what) {
      if (nodes > 0) result.notes.push_back(counted(nodes, "node") + " " + what);
    };
    note(of_control_, "of the control plane: left out");
    note(out_, with_down_ ? "cordoned or not ready now: counted as if in service"
                          : "cordoned or not ready now: left out (cluster import --with-down counts them)");
    note(uncut_, "with MIG instances of unknown cards: counted as GPUs");
    return result;
  }

 private:
  void fail(std::string field, std::string message) {
    error_ = Error{.message = std::move(message), .file = file_, .line = line_, .field = std::move(field)};
  }

  void add(const JsonRecord& record, const std::string& name, KubernetesResources has) {
    std::string type;
    for (const char* label : kubernetes_products) {
      if (type.empty()) type = name_text(label_of(record, label));
    }
    // One profile for all: the product's name ends in it, and GPUs are instances.
    if (const std::size_t mig = type.find("-MIG-"); mig != std::string::npos) {
      if (has.gpus > 0) has.slices[type.substr(mig + 5)] += has.gpus;
      has.gpus = 0;
    }
    type = kubernetes_product(std::move(type));
    Node node{.name = name};
    const std::int64_t replicas = parse_integer(label_of(record, "nvidia.com/gpu.replicas")).value_or(1);
    const std::int64_t shared = std::max(has.gpus, has.shares);
    if (replicas > 1 && shared > 0) {
      has.gpus = std::max<std::int64_t>(shared / replicas, 1);
      node.sharing = SharingMode::time_slicing;
    }
    std::optional<CutCards> cut;
    if (!has.slices.empty()) cut = cut_cards(type, has.slices);
    constexpr std::int64_t most_told_apart = 64;  // devices of a node
    std::int64_t cards = has.gpus + (cut ? static_cast<std::int64_t>(cut->cards.size()) : 0);
    if (!has.slices.empty() && (!cut || cards > most_told_apart)) {
      ++uncut_;
      cut.reset();
      cards = has.gpus + 1;
    }
    if (cards > most_gpus_of_a_node) return fail("status/allocatable", "expected at most 1,000,000 GPUs");
    node.gpus = static_cast<std::uint32_t>(cards);
    if (has.cpu_milli >= 0) node.cpu_milli = std::min(has.cpu_milli, unlimited);
    if (has.memory_mib >= 0) node.memory_mib = std::min(has.memory_mib, unlimited);
    if (cut) {
      cut->cards.insert(cut->cards.begin(), static_cast<std::size_t>(has.gpus), {});
      if (type.empty()) type = mig_models[cut->model].name;
      node.mig = builder_.mig({.model = cut->model, .cards = std::move(cut->cards)});
    }
    if (cards == 0) type.clear();
    if (!builder_.add(std::move(node), type)) fail("metadata/name", "another node is named '" + name + "'");
  }

  ClusterBuilder builder_;
  std::string file_;
  bool with_down_;
  std::optional<Error> error_;
  std::uint64_t line_ = 0, of_control_ = 0, out_ = 0, uncut_ = 0;
};

}  // namespace

bool looks_like_kubernetes_nodes(std::string_view head) { return is_kubernetes(head, "Node"); }

Result<SlurmCluster> read_kubernetes_nodes(InputFile& file, bool with_down) {
  NodesReader reader(file.path(), with_down);
  const auto read =
      for_each_json_record(file, "items", [&](const JsonRecord& node, std::uint64_t line) { reader.take(node, line); });
  if (!read) return Unexpected{read.error()};
  return reader.finish();
}

}  // namespace gpusched
