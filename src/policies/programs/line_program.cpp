// SPDX-License-Identifier: Apache-2.0
#include "src/policies/programs/line_program.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "src/base/interruption.hpp"
#include "src/base/number_text.hpp"
#include "src/policies/programs/process_messages.hpp"

namespace gpusched {
namespace {

constexpr int most_waits = 200;  // of 10 ms

// The status of a process that ended within two seconds.
std::optional<int> status_of(pid_t process) {
  for (int i = 0; i < most_waits; ++i) {
    int status = 0;
    const pid_t found = ::waitpid(process, &status, WNOHANG);
    if (found == process) return status;
    if (found < 0 && errno != EINTR) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return std::nullopt;
}

using Moment = std::chrono::steady_clock::time_point;
enum class Waited : std::uint8_t { ready, late, interrupted };

// Waits for one of poll(2)'s `events`, until `latest`, or until the user wants an end.
Waited wait_for(int socket, short events, Moment latest) {
  constexpr std::int64_t step_ms = 100;
  while (!Interruption::wanted()) {
    const std::int64_t left_ms =
        std::chrono::ceil<std::chrono::milliseconds>(latest - std::chrono::steady_clock::now()).count();
    if (left_ms <= 0) return Waited::late;
    pollfd waiting{.fd = socket, .events = events, .revents = 0};
    if (::poll(&waiting, 1, static_cast<int>(std::min(left_ms, step_ms))) > 0) return Waited::ready;
  }
  return Waited::interrupted;
}

constexpr const char* interrupted = "interrupted while the program was at work";

int spawn(const std::vector<std::string>& command, int end, pid_t& process) {
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_adddup2(&files, end, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&files, end, STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int why = ::posix_spawnp(&process, arguments.front(), &files, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  return why;
}

}  // namespace

Result<LineProgram> LineProgram::start(const std::vector<std::string>& command) {
  int ends[2];  // a socket tells of a dead reader by an error, where a pipe would by SIGPIPE
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return unexpected(std::string("no socket: ") + std::strerror(errno));
  }
  pid_t process = -1;
  const int why = spawn(command, ends[1], process);
  ::close(ends[1]);
  if (why == 0) return LineProgram(process, ends[0]);
  ::close(ends[0]);
  return unexpected("cannot run " + command.front() + ": " + std::strerror(why));
}

LineProgram::LineProgram(LineProgram&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      buffer_(std::move(other.buffer_)) {}

LineProgram::~LineProgram() {
  close_socket();
  if (process_ < 0 || status_of(process_)) return;
  ::kill(process_, SIGKILL);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void LineProgram::close_socket() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

std::string LineProgram::ending() {
  const auto status = status_of(process_);
  if (!status) return "closed its end of the pipe";
  process_ = -1;
  if (WIFSIGNALED(*status)) return "ended by signal " + std::to_string(WTERMSIG(*status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(*status));
}

Result<void> LineProgram::write(const std::string& line) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(socket_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (wait_for(socket_, POLLOUT, Moment::max()) == Waited::interrupted) return unexpected(interrupted);
      continue;
    }
    if (count < 0) return unexpected("the program " + ending());
    sent += static_cast<std::size_t>(count);
  }
  return {};
}

Result<std::string> LineProgram::read(Time time_limit) {
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t seen = 0;;) {
    if (const std::size_t end = buffer_.find('\n', seen); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    seen = buffer_.size();
    if (seen > most_line) return unexpected("the program sent a line of more than 256 MiB");
    const Moment latest = time_limit > Time{} ? begin + std::chrono::microseconds(time_limit.us) : Moment::max();
    const Waited waited = wait_for(socket_, POLLIN, latest);
    if (waited == Waited::interrupted) return unexpected(interrupted);
    if (waited == Waited::late) {
      return unexpected("the program did not answer within " + exact_number(to_seconds(time_limit)) + " s");
    }
    char chunk[65536];
    const ssize_t count = ::recv(socket_, chunk, sizeof chunk, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return unexpected("the program " + ending());
    buffer_.append(chunk, static_cast<std::size_t>(count));
  }
}

}  // namespace gpusched
