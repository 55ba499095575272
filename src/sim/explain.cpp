// SPDX-License-Identifier: Apache-2.0
#include "src/sim/explain.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

#include "src/base/nearest_name.hpp"
#include "src/base/strict_json.hpp"
#include "src/sim/report.hpp"

namespace gpusched {
namespace {

std::string hash_text(std::uint64_t hash) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

Unexpected wrong_file(const std::string& file, std::string message) {
  return {Error{.message = std::move(message), .file = file}};
}

std::string text_of(const Json& object, const char* key) {
  const auto place = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && place != object.end() && place->is_string() ? place->get<std::string>() : "";
}

// A policy of the manifest's list.
struct ListedPolicy {
  std::string name, hash;
};

Result<std::vector<ListedPolicy>> listed_policies(const Json& manifest, const std::string& file) {
  const auto list = manifest.is_object() ? manifest.find("policies") : manifest.end();
  if (!manifest.is_object() || list == manifest.end() || !list->is_array() || !manifest.contains("config")) {
    return wrong_file(file, "expected the manifest of a run of replay");
  }
  std::vector<ListedPolicy> policies;
  for (const Json& entry : *list) {
    policies.push_back({text_of(entry, "policy"), text_of(entry, "history_hash")});
    if (policies.back().name.empty() || policies.back().hash.empty()) {
      return wrong_file(file, "expected the history of each policy; was it written by replay --out?");
    }
  }
  if (policies.empty()) return wrong_file(file, "no policy of this run finished");
  return policies;
}

Result<JobId> find_job(const JobTable& jobs, const std::string& id, const std::string& trace) {
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (jobs.external_id(JobId{i}) == id) return JobId{i};
  }
  return unexpected("--job: no job '" + id + "' is among the " + std::to_string(jobs.size()) + " jobs that ran of " +
                    trace);
}

}  // namespace

Result<ExplainPlan> load_explanation(const std::string& folder, const std::string& job, const std::string& policy,
                                     const PolicyRegistry& registry) {
  const std::string file = folder + "/" + manifest_name;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) {
    return wrong_file(folder, "no run is here: expected the folder that replay --out wrote, with manifest.json");
  }
  const auto text = read_text_file(file);
  if (!text) return Unexpected{text.error()};
  const auto manifest = parse_json_strictly(*text, file);
  if (!manifest) return Unexpected{manifest.error()};
  auto listed = listed_policies(*manifest, file);
  if (!listed) return Unexpected{listed.error()};
  ExplainPlan plan{.folder = folder, .scenario = {}, .input = {}, .job = no_job, .hashes = {}};
  if (auto read = read_scenario_json(plan.scenario, *text, file); !read) return Unexpected{read.error()};
  std::vector<std::string> names, chosen;
  for (const ListedPolicy& entry : *listed) {
    names.push_back(entry.name);
    if (!policy.empty() && entry.name != policy) continue;
    chosen.push_back(entry.name);
    plan.hashes.push_back(entry.hash);
  }
  if (chosen.empty()) {
    return unexpected("--policy: '" + policy + "' is not in " + folder + suggest_nearest(policy, names) +
                      "; it holds " + joined(names, ", "));
  }
  plan.scenario.policies = chosen;
  plan.scenario.recorded = "none";
  auto input = load_replay(plan.scenario, registry);
  if (!input) {
    return wrong_file(file, input.error().to_string() + " (its paths are read from the folder in which replay ran)");
  }
  plan.input = *std::move(input);
  const std::string& trace = plan.input.trace.report.path;
  if (plan.scenario.manifest_sha256 != plan.input.trace.report.sha256) {
    return wrong_file(trace, "is not the trace of " + file + ": its SHA-256 differs");
  }
  const auto found = find_job(plan.input.trace.jobs, job, trace);
  if (!found) return Unexpected{found.error()};
  plan.job = *found;
  return plan;
}

Result<std::vector<PolicyRun>> run_explanation(const ExplainPlan& plan, const PolicyRegistry& registry,
                                               ReplayProgress& progress) {
  auto runs = run_replay(plan.input, registry, 1, {.job_files = true, .explained = plan.job}, progress);
  if (!runs) return runs;
  for (std::size_t i = 0; i < runs->size(); ++i) {
    const PolicyRun& run = (*runs)[i];
    if (!run.why_unfinished.empty()) return unexpected("policy " + run.policy + " " + run.why_unfinished);
    if (hash_text(run.history_hash) == plan.hashes[i]) continue;
    return wrong_file(plan.folder,
                      "policy " + run.policy +
                          " does not run again as it ran there: another version of gpusched wrote it, or a "
                          "file that it read has changed");
  }
  return runs;
}

}  // namespace gpusched
