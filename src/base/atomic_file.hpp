// SPDX-License-Identifier: Apache-2.0
/// Writing a result file so that a reader never sees half of one.
#pragma once

#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Writes `text` to a temporary file beside `path` and renames it over `path`. On any error (no such folder, full disk)
/// the temporary is removed and what was at `path` stays. A link is followed; a device or pipe (/dev/stdout) is written
/// to as it is.
Result<void> replace_file(const std::string& path, std::string_view text);

}  // namespace gpusched
