// SPDX-License-Identifier: Apache-2.0
/// Programs beside this one, which do what would make it slow to start or to build.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "src/program/commands.hpp"

namespace gpusched {

/// A program in the folder of this one, and the build's target that makes it.
struct SiblingProgram {
  const char* name;
  const char* target;
};

inline constexpr SiblingProgram train_program{"gpusched-train", "gpusched_train"};
inline constexpr SiblingProgram search_program{"gpusched-search", "gpusched_search_program"};
inline constexpr SiblingProgram calibrate_program{"gpusched-calibrate", "gpusched_calibrate"};

/// Becomes that program. Returns only when it cannot be started; the message says how to build one that is not there.
inline int become_program(const SiblingProgram& program, std::vector<std::string> arguments) {
  std::error_code why;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", why).parent_path();
  const std::string path = (folder / program.name).string();
  arguments.insert(arguments.begin(), path);
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  const int error = errno;
  if (error == ENOENT && std::filesystem::exists(folder / "CMakeCache.txt", why)) {
    return complain(std::string(program.name) + " is not built yet; build it: cmake --build " + folder.string() +
                        " --target " + program.target,
                    exit_failed);
  }
  return complain(path + " cannot be started: " + std::strerror(error), exit_failed);
}

}  // namespace gpusched
