// SPDX-License-Identifier: Apache-2.0
// gpusched serve: a policy decides for a host at the other end of standard input and output.
#include <csignal>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

#include "src/base/strict_json.hpp"
#include "src/policies/programs/process_messages.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/process/host_session.hpp"
#include "src/program/commands.hpp"
#include "src/program/field_options.hpp"

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

Result<std::set<std::string>> read_serve_file(ServeOptions& options, const std::string& path) {
  if (path == "-") return bad_option("config", "expected a file: standard input is the host's");
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  const auto json = read_fields(serve_fields(options), *text, path);
  if (!json) return Unexpected{json.error()};
  return given_paths(serve_fields(options), config_of(*json));
}

// Reads standard input up to a line's end, or one byte more than a line may have.
bool next_line(std::string& line) {
  line.clear();
  int byte = 0;
  while (line.size() <= most_line && (byte = std::getc(stdin)) != EOF && byte != '\n') {
    line.push_back(static_cast<char>(byte));
  }
  return byte != EOF || !line.empty();
}

int serve(const Asked<ServeOptions>& asked) {
  const ServeOptions& options = asked.scenario;
  std::signal(SIGPIPE, SIG_IGN);  // a host that left is an error of the write
  auto session = HostSession::create(options);
  if (!session) return asked.complain_of(session.error(), serve_fields);
  std::string line;
  while (!session->ended() && next_line(line)) {
    if (line.size() > most_line) return give_up(session->too_long(most_line).to_string(), exit_bad_input);
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
  const auto arguments = std::make_shared<FieldArguments>();
  ServeOptions defaults;
  add_field_options(*command, serve_fields(defaults), *arguments);
  command->footer(
      "Reads a JSON object a line from standard input and answers each on standard output.\n"
      "Exit codes: 0 after the message end, 2 what the host sent is wrong, 1 the\n"
      "policy or the pipe failed.\n"
      "Example:\n"
      "  python3 host.py jobs.csv 4x8 -- gpusched serve --policy fifo+easy\n");
  command->callback([arguments, &exit_code] {
    if (arguments->print_schema) return print(serve_schema());
    const auto asked = scenario_from<ServeOptions>(*arguments, serve_fields, read_serve_file);
    if (!asked) {
      exit_code = complain(asked.error());
    } else if (arguments->print_config) {
      ServeOptions copy = asked->scenario;
      print(fields_json(serve_fields(copy), true));
    } else {
      exit_code = serve(*asked);
    }
  });
}

}  // namespace gpusched
