// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/server_process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace gpusched {
namespace {

using testing::HasSubstr;

// Remembers between requests, and dies, hangs or interrupts itself when told to.
ServerProcess::Handler make_echo() {
  return [count = 0](const std::string& request) mutable {
    if (request == "die") ::_exit(3);
    if (request == "hang") std::this_thread::sleep_for(std::chrono::seconds(60));
    if (request == "interrupt") ::raise(SIGINT);
    return std::to_string(++count) + " " + request;
  };
}

TEST(ServerProcess, AnswersAndRemembers) {
  auto server = ServerProcess::start(make_echo);
  ASSERT_TRUE(server);
  EXPECT_EQ(*server->ask("", 10), "1 ");
  const std::string large(3'000'000, 'x');
  EXPECT_EQ(*server->ask(large, 10), "2 " + large);
}

TEST(ServerProcess, LeavesInterruptsToItsOwner) {
  auto server = ServerProcess::start(make_echo);
  ASSERT_TRUE(server);
  EXPECT_EQ(*server->ask("interrupt", 10), "1 interrupt");
}

TEST(ServerProcess, AChildThatEndsIsAnErrorAndStaysOne) {
  auto server = ServerProcess::start(make_echo);
  ASSERT_TRUE(server);
  EXPECT_THAT(server->ask("die", 10).error().to_string(), HasSubstr("ended in the middle of a request"));
  EXPECT_FALSE(server->ask("more", 10));
}

TEST(ServerProcess, AChildThatHangsIsAnErrorAndIsEnded) {
  const auto begin = std::chrono::steady_clock::now();
  {
    auto server = ServerProcess::start(make_echo);
    ASSERT_TRUE(server);
    EXPECT_THAT(server->ask("hang", 1).error().to_string(), HasSubstr("no answer within 1 s"));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace gpusched
