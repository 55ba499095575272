// SPDX-License-Identifier: Apache-2.0
/// --out FOLDER of the commands that write results.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "src/base/output_folder.hpp"
#include "src/program/commands.hpp"
#include "src/sim/report.hpp"

namespace gpusched {

/// Opens `path` for the results, before the work, so that a second writer is told at once; does nothing where it is
/// empty. Returns the exit code after a complaint.
inline int open_folder(const std::string& path, std::optional<OutputFolder>& folder) {
  if (path.empty()) return exit_done;
  auto opened = OutputFolder::open(path, manifest_name);
  if (!opened) return complain("--out: " + opened.error().to_string());
  folder.emplace(*std::move(opened));
  return exit_done;
}

}  // namespace gpusched
