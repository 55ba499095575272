// SPDX-License-Identifier: Apache-2.0
/// Work in a process of its own: for cold starts, and for jobs that share a device without sharing a process.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Seconds of the monotonic clock, which all processes of a machine share.
double monotonic_s();

/// A forked child and this side's end of a socket to it, which the owner closes.
struct Fork {
  pid_t child = -1;
  int socket = -1;
};
/// Forks a child that runs `work(its end of the socket)` and exits with what that returns. Error: no process or socket
/// could be created.
Result<Fork> fork_with_socket(const std::function<int(int)>& work);

/// A forked child that runs a function and sends back its numbers. Not copyable; the destructor ends the child.
/// Precondition: the parent has no other threads that hold locks, and has not opened a CUDA device (a CUDA context does
/// not survive a fork).
class ChildProcess {
 public:
  /// Error: no process or socket could be created.
  static Result<ChildProcess> start(const std::function<std::vector<double>()>& work);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  ~ChildProcess();

  /// Readable when the child's numbers come or it ended without, for poll().
  [[nodiscard]] int descriptor() const { return socket_; }

  /// Waits for the child's numbers. Error: it ended without them.
  Result<std::vector<double>> wait();

 private:
  explicit ChildProcess(const Fork& fork) : pid_(fork.child), socket_(fork.socket) {}
  pid_t pid_;
  int socket_;
};

}  // namespace gpusched
