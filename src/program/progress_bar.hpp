// SPDX-License-Identifier: Apache-2.0
/// ProgressBar: one line on standard error that shows how far a long run has come, if a person is watching.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace gpusched {

/// Draws from construction to destruction on a thread of its own; nothing during the first second, and nothing at all
/// when standard error is not a terminal.
class ProgressBar {
 public:
  /// `done` counts up to `total`; it must outlive the bar.
  ProgressBar(const std::atomic<std::uint64_t>& done, std::uint64_t total) : done_(done), total_(total) {
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
      const double share = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
      constexpr std::size_t width = 40;
      const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * width);
      std::fprintf(stderr, "\r[%s%s] %3.0f %%", std::string(full, '#').c_str(), std::string(width - full, ' ').c_str(),
                   100 * share);
    } while (!stopped_.wait_for(lock, std::chrono::milliseconds(200), stopped));
    std::fprintf(stderr, "\r%60s\r", "");
  }

  const std::atomic<std::uint64_t>& done_;
  std::uint64_t total_;
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread painter_;
};

}  // namespace gpusched
