// SPDX-License-Identifier: Apache-2.0
/// Interruption: SIGINT, SIGTERM and SIGHUP as a wish to end in order.
#pragma once

#include <atomic>
#include <csignal>
#include <string>

namespace gpusched {

/// While one lives, the first of these signals is noted and the next one ends the program at once, as if nobody had
/// looked. SIGHUP stays ignored where it is (nohup). One at a time.
class Interruption {
 public:
  Interruption() {
    signal_ = 0;
    wanted_ = false;
    old_int_ = std::signal(SIGINT, note_signal);
    old_term_ = std::signal(SIGTERM, note_signal);
    old_hup_ = std::signal(SIGHUP, note_signal);
    hup_is_ignored_ = old_hup_ == SIG_IGN;
    if (hup_is_ignored_) std::signal(SIGHUP, SIG_IGN);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption() {
    std::signal(SIGINT, old_int_);
    std::signal(SIGTERM, old_term_);
    std::signal(SIGHUP, old_hup_);
  }

  /// True from the first signal on; readable from any thread.
  [[nodiscard]] static const std::atomic<bool>& wanted() { return wanted_; }
  /// Of a process that was forked: what its parent was told is no matter of it.
  static void forget() { wanted_ = false; }
  /// "SIGINT", "SIGTERM" or "SIGHUP". Precondition: wanted().
  [[nodiscard]] static std::string name() {
    return signal_ == SIGTERM ? "SIGTERM" : signal_ == SIGHUP ? "SIGHUP" : "SIGINT";
  }
  /// What a shell gives for a program that the signal ended: 130, 143 or 129. Precondition: wanted().
  [[nodiscard]] static int exit_code() { return 128 + signal_; }

 private:
  using Handler = void (*)(int);

  // A handler may touch lock-free atomics and what is a sig_atomic_t.
  static void note_signal(int signal) {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
    if (hup_is_ignored_ == 0) std::signal(SIGHUP, SIG_DFL);
    signal_ = signal;
    wanted_ = true;
  }

  static_assert(std::atomic<bool>::is_always_lock_free);
  static inline std::atomic<bool> wanted_ = false;
  static inline volatile std::sig_atomic_t signal_ = 0, hup_is_ignored_ = 0;
  Handler old_int_, old_term_, old_hup_;
};

}  // namespace gpusched
