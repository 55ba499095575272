// SPDX-License-Identifier: Apache-2.0
#include "src/policies/seam/fault_line.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <vector>

namespace gpusched {
namespace {

constexpr int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr const char* fault_words[] = {"a bad address", "a bad address", "an arithmetic fault",
                                       "an illegal instruction", "it aborted"};
struct sigaction former_actions[std::size(faults)];

thread_local const char* name_now = nullptr;
thread_local const char* where_now = nullptr;

// Only what is allowed in a signal handler: write(), _exit(), memory that is there.
void say(const char* text) { [[maybe_unused]] const auto ignored = ::write(STDERR_FILENO, text, std::strlen(text)); }

[[noreturn]] void end_with(const char* what) {
  say("gpusched: policy ");
  say(name_now);
  say(" broke down ");
  say(where_now);
  say(": ");
  say(what);
  say("\n");
  ::_exit(1);
}

// exit() runs this on the thread that called it.
void on_exit_of_process() {
  if (name_now != nullptr) end_with("it ended the process");
}

void on_fault(int signal, siginfo_t*, void*) {
  std::size_t which = 0;
  while (which + 1 < std::size(faults) && faults[which] != signal) ++which;
  if (name_now == nullptr) {  // not the policy's: as if this handler did not exist
    ::sigaction(signal, &former_actions[which], nullptr);
    ::raise(signal);
    return;
  }
  end_with(fault_words[which]);
}

void install() {
  [[maybe_unused]] const int ignored = std::atexit(on_exit_of_process);
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < std::size(faults); ++i) ::sigaction(faults[i], &action, &former_actions[i]);
}

// A stack for the handler, where the thread has none: that of the policy may be what overflowed.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t known{};
    if (::sigaltstack(nullptr, &known) != 0 || (known.ss_flags & SS_DISABLE) == 0) return;
    memory_.resize(64 << 10);
    const stack_t own{.ss_sp = memory_.data(), .ss_flags = 0, .ss_size = memory_.size()};
    ::sigaltstack(&own, nullptr);
  }
  ~HandlerStack() {
    if (memory_.empty()) return;
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    ::sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  std::vector<char> memory_;
};

}  // namespace

FaultLine::FaultLine(const std::string& name, const char* where) : name_before_(name_now), where_before_(where_now) {
  static std::once_flag installed;
  std::call_once(installed, install);
  static thread_local const HandlerStack stack;
  static_cast<void>(stack);
  where_now = where;
  name_now = name.c_str();
}

FaultLine::~FaultLine() {
  name_now = name_before_;
  where_now = where_before_;
}

}  // namespace gpusched
