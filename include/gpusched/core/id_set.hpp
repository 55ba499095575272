// SPDX-License-Identifier: Apache-2.0
/// IdSet: a set of small integers that finds its next member without a scan. A tree of 64-bit words: bit i of a level
/// tells whether word i of the level below has any bit set.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "gpusched/core/config.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// A subset of {0, ..., capacity - 1}. Operations are O(log64 capacity) unless they say otherwise; ids are not checked.
class IdSet {
 public:
  /// Of capacity 0.
  IdSet() = default;

  /// The empty subset of {0, ..., capacity - 1}.
  explicit IdSet(std::uint32_t capacity) {
    std::uint32_t words = capacity;
    do {
      words = (words + 63) / 64;
      level_begin_.push_back(static_cast<std::uint32_t>(words_.size()));
      words_.resize(words_.size() + words);
    } while (words > 1);
  }

  /// True when the set has no member.
  [[nodiscard]] bool empty() const { return words_.empty() || words_.back() == 0; }

  /// Whether `id` is a member. Precondition: id < capacity.
  [[nodiscard]] bool contains(std::uint32_t id) const { return (words_[id / 64] >> (id % 64) & 1u) != 0; }

  /// Adds `id`; no effect when it is a member. Precondition: id < capacity.
  void insert(std::uint32_t id) {
    for (const std::uint32_t begin : level_begin_) {
      std::uint64_t& word = words_[begin + id / 64];
      const bool was_empty = word == 0;
      word |= std::uint64_t{1} << (id % 64);
      if (!was_empty) return;
      id /= 64;
    }
  }

  /// Removes `id`; no effect when it is not a member. Precondition: id < capacity.
  void erase(std::uint32_t id) {
    for (const std::uint32_t begin : level_begin_) {
      std::uint64_t& word = words_[begin + id / 64];
      word &= ~(std::uint64_t{1} << (id % 64));
      if (word != 0) return;
      id /= 64;
    }
  }

  /// The least member >= `from`, or no_index.
  [[nodiscard]] std::uint32_t next(std::uint32_t from) const {
    std::uint32_t position = from;
    for (std::size_t level = 0; level < level_begin_.size(); ++level) {
      const std::uint32_t word = position / 64;
      if (word >= level_size(level)) return no_index;
      const std::uint64_t rest = words_[level_begin_[level] + word] >> (position % 64);
      if (rest != 0) return descend(level, position + static_cast<std::uint32_t>(std::countr_zero(rest)));
      position = word + 1;
    }
    return no_index;
  }

  /// The least member, or no_index.
  [[nodiscard]] std::uint32_t first() const { return empty() ? no_index : descend(level_begin_.size(), 0); }

  /// The greatest member, or no_index.
  [[nodiscard]] std::uint32_t last() const {
    if (empty()) return no_index;
    std::uint32_t position = 0;
    for (std::size_t level = level_begin_.size(); level-- > 0;) {
      const std::uint64_t word = words_[level_begin_[level] + position];
      position = position * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(word));
    }
    return position;
  }

  /// Number of members; O(capacity / 64).
  [[nodiscard]] std::uint32_t count() const {
    std::uint32_t sum = 0;
    for (std::size_t word = 0; word < level_size(0); ++word)
      sum += static_cast<std::uint32_t>(std::popcount(words_[word]));
    return sum;
  }

  /// The member of that rank: rank 0 is the least; O(capacity / 64). Precondition: rank < count().
  [[nodiscard]] std::uint32_t nth(std::uint32_t rank) const {
    for (std::uint32_t word = 0; word < level_size(0); ++word) {
      std::uint64_t bits = words_[word];
      const auto members = static_cast<std::uint32_t>(std::popcount(bits));
      if (rank < members) {
        for (; rank > 0; --rank) bits &= bits - 1;
        return word * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      }
      rank -= members;
    }
    return no_index;
  }

 private:
  [[nodiscard]] std::uint32_t level_size(std::size_t level) const {
    if (level >= level_begin_.size()) return 0;
    const std::size_t end = level + 1 < level_begin_.size() ? level_begin_[level + 1] : words_.size();
    return static_cast<std::uint32_t>(end) - level_begin_[level];
  }

  /// From bit `position` of `level` (which is set) down to its least member.
  [[nodiscard]] std::uint32_t descend(std::size_t level, std::uint32_t position) const {
    while (level-- > 0) {
      const std::uint64_t word = words_[level_begin_[level] + position];
      position = position * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
    }
    return position;
  }

  std::vector<std::uint64_t> words_;        // level 0 (the members) first, the root word last
  std::vector<std::uint32_t> level_begin_;  // where each level starts in words_
};

}  // namespace gpusched
