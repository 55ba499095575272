// SPDX-License-Identifier: Apache-2.0
#include "src/base/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

extern char** environ;

namespace gpusched {
namespace {

// Both ends close with the object.
struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  bool open() { return ::pipe2(ends, O_CLOEXEC) == 0; }
  void close_end(int which) {
    if (ends[which] >= 0) ::close(ends[which]);
    ends[which] = -1;
  }
};

// Adds what is there to read; closes the pipe at its end.
void take(Pipe& pipe, std::string& text) {
  char buffer[4096];
  const ssize_t got = ::read(pipe.ends[0], buffer, sizeof buffer);
  if (got > 0) {
    text.append(buffer, static_cast<std::size_t>(got));
  } else if (got == 0 || errno != EINTR) {
    pipe.close_end(0);
  }
}

void take_all(Pipe& out, Pipe& err, ProgramOutput& output) {
  while (out.ends[0] >= 0 || err.ends[0] >= 0) {
    pollfd both[2] = {{.fd = out.ends[0], .events = POLLIN, .revents = 0},
                      {.fd = err.ends[0], .events = POLLIN, .revents = 0}};  // a closed one is -1 and passed over
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return;
    if (both[0].revents != 0) take(out, output.out);
    if (both[1].revents != 0) take(err, output.err);
  }
}

// What posix_spawn() reads: destroyed with the object.
struct SpawnSettings {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&files);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&files);
    ::posix_spawnattr_destroy(&attributes);
  }
};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("%+,-./:=@_").find(c) != std::string_view::npos;
}

}  // namespace

Result<ProgramOutput> run_program(const std::vector<std::string>& command) {
  const auto cannot = [&](int why) {
    return unexpected(why == ENOENT ? command.front() + ": not installed, or not in PATH"
                                    : "cannot run " + command.front() + ": " + std::strerror(why));
  };
  Pipe out, err;
  if (!out.open() || !err.open()) return cannot(errno);
  SpawnSettings settings;
  ::posix_spawn_file_actions_addopen(&settings.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&settings.files, out.ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.files, err.ends[1], STDERR_FILENO);
  ::posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t process = -1;
  if (const int why =
          ::posix_spawnp(&process, arguments.front(), &settings.files, &settings.attributes, arguments.data(), environ);
      why != 0) {
    return cannot(why);
  }
  out.close_end(1);
  err.close_end(1);
  ProgramOutput output;
  take_all(out, err, output);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  output.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return output;
}

Result<std::vector<std::string>> split_words(const std::string& text) {
  std::vector<std::string> words;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_escape =
        c == '\\' && quote != '\'' && i + 1 < text.size() && (quote == 0 || text[i + 1] == '"' || text[i + 1] == '\\');
    if (quote == 0 && std::string_view(" \t\r\n").find(c) != std::string_view::npos) {
      in_word = false;
      continue;
    }
    if (!in_word) words.emplace_back();
    in_word = true;
    if (is_escape) {
      words.back() += text[++i];
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
    } else {
      words.back() += c;
    }
  }
  if (quote != 0) return unexpected(std::string("the quote ") + quote + " is not closed in " + text);
  return words;
}

std::string shell_quoted(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string program_path(const std::string& otherwise) {
  std::error_code why;
  const std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", why);
  return why ? otherwise : path.string();
}

}  // namespace gpusched
