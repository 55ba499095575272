// SPDX-License-Identifier: Apache-2.0
/// OutputFiles: several files that appear together or not at all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Every file is written under a temporary name in its folder; commit() renames all of them. Without commit() the files
/// are removed again, with the folders that were made for them.
class OutputFiles {
 public:
  OutputFiles() = default;
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;
  ~OutputFiles();

  /// Writes `content` for `path`, making its folders. Error: the operating system's reason.
  Result<void> write(const std::string& path, std::string_view content);
  /// Renames every file to its place.
  Result<void> commit();

 private:
  Result<void> make_folders(const std::string& folder);

  std::vector<std::string> paths_;    // written, not yet renamed
  std::vector<std::string> folders_;  // made, outermost first
};

}  // namespace gpusched
