// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_conf.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "src/base/name_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/slurm_conf_lines.hpp"

namespace gpusched {
namespace {

// A key with a value that says what every run does anyway, both in lower case.
struct Agreement {
  std::string_view key, value;
};
constexpr Agreement agreed_parameters[] = {
    {"priorityfavorsmall", "no"}, {"priorityusageresetperiod", "none"},
    {"priorityweightassoc", "0"}, {"selecttype", "select/cons_tres"},
    {"grestypes", "gpu"},
};
constexpr Agreement agreed_of_partitions[] = {
    {"state", "up"},   {"maxnodes", "infinite"}, {"maxnodes", "unlimited"}, {"oversubscribe", "no"},
    {"default", "no"}, {"allowgroups", "all"},   {"allowaccounts", "all"},  {"exclusiveuser", "no"},
    {"hidden", "no"},  {"rootonly", "no"},
};

bool agrees(std::span<const Agreement> list, const SlurmPair& pair) {
  return std::any_of(list.begin(), list.end(), [&](const Agreement& row) {
    return same_slurm_word(row.key, pair.key) && same_slurm_word(row.value, pair.value);
  });
}

Unexpected not_as_expected(const SlurmConfLine& line, const std::string& key, const std::string& what,
                           const std::string& found) {
  return Unexpected{Error{.message = "expected " + what + ", found '" + excerpt(found) + "'",
                          .file = line.file,
                          .line = line.line,
                          .field = key}};
}

Result<void> take_number(const SlurmConfLine& line, const SlurmPair& pair, std::int64_t least, std::int64_t most,
                         double& into) {
  const auto number = parse_integer(pair.value);
  if (!number || *number < least || *number > most) {
    return not_as_expected(line, pair.key,
                           "a whole number from " + std::to_string(least) + " to " + std::to_string(most), pair.value);
  }
  into = static_cast<double>(*number);
  return {};
}

Result<void> take_time(const SlurmConfLine& line, const SlurmPair& pair, Time& into) {
  const auto time = parse_slurm_span(pair.value);
  if (!time) {
    return not_as_expected(
        line, pair.key, "a time: minutes, hours:minutes:seconds, days-hours or days-hours:minutes:seconds", pair.value);
  }
  into = *time;
  return {};
}

Result<void> take_wall(const SlurmConfLine& line, const SlurmPair& pair, Time& into) {
  const auto wall = parse_slurm_wall(pair.value);
  if (!wall) return take_time(line, pair, into);
  into = *wall;
  return {};
}

class ConfInterpreter {
 public:
  Result<SlurmConf> interpret(SlurmConfLines found) {
    conf_.files = std::move(found.files);
    for (const SlurmConfLine& line : found.lines) {
      if (auto done = take(line); !done) return Unexpected{done.error()};
    }
    if (auto done = describe_partitions(); !done) return Unexpected{done.error()};
    if (auto done = build_cluster(); !done) return Unexpected{done.error()};
    return std::move(conf_);
  }

 private:
  Result<void> take(const SlurmConfLine& line) {
    const std::string first = lower_case(line.pairs.front().key);
    if (first == "nodename") return keep(line, nodes_, node_defaults_);
    if (first == "partitionname") return keep(line, partitions_, partition_defaults_);
    if (first == "nodeset") return keep_set(line);
    const SlurmPair& pair = line.pairs.front();
    const auto used = take_parameter(line, pair);
    if (!used) return Unexpected{used.error()};
    if (!*used) unused(line, pair.key, pair.value);
    return {};
  }

  void unused(const SlurmConfLine& line, std::string key, std::string value) {
    conf_.unused.push_back({line.file, line.line, std::move(key), std::move(value)});
  }

  // Error, or whether the run uses it.
  Result<bool> take_parameter(const SlurmConfLine& line, const SlurmPair& pair) {
    const auto used = [](const Result<void>& done) -> Result<bool> {
      if (!done) return Unexpected{done.error()};
      return true;
    };
    struct Weight {
      std::string_view key;
      double SlurmConf::*member;
    };
    constexpr Weight weights[] = {{"priorityweightage", &SlurmConf::weight_age},
                                  {"priorityweightfairshare", &SlurmConf::weight_fair_share},
                                  {"priorityweightjobsize", &SlurmConf::weight_size},
                                  {"priorityweightpartition", &SlurmConf::weight_partition},
                                  {"priorityweightqos", &SlurmConf::weight_qos}};
    const std::string key = lower_case(pair.key);
    constexpr std::int64_t most_weight = 1'000'000'000;  // of the policy slurm
    for (const Weight& weight : weights) {
      if (key == weight.key) return used(take_number(line, pair, 0, most_weight, conf_.*weight.member));
    }
    if (key == "prioritymaxage") return used(take_time(line, pair, conf_.max_age));
    if (key == "prioritydecayhalflife") return used(take_time(line, pair, conf_.half_life));
    if (key == "prioritytype") {
      return used(take_word(line, pair, "priority/multifactor", "priority/basic", conf_.multifactor));
    }
    if (key == "schedulertype") return used(take_word(line, pair, "sched/backfill", "sched/builtin", scheduler_));
    if (key == "schedulerparameters") return used(take_scheduler_parameters(line, pair));
    if (key == "priorityflags") return used(take_flags(line, pair));
    if (key == "accountingstorageenforce") {
      for (const std::string_view word : split_at(pair.value, ',')) {
        const std::string rule = lower_case(word);
        conf_.enforces_limits = conf_.enforces_limits || rule == "limits" || rule == "safe" || rule == "all";
      }
      return true;
    }
    if (key == "preempttype") return used(take_preempt_type(line, pair));
    if (key == "preemptmode") {
      auto done = take_mode(line, pair, pair.key, conf_.preempted);
      if (done && conf_.preempted.mode.value_or(SlurmPreemptMode::off) != SlurmPreemptMode::off) {
        conf_.of_preemption.push_back({line.file, line.line, pair.key, pair.value});
      }
      return used(done);
    }
    if (key == "preemptexempttime") return used(take_exempt(line, pair));
    if (key == "jobrequeue") return used(take_word(line, pair, "1", "0", conf_.requeues));
    if (key == "clustername") {
      name_ = name_text(pair.value);
      return true;
    }
    return agrees(agreed_parameters, pair);
  }

  static Result<void> take_word(const SlurmConfLine& line, const SlurmPair& pair, std::string_view yes,
                                std::string_view no, bool& into) {
    const bool is_yes = same_slurm_word(pair.value, yes);
    if (!is_yes && !same_slurm_word(pair.value, no)) {
      return not_as_expected(line, pair.key, std::string(yes) + " or " + std::string(no), pair.value);
    }
    into = is_yes;
    return {};
  }

  Result<void> take_flags(const SlurmConfLine& line, const SlurmPair& pair) {
    for (const std::string_view flag : split_at(pair.value, ',')) {
      if (same_slurm_word(flag, "NO_FAIR_TREE")) {
        conf_.fair_tree = false;
      } else if (!flag.empty()) {
        unused(line, pair.key, std::string(flag));
      }
    }
    return {};
  }

  Result<void> take_scheduler_parameters(const SlurmConfLine& line, const SlurmPair& pair) {
    for (const std::string_view word : split_at(pair.value, ',')) {
      if (word.empty()) continue;
      const std::size_t equals = std::min(word.find('='), word.size());
      const std::string name = lower_case(word.substr(0, equals));
      const SlurmPair one{pair.key + ":" + name,
                          std::string(equals == word.size() ? std::string_view() : word.substr(equals + 1))};
      double number = 0;
      if (name == "bf_window") {
        if (auto done = take_number(line, one, 1, 43'200, number); !done) return done;
        conf_.bf_window = from_seconds(60 * number);
      } else if (name == "bf_max_job_test") {
        if (auto done = take_number(line, one, 1, 1'000'000, conf_.bf_max_job_test); !done) return done;
      } else if (name == "bf_interval") {
        if (auto done = take_number(line, one, -1, 10'800, number); !done) return done;
        loops_ = number >= 0;
        if (loops_) conf_.bf_interval = from_seconds(number);
      } else if (name == "preempt_youngest_first") {
        conf_.youngest_first = true;
      } else {
        unused(line, one.key, one.value);
      }
    }
    return {};
  }

  Result<void> take_preempt_type(const SlurmConfLine& line, const SlurmPair& pair) {
    const std::string type = lower_case(pair.value);
    if (type != "preempt/none" && type != "preempt/qos" && type != "preempt/partition_prio") {
      return not_as_expected(line, pair.key, "preempt/none, preempt/qos or preempt/partition_prio", pair.value);
    }
    if (type != "preempt/none") conf_.of_preemption.push_back({line.file, line.line, pair.key, pair.value});
    conf_.preempt_type = type == "preempt/qos"    ? SlurmPreemptType::qos
                         : type == "preempt/none" ? SlurmPreemptType::none
                                                  : SlurmPreemptType::partition;
    return {};
  }

  Result<void> take_mode(const SlurmConfLine& line, const SlurmPair& pair, const std::string& key,
                         SlurmPreempted& into) {
    std::vector<std::string> other;
    if (!read_slurm_preempt_mode(pair.value, into.mode, other)) {
      return not_as_expected(line, pair.key, "OFF, REQUEUE, SUSPEND, CANCEL or GANG", pair.value);
    }
    for (std::string& word : other) unused(line, key, std::move(word));
    return {};
  }

  Result<void> take_exempt(const SlurmConfLine& line, const SlurmPair& pair) {
    if (pair.value == "-1") return {};  // none
    Time time;
    auto done = take_time(line, pair, time);
    if (done) conf_.preempted.exempt = time;
    return done;
  }

  // A description with the defaults so far in front, or more defaults.
  static Result<void> keep(const SlurmConfLine& line, std::vector<SlurmConfLine>& into,
                           std::vector<SlurmPair>& defaults) {
    if (same_slurm_word(line.pairs.front().value, "DEFAULT")) {
      defaults.insert(defaults.end(), line.pairs.begin() + 1, line.pairs.end());
      return {};
    }
    SlurmConfLine whole = line;
    whole.pairs.insert(whole.pairs.begin() + 1, defaults.begin(), defaults.end());
    into.push_back(std::move(whole));
    return {};
  }

  Result<void> keep_set(const SlurmConfLine& line) {
    NodeSet& set = sets_[line.pairs.front().value];
    for (const SlurmPair& pair : line.pairs) {
      const std::string key = lower_case(pair.key);
      if (key == "nodes") {
        set.add(pair.value);
      } else if (key == "feature") {
        set.feature = pair.value;
      } else if (key != "nodeset") {
        unused(line, "NodeSet:" + pair.key, pair.value);
      }
    }
    return {};
  }

  [[nodiscard]] bool asks_for_features() const {
    return std::any_of(sets_.begin(), sets_.end(), [](const auto& set) { return !set.second.feature.empty(); });
  }
  // Puts the nodes of each NodeName line into the sets of its features.
  void fill_sets(const std::vector<std::vector<std::string>>& names_of_line) {
    if (!asks_for_features()) return;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::string* features = nodes_[i].find("Features");
      if (features == nullptr) features = nodes_[i].find("Feature");
      if (features == nullptr) continue;
      for (const std::string_view feature : split_at(*features, ',')) {
        for (auto& [name, set] : sets_) {
          if (set.feature.empty() || !same_slurm_word(set.feature, trim(feature))) continue;
          for (const std::string& node : names_of_line[i]) set.add(node);
        }
      }
    }
  }

  Result<void> describe_partitions() {
    conf_.backfills = scheduler_ && loops_;
    for (const SlurmConfLine& line : partitions_) {
      SlurmPartition partition{
          .name = name_text(line.pairs.front().value), .qos = {}, .file = line.file, .line = line.line};
      for (const SlurmPair& pair : line.pairs) {
        const std::string key = lower_case(pair.key);
        Result<void> done;
        if (key == "priorityjobfactor") done = take_number(line, pair, 0, 65'533, partition.job_factor);
        if (key == "prioritytier") done = take_number(line, pair, 0, 65'533, partition.tier);
        if (key == "preemptmode") done = take_mode(line, pair, "PartitionName:" + pair.key, partition.preempted);
        if (key == "gracetime") {
          double seconds = 0;
          done = take_number(line, pair, 0, 365 * 86'400, seconds);
          partition.preempted.grace = from_seconds(seconds);
        }
        if (key == "maxtime") done = take_wall(line, pair, partition.wall);
        if (key == "defaulttime") {
          partition.default_wall = Time::max();
          if (!same_slurm_word(pair.value, "NONE")) done = take_wall(line, pair, partition.default_wall);
        }
        if (!done) return done;
        if (key == "qos") partition.qos = pair.value;
        if (key == "allowqos") partition.allow_qos = slurm_names(pair.value);
        if (key == "denyqos") partition.deny_qos = slurm_names(pair.value);
        if (key == "allowaccounts") partition.allows_accounts = !slurm_names(pair.value).empty();
        if (key == "denyaccounts") partition.deny_accounts = slurm_names(pair.value);
        const bool of_preemption = key == "preemptmode" || key == "gracetime";
        const bool used = (of_preemption && conf_.preempt_type == SlurmPreemptType::partition) ||
                          key == "priorityjobfactor" || key == "prioritytier" || key == "qos" || key == "nodes" ||
                          key == "maxtime" || key == "defaulttime" || key == "allowqos" || key == "denyqos" ||
                          key == "denyaccounts" || key == "partitionname";
        if (!used && !agrees(agreed_of_partitions, pair)) unused(line, "PartitionName:" + pair.key, pair.value);
      }
      for (const SlurmPartition& other : conf_.partitions) {
        if (other.name != partition.name) continue;
        return not_as_expected(line, "PartitionName", "a name that no other partition has", partition.name);
      }
      conf_.partitions.push_back(std::move(partition));
    }
    return {};
  }

  // The partitions of each node, by its name.
  Result<std::map<std::string, std::vector<std::string>>> partitions_of_nodes(
      const std::vector<std::string>& known) const {
    std::map<std::string, std::vector<std::string>> partitions;
    for (const std::string& name : known) partitions[name];
    for (const SlurmConfLine& line : partitions_) {
      const std::string* const nodes = line.find("Nodes");
      if (nodes == nullptr || nodes->empty()) continue;
      const bool has_all = same_slurm_word(*nodes, "ALL");
      auto listed = has_all ? Result<std::vector<std::string>>(known) : hosts_of(*nodes);
      if (!listed) return not_as_expected(line, "Nodes", "ALL or a list like node[01-16]", *nodes);
      for (const std::string& host : *listed) {
        const auto place = partitions.find(host);
        if (place == partitions.end()) return not_as_expected(line, "Nodes", "nodes of the NodeName lines", host);
        std::vector<std::string>& of_node = place->second;
        const std::string& partition = line.pairs.front().value;
        if (of_node.empty() || of_node.back() != partition) of_node.push_back(partition);
      }
    }
    return partitions;
  }

  // The names of a list, in which sets of nodes may stand.
  [[nodiscard]] Result<std::vector<std::string>> hosts_of(const std::string& list) const {
    auto names = slurm_host_names(list);
    if (!names) return names;
    std::vector<std::string> hosts;
    for (std::string& name : *names) {
      const auto set = sets_.find(name);
      if (set == sets_.end()) {
        hosts.push_back(std::move(name));
        continue;
      }
      if (set->second.nodes.empty()) continue;
      const auto of_set = slurm_host_names(set->second.nodes);
      if (!of_set) return of_set;
      hosts.insert(hosts.end(), of_set->begin(), of_set->end());
    }
    return hosts;
  }

  Result<void> build_cluster() {
    if (nodes_.empty()) return {};
    std::vector<std::string> names;
    std::vector<std::vector<std::string>> names_of_line;
    for (const SlurmConfLine& line : nodes_) {
      const std::string& list = line.pairs.front().value;
      auto hosts = slurm_host_names(list);
      if (!hosts) return not_as_expected(line, "NodeName", "names like node[01-16]", list);
      names.insert(names.end(), hosts->begin(), hosts->end());
      names_of_line.push_back(*std::move(hosts));
    }
    fill_sets(names_of_line);
    const auto partitions = partitions_of_nodes(names);
    if (!partitions) return Unexpected{partitions.error()};
    SlurmClusterBuilder builder(false);
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      SlurmMachine machine;
      if (auto done = describe_machine(nodes_[i], machine); !done) return done;
      for (const std::string& name : names_of_line[i]) {
        machine.name = name_text(name);
        machine.partitions.clear();
        for (const std::string& partition : partitions->at(name)) machine.partitions.push_back(name_text(partition));
        if (auto wrong = builder.add(machine)) {
          wrong->file = nodes_[i].file;
          wrong->line = nodes_[i].line;
          return Unexpected{*std::move(wrong)};
        }
      }
    }
    conf_.cluster = builder.finish();
    conf_.cluster->cluster.name = name_;
    if (!conf_.cluster->cluster.nodes.empty()) return {};
    return not_as_expected(nodes_.front(), "NodeName", "some node in service that a PartitionName line has", "none");
  }

  Result<void> describe_machine(const SlurmConfLine& line, SlurmMachine& machine) {
    std::map<std::string, double> counts;
    constexpr std::string_view counted_keys[] = {"cpus",           "boards",         "sockets",    "socketsperboard",
                                                 "corespersocket", "threadspercore", "realmemory", "memspeclimit"};
    for (const SlurmPair& pair : line.pairs) {
      const std::string key = lower_case(pair.key);
      if (std::find(std::begin(counted_keys), std::end(counted_keys), key) != std::end(counted_keys)) {
        if (auto done = take_number(line, pair, 0, most_of_a_machine, counts[key]); !done) return done;
      } else if (key == "gres") {
        machine.gres = pair.value;
      } else if (key == "state") {
        if (!same_slurm_word(pair.value, "UNKNOWN")) machine.state = pair.value;  // slurmctld finds out
      } else if (key != "nodename" && !(key.starts_with("feature") && asks_for_features())) {
        unused(line, "NodeName:" + pair.key, pair.value);
      }
    }
    const auto count = [&](const char* key, double otherwise) {
      const auto place = counts.find(key);
      return place == counts.end() ? otherwise : place->second;
    };
    const double sockets = count("sockets", count("boards", 1) * count("socketsperboard", 1));
    const double product = sockets * count("corespersocket", 1) * count("threadspercore", 1);
    const bool says_cores = counts.contains("sockets") || counts.contains("socketsperboard") ||
                            counts.contains("corespersocket") || counts.contains("threadspercore");
    const double cores = count("cpus", says_cores ? product : -1);
    if (cores > static_cast<double>(most_of_a_machine)) {
      return not_as_expected(line, "NodeName", "a machine of at most a thousand million CPUs",
                             line.pairs.front().value);
    }
    machine.cores = static_cast<std::int64_t>(cores);
    const double memory = count("realmemory", -1);
    machine.memory_mib = static_cast<std::int64_t>(memory < 0 ? -1 : std::max(memory - count("memspeclimit", 0), 0.0));
    return {};
  }

  SlurmConf conf_;
  std::string name_ = "slurm.conf";
  bool scheduler_ = true, loops_ = true;  // of SchedulerType and bf_interval
  std::vector<SlurmConfLine> nodes_, partitions_;
  std::vector<SlurmPair> node_defaults_, partition_defaults_;
  // Of a NodeSet line: a list of nodes.
  struct NodeSet {
    std::string nodes, feature;
    void add(const std::string& more) { nodes += (nodes.empty() ? "" : ",") + more; }
  };
  std::map<std::string, NodeSet> sets_;
};

}  // namespace

bool read_slurm_preempt_mode(std::string_view text, std::optional<SlurmPreemptMode>& mode,
                             std::vector<std::string>& unused) {
  static const std::map<std::string, SlurmPreemptMode> modes = {{"off", SlurmPreemptMode::off},
                                                                {"requeue", SlurmPreemptMode::requeue},
                                                                {"suspend", SlurmPreemptMode::suspend},
                                                                {"cancel", SlurmPreemptMode::cancel}};
  std::optional<SlurmPreemptMode> found;
  for (const std::string_view written : split_at(text, ',')) {
    const std::string word = lower_case(written);
    if (word == "gang" || word == "within" || word == "priority") {
      unused.emplace_back(written);
      continue;
    }
    const auto known = modes.find(word);
    if (known == modes.end() || found) return false;
    found = known->second;
  }
  if (found) mode = found;
  return true;
}

Result<SlurmConf> read_slurm_conf(const std::string& path) {
  auto lines = read_slurm_conf_lines(path);
  if (!lines) return Unexpected{lines.error()};
  return ConfInterpreter().interpret(*std::move(lines));
}

}  // namespace gpusched
