// SPDX-License-Identifier: Apache-2.0
// Writes a workload of the Pollux artifact as a trace and a file of elastic jobs, for `gpusched replay --elastic`.
#include "src/sim/protocols/pollux_elastic.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <string>

#include "src/program/commands.hpp"

namespace {

using namespace gpusched;

int fail(const Error& error) {
  std::fprintf(stderr, "%s\n", error.to_string().c_str());
  return 2;
}

int run(int argc, char** argv) {
  std::string profiles_folder, workload, out;
  bool tuned = false;
  CLI::App app("A workload of the Pollux artifact as OUT.csv and OUT.json");
  app.add_option("profiles", profiles_folder, "folder profiles/pollux")->required();
  app.add_option("workload", workload, "csv of the artifact")->required();
  app.add_option("out", out, "path without suffix")->required();
  app.add_flag("--tuned", tuned, "jobs choose their batch sizes, as under Pollux");
  CLI11_PARSE(app, argc, argv);
  const auto profiles = read_pollux_profiles(profiles_folder);
  if (!profiles) return fail(profiles.error());
  const auto jobs = read_pollux_jobs(workload, *profiles);
  if (!jobs) return fail(jobs.error());
  const PolluxOptions options;
  const auto files = pollux_elastic(*jobs, *profiles, tuned ? PolluxBatches::tuned : PolluxBatches::fixed,
                                    options.gpus_per_node, options.nodes * options.gpus_per_node);
  if (!files) return fail(Error{.message = files.error().message, .file = workload});
  for (const auto& [suffix, text] : {std::pair(".csv", &files->jobs_csv), std::pair(".json", &files->elastic_json)}) {
    if (!(std::ofstream(out + suffix) << *text).flush())
      return fail({.message = "cannot be written", .file = out + suffix});
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return run(argc, argv); });
}
