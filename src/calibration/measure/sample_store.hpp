// SPDX-License-Identifier: Apache-2.0
/// SampleStore: the raw samples of a calibration, written to a file as they are taken, so that an interrupted run can
/// continue and every fit can be repeated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

class SampleStore {
 public:
  /// Opens or makes the file. `identity` says what is measured (backend, device, scale, seed); the file of another
  /// identity is refused; a last row that was cut off is removed. An empty path keeps the samples in memory only.
  /// Errors: unreadable, not such a file, another identity, no room.
  static Result<SampleStore> open(const std::string& path, const std::string& identity);

  /// The samples of a measurement, or nullptr.
  [[nodiscard]] const std::vector<double>* find(const std::string& id) const;

  /// Adds them; they are on disk when it returns. Error: the disk is full; the rows written before stay valid.
  Result<void> add(const std::string& id, const std::vector<double>& samples);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(samples_.size()); }

  /// FNV-1a hash of the rows by id: 16 hexadecimal digits.
  [[nodiscard]] std::string hash() const;

 private:
  std::string path_;
  std::map<std::string, std::vector<double>> samples_;
};

}  // namespace gpusched
