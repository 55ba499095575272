// SPDX-License-Identifier: Apache-2.0
// Steps per second of processor time of the C++ vector environment on the jobs of python_env.py, which runs this
// program by turns with itself: vector_env_steps MODE ENVIRONMENTS SECONDS
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string_view>
#include <vector>

#include "gpusched/core/named_value.hpp"
#include "gpusched/learn/vector_env.hpp"
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

int run(std::string_view mode, std::uint32_t environments, double seconds) {
  const auto found = value_from_name(action_mode_names, mode);
  const Result<RunInput> input = load_input({.trace = "synthetic:philly"});
  if (!found || !input) {
    std::cerr << "vector_env_steps: unknown mode or unreadable jobs\n";
    return 1;
  }
  const Result<std::vector<Window>> windows = make_windows(input->trace.jobs, {.jobs = 256}, Split::train);
  if (!windows) return 1;
  AgendaOptions agenda;
  agenda.mode = *found;
  VectorEnv env(*windows, {}, input->cluster, {.env = {.agenda = agenda}, .environments = environments});
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
  return gpusched::run(words[1], static_cast<std::uint32_t>(std::atoi(words[2])), std::atof(words[3]));
}
