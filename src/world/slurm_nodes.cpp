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

namespace gpusched {
namespace {

using Machine = SlurmMachine;

void add_partition(Machine& machine, std::string_view text) {
  std::string name = name_text(text);
  if (!name.empty()) machine.partitions.push_back(std::move(name));
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

Unexpected at_line(const InputFile& file, std::uint64_t line, Error error) {
  error.file = file.path();
  error.line = line;
  return Unexpected{std::move(error)};
}

// A count of cores or MiB; sinfo writes "96+" for nodes that differ.
std::optional<std::int64_t> parse_count(std::string_view text) {
  if (text.ends_with('+')) text.remove_suffix(1);
  const auto value = parse_integer(text);
  return value && *value >= 0 && *value <= most_of_a_machine ? value : std::nullopt;
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
