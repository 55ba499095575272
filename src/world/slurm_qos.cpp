// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_qos.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/name_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/slurm_conf_lines.hpp"
#include "traces/core/cluster_units.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {
namespace {

Unexpected wrong_qos(const InputFile& file, std::string_view column, const std::string& what, std::string_view found) {
  return Unexpected{Error{.message = "expected " + what + ", found '" + excerpt(found) + "'",
                          .file = file.path(),
                          .line = file.line_number(),
                          .field = std::string(column)}};
}

// What a QOS has that nobody set.
bool is_unset(std::string_view column, std::string_view value) {
  if (value.empty()) return true;
  const auto is = [&](std::string_view key, std::string_view word) {
    return same_slurm_word(column, key) && same_slurm_word(value, word);
  };
  return is("PreemptMode", "cluster") || is("UsageFactor", "1.000000") || is("UsageFactor", "1");
}

constexpr std::int64_t most_of_a_limit = 1'000'000'000;

// The limits that a run knows, as sacctmgr heads them and as it calls them when it is asked for them.
enum class Limited : std::uint8_t { tres, jobs, submitted, wall };
struct LimitColumn {
  std::string_view name, long_name;
  LimitOwner per = LimitOwner::all;
  Limited what = Limited::tres;
};
constexpr LimitColumn limit_columns[] = {
    {"GrpTRES", "GrpTRES", LimitOwner::all, Limited::tres},
    {"GrpJobs", "GrpJobs", LimitOwner::all, Limited::jobs},
    {"GrpSubmit", "GrpSubmitJobs", LimitOwner::all, Limited::submitted},
    {"MaxTRES", "MaxTRESPerJob", LimitOwner::job, Limited::tres},
    {"MaxWall", "MaxWallDurationPerJob", LimitOwner::job, Limited::wall},
    {"MaxTRESPU", "MaxTRESPerUser", LimitOwner::user, Limited::tres},
    {"MaxJobsPU", "MaxJobsPerUser", LimitOwner::user, Limited::jobs},
    {"MaxSubmitPU", "MaxSubmitJobsPerUser", LimitOwner::user, Limited::submitted},
    {"MaxTRESPA", "MaxTRESPerAccount", LimitOwner::account, Limited::tres},
    {"MaxJobsPA", "MaxJobsPerAccount", LimitOwner::account, Limited::jobs},
    {"MaxSubmitPA", "MaxSubmitJobsPerAccount", LimitOwner::account, Limited::submitted},
};

class QosReader {
 public:
  explicit QosReader(InputFile& file) : file_(file) { table_.path = file.path(); }

  Result<SlurmQosTable> read() {
    std::string_view line;
    while (file_.next_line(line)) {
      if (trim(line).empty()) continue;
      auto done = columns_.empty() ? take_header(line) : take_row(line);
      if (!done) return Unexpected{done.error()};
    }
    if (file_.failure()) return Unexpected{*file_.failure()};
    if (table_.rows.empty()) return wrong_qos(file_, "line", "rows of sacctmgr show qos -P", "none");
    for (const SlurmQos& row : table_.rows) {
      for (const std::string& name : row.preempts) {
        const bool is_known = std::any_of(table_.rows.begin(), table_.rows.end(),
                                          [&](const SlurmQos& other) { return other.name == name; });
        if (is_known) continue;
        return Unexpected{Error{.message = "expected QOS of the table, found '" + excerpt(name) + "'",
                                .file = file_.path(),
                                .line = row.line,
                                .field = "Preempt"}};
      }
    }
    return std::move(table_);
  }

 private:
  [[nodiscard]] bool has(std::string_view name) const {
    return std::any_of(columns_.begin(), columns_.end(),
                       [&](const std::string& column) { return same_slurm_word(column, name); });
  }

  Result<void> take_header(std::string_view line) {
    for (const std::string_view column : split_at(line, '|')) columns_.emplace_back(column);
    if (has("Name") && has("Priority")) return {};
    return wrong_qos(file_, "header", "the columns Name and Priority of sacctmgr show qos -P", line);
  }

  Result<void> take_row(std::string_view line) {
    const auto values = split_at(line, '|');
    if (values.size() != columns_.size()) {
      return wrong_qos(file_, "line", std::to_string(columns_.size()) + " fields between bars", line);
    }
    SlurmQos qos{.name = {}, .limits = {}, .preempts = {}, .line = file_.line_number()};
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (same_slurm_word(columns_[i], "Name")) qos.name = name_text(values[i]);
    }
    if (qos.name.empty()) return wrong_qos(file_, "Name", "the name of a QOS", line);
    for (const SlurmQos& other : table_.rows) {
      if (other.name == qos.name) return wrong_qos(file_, "Name", "a name that no other QOS has", qos.name);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (auto done = take_value(columns_[i], values[i], qos); !done) return done;
    }
    table_.rows.push_back(std::move(qos));
    return {};
  }

  Result<void> take_value(const std::string& column, std::string_view value, SlurmQos& qos) {
    if (same_slurm_word(column, "Name")) return {};
    if (same_slurm_word(column, "Priority")) {
      constexpr std::int64_t most = 1'000'000'000;
      const auto number = parse_integer(value);
      if (!number || *number < 0 || *number > most) return wrong_qos(file_, column, "a whole number from 0", value);
      qos.priority = static_cast<std::int32_t>(*number);
      return {};
    }
    if (is_unset(column, value)) return {};
    if (is_of_preemption(column)) return take_preemption(column, value, qos);
    if (same_slurm_word(column, "Flags")) return take_flags(column, value, qos);
    const auto taken = take_limit(column, value, qos);
    if (!taken) return Unexpected{taken.error()};
    if (!*taken) unused(qos, column, value);
    return {};
  }

  static bool is_of_preemption(std::string_view column) {
    constexpr std::string_view names[] = {"Preempt", "PreemptMode", "GraceTime", "PreemptExemptTime"};
    return std::any_of(std::begin(names), std::end(names),
                       [&](std::string_view name) { return same_slurm_word(name, column); });
  }

  Result<void> take_preemption(const std::string& column, std::string_view value, SlurmQos& qos) {
    const bool is_nothing = same_slurm_word(column, "GraceTime") && same_slurm_word(value, "00:00:00");
    if (!is_nothing) {
      table_.of_preemption.push_back({file_.path(), file_.line_number(), qos.name + ":" + column, std::string(value)});
    }
    if (same_slurm_word(column, "Preempt")) {
      for (const std::string_view name : split_at(value, ',')) qos.preempts.push_back(name_text(name));
      return {};
    }
    if (same_slurm_word(column, "PreemptMode")) {
      std::vector<std::string> other;
      if (!read_slurm_preempt_mode(value, qos.preempted.mode, other)) {
        return wrong_qos(file_, column, "cluster, off, requeue, suspend or cancel", value);
      }
      for (const std::string& word : other) unused(qos, column, word);
      return {};
    }
    const auto time = parse_slurm_span(value);
    if (!time) return wrong_qos(file_, column, "a time like 00:02:00", value);
    (same_slurm_word(column, "GraceTime") ? qos.preempted.grace : qos.preempted.exempt) = *time;
    return {};
  }

  Result<void> take_flags(const std::string& column, std::string_view value, SlurmQos& qos) {
    for (const std::string_view flag : split_at(value, ',')) {
      if (same_slurm_word(flag, "PartitionTimeLimit")) {
        qos.lifts_max_time = true;
      } else if (!same_slurm_word(flag, "DenyOnLimit")) {
        unused(qos, column, flag);
      }
    }
    return {};
  }

  // False: the column is no limit on jobs or what they hold.
  Result<bool> take_limit(const std::string& column, std::string_view value, SlurmQos& qos) {
    const auto row = std::find_if(std::begin(limit_columns), std::end(limit_columns), [&](const LimitColumn& known) {
      return same_slurm_word(known.name, column) || same_slurm_word(known.long_name, column);
    });
    if (row == std::end(limit_columns)) return false;
    if (row->what == Limited::tres) return take_tres(*row, column, value, qos);
    if (row->what == Limited::wall) {
      const auto wall = parse_slurm_wall(value);
      if (!wall) return wrong_qos(file_, column, "a time like 1-00:00:00", value);
      if (*wall == Time::max()) return true;
      qos.limits.push_back({.column = column, .value = std::string(value), .per = row->per, .wall = *wall});
      return true;
    }
    const auto number = parse_integer(value);
    if (!number || *number < 0 || *number > most_of_a_limit) {
      return wrong_qos(file_, column, "a whole number from 0", value);
    }
    SlurmQosLimit limit{.column = column, .value = std::string(value), .per = row->per};
    (row->what == Limited::jobs ? limit.most.jobs : limit.submitted) = *number;
    qos.limits.push_back(std::move(limit));
    return true;
  }

  // "cpu=100,mem=64G,gres/gpu=8".
  Result<bool> take_tres(const LimitColumn& row, const std::string& column, std::string_view value, SlurmQos& qos) {
    for (const std::string_view part : split_at(value, ',')) {
      if (part.empty()) continue;
      const std::size_t equals = std::min(part.find('='), part.size());
      const std::string_view kind = part.substr(0, equals), amount = part.substr(std::min(equals + 1, part.size()));
      SlurmQosLimit limit{.column = column, .value = std::string(part), .per = row.per};
      std::optional<std::int64_t> number = parse_integer(amount);
      if (same_slurm_word(kind, "gres/gpu")) {
        limit.most.gpu_milli = number.value_or(0) * whole_gpu;
      } else if (same_slurm_word(kind, "cpu")) {
        limit.most.cpu_milli = number.value_or(0) * milli_per_core;
      } else if (same_slurm_word(kind, "mem")) {
        number = mib_of(amount);
        limit.most.memory_mib = number.value_or(0);
      } else {
        unused(qos, column, part);
        continue;
      }
      if (!number || *number < 0 || *number > most_of_a_limit) {
        return wrong_qos(file_, column, "limits like cpu=64,mem=500G,gres/gpu=8", value);
      }
      qos.limits.push_back(std::move(limit));
    }
    return true;
  }

  // "750000M", "1T"; MiB without a unit.
  static std::optional<std::int64_t> mib_of(std::string_view text) {
    std::int64_t factor = 1;
    if (!text.empty()) {
      if (text.back() == 'G') factor = 1024;
      if (text.back() == 'T') factor = 1024 * 1024;
      if (factor > 1 || text.back() == 'M') text.remove_suffix(1);
    }
    const auto number = parse_integer(text);
    if (!number || *number < 0 || *number > most_of_a_limit / factor) return std::nullopt;
    return *number * factor;
  }

  void unused(const SlurmQos& qos, const std::string& column, std::string_view value) {
    table_.unused.push_back({file_.path(), file_.line_number(), qos.name + ":" + column, std::string(value)});
  }

  InputFile& file_;
  std::vector<std::string> columns_;
  SlurmQosTable table_;
};

}  // namespace

bool SlurmQosLimit::is_like(const SlurmQosLimit& other) const {
  const auto same = [](std::int64_t a, std::int64_t b) { return (a < unlimited) == (b < unlimited); };
  return per == other.per && same(most.gpu_milli, other.most.gpu_milli) && same(most.cpu_milli, other.most.cpu_milli) &&
         same(most.memory_mib, other.most.memory_mib) && same(most.jobs, other.most.jobs) &&
         same(submitted, other.submitted) && (wall < Time::max()) == (other.wall < Time::max());
}

Result<SlurmQosTable> read_slurm_qos(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  return QosReader(*file).read();
}

}  // namespace gpusched
