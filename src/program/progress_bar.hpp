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
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "src/base/number_text.hpp"
#include "src/program/commands.hpp"

namespace gpusched {

/// "[#####     ]  43 %  srtf  1m 05s left": what share is done, what runs, and how long it still takes, where that is
/// known. Fits a terminal's width where `name` has at most 30 characters.
inline std::string progress_line(double share, const std::string& name, std::optional<double> seconds_left) {
  constexpr std::size_t width = 24;
  share = std::clamp(share, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(share * width);
  return "[" + std::string(full, '#') + std::string(width - full, ' ') + "] " + formatted("%3.0f %%", 100 * share) +
         "  " + name + (seconds_left ? "  " + human_duration(*seconds_left) + " left" : "");
}

/// Draws from construction to destruction on a thread of its own; nothing during the first second, and nothing at all
/// when standard error is not a terminal or --quiet was given.
class ProgressBar {
 public:
  /// `done` counts up to `total`; it must outlive the bar. `at` names what is being done now and is called from the
  /// bar's thread; a policy, say. The work goes in stretches of `stretch`, of which only the one at hand is known to
  /// keep its speed: the time left is told of it. 0: none is told.
  ProgressBar(const std::atomic<std::uint64_t>& done, std::uint64_t total, std::uint64_t stretch,
              std::function<std::string()> at)
      : done_(done), total_(total), stretch_(stretch), at_(std::move(at)) {
    if (isatty(STDERR_FILENO) != 0 && !is_quiet()) painter_ = std::thread([this] { paint(); });
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
  using Clock = std::chrono::steady_clock;
  struct Moment {
    Clock::time_point time;
    std::uint64_t done = 0;
  };

  void paint() {
    std::unique_lock lock(mutex_);
    const auto stopped = [this] { return stop_; };
    if (stopped_.wait_for(lock, std::chrono::seconds(1), stopped)) return;
    do {
      remember(std::chrono::steady_clock::now());
      std::fprintf(stderr, "\r\033[K%s", line().c_str());
      std::fflush(stderr);
    } while (!stopped_.wait_for(lock, std::chrono::milliseconds(200), stopped));
    std::fprintf(stderr, "\r\033[K");
  }

  // How far it was in the last seconds of this stretch.
  void remember(Clock::time_point now) {
    constexpr auto span = std::chrono::seconds(20);
    past_.push_back({now, done_});
    const auto is_other = [&](const Moment& moment) {
      return stretch_ > 0 && moment.done / stretch_ != past_.back().done / stretch_;
    };
    while (is_other(past_.front()) || (past_.size() > 2 && now - past_.front().time > span)) past_.pop_front();
  }

  // Of this stretch, at the speed of the last seconds; nothing while nothing moves.
  [[nodiscard]] std::optional<double> seconds_left() const {
    const std::uint64_t lately = past_.back().done - past_.front().done;
    if (lately == 0 || stretch_ == 0) return std::nullopt;
    const double seconds = std::chrono::duration<double>(past_.back().time - past_.front().time).count();
    const auto left = static_cast<double>(stretch_ - past_.back().done % stretch_);
    return seconds * left / static_cast<double>(lately);
  }

  [[nodiscard]] std::string line() const {
    const double share = total_ == 0 ? 1 : static_cast<double>(done_) / static_cast<double>(total_);
    std::string name = one_line(at_());
    if (name.size() > 30) name = name.substr(0, 27) + "...";
    return progress_line(share, name, seconds_left());
  }

  const std::atomic<std::uint64_t>& done_;
  std::uint64_t total_, stretch_;
  std::function<std::string()> at_;
  std::deque<Moment> past_{{Clock::now(), 0}};
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread painter_;
};

}  // namespace gpusched
