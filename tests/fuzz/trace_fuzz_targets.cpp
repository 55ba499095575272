// SPDX-License-Identifier: Apache-2.0
// A target for each trace format, under its name, and `trace` for recognition and compressed files. What a reader takes
// must survive everything that `gpusched trace` does with it.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "src/base/strict_json.hpp"
#include "src/world/fit_to_cluster.hpp"
#include "tests/fuzz/fuzz_targets.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "traces/core/trace.hpp"
#include "traces/tools/trace_convert.hpp"
#include "traces/tools/trace_info.hpp"
#include "traces/tools/trace_validate.hpp"

namespace gpusched::test {
namespace {

// Reading the native csv gives the same jobs: written again, they are the same bytes.
void check_native(const JobTable& jobs) {
  const std::string text = write_native(jobs).text;
  const MemoryFile file(text);
  const auto again = read_trace(file.path(), {.format = "native"});
  must_hold(again.has_value(), "the native csv of a trace is read: " + (again ? "" : again.error().to_string()));
  must_hold(write_native(again->jobs).text == text, "the native csv of a trace gives the same jobs");
}

void check_swf(const JobTable& jobs) {
  const auto has_gpu = [](const Shape& shape) { return shape.gpu_milli() > 0; };
  if (std::none_of(jobs.shapes().begin(), jobs.shapes().end(), has_gpu)) return;
  const MemoryFile file(write_swf(jobs).text);
  // Jobs without GPUs are left out, so that another time may now be far from those of most.
  const auto again = read_trace(file.path(), {.format = "swf", .drop_bad_rows = true});
  must_hold(again.has_value(), "the SWF of a trace is read: " + (again ? "" : again.error().to_string()));
}

void check_trace(Trace trace) {
  must_hold(trace.jobs.size() > 0 && trace.jobs.size() == trace.report.kept, "a trace has its jobs");
  check_native(trace.jobs);
  check_swf(trace.jobs);
  const Cluster cluster = Cluster::homogeneous(4, 8);
  const TraceSummary summary = summarize(trace, &cluster);
  must_hold(!summary_text(summary).empty(), "a summary has text");
  must_hold(parse_json_strictly(summary_json(summary), "summary").has_value(), "a summary is JSON");
  for (const Oversize mode : {Oversize::refuse, Oversize::drop, Oversize::clamp}) {
    (void)fit_to_cluster(trace, cluster, mode);
  }
}

// As `trace validate`: every irregular row is looked at.
void check_validation(const std::string& path, const ReadOptions& options, bool can_be_replayed) {
  const auto validation = validate_trace(path, options);
  must_hold(!can_be_replayed || (validation && validation->refusals == 0), "a trace that is read is valid");
  if (!validation) return;
  must_hold(!validation_text(*validation).empty(), "a validation has text");
  must_hold(parse_json_strictly(validation_json(*validation), "validation").has_value(), "a validation is JSON");
}

void read_bytes(std::string_view bytes, ReadOptions options) {
  const MemoryFile file(bytes);
  auto trace = read_trace(file.path(), options);
  check_validation(file.path(), options, trace.has_value());
  if (trace) check_trace(*std::move(trace));
  options.backlog = true;
  options.qos = "high=5,low=-1";
  options.drop_bad_rows = true;
  if (auto rest = read_trace(file.path(), options)) check_trace(*std::move(rest));
}

template <std::size_t n>
struct FormatName {
  char text[n];
  constexpr FormatName(const char (&name)[n]) { std::copy(name, name + n, text); }
};

template <FormatName format>
void read_as(std::string_view bytes) {
  read_bytes(bytes, {.format = format.text});
}

// The first line holds what --columns and --where take, with a tab between them.
void read_csv(std::string_view bytes) {
  const std::string_view options = bytes.substr(0, bytes.find('\n'));
  const std::size_t tab = std::min(options.find('\t'), options.size());
  bytes.remove_prefix(std::min(options.size() + 1, bytes.size()));
  read_bytes(bytes, {.format = "csv",
                     .columns = std::string(options.substr(0, tab)),
                     .where = std::string(options.substr(std::min(tab + 1, options.size())))});
}

void append_octal(std::string& header, std::size_t at, std::size_t digits, std::size_t value) {
  for (std::size_t i = digits; i-- > 0; value /= 8) header[at + i] = static_cast<char>('0' + value % 8);
}

// One file of a tar archive (ustar, POSIX.1-1988).
std::string tar_entry(std::string_view name, std::string_view content) {
  std::string header(512, '\0');
  name.substr(0, 99).copy(header.data(), 99);
  append_octal(header, 100, 7, 0644);             // mode
  append_octal(header, 124, 11, content.size());  // size
  append_octal(header, 136, 11, 0);               // time of change
  header[156] = '0';                              // a regular file
  header.replace(257, 8, std::string_view("ustar\00000", 8));
  header.replace(148, 8, 8, ' ');  // the checksum counts as blanks
  std::size_t sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  append_octal(header, 148, 6, sum);
  header[154] = '\0';
  std::string entry = header.append(content);
  entry.resize((entry.size() + 511) / 512 * 512, '\0');
  return entry;
}

// The tables of PAI one after the other, each behind a line "==NAME", as one archive.
void read_pai(std::string_view bytes) {
  std::string archive;
  while (!bytes.empty()) {
    const std::string_view name = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(name.size() + 1, bytes.size()));
    const std::size_t next = std::min(bytes.find("\n==") + 1, bytes.size());
    const std::string_view content = next == 0 ? bytes : bytes.substr(0, next);
    archive += tar_entry(name.substr(std::min<std::size_t>(2, name.size())), content);
    bytes.remove_prefix(content.size());
  }
  archive.resize(archive.size() + 1024, '\0');
  read_bytes(archive, {.format = "pai"});
}

constexpr std::array<FuzzTarget, 18> targets{{
    {"trace", read_as<"auto">},
    {"native", read_as<"native">},
    {"philly-csv", read_as<"philly-csv">},
    {"philly", read_as<"philly">},
    {"pai", read_pai},
    {"pai-sim", read_as<"pai-sim">},
    {"openb", read_as<"openb">},
    {"openb-pods", read_as<"openb-pods">},
    {"tiresias", read_as<"tiresias">},
    {"acme", read_as<"acme">},
    {"helios", read_as<"helios">},
    {"swf", read_as<"swf">},
    {"sacct", read_as<"sacct">},
    {"sacct-json", read_as<"sacct-json">},
    {"pbs", read_as<"pbs">},
    {"lsf", read_as<"lsf">},
    {"pods", read_as<"pods">},
    {"csv", read_csv},
}};

}  // namespace

std::span<const FuzzTarget> trace_fuzz_targets() { return targets; }

}  // namespace gpusched::test
