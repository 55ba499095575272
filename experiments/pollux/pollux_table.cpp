// SPDX-License-Identifier: Apache-2.0
// Prints the average JCT of the Pollux artifact's Tiresias and Optimus: published | gpusched | difference, and for how
// many jobs the JCT differs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "src/base/strict_json.hpp"
#include "src/program/commands.hpp"
#include "src/sim/protocols/pollux_protocol.hpp"

namespace {

using namespace gpusched;
namespace fs = std::filesystem;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 2;
}

// What a file of the artifact's results says of the jobs of a workload.
struct Published {
  double avg_jct_s = 0;
  std::size_t unequal = 0;
};

Published compare(const Json& jcts, const std::vector<PolluxJob>& jobs, const PolluxResult& ours) {
  Published published;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto found = jcts.find(jobs[i].name);
    const double theirs = found != jcts.end() && found->is_number() ? found->get<double>() : -1;
    published.avg_jct_s += theirs;
    published.unequal += theirs == static_cast<double>(ours.jct_s[i]) ? 0 : 1;
  }
  published.avg_jct_s /= static_cast<double>(std::max<std::size_t>(jobs.size(), 1));
  return published;
}

int run(int argc, char** argv) {
  std::string traces, csv;
  PolluxOptions options;
  bool no_published = false;
  CLI::App app("The Pollux artifact's table: published | gpusched | difference");
  app.add_option("traces", traces, "folder with profiles/pollux and workloads/pollux/load-*/*.csv")->required();
  app.add_option("--csv", csv, "also write the table here");
  app.add_flag("--no-published", no_published, "another input than that of the published figures");
  app.add_option("--nodes", options.nodes)->check(CLI::Range(1, 10'000))->capture_default_str();
  app.add_option("--gpus-per-node", options.gpus_per_node)->check(CLI::Range(1, 9))->capture_default_str();
  app.add_option("--restart", options.restart_s, "seconds of a start")
      ->check(CLI::Range(0, 86'400))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const fs::path workloads = fs::path(traces) / "workloads/pollux";
  const auto profiles = read_pollux_profiles((fs::path(traces) / "profiles/pollux").string());
  if (!profiles) return fail(profiles.error());
  std::string table =
      "load,policy,workload,jobs,published,ours,difference,unequal_jobs,starts,allocated_gpu_h,restart_gpu_h,tail_gpu_"
      "h\n";
  std::printf("%-10s %-9s %-12s %5s %12s %12s %10s %7s\n", "load", "policy", "workload", "jobs", "published",
              "gpusched", "difference", "unequal");
  for (const fs::path& load : sorted_entries(workloads)) {
    const std::string name = load.filename().string();
    if (!name.starts_with("load-")) continue;
    for (const auto& [policy_name, policy] : pollux_policies) {
      const std::string policy_text(policy_name);
      const fs::path file = workloads / "published" / (policy_text + "-" + name.substr(5) + ".json");
      Json published = Json::object();
      if (!no_published && fs::exists(file)) {
        const auto text = read_text_file(file.string());
        if (!text) return fail(text.error());
        auto json = parse_json_strictly(*text, file.string());
        if (!json) return fail(json.error());
        if (!json->is_object() || !json->contains("jcts") || !(*json)["jcts"].is_object()) {
          return fail({.message = "expected an object of jcts by workload", .file = file.string(), .field = "jcts"});
        }
        published = (*json)["jcts"];
      }
      for (const fs::path& workload : sorted_entries(load)) {
        const auto jobs = read_pollux_jobs(workload.string(), *profiles);
        if (!jobs) return fail(jobs.error());
        const auto result = run_pollux(*jobs, *profiles, policy, options);
        if (!result) return fail(Error{.message = result.error().message, .file = workload.string()});
        const std::string key = workload.stem().string();
        char theirs[64] = "-", difference[64] = "-", unequal[64] = "-";
        if (published.contains(key)) {
          const Published figures = compare(published[key], *jobs, *result);
          std::snprintf(theirs, sizeof theirs, "%.4f", figures.avg_jct_s);
          std::snprintf(difference, sizeof difference, "%+.4f", result->avg_jct_s - figures.avg_jct_s);
          std::snprintf(unequal, sizeof unequal, "%zu", figures.unequal);
        }
        std::printf("%-10s %-9s %-12s %5zu %12s %12.4f %10s %7s\n", name.c_str(), policy_text.c_str(), key.c_str(),
                    jobs->size(), theirs, result->avg_jct_s, difference, unequal);
        const auto cell = [](const char* text) { return std::string(text[0] == '-' && text[1] == 0 ? "" : text); };
        const auto hours = [](std::int64_t gpu_s) { return std::to_string(static_cast<double>(gpu_s) / 3600); };
        table += name + ',' + policy_text + ',' + key + ',' + std::to_string(jobs->size()) + ',' + cell(theirs) + ',' +
                 std::to_string(result->avg_jct_s) + ',' + cell(difference) + ',' + cell(unequal) + ',' +
                 std::to_string(result->starts) + ',' + hours(result->allocated_gpu_s) + ',' +
                 hours(result->restart_gpu_s) + ',' + hours(result->tail_gpu_s) + '\n';
      }
    }
  }
  if (!csv.empty() && !(std::ofstream(csv) << table).flush())
    return fail({.message = "cannot be written", .file = csv});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
