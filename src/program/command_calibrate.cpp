// SPDX-License-Identifier: Apache-2.0
// gpusched calibrate: measure this device, fit its models, write its profile.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "src/calibration/measure/backends.hpp"
#include "src/calibration/measure/calibrate.hpp"
#include "src/calibration/profile/profile_tables.hpp"
#include "src/program/commands.hpp"
#include "src/program/interruption.hpp"
#include "src/program/option_checks.hpp"
#include "src/program/progress_bar.hpp"

namespace gpusched {
namespace {

struct CalibrateArguments {
  std::string backend = "cpu";
  std::string out;
  std::string checkpoint_folder;
  std::uint64_t seed = 1;
  std::uint32_t threads = 0;
  bool quick = false;
  bool job_mix = false;
};

// Each thread has a processor of its own, or the measurement is of the system's turns.
void leave_out_threads_without_processor(CalibrateArguments& arguments) {
  const std::uint32_t processors = thread_count(0);
  if (arguments.threads <= processors) return;
  note("--threads: this machine has " + std::to_string(processors) + " processors, and so many threads measure");
  arguments.threads = processors;
}

int run_calibration(const CalibrateArguments& arguments) {
  if (arguments.job_mix && arguments.backend == "analytic") {
    return complain("--job-mix runs jobs as processes, which the made-up device cannot; give --backend cpu or cuda");
  }
  auto backend = open_backend(arguments.backend, {.threads = arguments.threads, .seed = arguments.seed});
  if (!backend) return complain(backend.error().to_string(), exit_failed);

  std::stop_source stop;
  std::atomic<std::uint64_t> done = 0;
  CalibrateOptions options{.scale = arguments.quick ? SuiteScale::quick : SuiteScale::full,
                           .seed = arguments.seed,
                           .samples_path = arguments.out + ".samples.csv",
                           .checkpoint_folder = arguments.checkpoint_folder,
                           .job_mix = arguments.job_mix,
                           .stop = stop.get_token()};
  // The made-up device has no processes to share it.
  if (arguments.backend != "analytic") {
    options.open = [&] {
      return open_backend(arguments.backend, {.threads = arguments.threads, .seed = arguments.seed});
    };
  }
  std::mutex at_mutex;
  std::string at;  // what is measured now
  std::unique_ptr<ProgressBar> bar;
  options.progress = [&](std::uint32_t finished, std::uint32_t total, const std::string& name) {
    {
      const std::lock_guard lock(at_mutex);
      at = name;
    }
    done = finished;
    const auto name_now = [&] {
      const std::lock_guard lock(at_mutex);
      return at;
    };
    if (bar == nullptr) bar = std::make_unique<ProgressBar>(done, total, total, name_now);
    if (Interruption::wanted()) stop.request_stop();
  };
  const Interruption interruption;
  const auto profile = calibrate(**backend, options);
  bar.reset();
  if (!profile) {
    return complain(profile.error().to_string(), Interruption::wanted() ? Interruption::exit_code() : exit_failed);
  }
  if (auto written = write_device_profile(*profile, arguments.out); !written) {
    return complain(written.error().to_string(), exit_failed);
  }
  show(show_device_profile(*profile));
  return exit_done;
}

}  // namespace

void add_calibrate_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("calibrate", "Measure this device and write its profile");
  const auto arguments = std::make_shared<CalibrateArguments>();
  command->add_option("--backend", arguments->backend, "cuda, cpu, or analytic (a made-up device of known truth)")
      ->check(CLI::IsMember({"cuda", "cpu", "analytic"}))
      ->capture_default_str();
  command->add_option("--out", arguments->out, "the profile (JSON); raw samples go to FILE.samples.csv")->required();
  command->add_flag("--quick", arguments->quick, "under a minute instead of under five");
  command->add_flag("--job-mix", arguments->job_mix,
                    "also run 16 jobs as processes under three schedules and compare with the simulator");
  command->add_option("--checkpoint-folder", arguments->checkpoint_folder, "also time checkpoints in this folder")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--threads", arguments->threads,
                   "threads of the cpu backend, at most one for each processor; 0: so many")
      ->check(number_of_threads());
  command->add_option("--seed", arguments->seed, "seed of sizes, data and resampling")
      ->check([](const std::string& text) {
        return text.starts_with('-') ? "expected a whole number, 0 or more, not '" + text + "'" : std::string();
      })
      ->capture_default_str();
  command->footer(
      "Ctrl-C keeps what was measured; the same command goes on from there.\n"
      "\nExamples:\n"
      "  gpusched calibrate --backend cpu --quick --out this-machine.json\n"
      "  gpusched calibrate --backend cuda --out this-gpu.json \\\n"
      "                     --checkpoint-folder /scratch\n"
      "  gpusched profile show this-machine.json\n");
  command->callback([arguments, &exit_code] {
    leave_out_threads_without_processor(*arguments);
    exit_code = run_calibration(*arguments);
  });
}

}  // namespace gpusched
