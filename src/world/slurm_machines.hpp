// SPDX-License-Identifier: Apache-2.0
/// Machines as Slurm describes them, and the cluster that they make.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"

namespace gpusched {

/// Most cores, MiB or GPUs that a file may give a machine: products with thousandths stay in range.
inline constexpr std::int64_t most_of_a_machine = 1'000'000'000;

/// A cluster, and what its file leaves open or does not fit our model of one.
struct SlurmCluster {
  Cluster cluster;
  std::vector<std::string> notes;
};

/// A machine, by the words of Slurm's files.
struct SlurmMachine {
  std::string name;
  std::int64_t cores = -1;       ///< -1: not said
  std::int64_t memory_mib = -1;  ///< -1: not said
  std::string gres;              ///< "gpu:a100:8"
  std::vector<std::string> partitions;
  std::string state;
  std::uint64_t line = 0;  ///< of its file
};

/// The parts of a text between separators, without the blanks around them.
std::vector<std::string_view> split_at(std::string_view text, char separator);

/// Collects machines into a cluster: numbers partitions and GPU types by first appearance.
class SlurmClusterBuilder {
 public:
  /// `with_down`: nodes out of service count as well.
  explicit SlurmClusterBuilder(bool with_down);
  ~SlurmClusterBuilder();
  SlurmClusterBuilder(const SlurmClusterBuilder&) = delete;
  SlurmClusterBuilder& operator=(const SlurmClusterBuilder&) = delete;

  /// Error: what is wrong with the machine, and in which field.
  std::optional<Error> add(const SlurmMachine& machine);
  /// What the machines make. To be called once.
  SlurmCluster finish();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace gpusched
