// SPDX-License-Identifier: Apache-2.0
/// Figure: what one chart of a report shows, as text and as the csv that it is drawn from.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/strict_json.hpp"

namespace gpusched {

/// One chart.
struct Figure {
  std::string id;    ///< in addresses and file names: "jct"
  std::string kind;  ///< which specification draws it: page/KIND.json
  std::string title;
  std::string caption;             ///< what is drawn, how it was reduced, how to read it
  Json settings = Json::object();  ///< values of the specification's signals
  std::string csv;                 ///< the data, all of it
};

/// The id of a figure of the `number`th sweep or search of a page: "sweep-load", "sweep-load-2".
std::string numbered(std::string id, std::size_t number);

/// A csv text, row by row.
class CsvText {
 public:
  explicit CsvText(std::string_view header) : text_(std::string(header) + "\n") {}

  /// Begins a row when the last one has ended.
  CsvText& cell(std::string_view name);
  CsvText& cell(double value);
  void end_row();

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool empty() const { return rows_ == 0; }

 private:
  void begin_cell();

  std::string text_;
  std::size_t rows_ = 0;
  bool in_row_ = false;
};

}  // namespace gpusched
