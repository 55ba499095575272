// SPDX-License-Identifier: Apache-2.0
// gpusched report: one HTML page from the folders of runs.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/atomic_file.hpp"
#include "src/base/number_text.hpp"
#include "src/base/output_folder.hpp"
#include "src/program/commands.hpp"
#include "src/report/report.hpp"
#include "src/sim/report.hpp"

namespace gpusched {
namespace {

struct ReportArguments {
  std::vector<std::string> folders;
  std::string out = "report.html", title;
  std::string csv;
};

int write_report(const ReportArguments& arguments) {
  const auto report = make_report(arguments.folders, arguments.title);
  if (!report) return complain(report.error(), can_report() ? exit_bad_input : exit_failed);
  std::optional<OutputFolder> folder;
  if (!arguments.csv.empty() && !report->csv.empty()) {
    auto opened = OutputFolder::open(arguments.csv, report->csv.back().first);
    if (!opened) return complain("--csv: " + opened.error().to_string());
    folder.emplace(*std::move(opened));
  }
  if (const auto written = replace_file(arguments.out, report->html); !written) {
    return complain(written.error(), exit_failed);
  }
  if (folder) {
    if (const auto written = write_files(*folder, report->csv); !written) return complain(written.error(), exit_failed);
  }
  show(arguments.out + ": " + counted(report->csv.size(), "figure") + " of " +
       counted(arguments.folders.size(), "folder") + "\n");
  return exit_done;
}

}  // namespace

void add_report_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("report", "Draw runs as one HTML page that opens offline");
  const auto arguments = std::make_shared<ReportArguments>();
  command
      ->add_option("folders", arguments->folders,
                   "what replay, evaluate, compare, sweep, search or train wrote by --out")
      ->required();
  command->add_option("-o,--out", arguments->out, "the page");
  command->add_option("--title", arguments->title, "what stands above the page");
  command->add_option("--csv", arguments->csv, "folder for the data of each figure; by default the page alone has it");
  command->footer(
      "Examples:\n"
      "  gpusched replay jobs.csv --cluster 8x8 --policy fifo,sjf,las --out results\n"
      "  gpusched report results\n"
      "  gpusched sweep grid.json --out grid && gpusched report grid\n"
      "  gpusched report load1 load2 load3 --title 'Three loads' --out loads.html\n");
  command->callback([arguments, &exit_code] { exit_code = write_report(*arguments); });
}

}  // namespace gpusched
