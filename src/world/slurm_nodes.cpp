// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_nodes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/name_text.hpp"
#include "src/world/mig_layout.hpp"
#include "traces/core/cluster_units.hpp"
#include "traces/core/slurm_gpus.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t most_of_a_node = 1'000'000'000;  // cores, MiB x 1000, GPUs: keeps products in range

// A machine as Slurm describes it.
struct Machine {
  std::string name;
  std::int64_t cores = -1, memory_mib = -1;  // -1: not said
  std::string gres;
  std::vector<std::string> partitions;
  std::string state;
  std::uint64_t line = 0;
};

void add_partition(Machine& machine, std::string_view text) {
  std::string name = name_text(text);
  if (!name.empty()) machine.partitions.push_back(std::move(name));
}

// GPUs of one model on a machine: whole ones, and MIG instances by profile.
struct CardsOfModel {
  std::int64_t whole = 0;
  std::map<std::string, std::int64_t> instances;
  MilliGpu milli = 0;  // of all instances
};
using GpusByModel = std::map<std::string, CardsOfModel>;

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t stop = std::min(text.find(separator), text.size());
    parts.push_back(trim(text.substr(0, stop)));
    if (stop == text.size()) return parts;
    text.remove_prefix(stop + 1);
  }
}

std::vector<std::string_view> split_at_blanks(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!(text = trim(text)).empty()) {
    const std::size_t stop = std::min(text.find_first_of(" \t"), text.size());
    parts.push_back(text.substr(0, stop));
    text.remove_prefix(stop);
  }
  return parts;
}

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
    constexpr std::string_view out[] = {"down",           "drain",   "drained", "draining", "drng",      "fail",
                                        "failing",        "error",   "maint",   "future",   "inval",     "maintenance",
                                        "not_responding", "unknown", "blocked", "unk",      "no_respond"};
    if (std::find(std::begin(out), std::end(out), word) != std::end(out)) return true;
  }
  return false;
}

// Collects machines into a cluster: numbers partitions and GPU types by first appearance.
class SlurmClusterBuilder {
 public:
  explicit SlurmClusterBuilder(bool with_down) : with_down_(with_down) {}

  // Error: what is wrong with the machine, and in which field.
  std::optional<Error> add(const Machine& machine) {
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
    for (const std::string& partition : machine.partitions) owners.push_back(vc(partition));
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
    Cluster& cluster = result_.cluster;
    // Where every node serves every partition there is one cluster-wide pool of nodes, with queues that share it.
    for (Node& node : cluster.nodes) {
      if (node.vc_group != no_index && cluster.vc_groups[node.vc_group].size() == cluster.vcs.size()) {
        node.vc_group = no_index;
      }
    }
    if (cluster.gpu_types.empty()) cluster.gpu_types.emplace_back(any_gpu_type);
    return std::move(result_);
  }

 private:
  void note(std::uint64_t nodes, const char* what) {
    if (nodes > 0) result_.notes.push_back(std::to_string(nodes) + (nodes == 1 ? " node " : " nodes ") + what);
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

  std::optional<Error> add_nodes(const Machine& machine, const GpusByModel& gpus,
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
    bool is_new = true;
    const auto add_one = [&](const std::string& model, const Cards& cards, const std::string& name) {
      is_new = is_new && names_.insert(name).second;
      Node node{.gpus = static_cast<std::uint32_t>(cards.count), .name = name};
      const std::string type = model.empty() && cards.cut ? std::string(mig_models[cards.cut->model].name) : model;
      node.gpu_type = gpu_type(type.empty() || cards.count == 0 ? std::string(any_gpu_type) : type);
      node.cpu_milli = part(machine.cores, cards.count, milli_per_core);
      node.memory_mib = part(machine.memory_mib, cards.count, 1);
      if (owners.size() == 1) node.vc = owners.front();
      if (owners.size() > 1) node.vc_group = group(owners);
      if (cards.cut) node.mig = mig({.model = cards.cut->model, .cards = cards.cut->cards});
      result_.cluster.nodes.push_back(std::move(node));
    };
    if (gpus.empty()) add_one({}, {}, machine.name);
    for (const auto& [model, cards] : by_model) {
      add_one(model, cards, gpus.size() == 1 ? machine.name : machine.name + "/" + model);
    }
    if (is_new) return std::nullopt;
    return Error{.message = "expected a name that no other node has, found '" + machine.name + "'",
                 .field = "NodeName"};
  }

  std::uint32_t mig(MigNode node) {
    std::vector<MigNode>& migs = result_.cluster.migs;
    const auto place = std::find(migs.begin(), migs.end(), node);
    const auto number = static_cast<std::uint32_t>(place - migs.begin());
    if (place == migs.end()) migs.push_back(std::move(node));
    return number;
  }
  std::uint32_t vc(const std::string& name) {
    const auto [place, added] = vcs_.try_emplace(name, static_cast<std::uint32_t>(vcs_.size()));
    if (added) result_.cluster.vcs.push_back({.name = name});
    return place->second;
  }
  std::uint32_t group(const std::vector<std::uint32_t>& owners) {
    const auto [place, added] = groups_.try_emplace(owners, static_cast<std::uint32_t>(groups_.size()));
    if (added) result_.cluster.vc_groups.push_back(owners);
    return place->second;
  }
  std::uint32_t gpu_type(const std::string& name) {
    if (types_.empty()) result_.cluster.gpu_types.clear();
    const auto [place, added] = types_.try_emplace(name, static_cast<std::uint32_t>(types_.size()));
    if (added) result_.cluster.gpu_types.push_back(name);
    return place->second;
  }

  SlurmCluster result_;
  std::map<std::string, std::uint32_t> vcs_, types_;
  std::set<std::string> names_;
  std::map<std::vector<std::uint32_t>, std::uint32_t> groups_;
  std::uint64_t without_partition_ = 0, out_ = 0, split_ = 0, uncut_ = 0;
  bool with_down_;
};

Unexpected at_line(const InputFile& file, std::uint64_t line, Error error) {
  error.file = file.path();
  error.line = line;
  return Unexpected{std::move(error)};
}

// A count of cores or MiB; sinfo writes "96+" for nodes that differ.
std::optional<std::int64_t> parse_count(std::string_view text) {
  if (text.ends_with('+')) text.remove_suffix(1);
  const auto value = parse_integer(text);
  return value && *value >= 0 && *value <= most_of_a_node ? value : std::nullopt;
}

// ---- scontrol show nodes ----

// The words KEY=VALUE of a record; a value goes on to the next such word ("OS=Linux 5.15 #1 SMP"). The first of a key
// counts: a reason in free text may hold what looks like another.
std::map<std::string, std::string> pairs_of(const std::string& record) {
  std::map<std::string, std::string> pairs;
  std::string* value = nullptr;
  for (const std::string_view word : split_at_blanks(record)) {
    const std::size_t equals = word.find('=');
    const bool is_key = equals != std::string_view::npos && equals > 0 &&
                        word.substr(0, equals).find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:") == std::string_view::npos;
    if (is_key) {
      const auto [place, added] =
          pairs.try_emplace(std::string(word.substr(0, equals)), std::string(word.substr(equals + 1)));
      value = added ? &place->second : nullptr;
    } else if (value != nullptr) {
      *value += ' ';
      *value += word;
    }
  }
  return pairs;
}

std::optional<Error> machine_of(const std::string& record, Machine& machine) {
  const auto pairs = pairs_of(record);
  const auto text = [&](const char* key) {
    const auto place = pairs.find(key);
    return place == pairs.end() ? std::string() : place->second;
  };
  const auto count = [&](const char* key, std::int64_t& into) -> std::optional<Error> {
    const std::string value = text(key);
    if (value.empty()) return std::nullopt;
    const auto number = parse_count(value);
    if (!number) return Error{.message = "expected a whole number, found '" + value + "'", .field = key};
    into = *number;
    return std::nullopt;
  };
  machine.name = name_text(text("NodeName"));
  machine.gres = text("Gres") == "(null)" ? "" : text("Gres");
  machine.state = text("State");
  std::int64_t special_mib = 0;
  if (auto wrong = count("CPUTot", machine.cores)) return wrong;
  if (auto wrong = count("CPUEfctv", machine.cores)) return wrong;  // without the cores that Slurm keeps to itself
  if (auto wrong = count("RealMemory", machine.memory_mib)) return wrong;
  if (auto wrong = count("MemSpecLimit", special_mib)) return wrong;
  if (machine.memory_mib >= 0) machine.memory_mib = std::max<std::int64_t>(machine.memory_mib - special_mib, 0);
  const std::string partitions = text("Partitions");
  for (const std::string_view name : split_at(partitions, ',')) add_partition(machine, name);
  return std::nullopt;
}

constexpr std::string_view record_start = "NodeName=";

Result<void> read_scontrol(InputFile& file, SlurmClusterBuilder& cluster) {
  std::string record;
  std::uint64_t begins = 0;
  const auto finish = [&]() -> Result<void> {
    if (record.empty()) return {};
    Machine machine;
    auto wrong = machine_of(record, machine);
    if (!wrong) wrong = cluster.add(machine);
    record.clear();
    if (wrong) return at_line(file, begins, *std::move(wrong));
    return {};
  };
  std::string_view line;
  while (file.next_line(line)) {
    if (trim(line).starts_with(record_start)) {
      if (auto added = finish(); !added) return added;
      begins = file.line_number();
    } else if (record.empty() && !trim(line).empty()) {
      return at_line(file, file.line_number(),
                     {.message = "expected a line that begins with NodeName=", .field = "line"});
    }
    record += ' ';
    record += line;
    if (trim(record).empty()) record.clear();
  }
  if (file.failure()) return Unexpected{*file.failure()};
  return finish();
}

// ---- sinfo -N ----

struct SinfoColumns {
  std::size_t name = no_index, partition = no_index, cores = no_index, memory = no_index, gres = no_index,
              state = no_index, count = 0;
};

std::optional<SinfoColumns> sinfo_columns(const std::vector<std::string_view>& header) {
  SinfoColumns columns{.count = header.size()};
  for (std::size_t i = 0; i < header.size(); ++i) {
    const std::string title = lower_case(header[i]);
    if (title == "nodelist" || title == "hostnames" || title == "nodehost") columns.name = i;
    if (title == "partition") columns.partition = i;
    if (title == "cpus") columns.cores = i;
    if (title == "memory") columns.memory = i;
    if (title == "gres") columns.gres = i;
    if (title == "state") columns.state = i;
  }
  const bool enough = columns.name != no_index && columns.partition != no_index && columns.gres != no_index;
  return enough ? std::optional(columns) : std::nullopt;
}

std::vector<std::string_view> sinfo_fields(std::string_view line) {
  return line.find('|') != std::string_view::npos ? split_at(line, '|') : split_at_blanks(line);
}

// One line is a node in one partition.
std::optional<Error> take_line(const std::vector<std::string_view>& fields, const SinfoColumns& columns,
                               std::vector<Machine>& machines, std::map<std::string, std::size_t>& numbers,
                               std::uint64_t line) {
  if (fields.size() != columns.count) {
    return Error{.message = "expected " + std::to_string(columns.count) + " fields, found " +
                            std::to_string(fields.size()) + "; separate them by bars: -o \"%N|%P|%c|%m|%G|%T\"",
                 .field = "line"};
  }
  const std::string name = name_text(fields[columns.name]);
  if (name.find('[') != std::string::npos) {
    return Error{.message = "expected one node a line, found '" + name + "': call sinfo with -N", .field = "NODELIST"};
  }
  const auto [place, added] = numbers.try_emplace(name, machines.size());
  if (added) machines.push_back({.name = name, .gres = {}, .partitions = {}, .state = {}, .line = line});
  Machine& machine = machines[place->second];
  std::string_view partition = fields[columns.partition];
  if (partition.ends_with('*')) partition.remove_suffix(1);  // the default partition
  if (partition != "N/A") add_partition(machine, partition);
  const auto count = [&](std::size_t column, const char* title, std::int64_t& into) -> std::optional<Error> {
    if (column == no_index) return std::nullopt;
    const auto number = parse_count(fields[column]);
    if (!number) {
      return Error{.message = "expected a whole number, found '" + std::string(fields[column]) + "'", .field = title};
    }
    into = *number;
    return std::nullopt;
  };
  if (auto wrong = count(columns.cores, "CPUS", machine.cores)) return wrong;
  if (auto wrong = count(columns.memory, "MEMORY", machine.memory_mib)) return wrong;
  const std::string_view gres = fields[columns.gres];
  machine.gres = gres == "(null)" || gres == "N/A" ? std::string() : std::string(gres);
  if (columns.state != no_index) machine.state = fields[columns.state];
  return std::nullopt;
}

Result<void> read_sinfo(InputFile& file, SlurmClusterBuilder& cluster) {
  std::string_view line;
  std::optional<SinfoColumns> columns;
  std::vector<Machine> machines;
  std::map<std::string, std::size_t> numbers;
  while (file.next_line(line)) {
    if (trim(line).empty()) continue;
    const auto fields = sinfo_fields(line);
    if (!columns) {
      columns = sinfo_columns(fields);
      if (!columns) {
        return at_line(
            file, file.line_number(),
            {.message = "expected the columns NODELIST, PARTITION and GRES: sinfo -N -o \"%N|%P|%c|%m|%G|%T\"",
             .field = "header"});
      }
      continue;
    }
    if (auto wrong = take_line(fields, *columns, machines, numbers, file.line_number())) {
      return at_line(file, file.line_number(), *std::move(wrong));
    }
  }
  if (file.failure()) return Unexpected{*file.failure()};
  for (const Machine& machine : machines) {
    if (auto wrong = cluster.add(machine)) return at_line(file, machine.line, *std::move(wrong));
  }
  return {};
}

std::string_view first_text_line(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return {};
  head.remove_prefix(start);
  std::string_view line = head.substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_scontrol(std::string_view head) { return first_text_line(head).starts_with(record_start); }

}  // namespace

bool looks_like_slurm_nodes(std::string_view head) {
  const std::string_view line = first_text_line(head);
  return is_scontrol(head) || lower_case(line).starts_with("nodelist") || lower_case(line).starts_with("hostnames");
}

Result<SlurmCluster> read_slurm_nodes(InputFile& file, bool with_down) {
  SlurmClusterBuilder cluster(with_down);
  const bool by_scontrol = is_scontrol(file.head());
  if (auto read = by_scontrol ? read_scontrol(file, cluster) : read_sinfo(file, cluster); !read) {
    return Unexpected{read.error()};
  }
  SlurmCluster result = cluster.finish();
  if (result.cluster.nodes.empty()) {
    const bool all_down = std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
      return note.find("--with-down") != std::string::npos;
    });
    return Unexpected{Error{.message = all_down ? "lists no node in service; cluster import --with-down counts others"
                                                : "lists no node in a partition",
                            .file = file.path()}};
  }
  return result;
}

}  // namespace gpusched
