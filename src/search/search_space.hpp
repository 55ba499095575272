// SPDX-License-Identifier: Apache-2.0
/// The space of policies: policies with parameters that vary in ranges, and how a genome stands for one of them.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "src/base/field_table.hpp"
#include "src/base/strict_json.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/search/nsga2.hpp"

namespace gpusched {

/// A number between bounds, included.
struct NumberRange {
  double from = 0, to = 1;
  bool log = false;      ///< the logarithm is uniform, not the number
  bool integer = false;  ///< whole numbers
};

/// A parameter that varies: one number, a list of numbers, which are put in ascending order, or one of several values.
struct SearchedParameter {
  std::string name;  ///< of a training: a path in its configuration, "network.hidden"; "base.PATH": a key of the base
  std::vector<NumberRange> numbers;
  bool list = false;
  std::vector<Json> choices;  ///< one: a constant; where there are some, there are no numbers
};

/// A policy with parameters that vary, or trainings with a configuration that does.
struct SearchedPolicy {
  std::string policy;       ///< as parse_policies() takes it, without the parameters that vary; of a training: "train"
  std::string router = {};  ///< which sends jobs to the sites of the base; empty: that of the base
  std::vector<SearchedParameter> parameters;
  std::optional<Json> training;  ///< a configuration of `gpusched train`
  std::size_t entry = 0;         ///< its number in the file's list, where one entry may have several routers
  /// Where it stands in the file.
  [[nodiscard]] std::string place() const { return "/policies/" + std::to_string(entry); }
};

/// Begins the name of a parameter that is a condition of the runs, not of the policy.
inline constexpr std::string_view condition_prefix = "base.";

/// The row of a sweep's base that `path` gives; nullptr: none.
const Field* base_field(const FieldTable& fields, const std::string& path);
bool takes_whole_numbers(const Field& field);

/// A genome's meaning.
struct Candidate {
  std::size_t space = 0;                             ///< number of the SearchedPolicy
  std::vector<std::pair<std::string, Json>> values;  ///< of its parameters
};

/// Genomes of a list of policies: which policy, and the numbers of all of them, of which one's count.
class CandidateSpace {
 public:
  explicit CandidateSpace(std::vector<SearchedPolicy> policies);

  /// The integers last.
  [[nodiscard]] const std::vector<Gene>& genes() const { return genes_; }
  [[nodiscard]] const std::vector<SearchedPolicy>& policies() const { return policies_; }

  /// Numbers are rounded to four significant digits, so that genomes that differ in less are one candidate.
  [[nodiscard]] Candidate decode(std::span<const double> genome) const;

  /// Candidates of every policy at both ends of its ranges and at every choice; numbers of a list lie apart.
  [[nodiscard]] std::vector<Candidate> corners() const;

  /// As --policy takes it, with a router as routed_text(), with conditions behind it, "fifo with trials=a.json and
  /// power=b.json"; of a training, "train{network.hidden=4}".
  [[nodiscard]] std::string policy(const Candidate& candidate) const;

 private:
  struct Slot {  // where the gene of a number or choice lies
    std::size_t space, parameter, number, gene;
  };
  void add_gene(const Slot& slot, const Gene& gene);

  std::vector<SearchedPolicy> policies_;
  std::vector<Gene> genes_;
  std::vector<Slot> slots_;
  std::optional<std::size_t> policy_gene_;
};

/// What CandidateSpace::policy() says.
struct CandidateText {
  std::string policy;
  Json conditions;  ///< keys of the base
};
CandidateText parts_of_candidate(const std::string& text);

/// Reads "policies" of a search. Errors name the path.
Result<std::vector<SearchedPolicy>> read_searched_policies(const Json& list, const PolicyRegistry& registry);

}  // namespace gpusched
