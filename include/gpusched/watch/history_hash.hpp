// SPDX-License-Identifier: Apache-2.0
/// HistoryHash: one number for everything that happened in a run. Equal hashes across compilers, optimisation levels,
/// sanitizers, threads and ways of stepping are how determinism is tested.
#pragma once

#include <cstdint>
#include <span>

#include "gpusched/engine/view.hpp"

namespace gpusched {

/// An Observer that folds (time, kind, job, node if any) of every event into a 64-bit FNV-1a hash.
class HistoryHash {
 public:
  /// Folds the events of an instant.
  void observe(const View& view, std::span<const Event> events) {
    for (const Event& event : events) {
      fold(static_cast<std::uint64_t>(view.now().us));
      fold(std::uint64_t{static_cast<std::uint8_t>(event.kind)} << 32 | index(event.job));
      if (event.node != no_node) fold(index(event.node));
    }
  }

  /// The hash of all events so far.
  [[nodiscard]] std::uint64_t value() const { return hash_; }

 private:
  void fold(std::uint64_t word) {
    for (int byte = 0; byte < 8; ++byte) {
      hash_ = (hash_ ^ (word >> (8 * byte) & 0xFFu)) * 0x100000001B3u;
    }
  }

  std::uint64_t hash_ = 0xCBF29CE484222325u;
};

}  // namespace gpusched
