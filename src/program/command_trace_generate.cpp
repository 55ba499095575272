// SPDX-License-Identifier: Apache-2.0
// gpusched trace generate: a synthetic trace, or the model behind one.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/program/commands.hpp"
#include "src/program/option_checks.hpp"
#include "src/sim/twin_check.hpp"
#include "src/world/cluster_reader.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/lublin_fit.hpp"
#include "traces/synthetic/trace_fit.hpp"
#include "traces/synthetic/trace_model.hpp"
#include "traces/tools/trace_convert.hpp"

namespace gpusched {
namespace {

constexpr double most_instant_s = 4.6e12;  // as of a trace's submissions

struct GenerateArguments {
  std::string model = "philly", like, model_out, cluster, out;
  ReadOptions read;
  bool model_given = false;
  std::optional<double> like_from_s, load;
  double week_start_s = 0;
  std::optional<std::uint32_t> like_jobs, jobs;
  std::uint64_t seed = 0;
  bool no_check = false;
};

// A name of a model, maybe with parameters, or a file: whatever has a dot or a slash before any brace.
Result<TraceModel> model_from(const std::string& text) {
  if (text.substr(0, text.find('{')).find_first_of("./") == std::string::npos) return named_trace_model(text);
  const auto json = read_text_file(text);
  if (!json) return Unexpected{json.error()};
  return read_trace_model(*json, text);
}

// What --like fits: the model lublin where --model names it, sessions of users else. The machine of lublin has the
// processors of --cluster, else those that the trace states, else those of its largest job.
Result<TraceModel> fit(const GenerateArguments& arguments, const Trace& trace, const FitOptions& options) {
  const auto about = [&arguments](std::uint64_t jobs) {
    return "Fitted to " + std::to_string(jobs) + " jobs of " + arguments.like + ".";
  };
  if (!arguments.model_given) {
    auto model = fit_model(trace.jobs, options);
    if (!model) return Unexpected{model.error()};
    model->about = about(model->default_jobs);
    if (!trace.report.sha256.empty()) model->sources["all"] = "fitted; SHA-256 of the trace " + trace.report.sha256;
    return TraceModel{*std::move(model)};
  }
  auto processors = static_cast<std::uint64_t>(trace.report.machine_gpus);
  if (!arguments.cluster.empty()) {
    const auto cluster = parse_cluster(arguments.cluster);
    if (!cluster) return Unexpected{cluster.error()};
    processors = static_cast<std::uint64_t>(cluster->total_gpus());
  }
  auto model = fit_lublin(trace.jobs, processors, options);
  if (!model) return Unexpected{model.error()};
  model->about = about(model->default_jobs);
  if (!trace.report.sha256.empty()) model->about += " SHA-256 of the trace: " + trace.report.sha256 + ".";
  return TraceModel{*std::move(model)};
}

// The jobs of --like go to `real` as the fit counts them.
Result<TraceModel> chosen_model(const GenerateArguments& arguments, JobTable& real) {
  if (arguments.like.empty()) return model_from(arguments.model);
  if (arguments.model_given && arguments.model != "lublin") {
    return unexpected(
        "--model and TRACE exclude each other; only --model lublin, without parameters, is fitted to one");
  }
  const auto trace = read_trace(arguments.like, arguments.read);
  if (!trace) return Unexpected{trace.error()};
  FitOptions options{.week_start = from_seconds(arguments.week_start_s)};
  if (arguments.like_from_s) options.from = from_seconds(*arguments.like_from_s);
  if (arguments.like_jobs) options.jobs = *arguments.like_jobs;
  auto model = fit(arguments, *trace, options);
  if (!model) {
    Error error = model.error();
    if (error.file.empty()) error.file = arguments.like;
    return Unexpected{error};
  }
  const auto missing = missing_in_twins(trace->jobs, options, !arguments.model_given);
  if (!missing.empty()) note("of the trace a twin has not: " + joined(missing, ", "));
  real = fitted_jobs(trace->jobs, options);
  return model;
}

Result<SyntheticOptions> options_for(const GenerateArguments& arguments, const TraceModel& model) {
  SyntheticOptions options = default_options(model);
  options.seed = arguments.seed;
  if (arguments.jobs) options.jobs = *arguments.jobs;
  if (arguments.load) options.offered_load = *arguments.load;
  if (!arguments.cluster.empty()) {
    const auto cluster = parse_cluster(arguments.cluster);
    if (!cluster) return Unexpected{cluster.error()};
    options.cluster_gpus = cluster->total_gpus();
  }
  return options;
}

constexpr std::uint32_t most_compared_jobs = 100'000;  // seconds of simulation, not hours

// Draws a twin as long as the trace and prints how long jobs wait in both; a note where that is not alike.
int compare(const JobTable& real, const TraceModel& model, std::uint64_t seed) {
  const std::uint32_t jobs = std::min(real.size(), most_compared_jobs);
  const auto twin = generate_trace(model, {.jobs = jobs, .seed = seed});
  const auto cluster = parse_cluster(default_cluster(model));
  if (!twin || !cluster) return complain(twin ? cluster.error() : twin.error());
  const auto check = check_twin(real.slice(0, jobs), *twin, *cluster);
  if (!check) return complain(check.error(), exit_failed);
  std::fputs(twin_check_text(*check).c_str(), stdout);
  if (!check->alike()) {
    note("this twin does not wait as the trace does, within a factor of 1.5: do not take its waits for the trace's");
  }
  return exit_done;
}

// Whether two paths mean one file, there or not yet. Devices such as /dev/null take what comes.
bool is_one_file(const std::string& a, const std::string& b) {
  std::error_code ignored;
  if (a.empty() || b.empty() || a == "-" || b == "-") return false;
  const auto there = std::filesystem::status(a, ignored);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) return false;
  if (std::filesystem::equivalent(a, b, ignored)) return true;
  const auto place = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
  };
  return place(a) == place(b);
}

// What is to be written would replace what is read, or what was written before.
std::optional<std::string> overwriting(const GenerateArguments& arguments) {
  std::error_code ignored;
  for (const auto& [option, path] : {std::pair{"--out ", &arguments.out}, {"--model-out ", &arguments.model_out}}) {
    if (is_one_file(*path, arguments.like)) return option + *path + " is the trace itself; name another file";
    const bool is_table =
        std::filesystem::is_directory(arguments.like, ignored) && std::filesystem::is_regular_file(*path, ignored) &&
        std::filesystem::equivalent(std::filesystem::absolute(*path, ignored).parent_path(), arguments.like, ignored);
    if (is_table) return option + *path + " is a file of the trace; name another one";
  }
  if (!is_one_file(arguments.out, arguments.model_out)) return std::nullopt;
  return "--out and --model-out name the same file, " + arguments.out;
}

int generate(const GenerateArguments& arguments) {
  if (arguments.out.empty() && arguments.model_out.empty())
    return complain("give --out FILE.csv, or --model-out FILE.json");
  if (const auto refusal = overwriting(arguments)) return complain(*refusal);
  JobTable real;
  const auto model = chosen_model(arguments, real);
  if (!model) return complain(model.error());
  if (!arguments.out.empty()) {
    const auto options = options_for(arguments, *model);
    if (!options) return complain(options.error());
    const auto jobs = generate_trace(*model, *options);
    if (!jobs) return complain("--" + jobs.error().to_string());  // the field is the option's name
    if (auto done = convert_trace(*jobs, "native", arguments.out); !done) return complain(done.error(), exit_failed);
    const double days = to_seconds(jobs->submits().back() - jobs->submits().front()) / 86400;
    std::printf("%s: %s jobs in %.1f days, offered load %.3f on %s GPUs\n", arguments.out.c_str(),
                human_count(jobs->size()).c_str(), days, offered_load(*jobs, options->cluster_gpus),
                human_count(static_cast<std::uint64_t>(options->cluster_gpus)).c_str());
  }
  if (!arguments.model_out.empty()) {
    if (auto done = replace_file(arguments.model_out, write_trace_model(*model)); !done) {
      return complain(done.error(), exit_failed);
    }
    std::printf("%s: the model\n", arguments.model_out.c_str());
  }
  return arguments.like.empty() || arguments.no_check ? exit_done : compare(real, *model, arguments.seed);
}

}  // namespace

void add_trace_generate_command(CLI::App& trace, int& exit_code) {
  auto* command = trace.add_subcommand("generate", "Draw a synthetic trace from a model, or fit a model");
  const auto arguments = std::make_shared<GenerateArguments>();
  const std::string names = joined(trace_model_names(), ", ");
  auto* model = command
                    ->add_option("--model", arguments->model,
                                 "built-in model (" + names +
                                     "), the last two with parameters, as in lublin{umed=5.5}, or FILE.json")
                    ->capture_default_str();
  auto* trace_file = command->add_option(
      "trace,--like", arguments->like,
      "fit a model to this trace, in place of --model, or --model lublin: file, - for standard input");
  command->add_option("--format", arguments->read.format, "format of TRACE")->capture_default_str()->needs(trace_file);
  command
      ->add_option("--columns", arguments->read.columns,
                   "columns of a csv: submit=NAME[:UNIT],gpus=NAME,duration=NAME,...")
      ->needs(trace_file);
  command->add_option("--like-from", arguments->like_from_s, "leave out jobs of TRACE submitted before this second")
      ->check(number_from(-most_instant_s, most_instant_s))
      ->needs(trace_file);
  command->add_option("--like-jobs", arguments->like_jobs, "fit so many jobs of TRACE, the first ones that count")
      ->needs(trace_file);
  command->add_option("--week-start", arguments->week_start_s, "a second of TRACE at which a Monday begins")
      ->check(number_from(-most_instant_s, most_instant_s))
      ->capture_default_str()
      ->needs(trace_file);
  command->add_option("--jobs", arguments->jobs, "number of jobs; else what the model recommends");
  command->add_option("--load", arguments->load, "GPU time asked for over GPU time of --cluster; else the model's");
  command->add_option("--cluster", arguments->cluster, "cluster that --load refers to; else the model's");
  command->add_option("--seed", arguments->seed, "seed of the random numbers")
      ->check(whole_number_from(0, most_whole_number))
      ->capture_default_str();
  command->add_flag("--no-check", arguments->no_check, "do not compare the waits of TRACE and its twin")
      ->needs(trace_file);
  command->add_option("--out", arguments->out, "write the trace here (csv)");
  command->add_option("--model-out", arguments->model_out, "write the model here (JSON)");
  command->footer(
      "--out or --model-out is needed, or both.\n"
      "\nExamples:\n"
      "  gpusched trace generate --model philly --jobs 100000 --load 0.8 \\\n"
      "                          --cluster 352x8 --out big.csv\n"
      "  gpusched trace generate my.csv --jobs 100000 --out alike.csv \\\n"
      "                          --model-out mine.json\n"
      "  gpusched trace generate --model 'lublin{processors=256,umed=5.5}' \\\n"
      "                          --load 0.7 --out rigid.csv\n"
      "  gpusched trace generate --model lublin log.swf --like-jobs 6000 \\\n"
      "                          --model-out fitted.json\n");
  command->callback([arguments, model, &exit_code] {
    arguments->model_given = model->count() > 0;
    exit_code = generate(*arguments);
  });
}

}  // namespace gpusched
