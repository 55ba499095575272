// SPDX-License-Identifier: Apache-2.0
// gpusched explain: why a job of a run waited.
#include <memory>
#include <string>

#include "src/base/interruption.hpp"
#include "src/program/commands.hpp"
#include "src/program/option_checks.hpp"
#include "src/sim/explain.hpp"

namespace gpusched {
namespace {

struct ExplainArguments {
  std::string folder, job, policy;
  bool json = false;
};

int explain(const ExplainArguments& arguments) {
  const PolicyRegistry registry = PolicyRegistry::standard();
  const auto plan = load_explanation(arguments.folder, arguments.job, arguments.policy, registry);
  if (!plan) return complain(plan.error());
  const Interruption interruption;
  ReplayProgress progress;
  progress.stop = &Interruption::wanted();
  const auto runs = run_explanation(*plan, registry, progress);
  if (Interruption::wanted()) return complain(Interruption::name() + ": interrupted", Interruption::exit_code());
  if (!runs) return complain(runs.error(), exit_failed);
  arguments.json ? print(explanation_json(*plan, *runs)) : show(explanation_text(*plan, *runs));
  return exit_done;
}

}  // namespace

void add_explain_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("explain", "Say why a job of a run waited, interval by interval");
  const auto arguments = std::make_shared<ExplainArguments>();
  command->add_option("folder", arguments->folder, "what replay wrote by --out; its scenario is run again")->required();
  command->add_option("--job", arguments->job, "the job's id, as in jobs.csv")->required()->check(not_empty());
  command->add_option("-p,--policy", arguments->policy, "one of the run's policies; by default all");
  command->add_flag("--json", arguments->json, "print one JSON object instead of words");
  command->footer(
      "Examples:\n"
      "  gpusched replay jobs.csv --cluster 8x8 --policy fifo+easy --out now\n"
      "  gpusched explain now --job 4711\n");
  command->callback([arguments, &exit_code] { exit_code = explain(*arguments); });
}

}  // namespace gpusched
