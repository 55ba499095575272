// SPDX-License-Identifier: Apache-2.0
#include "src/report/page.hpp"

#include <algorithm>

#include "src/base/build_info.hpp"
#include "src/base/visible_text.hpp"
#include "src/report/vega.hpp"

namespace gpusched {
namespace {

std::string_view page_file(std::string_view name) {
  for (const PageFile& file : page_files()) {
    if (file.name == name) return file.text;
  }
  return {};
}

// Every line behind "// ".
std::string as_comment(std::string_view text) {
  std::string lines = "// ";
  for (const char c : text) lines += c == '\n' ? std::string("\n// ") : std::string(1, c);
  return lines + "\n";
}

std::string vega_script() {
  std::string script = as_comment(vega_licence()) + as_comment(page_file("d3_notice.txt"));
  script += page_file("vega_begin.js");
  for (const PageFile& module : vega_modules()) {
    script += "add(\"" + std::string(module.name) + "\", function(exports, module, require) {";
    script += module.text;
    script += "\n});\n";
  }
  return script + std::string(page_file("vega_end.js"));
}

std::string list_html(const char* kind, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string html = std::string("<ul class=\"") + kind + "\">\n";
  for (const std::string& line : lines) html += "<li>" + html_text(line) + "</li>\n";
  return html + "</ul>\n";
}

constexpr std::size_t longest_number = 20;  // characters; what is longer may be broken

std::string row_html(const std::vector<std::string>& cells) {
  std::string html = "<tr>";
  for (std::size_t c = 0; c < cells.size(); ++c) {
    const bool is_text = cells[c].find(' ') != std::string::npos && cells[c].size() > longest_number;
    html += c == 0 ? "<th scope=\"row\">" : is_text ? "<td class=\"text\">" : "<td>";
    html += html_text(cells[c]) + (c == 0 ? "</th>" : "</td>");
  }
  return html + "</tr>\n";
}

std::string table_html(const ReportTable& table) {
  std::string html =
      "<section>\n<h2>" + html_text(table.title) + "</h2>\n<div class=\"wide\" tabindex=\"0\">\n<table>\n<thead><tr>";
  for (const std::string& name : table.header) html += "<th scope=\"col\">" + html_text(name) + "</th>";
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) html += row_html(row);
  return html + "</tbody>\n</table>\n</div>\n<p class=\"quiet\">" + html_text(table.caption) + "</p>\n</section>\n";
}

std::string figure_html(const Figure& figure) {
  const std::string title = html_text(figure.title), id = html_text(figure.id);
  return "<figure id=\"figure-" + id + "\" tabindex=\"0\" aria-label=\"" + title + "\">\n<header><h2>" + title +
         "</h2><div class=\"tools\"></div></header>\n<div class=\"chart\" role=\"img\" aria-label=\"" + title +
         "\"></div>\n<figcaption class=\"quiet\">" + html_text(figure.caption) + "</figcaption>\n</figure>\n";
}

std::string links_html(const std::vector<Figure>& figures) {
  std::string html = "<nav aria-label=\"figures\">\n";
  for (const Figure& figure : figures) {
    html += "<a href=\"#figure-" + html_text(figure.id) + "\">" + html_text(figure.title) + "</a>\n";
  }
  return html + "</nav>\n";
}

// The specifications of the kinds that the page has.
Json kinds_json(const std::vector<Figure>& figures) {
  Json kinds = Json::object();
  for (const Figure& figure : figures) {
    if (!kinds.contains(figure.kind)) kinds[figure.kind] = Json::parse(page_file(figure.kind + ".json"));
  }
  return kinds;
}

Json names_json(const std::vector<std::string>& names) {
  Json shown = Json::array();
  for (const std::string& name : names) shown.push_back(visible_line(name));
  return shown;
}

Json data_json(const PageContent& content) {
  Json figures = Json::array();
  for (const Figure& figure : content.figures) {
    figures.push_back({{"id", figure.id}, {"kind", figure.kind}, {"settings", figure.settings}, {"csv", figure.csv}});
  }
  return {{"runs", names_json(content.runs)},
          {"clairvoyant", names_json(content.clairvoyant)},
          {"kinds", kinds_json(content.figures)},
          {"figures", std::move(figures)}};
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string html;
  for (const char c : visible_line(text)) {
    switch (c) {
      case '&': html += "&amp;"; break;
      case '<': html += "&lt;"; break;
      case '>': html += "&gt;"; break;
      case '"': html += "&quot;"; break;
      case '\'': html += "&#39;"; break;
      default: html += c;
    }
  }
  return html;
}

std::string json_for_script(const Json& json) {
  std::string text = json_text(json, -1);
  for (std::size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at))
    text.replace(at, 1, "\\u003c");
  return text;
}

std::string html_page(const PageContent& content) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      // Nothing may be loaded, from wherever: the page needs no network.
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline' "
      "'unsafe-eval'; "
      "style-src 'unsafe-inline'; img-src data: blob:\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
      html_text(content.title) +
      "</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style id=\"colours\">\n";
  html += page_file("colours.css");
  html += "</style>\n<style>\n";
  html += page_file("report.css");
  html += "</style>\n</head>\n<body>\n<header>\n<h1>" + html_text(content.title) + "</h1>\n" +
          list_html("facts", content.facts) + "</header>\n" + links_html(content.figures) +
          "<noscript><p>The tables stand here; the charts are drawn by a script of this page.</p></noscript>\n<main>\n";
  if (!content.notes.empty())
    html += "<section>\n<h2>Notes</h2>\n" + list_html("quiet", content.notes) + "</section>\n";
  for (const ReportTable& table : content.tables) html += table_html(table);
  if (content.runs.size() > 1) html += "<fieldset id=\"runs\"><legend>Runs shown:</legend></fieldset>\n";
  for (const Figure& figure : content.figures) html += figure_html(figure);
  html += "</main>\n<footer class=\"quiet\"><p>Made by gpusched " + html_text(build_info().version) +
          ". A figure that has the focus takes the keys + and - to zoom, arrows to move and 0 for the whole, where it "
          "shows "
          "time.</p></footer>\n<script type=\"application/json\" id=\"data\">" +
          json_for_script(data_json(content)) + "</script>\n<script>\n" + vega_script() + "</script>\n<script>\n";
  html += page_file("report.js");
  return html + "</script>\n</body>\n</html>\n";
}

}  // namespace gpusched
