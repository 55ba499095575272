// SPDX-License-Identifier: Apache-2.0
/// --out FOLDER of the commands that write results.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "src/base/output_folder.hpp"
#include "src/base/strict_json.hpp"
#include "src/program/commands.hpp"
#include "src/sim/earlier_results.hpp"
#include "src/sim/report.hpp"

namespace gpusched {

/// Opens `path` for the results, before the work, so that a second writer is told at once; does nothing where it is
/// empty. The results of an earlier run go when the first new ones come. Returns the exit code after a complaint: that
/// the folder cannot be written, or holds a manifest.json that gpusched did not write.
inline int open_folder(const std::string& path, std::optional<OutputFolder>& folder) {
  if (path.empty()) return exit_done;
  auto opened = OutputFolder::open(path, manifest_name);
  if (!opened) return complain("--out: " + opened.error().to_string());
  const std::string manifest = path + "/" + manifest_name;
  if (std::filesystem::is_regular_file(manifest)) {
    const auto text = read_text_file(manifest);
    if (!text) return complain("--out: " + text.error().to_string());
    const auto earlier = files_of_run(*text, manifest);
    if (!earlier) return complain("--out: " + earlier.error().to_string());
    for (const std::string& name : *earlier) opened->leave_out(name);
  }
  folder.emplace(*std::move(opened));
  return exit_done;
}

}  // namespace gpusched
