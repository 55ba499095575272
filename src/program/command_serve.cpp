// SPDX-License-Identifier: Apache-2.0
// gpusched serve: a policy decides for a host at the other end of standard input and output.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "src/base/nearest_name.hpp"
#include "src/policies/programs/process_messages.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/process/host_session.hpp"
#include "src/program/commands.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {
namespace {

bool send(const std::string& line) {
  return std::fwrite(line.data(), 1, line.size(), stdout) == line.size() && std::fflush(stdout) == 0;
}

// Tells the host too, as far as it still listens.
int give_up(const std::string& why, int code) {
  send(message_line({{"type", "error"}, {"message", why}}));
  return complain(why, code);
}

int serve(const ServeOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);  // a host that left is an error of the write
  auto session = HostSession::create(options);
  if (!session) return complain(session.error());
  std::string line;
  while (!session->ended() && std::getline(std::cin, line)) {
    try {
      const auto answer = session->answer(line);
      if (!answer) return give_up(answer.error().to_string(), exit_bad_input);
      if (!send(*answer)) return complain("the host closed the pipe that decisions go to", exit_failed);
    } catch (const PolicyFailure& failure) {
      return give_up("policy " + options.policy + " " + failure.what(), exit_failed);
    }
  }
  return session->ended() ? exit_done : give_up("standard input ended before the message \"end\"", exit_bad_input);
}

}  // namespace

void add_serve_command(CLI::App& program, int& exit_code) {
  auto* command = program.add_subcommand("serve", "Decide for another simulator or a cluster");
  const auto options = std::make_shared<ServeOptions>();
  command->add_option("--policy", options->policy, "the policy that decides; `gpusched policies` lists all")
      ->required();
  command->add_option("--placement", options->placement, "how nodes are chosen: " + joined(placement_words(), "|"));
  command->add_option("--seed", options->seed, "of random placement and of policies that draw");
  command->footer(
      "Reads a JSON object a line from standard input and answers each on standard output.\n"
      "Exit codes: 0 after the message end, 2 what the host sent is wrong, 1 the\n"
      "policy or the pipe failed.\n"
      "Example:\n"
      "  python3 host.py jobs.csv 4x8 -- gpusched serve --policy fifo+easy\n");
  command->callback([options, &exit_code] { exit_code = serve(*options); });
}

}  // namespace gpusched
