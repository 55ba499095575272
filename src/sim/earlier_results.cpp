// SPDX-License-Identifier: Apache-2.0
#include "src/sim/earlier_results.hpp"

#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

// In the folder itself: evaluate and compare.
constexpr const char* shared_files[] = {"table.txt",   "windows.csv", "comparison.csv", "effects.csv",
                                        "batches.csv", "compare.csv", "compare.json"};
// In the folder of a policy or router: replay and federate.
constexpr const char* own_files[] = {
    "summary.json", "jobs.csv",    "intervals.csv",      "terms.csv",     "services.csv",      "requests.csv",
    "replicas.csv", "studies.csv", "trials.csv",         "tasks.csv",     "trace_events.json", "timeline.csv",
    "power.csv",    "sites.csv",   "service_levels.csv", "latencies.csv", "transfers.csv"};

bool is_name(const std::string& folder) {
  return !folder.empty() && folder != "." && folder != ".." && folder.find('/') == std::string::npos;
}

}  // namespace

Result<std::vector<std::string>> files_of_run(const std::string& manifest, const std::string& path) {
  const auto json = parse_json_strictly(manifest, path);
  if (!json || !json->is_object() || !json->contains("program") || (*json)["program"] != "gpusched") {
    return Unexpected{Error{
        .message = "is no manifest of gpusched; expected a folder of its results, or another folder", .file = path}};
  }
  std::vector<std::string> files(std::begin(shared_files), std::end(shared_files));
  for (const char* list : {"policies", "routers"}) {
    if (!json->contains(list) || !(*json)[list].is_array()) continue;
    for (const Json& entry : (*json)[list]) {
      if (!entry.is_object() || !entry.contains("folder") || !entry["folder"].is_string()) continue;
      const std::string folder = entry["folder"].get<std::string>();
      if (!is_name(folder)) continue;
      for (const char* name : own_files) files.push_back(folder + "/" + name);
    }
  }
  return files;
}

}  // namespace gpusched
