// SPDX-License-Identifier: Apache-2.0
/// ColumnMapping: which column of a file is what, and in which unit, as `--columns` says it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "traces/core/row_reader.hpp"

namespace gpusched {

/// How GPUs are written.
enum class GpuText : std::uint8_t {
  number,  ///< "8", "0.5"; also generic resources that name GPUs, "gpu:a100:2"
  milli,   ///< thousandths
  gres,    ///< generic resources, where no value is no GPU
  tres,    ///< "cpu=8,gres/gpu=2", where no value is no GPU
};

/// One role.
struct MappedColumn {
  std::string text;    ///< as given: the name of a column, or its name and a unit
  std::string name;    ///< of the column, as resolve() found it
  TimeUnit time = {};  ///< of a time or a span
  double factor = 1;   ///< of a number: MiB, cores or GiB for one of its unit
  GpuText gpus = GpuText::number;
};

/// What `--columns` says: ROLE=COLUMN[:UNIT],... and delimiter=, header=, na=.
class ColumnMapping {
 public:
  /// Reads the text. Errors: no such role, a role twice, no submission, GPUs or run time.
  static Result<ColumnMapping> parse(const std::string& text);

  /// Chooses the delimiter, where none was given, by the first line of the file, and whether that is a header: it is
  /// not where columns are given by their positions and the line holds values.
  Result<void> look_at(std::string_view head);

  /// How the rows are written. Precondition: look_at().
  [[nodiscard]] RowStyle style() const;
  /// Whether the file begins with a header line, and whether columns are positions from 1.
  /// \{
  [[nodiscard]] bool has_header() const { return has_header_; }
  [[nodiscard]] bool by_position() const { return by_position_; }
  /// \}
  /// How many fields the first line has.
  [[nodiscard]] std::size_t width() const { return width_; }

  /// Finds every role's column and unit in the rows' header. Errors: an unknown unit. A missing column is an error of
  /// the rows.
  Result<void> resolve(RowReader& rows);

  /// The column of a role; none where it was not given. Precondition: resolve().
  [[nodiscard]] Column column(const std::string& role) const;
  /// The role as given. Precondition: it was.
  [[nodiscard]] const MappedColumn& role(const std::string& role) const { return roles_.at(role); }

 private:
  Result<void> take_setting(const std::string& name, std::string_view value);
  [[nodiscard]] Result<void> check_alike(const std::string& role, const MappedColumn& column) const;
  Result<void> take_unit(const std::string& role, MappedColumn& column, std::string_view unit) const;
  [[nodiscard]] bool header_is_values(const std::vector<std::string_view>& fields) const;

  std::map<std::string, MappedColumn> roles_;
  std::map<std::string, Column> columns_;
  std::vector<std::string> no_value_;
  char separator_ = '\0';  // not chosen yet
  int header_ = -1;        // -1: not said
  bool has_header_ = true, by_position_ = false;
  std::size_t width_ = 0;
};

}  // namespace gpusched
