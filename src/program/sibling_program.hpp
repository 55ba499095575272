// SPDX-License-Identifier: Apache-2.0
/// Programs beside this one, which do what would make it slow to start.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "src/program/commands.hpp"

namespace gpusched {

/// Becomes the program `name` in the folder of this one. Returns only when that cannot be started.
inline int become_program(const std::string& name, std::vector<std::string> arguments) {
  std::error_code why;
  const std::string path = (std::filesystem::read_symlink("/proc/self/exe", why).parent_path() / name).string();
  arguments.insert(arguments.begin(), path);
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  return complain(path + " cannot be started: " + std::strerror(errno), exit_failed);
}

}  // namespace gpusched
