// SPDX-License-Identifier: Apache-2.0
/// The records of a log in JSON, one at a time: however long the log is, one record is in memory.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {

/// The bytes of an InputFile for a JSON parser, with the line that it has come to. They end early within a record of
/// 64 MiB, as lines of other formats do: the parser keeps a whole string, and a small archive may hold one of any
/// length.
class FileBytes : public std::streambuf {
 public:
  explicit FileBytes(InputFile& file) : file_(file) {}
  [[nodiscard]] std::uint64_t line() const { return lines_before_ + count_lines(eback(), gptr()) + 1; }
  void begin_record() { record_bytes_ = 0; }
  [[nodiscard]] bool record_is_too_long() const { return record_bytes_ > longest_record; }

 protected:
  int_type underflow() override;

 private:
  static std::uint64_t count_lines(const char* from, const char* to) {
    return static_cast<std::uint64_t>(std::count(from, to, '\n'));
  }

  static constexpr std::size_t longest_record = std::size_t{64} << 20;  // bytes

  InputFile& file_;
  std::uint64_t lines_before_ = 0;
  std::size_t record_bytes_ = 0;  // of blocks since the last record began
};

/// An object of a log. Keys are found in O(log).
using JsonRecord = nlohmann::json;

/// Calls `take(record, line)` for each object of a log: those of the list that stands under `list` in the text's
/// object, or of the list that the text is, or the objects themselves where one follows the other (a record a line).
/// Error: not JSON, something else in its place, more than 200 levels, a record of more than 64 MiB.
Result<void> for_each_json_record(InputFile& file, std::string_view list,
                                  const std::function<void(const JsonRecord& record, std::uint64_t line)>& take);

/// The value at `path`, "time/start"; null where there is none.
const JsonRecord* find_json(const JsonRecord& record, std::string_view path);
/// The text there; empty where there is none.
std::string json_word(const JsonRecord& record, std::string_view path);
/// The whole number there, or {"set": true, "infinite": false, "number": N} as Slurm writes it, or a number in a text;
/// nothing where there is none.
std::optional<std::int64_t> json_count(const JsonRecord& record, std::string_view path);
std::optional<std::int64_t> json_count(const JsonRecord& value);

}  // namespace gpusched
