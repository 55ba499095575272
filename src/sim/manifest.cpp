// SPDX-License-Identifier: Apache-2.0
#include "src/sim/manifest.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/build_info.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {

Json build_json() {
  const BuildInfo build = build_info();
  return {{"program", "gpusched"},
          {"version", build.version},
          {"git_commit", build.git_commit},
          {"compiler", build.compiler},
          {"build_type", build.build_type}};
}

Json trace_json(const TraceReport& report) {
  Json dropped = Json::array();
  for (const DroppedRows& rows : report.dropped) {
    dropped.push_back({{"reason", rows.reason}, {"rows", rows.rows}, {"first_line", rows.first_line}});
  }
  return {{"path", report.path}, {"format", report.format}, {"sha256", report.sha256}, {"rows", report.rows},
          {"kept", report.kept}, {"dropped", dropped},      {"notes", report.notes}};
}

Json cluster_json(const Cluster& cluster) {
  return {{"name", cluster.name}, {"nodes", cluster.nodes.size()}, {"gpus", cluster.total_gpus()}};
}

Json slurm_json(const SlurmSite& site) {
  Json list = Json::array();
  for (const UnusedSetting& setting : site.unused) {
    list.push_back({{"file", setting.file}, {"line", setting.line}, {"key", setting.key}, {"value", setting.value}});
  }
  return {{"unused", std::move(list)}};
}

std::vector<std::string> existing_files(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code ignored;
    const bool known = std::find(files.begin(), files.end(), name) != files.end();
    if (!known && std::filesystem::is_regular_file(name, ignored)) files.push_back(name);
  }
  return files;
}

std::vector<std::string> files_of_policies(const std::vector<PolicySpec>& specs, const PolicyRegistry& registry) {
  std::vector<std::string> all;
  for (const PolicySpec& spec : specs) {
    const auto info = registry.find(spec.name);
    if (!info || !(*info)->files) continue;
    const std::vector<std::string> files = (*info)->files(spec);
    all.insert(all.end(), files.begin(), files.end());
  }
  return all;
}

Json file_json(const std::string& path) {
  auto file = InputFile::open(path);
  return {{"path", path}, {"sha256", file ? Json(file->sha256()) : Json()}};
}

namespace {

Json values_json(const std::vector<UsedValue>& values) {
  Json list = Json::array();
  for (const UsedValue& used : values) {
    list.push_back({{"profile", used.profile_id},
                    {"path", used.path},
                    {"value", used.value},
                    {"unit", used.unit},
                    {"source", to_string(used.source)},
                    {"ref", used.ref}});
  }
  return list;
}

}  // namespace

Json rates_json(const CalibratedRuntime& runtime) {
  if (!runtime.model.has_rates()) return "every GPU runs at the speed of the trace";
  return values_json(runtime.used);
}

Json power_json(const CalibratedRuntime& runtime, const std::string& model) {
  Json profiles = runtime.power.gpus.empty() ? Json("none") : values_json(runtime.power_used);
  return model.empty() ? profiles : Json{{"model", model}, {"profiles", std::move(profiles)}};
}

}  // namespace gpusched
