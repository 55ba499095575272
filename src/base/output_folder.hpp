// SPDX-License-Identifier: Apache-2.0
/// OutputFolder: files that appear in a folder together or not at all, from one writer at a time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/atomic_file.hpp"

namespace gpusched {

/// Holds a folder for one writer. Files are staged in a hidden folder of their own inside it; publish() moves them to
/// their places, and may be called for one part of the results after the other. The seal is the file that says what
/// belongs together: an old one is taken away before anything is moved, and a new one is moved last. All files that
/// belong to it lie beside it, whenever the writer was killed; a folder without it holds no complete result.
/// Other files in the folder stay. What was not published is removed, with the folders made for it, and what a killed
/// writer left in staging goes with the next one.
class OutputFolder {
 public:
  /// Makes the folder (and those above it) where it is missing, and keeps other writers out until the end of this
  /// object's life. Errors: no folder can be made there; another process writes into it.
  static Result<OutputFolder> open(const std::string& path, const std::string& seal);

  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Stages `content` for `name`, which may stand in a folder of its own: "fifo/jobs.csv". Error: the operating
  /// system's reason.
  Result<void> write(const std::string& name, std::string_view content);
  /// Stages for `name` what `source` gives, piece by piece. Error: the operating system's reason.
  Result<void> write(const std::string& name, const PieceSource& source);

  /// Says that `name` is not among these results: publish() removes an older file there, and the folder above it where
  /// nothing else is in it. What was staged before publish() under this name takes its place.
  void leave_out(const std::string& name) { left_out_.push_back(name); }

  /// Moves what was staged to its places, the seal last where it is among it. Errors: a folder or a link is in the way,
  /// and then nothing was moved; a file cannot be moved, and then there is no seal.
  Result<void> publish();

 private:
  OutputFolder(std::string path, std::string seal, int lock, std::vector<std::string> made)
      : path_(std::move(path)), seal_(std::move(seal)), lock_(lock), made_(std::move(made)) {}
  Result<void> make_staging();
  [[nodiscard]] Result<void> check_places() const;

  std::string path_, seal_;
  int lock_ = -1;                   // descriptor of the folder, locked; -1: moved from
  std::vector<std::string> made_;   // folders that open() made, outermost first, until something is published
  std::string staging_;             // empty: nothing was written yet
  std::vector<std::string> names_;  // staged
  std::vector<std::string> left_out_;
};

/// Keeps other processes out of `folder` while the returned descriptor is open; closing it, or the process's end, gives
/// the folder free. Errors: another process has it; it cannot be opened. Where the file system knows no locks there is
/// nothing to keep out with, and that is no error.
Result<int> lock_folder(const std::string& folder);

}  // namespace gpusched
