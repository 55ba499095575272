// SPDX-License-Identifier: Apache-2.0
/// RunningWork: which of several numbered pieces of work run now, readable from another thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <set>

namespace gpusched {

class RunningWork {
 public:
  /// While one lives, the piece `number` runs.
  class Piece {
   public:
    Piece(RunningWork& work, std::size_t number) : work_(&work), number_(number) {
      const std::lock_guard lock(work_->mutex_);
      work_->running_.insert(number_);
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;
    ~Piece() {
      const std::lock_guard lock(work_->mutex_);
      work_->running_.erase(number_);
    }

   private:
    RunningWork* work_;
    std::size_t number_;
  };

  /// The lowest number that runs; nothing between pieces.
  [[nodiscard]] std::optional<std::size_t> first() const {
    const std::lock_guard lock(mutex_);
    return running_.empty() ? std::nullopt : std::optional(*running_.begin());
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::size_t> running_;
};

}  // namespace gpusched
