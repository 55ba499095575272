// SPDX-License-Identifier: Apache-2.0
/// RecordPool: many short linked lists of records in one vector, for lists that grow and shrink all the time.
#pragma once

#include <cstdint>
#include <vector>

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Records are numbered; `link` is the member of a record that holds the number of the next one in its list (no_index
/// ends a list). Removed records are reused, the last removed first, so that a pool grows to the most that were held
/// at once and allocates no more. A value: a copy holds the same lists under the same numbers.
template <class Record, std::uint32_t Record::*link>
class RecordPool {
 public:
  /// Stores a record, its link included, and returns its number. References to records do not survive this.
  std::uint32_t add(const Record& record) {
    if (first_free_ == no_index) {
      records_.push_back(record);
      return static_cast<std::uint32_t>(records_.size() - 1);
    }
    const std::uint32_t at = first_free_;
    first_free_ = records_[at].*link;
    records_[at] = record;
    return at;
  }

  /// Gives a record up. Precondition: it was added and not removed since.
  void remove(std::uint32_t at) {
    records_[at].*link = first_free_;
    first_free_ = at;
  }

  /// Removes the list that begins with record `head`; no_index is the empty list.
  void remove_list(std::uint32_t head) {
    while (head != no_index) {
      const std::uint32_t next = records_[head].*link;
      remove(head);
      head = next;
    }
  }

  /// The record of that number.
  [[nodiscard]] Record& operator[](std::uint32_t at) { return records_[at]; }
  [[nodiscard]] const Record& operator[](std::uint32_t at) const { return records_[at]; }  ///< the same, to read

 private:
  std::vector<Record> records_;
  std::uint32_t first_free_ = no_index;
};

}  // namespace gpusched
