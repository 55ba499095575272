// SPDX-License-Identifier: Apache-2.0
/// StepList: a step function of time, each step a row of numbers, of which a change in the middle moves little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Steps lie in blocks of a bounded size, in order of time. Where a row is one number, a block knows the least and the
/// most of its steps, and what is added to all of them is noted once: adding over a span of S steps and looking for a
/// step of enough costs O(S / block + block). Others cost as many rows as they touch.
class StepList {
 public:
  using Row = std::span<const std::int64_t>;
  /// Where a step is, until one is made or joined.
  struct At {
    std::uint32_t block = 0;
    std::uint32_t step = 0;
    friend bool operator==(const At&, const At&) = default;
  };

  StepList() = default;
  /// One step, that row, which has no begin and no end.
  explicit StepList(std::vector<std::int64_t> row);

  /// Numbers of a row.
  [[nodiscard]] std::size_t width() const { return width_; }

  /// The first step that is not forgotten, and behind the last.
  /// \{
  [[nodiscard]] Time front() const { return firsts_.front(); }
  [[nodiscard]] At end() const { return {static_cast<std::uint32_t>(blocks_.size()), 0}; }
  /// \}
  [[nodiscard]] At next(At at) const {
    return at.step + 1 < blocks_[at.block].begins.size() ? At{at.block, at.step + 1} : At{at.block + 1, 0};
  }
  /// Precondition of these: `at` is not end().
  /// \{
  [[nodiscard]] Time begin(At at) const { return blocks_[at.block].begins[at.step]; }
  /// Precondition: width() > 1.
  [[nodiscard]] Row row(At at) const { return Row(blocks_[at.block].rows).subspan(at.step * width_, width_); }
  [[nodiscard]] std::int64_t* lanes(At at) { return &blocks_[at.block].rows[at.step * width_]; }
  /// \}

  /// Blocks that there are: where that changes, so may the places of steps.
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  /// The step in which `t` lies. Precondition: t is not before the first.
  [[nodiscard]] At at(Time t) const;
  /// Adds a step behind the last. Precondition: it begins later than that.
  void append(Time begin, Row row);
  /// Makes a step begin at `t`, and says where it is.
  At split(Time t);
  /// Makes the step one with that before it when they are alike.
  void join(At at);
  /// Forgets steps that end at or before `t`, or some of them.
  void drop_before(Time t);

  // Precondition of the rest: width() == 1.

  /// Adds to all steps from `first` on and before `last`.
  void add(At first, At last, std::int64_t more);
  /// The first step from `at` on of at least `wanted`; end() where there is none.
  [[nodiscard]] At first_of(At at, std::int64_t wanted) const;
  /// The first step from `at` on that begins before `until` and is less than `wanted`; end() where there is none.
  [[nodiscard]] At first_below(At at, std::int64_t wanted, Time until) const;

 private:
  struct Block {
    std::vector<Time> begins = {};  // not empty
    std::vector<std::int64_t> rows = {};
    std::int64_t more = 0;             // width 1: to be added to each of `rows`
    std::int64_t least = 0, most = 0;  // width 1: of `rows`

    void measure();
  };

  [[nodiscard]] bool is_like_the_one_before(At at) const;

  std::size_t width_ = 0;
  std::size_t most_steps_ = 0;  // of a block
  std::vector<Block> blocks_;
  std::vector<Time> firsts_;  // by block: its first begin
};

}  // namespace gpusched
