// SPDX-License-Identifier: Apache-2.0
/// FaultLine: one line instead of a bare "Segmentation fault" where foreign code breaks the process.
#pragma once

#include <string>

namespace gpusched {

/// While it lives, a fault of this thread (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) or its call of exit() prints
/// "gpusched: policy NAME broke down WHERE: ..." and ends the process with exit code 1. Memory cannot be trusted then,
/// so that nothing else is tried. The first one made installs the handlers, and an alternate stack in each thread, so
/// that endless recursion is told too; faults of other code go to the handlers that there were. `name` and `where` must
/// outlive it.
class FaultLine {
 public:
  FaultLine(const std::string& name, const char* where);
  ~FaultLine();
  FaultLine(const FaultLine&) = delete;
  FaultLine& operator=(const FaultLine&) = delete;

 private:
  const char* name_before_;
  const char* where_before_;
};

}  // namespace gpusched
