// SPDX-License-Identifier: Apache-2.0
// Steps per second of processor time of the C++ vector environment on the jobs of python_env.py, which runs this
// program by turns with itself: vector_env_steps MODE ENVIRONMENTS SECONDS
#include <cstdint>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/learn/vector_env.hpp"
#include "src/base/field_parser.hpp"
#include "src/policies/learned/window_checks.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {
namespace {

double processor_s() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double steps_per_s(VectorEnv& env, Heuristic heuristic, double seconds) {
  env.reset(1);
  std::vector<std::uint32_t> actions(env.size());
  const double begin = processor_s();
  double steps = 0;
  while (processor_s() - begin < seconds) {
    for (int i = 0; i < 20; ++i) {
      env.heuristic_actions(heuristic, actions);
      env.step(actions);
      steps += env.size();
    }
  }
  return steps / (processor_s() - begin);
}

// What is wrong with a word of the command line, in a line of its own.
int complain(const std::string& why) {
  std::cerr << "vector_env_steps: " << why << '\n';
  return 2;
}

int run(ActionMode mode, std::uint32_t environments, double seconds) {
  const Result<RunInput> input = load_input({.trace = "synthetic:philly"});
  if (!input) return complain(input.error().to_string());
  const Result<std::vector<Window>> windows = make_windows(input->trace.jobs, {.jobs = 256}, Split::train);
  if (!windows) return complain(windows.error().to_string());
  AgendaOptions agenda;
  agenda.mode = mode;
  const EnvOptions options{.agenda = agenda};
  if (const auto checked = check_choices(*windows, {&input->cluster, 1}, options, "MODE"); !checked) {
    return complain(checked.error().to_string());
  }
  VectorEnv env(*windows, {}, input->cluster, {.env = options, .environments = environments});
  std::cout << steps_per_s(env, agenda.heuristic, seconds) << '\n';
  return 0;
}

}  // namespace
}  // namespace gpusched

int main(int count, char** words) {
  if (count != 4) {
    std::cerr << "usage: vector_env_steps MODE ENVIRONMENTS SECONDS\n";
    return 2;
  }
  const auto mode = gpusched::value_from_name(gpusched::action_mode_names, words[1]);
  const auto environments = gpusched::parse_exact<std::uint32_t>(words[2]);
  const auto seconds = gpusched::parse_number(words[3]);
  if (!mode || *mode == gpusched::ActionMode::preempt) {
    return gpusched::complain(
        "MODE: expected one whose agent chooses jobs: fit_or_wait, select_blocking, backfill, "
        "reserve or inspect");
  }
  if (!environments || *environments == 0 || *environments > 1u << 20) {
    return gpusched::complain("ENVIRONMENTS: expected a whole number from 1 to 1048576");
  }
  if (!seconds || !(*seconds > 0)) return gpusched::complain("SECONDS: expected a number above 0");
  return gpusched::run(*mode, *environments, *seconds);
}
