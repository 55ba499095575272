// SPDX-License-Identifier: Apache-2.0
/// The lines of slurm.conf as its parser takes them: continued, without comments, with the files that they include.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched {

/// KEY=VALUE.
struct SlurmPair {
  std::string key;    ///< as written
  std::string value;  ///< without quotes
};

/// A parameter, or a line that describes something: NodeName=..., with all its pairs.
struct SlurmConfLine {
  std::string file;
  std::uint64_t line = 0;        ///< the first, where it is continued
  std::vector<SlurmPair> pairs;  ///< at least one; several only of a description

  /// The value of that key, whatever the case of its letters; of several the last. Null: none.
  [[nodiscard]] const std::string* find(std::string_view key) const;
};

/// What slurm.conf and the files that it includes hold, in order.
struct SlurmConfLines {
  std::vector<SlurmConfLine> lines;
  std::vector<std::string> files;  ///< that were read
};

/// Reads them. A relative name behind Include is taken from the folder of `path` (slurm.conf(5)). Errors: a file that
/// cannot be read, a line that is not of KEY=VALUE, includes that go round.
Result<SlurmConfLines> read_slurm_conf_lines(const std::string& path);

/// True when two keys or words of slurm.conf are the same: case counts in names of nodes and partitions alone.
bool same_slurm_word(std::string_view a, std::string_view b);

/// A limit of time as "1-12:00:00"; UNLIMITED, INFINITE and -1: Time::max(). Nothing: it is no time.
std::optional<Time> parse_slurm_wall(std::string_view text);

/// "low,high", each as written and in lower case, as Slurm keeps names of QOS and accounts; ALL: no list.
std::vector<std::string> slurm_names(std::string_view list);

/// The names of "node[01-03,7],login1": node01 node02 node03 node7 login1. Error: not such a list, or one of more than
/// a million names.
Result<std::vector<std::string>> slurm_host_names(std::string_view list);

}  // namespace gpusched
