// SPDX-License-Identifier: Apache-2.0
/// ProgressBar: one line on standard error that shows how far a long run has come, what it is at and how long it still
/// takes, if a person is watching.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/program/commands.hpp"

namespace gpusched {

/// Draws from construction to destruction on a thread of its own; nothing during the first second, and nothing at all
/// when standard error is not a terminal.
class ProgressBar {
 public:
  /// `done` counts up to `total`; it must outlive the bar. `at` names what is being done now and is called from the
  /// bar's thread; a policy, say.
  ProgressBar(const std::atomic<std::uint64_t>& done, std::uint64_t total, std::function<std::string()> at)
      : done_(done), total_(total), at_(std::move(at)) {
    if (isatty(STDERR_FILENO) != 0) painter_ = std::thread([this] { paint(); });
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    stopped_.notify_one();
    if (painter_.joinable()) painter_.join();
  }

 private:
  void paint() {
    std::unique_lock lock(mutex_);
    const auto stopped = [this] { return stop_; };
    if (stopped_.wait_for(lock, std::chrono::seconds(1), stopped)) return;
    do {
      std::fprintf(stderr, "\r\033[K%s", line().c_str());
      std::fflush(stderr);
    } while (!stopped_.wait_for(lock, std::chrono::milliseconds(200), stopped));
    std::fprintf(stderr, "\r\033[K");
  }

  // "[#####     ]  43 %  srtf  1m 05s left", within a terminal's width.
  [[nodiscard]] std::string line() const {
    const double share = total_ == 0 ? 1 : std::min(1.0, static_cast<double>(done_) / static_cast<double>(total_));
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
    constexpr std::size_t width = 24;
    const auto full = static_cast<std::size_t>(share * width);
    std::string name = one_line(at_());
    if (name.size() > 30) name = name.substr(0, 27) + "...";
    return "[" + std::string(full, '#') + std::string(width - full, ' ') + "] " + formatted("%3.0f %%", 100 * share) +
           "  " + name + (share > 0 ? "  " + human_duration(seconds * (1 - share) / share) + " left" : "");
  }

  const std::atomic<std::uint64_t>& done_;
  std::uint64_t total_;
  std::function<std::string()> at_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread painter_;
};

}  // namespace gpusched
