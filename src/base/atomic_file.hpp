// SPDX-License-Identifier: Apache-2.0
/// Writes a result file so that a reader never sees a part of it.
#pragma once

#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Writes `text` to a temporary file beside `path` and renames it to `path`. On any error (no such folder, full disk)
/// the temporary file is removed and the old file stays. A link is followed; a device or pipe (/dev/stdout) is written
/// to directly.
Result<void> replace_file(const std::string& path, std::string_view text);

/// Waits until no replace_file() is at work, and lets none begin while the lock lives: for who ends the program, so
/// that no temporary file stays.
[[nodiscard]] std::unique_lock<std::shared_mutex> hold_replacements();

/// As replace_file(), and "-" is standard output.
Result<void> write_output(const std::string& path, std::string_view text);

/// Writes `text` into a file that this call makes, through no link, and onto the disk. Returns the step that failed,
/// "create" or "write", with the reason in errno; null when all is written.
const char* write_new_file(const std::string& path, std::string_view text);

/// Takes the next piece of a text.
using PieceSink = std::function<void(std::string_view)>;
/// Gives a text to the sink, piece by piece.
using PieceSource = std::function<void(const PieceSink&)>;

/// Writes a new file of a text that is never in memory as a whole. Pieces that come after a failure are passed over.
const char* write_new_file(const std::string& path, const PieceSource& source);

}  // namespace gpusched
