// SPDX-License-Identifier: Apache-2.0
/// QosWeights: the priority of a job by its quality of service, as `--qos` says it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"

namespace gpusched {

class QosWeights {
 public:
  /// Reads "high=1000,normal=10": whole numbers, larger is more urgent. Error: not such a text.
  static Result<QosWeights> parse(const std::string& text);

  [[nodiscard]] bool empty() const { return weights_.empty(); }
  /// The weight of a name, which is counted; 0 where it has none.
  std::int32_t priority(std::string_view name);
  /// What a user should know after the last job: names without a weight, weights without a job.
  [[nodiscard]] std::vector<std::string> notes() const;

 private:
  struct Weight {
    std::int32_t weight = 0;
    std::uint64_t jobs = 0;
  };
  std::map<std::string, Weight, std::less<>> weights_;
  std::map<std::string, std::uint64_t, std::less<>> others_;  // jobs by names without a weight
};

}  // namespace gpusched
