// SPDX-License-Identifier: Apache-2.0
/// SweepStore: the results of a sweep in SQLite, one row a run. A row is on its way to the disk as soon as its run has
/// ended: what kills the program, and kill -9 among it, loses no row.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/watch/metrics.hpp"

namespace gpusched {

/// How a run ended.
enum class RunStatus : std::uint8_t { done, failed, timeout };
inline constexpr std::string_view run_status_names[] = {"done", "failed", "timeout"};

/// What a run gave.
struct SweepResult {
  RunStatus status = RunStatus::failed;
  std::string message = {};  ///< why there are no figures
  Metrics metrics = {};      ///< of a run that is done
  Saturation saturation = {};
  bool clairvoyant = false;  ///< the policy knew true run times
  double wall_s = 0;         ///< of the run with its preparation
  double cpu_s = 0;          ///< the same in processor time
  double sim_s = 0;          ///< of the simulation alone, on the wall clock
  bool fatal = false;        ///< nothing was wrong with the run, but its files cannot be written: the sweep ends
};

/// A run as it is stored. `key` is the same for equal runs of equal traces by equal programs, and for no others.
struct SweepRow {
  std::string key;
  std::string point;    ///< sweep_point_json(), one line
  std::string program;  ///< version and commit
};

/// A result and its row as one line of JSON, from which read_result_text() gives the same figures to the bit.
std::string result_text(const SweepRow& row, const SweepResult& result);
/// Error: no such text, or of a version with other figures.
Result<std::pair<SweepRow, SweepResult>> read_result_text(const std::string& text, const std::string& file);

/// One open database. Not for use by a forked process.
class SweepStore {
 public:
  /// Opens the file, or makes it. Errors: no database, locked by another program, a folder that cannot be written.
  static Result<SweepStore> open(const std::string& path);
  /// Opens what is there, for states() alone; nothing where no file is.
  static Result<std::optional<SweepStore>> open_existing(const std::string& path);

  SweepStore(SweepStore&&) noexcept;
  SweepStore& operator=(SweepStore&&) noexcept;
  ~SweepStore();

  /// How each stored run ended, by its key.
  [[nodiscard]] Result<std::unordered_map<std::string, RunStatus>> states() const;
  /// The result of that key; nothing where there is none.
  [[nodiscard]] Result<std::optional<SweepResult>> find(const std::string& key) const;
  /// Stores a result, in place of an older one of that key. Errors: full disk, locked by another program for ten
  /// seconds.
  Result<void> put(const SweepRow& row, const SweepResult& result);

 private:
  struct State;
  explicit SweepStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The numbers of a result by name, in the order of files: the metrics, the signs of saturation, clairvoyant.
struct SweepFigure {
  std::string name;
  bool whole = false;           ///< an integer
  std::optional<double> value;  ///< nothing: not known
};
std::vector<SweepFigure> sweep_figures(const SweepResult& result);

}  // namespace gpusched
