// SPDX-License-Identifier: Apache-2.0
/// A forked child that answers requests until its owner goes away.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

#include "gpusched/core/result.hpp"
#include "src/calibration/measure/child_process.hpp"

namespace gpusched {

/// Text in, text out. Not copyable; the destructor ends the child.
class ServerProcess {
 public:
  using Handler = std::function<std::string(const std::string& request)>;

  /// `make` runs in the child and returns the function that answers requests. The child ignores interrupts, which the
  /// owner handles. Precondition: no other thread of this process holds a lock. Error: the process cannot be started.
  static Result<ServerProcess> start(const std::function<Handler()>& make);

  ServerProcess(ServerProcess&& other) noexcept;
  ServerProcess& operator=(ServerProcess&&) = delete;
  ~ServerProcess();

  /// Error: the child ended, or has not answered within `limit_s`.
  Result<std::string> ask(const std::string& request, double limit_s);

 private:
  explicit ServerProcess(const Fork& fork) : pid_(fork.child), socket_(fork.socket) {}
  pid_t pid_;
  int socket_;
};

}  // namespace gpusched
