// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/step_times.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "src/base/field_parser.hpp"
#include "src/base/strict_json.hpp"
#include "src/calibration/profile/measured_csv.hpp"

namespace gpusched {
namespace {

namespace fs = std::filesystem;

// By samples a GPU and step: seconds a step.
using StepCurve = std::map<double, double>;

// What was measured of one application on one GPU type: a curve for each placement, by its GPUs and whether they are on
// one node.
using Placements = std::map<std::pair<std::uint32_t, Span>, std::map<std::string, StepCurve>>;

// Seconds a step at `batch` samples a GPU; none outside of what was measured.
std::optional<double> step_at(const StepCurve& curve, double batch) {
  const auto above = curve.lower_bound(batch);
  if (above == curve.end()) return std::nullopt;
  if (above->first == batch) return above->second;
  if (above == curve.begin()) return std::nullopt;
  const auto below = std::prev(above);
  return std::lerp(below->second, above->second, (batch - below->first) / (above->first - below->first));
}

// Samples a second of `gpus` GPUs at `batch` samples a GPU: by the mean step time of the placements where that was
// measured; none where it was in no placement.
std::optional<double> throughput_at(const std::map<std::string, StepCurve>& placements, std::uint32_t gpus,
                                    double batch) {
  double sum = 0;
  int count = 0;
  for (const auto& [placement, curve] : placements) {
    const auto step = step_at(curve, batch);
    sum += step.value_or(0);
    count += step ? 1 : 0;
  }
  return count == 0 ? std::nullopt : std::optional(gpus * batch * count / sum);
}

std::optional<double> best_throughput(const std::map<std::string, StepCurve>& placements, std::uint32_t gpus) {
  std::optional<double> best;
  for (const auto& [placement, curve] : placements) {
    for (const auto& [batch, step] : curve) {
      const auto throughput = throughput_at(placements, gpus, batch);
      if (!best || *throughput > *best) best = throughput;
    }
  }
  return best;
}

Result<Placements> read_placements(const std::string& path) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  constexpr std::array<MeasuredColumn, 3> columns{{{"placement"}, {"local_bsz"}, {"step_time"}}};
  Placements placements;
  const auto read_row = [&](const MeasuredRow& row) -> Result<void> {
    const auto fail = [&](std::size_t which, const char* expected) {
      return Unexpected{Error{.message = expected, .file = path, .line = row.line, .field = columns[which].name}};
    };
    const std::string& placement = row.cells[0];
    const auto is_count = [](char c) { return c >= '1' && c <= '9'; };
    if (placement.empty() || placement.size() > 1000 || !std::all_of(placement.begin(), placement.end(), is_count)) {
      return fail(0, "expected the GPUs on each node, a digit of 1 to 9 each");
    }
    const auto batch = parse_number(row.cells[1]), step = parse_number(row.cells[2]);
    if (!batch || *batch <= 0 || *batch > 1e12) return fail(1, "expected a number of samples");
    if (!step || *step <= 0 || *step > 1e12) return fail(2, "expected a positive number of seconds");
    std::uint32_t gpus = 0;
    for (const char c : placement) gpus += static_cast<std::uint32_t>(c - '0');
    placements[{gpus, placement.size() == 1 ? Span::node : Span::nodes}][placement][*batch] = *step;
    return {};
  };
  if (auto done = for_each_measured_row(*text, path, columns, read_row); !done) return Unexpected{done.error()};
  if (placements.empty()) return Unexpected{Error{.message = "expected step times below a header", .file = path}};
  return placements;
}

// "APPLICATION (batch size B)": B, when the application is this.
std::optional<double> batch_of(std::string_view family, const std::string& application) {
  const std::string begin = application + " (batch size ";
  if (!family.starts_with(begin) || !family.ends_with(')')) return std::nullopt;
  const auto batch = parse_number(family.substr(begin.size(), family.size() - begin.size() - 1));
  return batch && *batch > 0 ? std::optional(*batch) : std::nullopt;
}

// Adds what `throughput` tells of each number of GPUs and span.
template <class Throughput>
void add_family(ThroughputTable& table, const std::string& family, const std::string& type,
                const Placements& placements, Throughput throughput) {
  for (const auto& [gang, curves] : placements) {
    const auto [gpus, span] = gang;
    const std::optional<double> found = throughput(curves, gpus);
    if (!found) continue;
    auto& together = table.rows[{family, gpus}];
    if (span == Span::node) {
      together[type] = *found;
    } else {
      together.emplace(type, *found);  // after the gang on one node, if it was measured: spans are in order
      table.apart[{family, gpus}][type][static_cast<std::size_t>(span)] = *found;
    }
  }
}

void add_application(ThroughputTable& table, const std::string& application, const std::string& type,
                     const Placements& placements, const NameTable* families) {
  if (std::find(table.gpu_types.begin(), table.gpu_types.end(), type) == table.gpu_types.end()) {
    table.gpu_types.push_back(type);
  }
  add_family(table, application, type, placements, best_throughput);
  for (std::uint32_t f = 0; families != nullptr && f < families->size(); ++f) {
    const std::string family((*families)[f]);
    const auto batch = batch_of(family, application);
    if (!batch) continue;
    add_family(table, family, type, placements,
               [&](const auto& curves, std::uint32_t gpus) { return throughput_at(curves, gpus, *batch / gpus); });
  }
}

// The GPU type of a file of step times; none for another file.
std::optional<std::string> type_of_file(const std::string& name) {
  constexpr std::string_view begin = "placements", end = ".csv";
  if (!name.starts_with(begin) || !name.ends_with(end)) return std::nullopt;
  const std::string middle = name.substr(begin.size(), name.size() - begin.size() - end.size());
  if (middle.empty()) return "T4";
  return middle.size() > 1 && middle.front() == '-' ? std::optional(middle.substr(1)) : std::nullopt;
}

}  // namespace

std::vector<std::string> step_time_files(const std::string& folder) {
  std::error_code ignored;
  std::vector<std::string> files;
  for (const auto& application : fs::directory_iterator(folder, ignored)) {
    if (!application.is_directory(ignored)) continue;
    for (const auto& file : fs::directory_iterator(application, ignored)) {
      if (type_of_file(file.path().filename().string())) files.push_back(file.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Result<ThroughputTable> table_of_step_times(const std::string& folder, const NameTable* families) {
  const std::vector<std::string> files = step_time_files(folder);
  if (files.empty()) {
    return Unexpected{Error{.message = "holds no step times: expected APPLICATION/placements.csv or "
                                       "APPLICATION/placements-TYPE.csv, or a file",
                            .file = folder}};
  }
  ThroughputTable table{.file = folder, .gpu_types = {}, .rows = {}};
  for (const std::string& file : files) {
    const auto placements = read_placements(file);
    if (!placements) return Unexpected{placements.error()};
    const fs::path path(file);
    add_application(table, path.parent_path().filename().string(), *type_of_file(path.filename().string()), *placements,
                    families);
  }
  return table;
}

}  // namespace gpusched
