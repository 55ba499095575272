// SPDX-License-Identifier: Apache-2.0
#include "src/rl/event_file.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "src/policies/learned/trained_model.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

TEST(EventFile, HoldsFramedRecords) {
  const std::string record = tf_record("hello");
  ASSERT_EQ(record.size(), 8u + 4u + 5u + 4u);
  std::uint64_t length = 0;
  std::memcpy(&length, record.data(), sizeof length);
  EXPECT_EQ(length, 5u);
  std::uint32_t check = 0;
  std::memcpy(&check, record.data() + 17, sizeof check);
  const std::uint32_t sum = crc32c("hello");
  EXPECT_EQ(check, ((sum >> 15) | (sum << 17)) + 0xA282EAD8u);
  // Event{step: 300, summary{value{tag: "a", simple_value: 2}}} after the wall time, written out by hand.
  const std::string event = event_message(0, 300, {{"a", 2.0}});
  EXPECT_EQ(event.substr(9), std::string("\x10\xAC\x02\x2A\x0A\x0A\x08\x0A\x01"
                                         "a\x15\0\0\0\x40",
                                         15));
}

TEST(EventFile, IsReadByTensorBoard) {
  if (std::system("python3 -c 'import tensorboard' > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "python3 has no tensorboard";
  }
  const test::TempFolder temporary;
  const std::string folder = temporary.path();
  {
    EventFile events(folder, 1.7e9);
    events.write(1.7e9 + 1, 1000, {{"charts/SPS", 1234.0}, {"losses/value_loss", 0.5}});
    events.write(1.7e9 + 2, 2000, {{"charts/SPS", 2345.0}});
  }
  std::ofstream(folder + "/read.py")
      << "import sys\n"
         "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
         "log = EventAccumulator(sys.argv[1])\n"
         "log.Reload()\n"
         "sps = [(e.step, e.value) for e in log.Scalars('charts/SPS')]\n"
         "loss = [(e.step, e.value) for e in log.Scalars('losses/value_loss')]\n"
         "sys.exit(0 if sps == [(1000, 1234.0), (2000, 2345.0)] and loss == [(1000, 0.5)] else 1)\n";
  EXPECT_EQ(std::system(("python3 " + folder + "/read.py " + folder + " 2> /dev/null").c_str()), 0);
}

}  // namespace
}  // namespace gpusched
