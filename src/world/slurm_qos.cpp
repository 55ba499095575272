// SPDX-License-Identifier: Apache-2.0
#include "src/world/slurm_qos.hpp"

#include <algorithm>
#include <utility>

#include "src/base/field_parser.hpp"
#include "src/base/name_text.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/slurm_conf_lines.hpp"
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
  return is("GraceTime", "00:00:00") || is("PreemptMode", "cluster") || is("UsageFactor", "1.000000") ||
         is("UsageFactor", "1");
}

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
    SlurmQos qos{.name = {}, .most_gpus = {}, .line = file_.line_number()};
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
    if (same_slurm_word(column, "GrpTRES")) return take_group_limit(column, value, qos);
    if (!is_unset(column, value)) unused(qos, column, value);
    return {};
  }

  // "cpu=100,gres/gpu=8": its GPUs.
  Result<void> take_group_limit(const std::string& column, std::string_view value, SlurmQos& qos) {
    for (const std::string_view part : split_at(value, ',')) {
      if (part.empty()) continue;
      const std::size_t equals = std::min(part.find('='), part.size());
      if (!same_slurm_word(part.substr(0, equals), "gres/gpu")) {
        unused(qos, column, part);
        continue;
      }
      constexpr std::int64_t most = 1'000'000'000;
      const auto number = parse_integer(part.substr(std::min(equals + 1, part.size())));
      if (!number || *number < 0 || *number > most) return wrong_qos(file_, column, "limits like gres/gpu=8", value);
      qos.most_gpus = *number;
    }
    return {};
  }

  void unused(const SlurmQos& qos, const std::string& column, std::string_view value) {
    table_.unused.push_back({file_.path(), file_.line_number(), qos.name + ":" + column, std::string(value)});
  }

  InputFile& file_;
  std::vector<std::string> columns_;
  SlurmQosTable table_;
};

}  // namespace

Result<SlurmQosTable> read_slurm_qos(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  return QosReader(*file).read();
}

}  // namespace gpusched
