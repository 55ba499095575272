// SPDX-License-Identifier: Apache-2.0
// gpusched federate: a trace over several sites, under one router or several.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/interruption.hpp"
#include "src/policies/burst/router_table.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"
#include "src/program/output_option.hpp"
#include "src/sites/federate.hpp"
#include "src/sites/federate_report.hpp"

namespace gpusched {
namespace {

int federate(const Asked<FederateOptions>& asked) {
  const FederateOptions& options = asked.scenario;
  const auto refuse = [&](const Error& error) { return asked.complain_of(error, federate_fields); };
  const PolicyRegistry registry = PolicyRegistry::standard();
  auto input = load_federate(options, registry);
  if (!input) return refuse(input.error());
  std::optional<OutputFolder> folder;
  if (const int code = open_folder(options.out, folder); code != exit_done) return code;
  const Interruption interruption;
  std::vector<RouterRun> runs;
  for (const PolicySpec& router : input->routers) {
    auto run = run_router(*input, router, registry, Interruption::wanted());
    if (!run) return refuse(run.error());
    if (Interruption::wanted()) {
      return complain(Interruption::name() + ": router " + router.text + " was interrupted", Interruption::exit_code());
    }
    if (!run->why_unfinished.empty()) return complain("router " + router.text + " " + run->why_unfinished, exit_failed);
    if (folder) {
      if (auto done = write_router_files(*folder, *input, *run, runs.size()); !done)
        return complain(done.error(), exit_failed);
    }
    runs.push_back(*std::move(run));
  }
  if (folder) {
    if (auto done = write_federate_manifest(*folder, options, *input, runs); !done)
      return complain(done.error(), exit_failed);
  }
  options.json ? print(federate_json(options, *input, runs)) : show(federate_table(*input, runs, result_style()));
  std::fflush(stdout);  // before the notes
  for (const std::string& line : federate_notes(*input, runs)) note(line);
  return exit_done;
}

std::string routers_for_help() {
  std::string text = "TRACE and --sites are needed. Routers:\n";
  for (const RouterInfo& row : router_table()) {
    text += "  " + row.name + "  " + row.summary + "\n    (" + row.source + ")\n";
    for (const ParameterInfo& parameter : row.parameters)
      text += "    " + parameter.name + ": " + parameter.meaning + "\n";
  }
  return text +
         "\nExamples:\n"
         "  gpusched federate jobs.csv --sites sites.json \\\n"
         "                    --router local,least-loaded,shortest-completion\n"
         "  gpusched federate jobs.csv --sites sites.json --policy fifo-skip --out DIR \\\n"
         "                    --router 'burst{wait=linear_cost,factor=0.25}'\n";
}

}  // namespace

void add_federate_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("federate", "Run a trace over several sites and compare routers");
  const auto arguments = std::make_shared<FieldArguments>();
  FederateOptions defaults;
  add_field_options(*command, federate_fields(defaults), *arguments, "trace.path");
  command->footer(routers_for_help());
  command->callback([arguments, &exit_code] {
    if (arguments->print_schema) return print(federate_schema());
    const auto asked = scenario_from<FederateOptions>(*arguments, federate_fields, read_federate_file);
    if (!asked) {
      exit_code = complain(asked.error());
    } else if (arguments->print_config) {
      FederateOptions copy = asked->scenario;
      print(fields_json(federate_fields(copy), true));
    } else {
      exit_code = federate(*asked);
    }
  });
}

}  // namespace gpusched
