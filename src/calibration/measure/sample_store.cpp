// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/sample_store.hpp"

#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace gpusched {
namespace {

const std::string heading = "# gpusched.samples/1 ";

/// "id,v1,v2,...\n"; the shortest digits that read back as the same number.
std::string row_of(const std::string& id, const std::vector<double>& samples) {
  std::string row = id;
  for (const double sample : samples) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, sample);
    row += ",";
    row.append(digits, end.ptr);
  }
  return row + "\n";
}

/// False when it is no such row.
bool parse_row(const std::string& line, std::string& id, std::vector<double>& samples) {
  std::size_t at = line.find(',');
  if (at == std::string::npos || at == 0) return false;
  id = line.substr(0, at);
  while (at != std::string::npos) {
    const std::size_t next = line.find(',', at + 1);
    const char* first = line.data() + at + 1;
    const char* last = line.data() + (next == std::string::npos ? line.size() : next);
    double value = 0;
    const auto end = std::from_chars(first, last, value);
    if (end.ec != std::errc{} || end.ptr != last) return false;
    samples.push_back(value);
    at = next;
  }
  return true;
}

Result<void> append(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) return Unexpected{Error{.message = "cannot write samples to this file", .file = path}};
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((std::fclose(file) == 0) && written) return {};
  return Unexpected{
      Error{.message = "cannot write more samples (disk full?); those written before are kept", .file = path}};
}

/// A full disk or a killed program may leave an incomplete last row. It is removed, so that half a number is not read
/// as a sample and the next row begins on a line of its own.
Result<void> drop_cut_row(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::uintmax_t whole = 0;
  std::uintmax_t size = 0;
  for (std::string line; std::getline(in, line);) {
    size += line.size() + (in.eof() ? 0 : 1);
    if (!in.eof()) whole = size;
  }
  if (whole == size) return {};
  std::error_code failed;
  std::filesystem::resize_file(path, whole, failed);
  if (failed) return Unexpected{Error{.message = "cannot write samples to this file", .file = path}};
  return {};
}

}  // namespace

Result<SampleStore> SampleStore::open(const std::string& path, const std::string& identity) {
  SampleStore store;
  store.path_ = path;
  if (path.empty()) return store;
  if (auto whole = drop_cut_row(path); !whole) return Unexpected{whole.error()};
  std::ifstream in(path);
  std::string line;
  if (!in || !std::getline(in, line)) {
    if (auto made = append(path, heading + identity + "\n"); !made) return Unexpected{made.error()};
    return store;
  }
  if (!line.starts_with(heading)) {
    return Unexpected{
        Error{.message = "not a samples file; it should begin with '" + heading + "'", .file = path, .line = 1}};
  }
  if (line != heading + identity) {
    return Unexpected{Error{.message = "these samples are of another run (" + line.substr(heading.size()) +
                                       "), this one is " + identity + "; delete the file or give another --out",
                            .file = path,
                            .line = 1}};
  }
  for (std::uint64_t number = 2; std::getline(in, line); ++number) {
    std::string id;
    std::vector<double> samples;
    if (!parse_row(line, id, samples)) {
      return Unexpected{Error{.message = "expected ID,NUMBER,NUMBER,...", .file = path, .line = number}};
    }
    store.samples_[id] = samples;
  }
  return store;
}

const std::vector<double>* SampleStore::find(const std::string& id) const {
  const auto place = samples_.find(id);
  return place == samples_.end() ? nullptr : &place->second;
}

Result<void> SampleStore::add(const std::string& id, const std::vector<double>& samples) {
  if (!path_.empty()) {
    if (auto written = append(path_, row_of(id, samples)); !written) return written;
  }
  samples_[id] = samples;
  return {};
}

std::string SampleStore::hash() const {
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const auto& [id, samples] : samples_) {
    for (const char c : row_of(id, samples)) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3U;
  }
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, hash);
  return digits;
}

}  // namespace gpusched
