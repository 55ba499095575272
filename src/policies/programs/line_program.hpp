// SPDX-License-Identifier: Apache-2.0
/// LineProgram: another program that answers lines with lines.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// A running program whose standard input and output are held; its standard error is this program's. Its death is an
/// error of the next call, not a signal.
class LineProgram {
 public:
  /// Starts `command`, its first word found through PATH, without a shell. Error: it cannot be started.
  static Result<LineProgram> start(const std::vector<std::string>& command);

  /// The next one takes the program over.
  LineProgram(LineProgram&& other) noexcept;
  LineProgram(const LineProgram&) = delete;
  LineProgram& operator=(const LineProgram&) = delete;
  LineProgram& operator=(LineProgram&&) = delete;
  /// Closes both ends and waits for the program; ends it where it does not leave within two seconds.
  ~LineProgram();

  /// Writes a line, which has its end. Errors: the program no longer reads; the user wants an end (Interruption).
  Result<void> write(const std::string& line);
  /// The next line, without its end, waiting `time_limit` at most (0: for ever). Errors: the program ended, with how;
  /// it took longer; the line is longer than 256 MiB; the user wants an end (Interruption).
  Result<std::string> read(Time time_limit = {});

 private:
  LineProgram(pid_t process, int socket) : process_(process), socket_(socket) {}
  void close_socket();
  // How it ended, after a while; empty while it runs.
  std::string ending();

  pid_t process_ = -1;
  int socket_ = -1;
  std::string buffer_;  // read, but not given out
};

}  // namespace gpusched
