// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/child_process.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <utility>

namespace gpusched {
namespace {

bool write_all(int to, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(to, at, size);
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int from, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(from, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

}  // namespace

double monotonic_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<ChildProcess> ChildProcess::start(const std::function<std::vector<double>()>& work) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return unexpected("no pipe for a child process");
  const pid_t pid = ::fork();
  if (pid < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return unexpected("no child process to be had");
  }
  if (pid == 0) {
    ::close(ends[0]);
    const std::vector<double> numbers = work();
    const std::uint64_t count = numbers.size();
    const bool sent =
        write_all(ends[1], &count, sizeof count) && write_all(ends[1], numbers.data(), count * sizeof(double));
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  return ChildProcess(pid, ends[0]);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), pipe_(std::exchange(other.pipe_, -1)) {}

ChildProcess::~ChildProcess() {
  if (pipe_ >= 0) ::close(pipe_);
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Result<std::vector<double>> ChildProcess::wait() {
  std::uint64_t count = 0;
  std::vector<double> numbers;
  bool complete = read_all(pipe_, &count, sizeof count);
  if (complete) {
    numbers.resize(count);
    complete = read_all(pipe_, numbers.data(), count * sizeof(double));
  }
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
  if (!complete) return unexpected("a child process ended without its results");
  return numbers;
}

}  // namespace gpusched
