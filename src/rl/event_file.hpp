// SPDX-License-Identifier: Apache-2.0
/// TensorBoard event files: scalars only.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusched {

/// One record of a TFRecord file: little-endian length, its masked CRC-32C, the data, its masked CRC-32C.
std::string tf_record(std::string_view data);

/// A tensorflow.Event message with one scalar for each (tag, value), or the file's version record when `scalars` is
/// empty. Fields by number: Event 1 wall_time (double, seconds), 2 step (int64), 3 file_version, 5 summary; Summary 1
/// value; Value 1 tag, 2 simple_value (float).
std::string event_message(double wall_time_s, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars);

/// A file `events.out.tfevents.TIME.gpusched.NUMBER` in `folder`; a new one for each start, as TensorBoard expects.
class EventFile {
 public:
  EventFile(const std::string& folder, double wall_time_s);
  void write(double wall_time_s, std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::ofstream out_;
};

}  // namespace gpusched
