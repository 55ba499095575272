// SPDX-License-Identifier: Apache-2.0
/// Splits one line of separated values into fields. The hot path of reading: no allocation for unquoted lines.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace gpusched {

/// Fields of a row. Quoting as in RFC 4180: a field may stand in double quotes, within which a doubled quote is a
/// quote, and separators and line ends are text.
class CsvSplitter {
 public:
  /// Without `quotes` a double quote is a character like others.
  explicit CsvSplitter(char separator = ',', bool quotes = true) : separator_(separator), quotes_(quotes) {}

  /// Splits `line`; the views live until the next call and as long as `line`. False when a quote is not closed or text
  /// follows a closing quote; open() tells which.
  bool split(std::string_view line) {
    fields_.clear();
    unquoted_.clear();
    open_ = false;
    const char* begin = line.data();
    const char* const end = begin + line.size();
    for (const char* at = begin; at != end; ++at) {  // fields are short: a call to find each does not pay
      if (*at == '"' && quotes_) {
        fields_.clear();
        return split_quoted(line);
      }
      if (*at == separator_) {
        fields_.emplace_back(begin, static_cast<std::size_t>(at - begin));
        begin = at + 1;
      }
    }
    fields_.emplace_back(begin, static_cast<std::size_t>(end - begin));
    return true;
  }

  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }

  /// True when the last split() ended within quotes: the row goes on in the next line.
  [[nodiscard]] bool open() const { return open_; }

  /// Whether a row that is open goes on beyond `line`, its next: so that a row of many lines need be split but once, at
  /// its end. False also where text follows a closing quote, which split() of the whole row refuses.
  [[nodiscard]] bool stays_open(std::string_view line) const {
    for (std::size_t at = 0;;) {
      at = line.find('"', at);
      if (at == std::string_view::npos) return true;
      if (++at == line.size()) return false;
      if (line[at] == '"') {  // a doubled quote is text
        ++at;
        continue;
      }
      if (line[at] != separator_) return false;
      do {  // fields without quotes
        if (++at >= line.size()) return false;
        if (line[at] == '"') break;
        at = std::min(line.find(separator_, at), line.size());
      } while (at < line.size());
      if (at >= line.size()) return false;
      ++at;
    }
  }

  /// Makes the fields from the last of `count` on one field. Precondition: split() without quotes gave that many.
  void join_from(std::size_t count) {
    const std::string_view first = fields_[count - 1], last = fields_.back();
    fields_.resize(count);
    fields_.back() = {first.data(), static_cast<std::size_t>(last.data() + last.size() - first.data())};
  }

 private:
  bool split_quoted(std::string_view line) {
    unquoted_.reserve(line.size());  // never grows below, so that the views stay good
    std::size_t at = 0;
    for (;;) {
      if (at < line.size() && line[at] == '"') {
        const std::size_t begin = unquoted_.size();
        for (++at;; ++at) {
          if (at >= line.size()) {
            open_ = true;
            return false;
          }
          if (line[at] != '"') {
            unquoted_ += line[at];
          } else if (at + 1 < line.size() && line[at + 1] == '"') {
            unquoted_ += line[at++];
          } else {
            break;
          }
        }
        fields_.emplace_back(unquoted_.data() + begin, unquoted_.size() - begin);
        if (++at < line.size() && line[at] != separator_) return false;
      } else {
        const std::size_t stop = std::min(line.find(separator_, at), line.size());
        fields_.push_back(line.substr(at, stop - at));
        at = stop;
      }
      if (at >= line.size()) return true;
      ++at;
    }
  }

  char separator_;
  bool quotes_;
  bool open_ = false;
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

}  // namespace gpusched
