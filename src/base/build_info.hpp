// SPDX-License-Identifier: Apache-2.0
/// What this build is: shown by `gpusched --version` and written into every manifest.
#pragma once

#include <string_view>

namespace gpusched {

struct BuildInfo {
  std::string_view version;     ///< "0.1.0"
  std::string_view git_commit;  ///< short hash, "+changes" behind it when the tree was not clean, "unknown" outside git
  std::string_view date;        ///< of the commit, or of the build outside git: "2026-01-31"
  std::string_view compiler;    ///< "GNU 12.2.0"
  std::string_view build_type;  ///< CMake's word: Release, Debug...
  bool with_torch = false;      ///< the learner on LibTorch is compiled in
  bool with_cuda = false;       ///< the CUDA backend is compiled in
};

/// What this library was built from and with.
BuildInfo build_info();

}  // namespace gpusched
