// SPDX-License-Identifier: Apache-2.0
/// InputFile: the lines of a trace file, plain or compressed (gz, zst, xz, bz2, also inside tar), in one streaming
/// pass. What is packed is checked as far as its format allows: the checksum and length of gz, the checksums of xz and
/// bz2, and that of zst where there is one. It may unpack to 1 GiB and 250 times its own size.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

/// Reads a file once from front to back; "-" is standard input. Standard input and pipes may be opened again like files
/// (OneTimeStream). Line ends may be LF or CRLF; a UTF-8 byte-order mark is skipped.
class InputFile {
 public:
  /// Opens `path`; of a tar archive, the entry whose name ends in `entry` (or the first file). Errors: missing, a
  /// directory, empty, no such entry, damaged.
  static Result<InputFile> open(const std::string& path, const std::string& entry = "");

  /// True when `path` is a tar archive (compressed or not) with an entry whose name ends in `entry`.
  static bool has_entry(const std::string& path, const std::string& entry);

  InputFile(InputFile&&) noexcept;
  InputFile& operator=(InputFile&&) noexcept;
  ~InputFile();

  /// The next line without its end; the view lives until the next call. False at the end of the file or after damage:
  /// failure() tells which.
  bool next_line(std::string_view& line);

  /// The next bytes, for formats without lines; empty at the end or after damage.
  std::string_view next_block();

  /// The first bytes of the content (up to 64 KiB), without consuming them.
  [[nodiscard]] std::string_view head() const;

  /// Number of the line that next_line() gave last, from 1.
  [[nodiscard]] std::uint64_t line_number() const;
  [[nodiscard]] const std::optional<Error>& failure() const;
  [[nodiscard]] const std::string& path() const;

  /// What of a tar archive is read; empty for other files.
  [[nodiscard]] const std::string& entry_name() const;
  /// True for what zstd or xz packed without a checksum, so that damage may pass unnoticed.
  [[nodiscard]] bool without_checksum() const;

  /// Names of the further files of a tar archive, of which only the first is read. Reads what is left.
  std::vector<std::string> other_files();
  /// Unpacks what is left, so that its checksums are compared. Error: damage, now or before.
  Result<void> check_rest();

  /// SHA-256 of the file as it lies on disk, hexadecimal. Reads what is left of it.
  std::string sha256();

 private:
  struct State;
  explicit InputFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusched
