// SPDX-License-Identifier: Apache-2.0
/// StoredRuns: the fixture of tests of programs that store runs in SQLite, and may be killed.
#pragma once

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/program/program.hpp"

namespace gpusched::test {

class StoredRuns : public Program {
 protected:
  // The rows of the csv, each by column.
  static std::vector<std::map<std::string, std::string>> rows_of(const std::string& text) {
    const auto cells = [](const std::string& line) {
      std::vector<std::string> all{""};
      bool quoted = false;
      for (const char c : line) {
        if (c == '"') quoted = !quoted;
        if (c == ',' && !quoted) {
          all.emplace_back();
        } else if (c != '"') {
          all.back() += c;
        }
      }
      return all;
    };
    std::istringstream lines(text);
    std::string line;
    std::getline(lines, line);
    const std::vector<std::string> header = cells(line);
    std::vector<std::map<std::string, std::string>> rows;
    while (std::getline(lines, line)) {
      const std::vector<std::string> row = cells(line);
      EXPECT_EQ(row.size(), header.size()) << line;
      rows.emplace_back();
      for (std::size_t i = 0; i < std::min(row.size(), header.size()); ++i) rows.back()[header[i]] = row[i];
    }
    return rows;
  }

  // Rows in the database; -1 where there is none yet.
  static int rows_in(const std::string& path) {
    sqlite3* database = nullptr;
    int count = -1;
    if (sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr) == SQLITE_OK) {
      const auto take = [](void* target, int, char** values, char**) {
        *static_cast<int*>(target) = std::atoi(values[0]);
        return 0;
      };
      sqlite3_exec(database, "SELECT count(*) FROM runs", take, &count, nullptr);
    }
    sqlite3_close(database);
    return count;
  }

  pid_t start(const std::string& arguments) const {
    const std::string command = "exec " + std::string(GPUSCHED_PROGRAM) + " " + arguments + " >" + folder_.path() +
                                "/started.out 2>" + folder_.path() + "/started.err";
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    return child;
  }
  static int end_of(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static bool comes_true(const std::function<bool()>& seen) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    while (!seen()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }
  static std::vector<pid_t> children_of(pid_t parent) {
    std::istringstream list(
        bytes_of("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children"));
    std::vector<pid_t> children;
    for (pid_t child = 0; list >> child;) children.push_back(child);
    return children;
  }
};

}  // namespace gpusched::test
