// SPDX-License-Identifier: Apache-2.0
/// The HTML of a report.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/report/comparison.hpp"
#include "src/report/figure.hpp"

namespace gpusched {

/// What a page shows, from top to bottom. No text in it is markup.
struct PageContent {
  std::string title = "gpusched report";
  std::vector<std::string> facts;  ///< what was run: a line a folder
  std::vector<std::string> notes;
  std::vector<std::string> runs;         ///< names that figures are drawn of
  std::vector<std::string> clairvoyant;  ///< those of `runs` that know true run times; legends mark them by a star
  std::vector<ReportTable> tables;
  std::vector<Figure> figures;
};

/// `text` as text of an HTML document or as a quoted attribute: markup, control characters and bytes that are no UTF-8
/// are shown, not obeyed.
std::string html_text(std::string_view text);

/// A JSON value as the content of a script element: no '<' in it.
std::string json_for_script(const Json& json);

std::string html_page(const PageContent& content);

}  // namespace gpusched
