// SPDX-License-Identifier: Apache-2.0
#include "src/rl/event_file.hpp"

#include <cstring>
#include <filesystem>

#include "src/policies/learned/trained_model.hpp"

namespace gpusched {
namespace {

template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

// TFRecord's mask of a checksum: rotated by 15 bits, plus a constant (tensorflow/core/lib/hash/crc32c.h).
std::string masked_crc(std::string_view bytes) {
  const std::uint32_t sum = crc32c(bytes);
  return little_endian(((sum >> 15) | (sum << 17)) + 0xA282EAD8u);
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<char>(value | 0x80));
  bytes.push_back(static_cast<char>(value));
  return bytes;
}

// Protocol buffer wire types: 0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes.
std::string key(std::uint32_t field, std::uint32_t wire_type) { return varint(field << 3 | wire_type); }
std::string bytes_field(std::uint32_t field, std::string_view bytes) {
  return key(field, 2) + varint(bytes.size()) + std::string(bytes);
}

}  // namespace

std::string tf_record(std::string_view data) {
  const std::string length = little_endian(static_cast<std::uint64_t>(data.size()));
  return length + masked_crc(length) + std::string(data) + masked_crc(data);
}

std::string event_message(double wall_time_s, std::int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars) {
  std::string event = key(1, 1) + little_endian(wall_time_s) + key(2, 0) + varint(static_cast<std::uint64_t>(step));
  if (scalars.empty()) return event + bytes_field(3, "brain.Event:2");
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    summary += bytes_field(1, bytes_field(1, tag) + key(2, 5) + little_endian(static_cast<float>(value)));
  }
  return event + bytes_field(5, summary);
}

EventFile::EventFile(const std::string& folder, double wall_time_s) {
  const std::string base =
      folder + "/events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_time_s)) + ".gpusched.";
  int number = 0;
  while (std::filesystem::exists(base + std::to_string(number))) ++number;
  path_ = base + std::to_string(number);
  out_.open(path_, std::ios::binary);
  out_ << tf_record(event_message(wall_time_s, 0, {})) << std::flush;
}

void EventFile::write(double wall_time_s, std::int64_t step,
                      const std::vector<std::pair<std::string, double>>& scalars) {
  out_ << tf_record(event_message(wall_time_s, step, scalars)) << std::flush;
}

}  // namespace gpusched
