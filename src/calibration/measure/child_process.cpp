// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/child_process.hpp"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

#include "src/base/byte_stream.hpp"

namespace gpusched {

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<Fork> fork_with_socket(const std::function<int(int)>& work) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return unexpected("cannot open a socket to a child process");
  }
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return unexpected("cannot start a child process");
  }
  if (pid == 0) {
    ::close(ends[0]);
    ::_exit(work(ends[1]));
  }
  ::close(ends[1]);
  return Fork{pid, ends[0]};
}

Result<ChildProcess> ChildProcess::start(const std::function<std::vector<double>()>& work) {
  const auto fork = fork_with_socket([&](int socket) {
    const std::vector<double> numbers = work();
    const std::uint64_t count = numbers.size();
    const bool sent =
        send_all(socket, &count, sizeof count) && send_all(socket, numbers.data(), count * sizeof(double));
    return sent ? 0 : 1;
  });
  if (!fork) return Unexpected{fork.error()};
  return ChildProcess(*fork);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::exchange(other.socket_, -1)) {}

ChildProcess::~ChildProcess() {
  if (socket_ >= 0) ::close(socket_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Result<std::vector<double>> ChildProcess::wait() {
  std::uint64_t count = 0;
  std::vector<double> numbers;
  bool complete = receive_all(socket_, &count, sizeof count);
  if (complete) {
    numbers.resize(count);
    complete = receive_all(socket_, numbers.data(), count * sizeof(double));
  }
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  if (!complete) return unexpected("a child process ended without its results");
  return numbers;
}

}  // namespace gpusched
