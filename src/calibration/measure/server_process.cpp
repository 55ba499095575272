// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/server_process.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "src/base/byte_stream.hpp"

namespace gpusched {
namespace {

bool send_text(int socket, const std::string& text) {
  const std::uint64_t size = text.size();
  return send_all(socket, &size, sizeof size) && send_all(socket, text.data(), text.size());
}

bool receive_text(int socket, std::string& text) {
  std::uint64_t size = 0;
  if (!receive_all(socket, &size, sizeof size)) return false;
  text.resize(size);
  return receive_all(socket, text.data(), size);
}

// Until the owner's end of the socket is closed.
void serve(int socket, const std::function<ServerProcess::Handler()>& make) {
  const ServerProcess::Handler answer = make();
  std::string request;
  while (receive_text(socket, request)) {
    if (!send_text(socket, answer(request))) return;
  }
}

}  // namespace

Result<ServerProcess> ServerProcess::start(const std::function<Handler()>& make) {
  const auto fork = fork_with_socket([&](int socket) {
    std::signal(SIGINT, SIG_IGN);
    try {
      serve(socket, make);
    } catch (const std::exception&) {
      return 1;  // out of memory, say: the owner sees the child end
    }
    return 0;
  });
  if (!fork) return Unexpected{fork.error()};
  return ServerProcess(*fork);
}

ServerProcess::ServerProcess(ServerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), socket_(std::exchange(other.socket_, -1)) {}

ServerProcess::~ServerProcess() {
  if (socket_ >= 0) ::close(socket_);
  if (pid_ <= 0) return;
  // It frees what it holds and ends when it sees the socket closed; one that is stuck is ended.
  for (int i = 0; i < 300; ++i) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Result<std::string> ServerProcess::ask(const std::string& request, double limit_s) {
  if (!send_text(socket_, request)) return unexpected("its process has ended");
  const double end_s = monotonic_s() + limit_s;
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  for (;;) {
    const double left_s = end_s - monotonic_s();
    if (left_s <= 0) return unexpected("no answer within " + std::to_string(static_cast<int>(limit_s)) + " s");
    const int ready = ::poll(&waiting, 1, static_cast<int>(1e3 * left_s) + 1);
    if (ready > 0) break;
  }
  std::string answer;
  if (!receive_text(socket_, answer)) return unexpected("its process ended in the middle of a request");
  return answer;
}

}  // namespace gpusched
