// SPDX-License-Identifier: Apache-2.0
/// Program: the fixture of tests that run the program as its users do.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/files.hpp"

namespace gpusched::test {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Program : public testing::Test {
 protected:
  // `arguments` as a shell reads them.
  Outcome run(const std::string& arguments) const {
    Outcome outcome = run_into(folder_.path() + "/stdout", arguments);
    outcome.out = bytes_of(folder_.path() + "/stdout");
    return outcome;
  }
  Outcome run_into(const std::string& out, const std::string& arguments) const {
    const std::string err = folder_.path() + "/stderr";
    const int status =
        std::system((std::string(GPUSCHED_PROGRAM) + " " + arguments + " >" + out + " 2>" + err).c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, "", bytes_of(err)};
  }

  // Bad input: exit 2, nothing on standard output, one line that says what is wrong.
  void expect_refused(const std::string& arguments, const std::string& reason) const {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, StartsWith("gpusched: ")) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(reason)) << arguments;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }

  json metrics(const std::string& arguments) const {
    const Outcome outcome = run(arguments + " --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    const json report = json::parse(outcome.out, nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << outcome.out;
    return report.is_discarded() ? json() : report["runs"];
  }

  std::string small_trace() const {
    return folder_.write("small.csv",
                         "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc\n"
                         "a,0,10,2,1000,x\n"
                         "b,2,4,1,1000,y\n"
                         "c,4,30.5,1,500,x\n");
  }

  TempFolder folder_;
};

}  // namespace gpusched::test
