// SPDX-License-Identifier: Apache-2.0
// gpusched-calibrate: measures this device, fits its models, writes its profile. A program of its own, which
// `gpusched calibrate` becomes, so that the program that replays builds without what measures.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "src/base/interruption.hpp"
#include "src/base/parallel.hpp"
#include "src/calibration/measure/backends.hpp"
#include "src/calibration/measure/calibrate.hpp"
#include "src/calibration/profile/profile_tables.hpp"
#include "src/program/calibrate_options.hpp"
#include "src/program/commands.hpp"
#include "src/program/help_formatter.hpp"
#include "src/program/progress_bar.hpp"
#include "src/program/usage_error.hpp"

namespace gpusched {
namespace {

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

int run(int argc, char** argv) {
  CLI::App program("Measure this device and write its profile.", "gpusched calibrate");
  program.formatter(std::make_shared<HelpFormatter>());
  CalibrateArguments arguments;
  add_calibrate_options(program, arguments);
  if (const std::string wrong = missing_value(program, {argv + 1, argv + argc}); !wrong.empty()) return complain(wrong);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_parse_error(program, error);
  }
  leave_out_threads_without_processor(arguments);
  return run_calibration(arguments);
}

}  // namespace
}  // namespace gpusched

int main(int argc, char** argv) {
  return gpusched::run_guarded([&] { return gpusched::run(argc, argv); });
}
