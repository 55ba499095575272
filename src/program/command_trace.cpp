// SPDX-License-Identifier: Apache-2.0
// gpusched trace: look at a trace, check it, translate it, make one (command_trace_generate.cpp).
#include <cstdio>
#include <memory>
#include <string>

#include "src/base/number_text.hpp"
#include "src/base/wrapped_text.hpp"
#include "src/program/commands.hpp"
#include "src/program/option_checks.hpp"
#include "src/sim/report.hpp"
#include "src/sim/right_sizing.hpp"
#include "src/world/cluster_reader.hpp"
#include "traces/core/trace.hpp"
#include "traces/tools/trace_convert.hpp"
#include "traces/tools/trace_info.hpp"
#include "traces/tools/trace_validate.hpp"

namespace gpusched {
namespace {

struct TraceArguments {
  std::string path, cluster, to = "native", out;
  ReadOptions read;
  bool json = false;
  std::string throughputs, gpu_type;
  double efficiency = 0.7;
};

int info(const TraceArguments& arguments) {
  Cluster cluster;
  if (!arguments.cluster.empty()) {
    auto found = parse_cluster(arguments.cluster);
    if (!found) return complain(found.error());
    cluster = *std::move(found);
  }
  const auto trace = read_trace(arguments.path, arguments.read);
  if (!trace) return complain(trace.error());
  if (trace->jobs.size() == 0) return complain(arguments.path + ": has no jobs");
  const TraceSummary summary = summarize(*trace, arguments.cluster.empty() ? nullptr : &cluster);
  arguments.json ? print(summary_json(summary)) : show(summary_text(summary, result_style()));
  return exit_done;
}

// A trace that replay would refuse is bad input, and what it lists is the result.
int validate(const TraceArguments& arguments) {
  const auto validation = validate_trace(arguments.path, arguments.read);
  if (!validation) return complain(validation.error());
  arguments.json ? print(validation_json(*validation)) : show(validation_text(*validation));
  return validation->refusals == 0 ? exit_done : exit_bad_input;
}

int convert(const TraceArguments& arguments) {
  const auto trace = read_trace(arguments.path, arguments.read);
  if (!trace) return complain(trace.error());
  const TraceReport& report = trace->report;
  const auto written = convert_trace(trace->jobs, arguments.to, arguments.out, report.machine_gpus);
  if (!written) return complain(written.error(), written.error().file.empty() ? exit_bad_input : exit_failed);
  for (const std::string& line : left_out_lines(report)) note(line);
  for (const std::string& line : written->notes) note(line);
  // The trace itself may have gone to standard output.
  const bool is_printed = arguments.out == "-" || arguments.out == "/dev/stdout";
  std::fprintf(is_printed ? stderr : stdout, "%s: %s\n", arguments.out.c_str(), counted(written->jobs, "job").c_str());
  return exit_done;
}

int waste(const TraceArguments& arguments) {
  const auto trace = read_trace(arguments.path, arguments.read);
  if (!trace) return complain(trace.error());
  const auto table = read_throughput_table(arguments.throughputs, &trace->jobs.families());
  if (!table) return complain(table.error());
  const auto found = trace_waste(trace->jobs, *table, arguments.gpu_type, arguments.efficiency);
  if (!found) return complain(found.error());
  for (const std::string& line : left_out_lines(trace->report)) note(line);
  arguments.json ? print(waste_json(*found)) : show(waste_text(*found, result_style()));
  return exit_done;
}

// What every one of these commands takes.
CLI::App* add_reading_command(CLI::App& parent, const std::string& name, const std::string& meaning,
                              const std::string& example, TraceArguments& arguments) {
  auto* command = parent.add_subcommand(name, meaning);
  command->footer("Example:\n  gpusched trace " + name + " " + example + "\n");
  command->add_option("trace,--trace", arguments.path, "trace file, - for standard input, or synthetic:NAME")
      ->required()
      ->check(not_empty());
  command->add_option("--format", arguments.read.format, "format of the trace")->capture_default_str();
  command->add_option("--columns", arguments.read.columns,
                      "columns of a csv: submit=NAME[:UNIT],gpus=NAME,duration=NAME,...");
  command->add_option("--where", arguments.read.where,
                      "which jobs to read: COLUMN=VALUE[|VALUE...][,...], also != < <= > >=");
  command->add_flag("--backlog", arguments.read.backlog,
                    "keep jobs that had not ended when the log was written; their time limit is their run time");
  command->add_option("--qos", arguments.read.qos, "priorities by quality of service: NAME=WEIGHT[,...]");
  return command;
}

std::string formats_for_help() {
  std::string text = "Formats:\n";
  for (const TraceFormatInfo& format : trace_formats()) {
    text += "  " + format.name + std::string(12 - format.name.size(), ' ') +
            wrapped(format.summary, terminal_columns - 14, 14) + "\n";
  }
  return text;
}

}  // namespace

void add_trace_command(CLI::App& program, int& exit_code) {
  auto* trace = program.add_subcommand("trace", "Look at a trace, check it, translate it, or make one");
  trace->require_subcommand(1);
  const auto arguments = std::make_shared<TraceArguments>();

  auto* info_command = add_reading_command(*trace, "info", "Show what a trace holds: span, jobs, sizes, load",
                                           "jobs.csv --cluster 352x8", *arguments);
  info_command->add_option("--cluster", arguments->cluster, "cluster that the load refers to");
  const auto add_drop = [&arguments](CLI::App& command) {
    command.add_flag("--drop-bad-rows", arguments->read.drop_bad_rows, "leave out rows with bad values");
  };
  add_drop(*info_command);
  info_command->add_flag("--json", arguments->json, "print one JSON object");
  info_command->callback([arguments, &exit_code] { exit_code = info(*arguments); });

  auto* validate_command = add_reading_command(*trace, "validate", "List oddities by line; exit code 2 if refused",
                                               "mine.txt --format sacct", *arguments);
  validate_command->add_flag("--json", arguments->json, "print one JSON object");
  validate_command->callback([arguments, &exit_code] { exit_code = validate(*arguments); });

  auto* convert_command =
      add_reading_command(*trace, "convert", "Write a trace in another format", "log.swf.gz --out log.csv", *arguments);
  convert_command->add_option("--to", arguments->to, "native (keeps everything) or swf")
      ->type_name("native|swf")
      ->capture_default_str();
  convert_command->add_option("--out", arguments->out, "the file to write, or - for standard output")->required();
  add_drop(*convert_command);
  convert_command->callback([arguments, &exit_code] { exit_code = convert(*arguments); });

  auto* waste_command = add_reading_command(*trace, "waste", "Show what gangs of the wrong size waste",
                                            "jobs.csv --throughputs measured.csv", *arguments);
  waste_command
      ->add_option("--throughputs", arguments->throughputs,
                   "measured throughputs of the jobs' families by GPUs, as replay takes them")
      ->required();
  waste_command->add_option("--gpu-type", arguments->gpu_type, "of the throughputs (default: the first there)");
  waste_command
      ->add_option("--efficiency", arguments->efficiency,
                   "advise the largest size, up to the job's own, at which a GPU does at least this share of its best")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  add_drop(*waste_command);
  waste_command->add_flag("--json", arguments->json, "print one JSON object");
  waste_command->callback([arguments, &exit_code] { exit_code = waste(*arguments); });

  add_trace_generate_command(*trace, exit_code);

  trace->footer(formats_for_help() +
                "\nExamples:\n"
                "  gpusched trace info jobs.csv --cluster 352x8\n"
                "  gpusched trace validate mine.txt --format sacct\n"
                "  gpusched trace convert log.swf.gz --out log.csv\n"
                "  gpusched trace generate --jobs 100000 --out big.csv");
}

}  // namespace gpusched
