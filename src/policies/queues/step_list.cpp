// SPDX-License-Identifier: Apache-2.0
#include "src/policies/queues/step_list.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace gpusched {

StepList::StepList(std::vector<std::int64_t> row)
    : width_(row.size()), most_steps_(std::clamp<std::size_t>(1024 / std::max<std::size_t>(row.size(), 1), 4, 64)) {
  blocks_.push_back({.begins = {Time{std::numeric_limits<std::int64_t>::min()}}, .rows = std::move(row)});
  if (width_ == 1) blocks_.front().measure();
  firsts_.push_back(blocks_.front().begins.front());
}

// Without branches, which would be guessed wrongly.
void StepList::Block::measure() {
  least = most = rows.front();
  for (const std::int64_t row : rows) {
    least = row < least ? row : least;
    most = row > most ? row : most;
  }
}

StepList::At StepList::at(Time t) const {
  const auto block = std::upper_bound(firsts_.begin(), firsts_.end(), t) - firsts_.begin() - 1;
  const std::vector<Time>& begins = blocks_[static_cast<std::size_t>(block)].begins;
  const auto step = std::upper_bound(begins.begin(), begins.end(), t) - begins.begin() - 1;
  return {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(step)};
}

void StepList::append(Time begin, Row row) {
  if (blocks_.back().begins.size() == most_steps_) {
    blocks_.push_back({});
    firsts_.push_back(begin);
  }
  Block& last = blocks_.back();
  const bool is_first = last.begins.empty();
  last.begins.push_back(begin);
  for (const std::int64_t number : row) last.rows.push_back(number - last.more);
  last.least = is_first ? last.rows.back() : std::min(last.least, last.rows.back());
  last.most = is_first ? last.rows.back() : std::max(last.most, last.rows.back());
}

StepList::At StepList::split(Time t) {
  At at = this->at(t);
  if (begin(at) == t) return at;
  const auto offset = [](std::size_t n) { return static_cast<std::ptrdiff_t>(n); };
  if (blocks_[at.block].begins.size() == most_steps_) {  // its second half becomes a block
    Block& full = blocks_[at.block];
    const std::size_t half = most_steps_ / 2;
    Block second{.begins = {full.begins.begin() + offset(half), full.begins.end()},
                 .rows = {full.rows.begin() + offset(half * width_), full.rows.end()},
                 .more = full.more};
    full.begins.resize(half);
    full.rows.resize(half * width_);
    if (width_ == 1) full.measure();
    if (width_ == 1) second.measure();
    firsts_.insert(firsts_.begin() + offset(at.block + std::size_t{1}), second.begins.front());
    blocks_.insert(blocks_.begin() + offset(at.block + std::size_t{1}), std::move(second));
    if (at.step >= half) at = {at.block + 1, at.step - static_cast<std::uint32_t>(half)};
  }
  Block& block = blocks_[at.block];
  const std::size_t added = at.step + std::size_t{1};
  block.begins.insert(block.begins.begin() + offset(added), t);
  block.rows.insert(block.rows.begin() + offset(added * width_), width_, 0);
  std::copy_n(block.rows.begin() + offset(at.step * width_), width_, block.rows.begin() + offset(added * width_));
  return {at.block, at.step + 1};
}

bool StepList::is_like_the_one_before(At at) const {
  const At before = at.step > 0 ? At{at.block, at.step - 1}
                                : At{at.block - 1, static_cast<std::uint32_t>(blocks_[at.block - 1].begins.size() - 1)};
  if (width_ > 1) return std::ranges::equal(row(before), row(at));
  const Block &of = blocks_[at.block], &of_before = blocks_[before.block];
  return of.rows[at.step] + of.more == of_before.rows[before.step] + of_before.more;
}

void StepList::join(At at) {
  if (at == At{} || at == end() || !is_like_the_one_before(at)) return;
  Block& block = blocks_[at.block];
  if (block.begins.size() == 1) {
    blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(at.block));
    firsts_.erase(firsts_.begin() + static_cast<std::ptrdiff_t>(at.block));
    return;
  }
  block.begins.erase(block.begins.begin() + static_cast<std::ptrdiff_t>(at.step));
  const auto first = block.rows.begin() + static_cast<std::ptrdiff_t>(at.step * width_);
  block.rows.erase(first, first + static_cast<std::ptrdiff_t>(width_));
  firsts_[at.block] = block.begins.front();
}

void StepList::drop_before(Time t) {
  const std::uint32_t current = at(t).block;
  if (current == 0) return;
  blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(current));
  firsts_.erase(firsts_.begin(), firsts_.begin() + static_cast<std::ptrdiff_t>(current));
}

void StepList::add(At first, At last, std::int64_t more) {
  for (; first.block <= last.block && !(first == last); first = {first.block + 1, 0}) {
    Block& block = blocks_[first.block];
    const bool ends_here = first.block == last.block;
    if (first.step == 0 && !ends_here) {
      block.more += more;
      continue;
    }
    const auto from = block.rows.begin() + static_cast<std::ptrdiff_t>(first.step);
    const auto to = ends_here ? block.rows.begin() + static_cast<std::ptrdiff_t>(last.step) : block.rows.end();
    std::for_each(from, to, [more](std::int64_t& row) { row += more; });
    block.measure();
    if (ends_here) return;
  }
}

StepList::At StepList::first_of(At at, std::int64_t wanted) const {
  for (; at.block < blocks_.size(); at = {at.block + 1, 0}) {
    const Block& block = blocks_[at.block];
    if (block.most + block.more < wanted) continue;
    for (; at.step < block.rows.size(); ++at.step) {
      if (block.rows[at.step] + block.more >= wanted) return at;
    }
  }
  return end();
}

StepList::At StepList::first_below(At at, std::int64_t wanted, Time until) const {
  for (; at.block < blocks_.size() && firsts_[at.block] < until; at = {at.block + 1, 0}) {
    const Block& block = blocks_[at.block];
    if (block.least + block.more >= wanted) continue;
    for (; at.step < block.rows.size(); ++at.step) {
      if (block.rows[at.step] + block.more >= wanted) continue;
      return block.begins[at.step] < until ? at : end();
    }
  }
  return end();
}

}  // namespace gpusched
