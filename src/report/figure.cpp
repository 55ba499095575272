// SPDX-License-Identifier: Apache-2.0
#include "src/report/figure.hpp"

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"

namespace gpusched {

void CsvText::begin_cell() {
  if (in_row_) text_ += ',';
  in_row_ = true;
}

CsvText& CsvText::cell(std::string_view name) {
  begin_cell();
  append_csv_field(text_, visible_line(name));
  return *this;
}

// Eight digits: a second in three years.
CsvText& CsvText::cell(double value) {
  begin_cell();
  text_ += formatted("%.8g", value);
  return *this;
}

void CsvText::end_row() {
  text_ += '\n';
  in_row_ = false;
  ++rows_;
}

std::string numbered(std::string id, std::size_t number) {
  return number == 1 ? id : id + "-" + std::to_string(number);
}

}  // namespace gpusched
