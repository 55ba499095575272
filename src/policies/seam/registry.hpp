// SPDX-License-Identifier: Apache-2.0
/// The registry of policies: one explicit table row a policy, with everything that `gpusched policies` prints. A value:
/// an embedder copies it and adds rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/data/job_table.hpp"
#include "gpusched/data/power_model.hpp"
#include "gpusched/data/runtime_model.hpp"
#include "gpusched/policy/past_jobs.hpp"
#include "gpusched/policy/policy.hpp"

namespace gpusched {

/// A parameter value: flag, number, word, list of numbers, or list of policies or of pairs (A>B, A=60) as written.
using ParameterValue = std::variant<bool, double, std::string, std::vector<double>, std::vector<std::string>>;

/// A parameter that a policy takes. The type of `fallback` is the type that a user must give.
struct ParameterInfo {
  std::string name;  ///< with its unit at the end: queue_limits_gpu_s
  ParameterValue fallback;
  std::string meaning;  ///< one line
  double least = 0;     ///< numbers (and list entries) lie in [least, most]
  double most = 1e18;
  bool is_count = false;                ///< numbers have no fraction
  std::vector<std::string> words = {};  ///< the allowed words of a word parameter
};

/// The parameters of one policy, complete and checked against its ParameterInfo list.
class PolicyParameters {
 public:
  explicit PolicyParameters(std::map<std::string, ParameterValue> values) : values_(std::move(values)) {}
  // Precondition of each: the policy declares a parameter of that name and type.
  [[nodiscard]] bool flag(const std::string& name) const { return std::get<bool>(values_.at(name)); }
  [[nodiscard]] double number(const std::string& name) const { return std::get<double>(values_.at(name)); }
  [[nodiscard]] const std::string& word(const std::string& name) const {
    return std::get<std::string>(values_.at(name));
  }
  [[nodiscard]] const std::vector<double>& list(const std::string& name) const {
    return std::get<std::vector<double>>(values_.at(name));
  }
  [[nodiscard]] const std::vector<std::string>& policies(const std::string& name) const {
    return std::get<std::vector<std::string>>(values_.at(name));
  }

 private:
  std::map<std::string, ParameterValue> values_;
};

class PolicyRegistry;
struct PolicySpec;

/// The run that a policy is made for, which its maker may read.
struct PolicyContext {
  const JobTable* jobs = nullptr;    ///< borrowed for the policy's life
  const Cluster* cluster = nullptr;  ///< borrowed for the call
  std::uint64_t seed = 0;
  std::string spec_name = {};  ///< the policy as written, which holds the folder of `rl:DIR`; set by the registry
  PastJobs past = {};          ///< what predictions know before the run; borrowed for the call
  const RuntimeModel* runtime = nullptr;  ///< borrowed for the policy's life; null: all jobs run at the reference rate
  /// Signals and draws of the run, borrowed for the policy's life; null: unknown. Of a signal's future a policy may
  /// know what a Forecast tells.
  const PowerModel* power = nullptr;
  /// Where policies that hold others find them, borrowed for the policy's life; set by the registry.
  const PolicyRegistry* registry = nullptr;
  /// PolicySpec::held, borrowed for the call; set by the registry.
  std::span<const PolicySpec> held = {};
};

/// What the schedule of a run should not depend on, beyond what the policy's definition says.
enum class Symmetry : std::uint8_t {
  row_order,   ///< of the trace: jobs of one instant are told apart by their ids
  node_order,  ///< of the cluster, where nodes of one GPU type are alike
  time_shift,  ///< all instants later by the same time
  time_scale,  ///< all times, parameters in seconds among them, times the same factor
  user_names,  ///< users, and groups, of other names
};

/// A symmetry that a policy does not keep.
struct Asymmetry {
  Symmetry of;
  std::string reason;  ///< what in its definition decides instead
};

struct PriorityOrder;        // priority_order.hpp
class AnyDurationEstimator;  // duration_estimator.hpp
class PolicyLog;             // policy_log.hpp

/// One row of the registry.
struct PolicyInfo {
  std::string name;
  std::string summary;  ///< what it does, one line
  std::string source;   ///< paper section or file, with the quirks of a faithful variant
  // A helper for policies of one kind, such as list_policy_info(), may fill in these three.
  std::string complexity = {};  ///< cost of an event
  std::vector<ParameterInfo> parameters = {};
  std::function<Result<AnyPolicy>(const PolicyParameters&, const PolicyContext&)> make = {};
  bool preemptive = false;
  bool work_conserving = false;  ///< no waiting job that would fit is left waiting
  std::vector<std::string> aliases = {};
  /// Set for a policy that only orders starts (list scheduling): its order, with which backfilling can be combined.
  std::function<Result<PriorityOrder>(const PolicyParameters&, const PolicyContext&)> order = {};
  /// Set for a policy that is more than an order but backfills by a method of its own: the policy with that method,
  /// which plans by the estimator's run times. `POLICY+easy` makes it, from its own parameters and those of easy.
  std::function<Result<AnyPolicy>(const PolicyParameters&, const PolicyParameters&, const PolicyContext&,
                                  AnyDurationEstimator)>
      backfilled = {};
  /// True for a policy that makes the choices of an Agenda. Its parameters, not --backfill, say how it backfills.
  bool agent = false;
  /// What an agent knows of run times, as an estimator is called ("history"); "" for nothing. Others have a parameter
  /// `estimate` or know none. Takes the complete parameters and the policy's name as written.
  std::function<std::string(const PolicyParameters&, const std::string&)> knowledge = {};
  /// The files that the policy reads when it is made; none where empty.
  std::function<std::vector<std::string>(const PolicySpec&)> files = {};
  /// It holds other policies and gives the run to one of them at a time. None of these may be such a policy.
  bool holds_policies = false;
  /// It cannot be copied in the middle of a run.
  bool is_process = false;
  /// It chooses nodes itself, whatever the run's placement rule; of nodes that are equal to it the first is taken.
  bool chooses_nodes = false;
  /// The symmetries that its definition does not have. tests/policies/symmetry_test.cpp tries the others.
  std::vector<Asymmetry> asymmetries = {};
  /// For a policy that has more to tell of a run than the usual files: an observer that notes it.
  std::function<Result<std::unique_ptr<PolicyLog>>(const PolicyParameters&, const PolicyContext&)> log = {};
};

/// A policy as written on the command line: `tiresias{queue_limits_gpu_s=[3250,7200]}`, `saf+easy{estimate=user}`.
struct PolicySpec {
  std::string text;  ///< as written
  std::string name;
  std::map<std::string, ParameterValue> given;
  std::vector<PolicySpec> backfill = {};  ///< the way of backfilling behind '+': none or one
  /// The policies that it holds, with what options of the run add to each (held_policies()); empty: as written.
  std::vector<PolicySpec> held = {};
};

/// Splits "a,b{x=1,y=[2,3]},c+easy" at the commas between policies and parses each. Errors name the place.
Result<std::vector<PolicySpec>> parse_policy_list(std::string_view text);

class PolicyRegistry {
 public:
  /// Every policy of the project.
  static PolicyRegistry standard();

  void add(PolicyInfo info) { rows_.push_back(std::move(info)); }
  /// A policy for every name that begins with info.name ("rl:"); not in rows(), as it cannot be made from that alone.
  void add_prefix(PolicyInfo info) { prefixes_.push_back(std::move(info)); }
  [[nodiscard]] const std::vector<PolicyInfo>& rows() const { return rows_; }

  /// The row of that name or alias; the error names the nearest one.
  [[nodiscard]] Result<const PolicyInfo*> find(std::string_view name) const;

  /// A fresh policy; errors on unknown names, parameters, types and ranges, and on backfilling (make_policy() takes
  /// it).
  [[nodiscard]] Result<AnyPolicy> make(const PolicySpec& spec, const PolicyContext& context) const;

  /// The order in which that policy starts jobs; errors as make() does, and when the policy is more than an order.
  [[nodiscard]] Result<PriorityOrder> make_order(const PolicySpec& spec, const PolicyContext& context) const;

  /// A log for a run of that policy; null where its kind keeps none. Errors as make() does.
  [[nodiscard]] Result<std::unique_ptr<PolicyLog>> make_log(const PolicySpec& spec, const PolicyContext& context) const;

 private:
  std::vector<PolicyInfo> rows_;
  std::vector<PolicyInfo> prefixes_;
};

/// What `spec` gives and, for the rest, the defaults of `parameters`. Errors name `owner` ("policy las"), the parameter
/// and what was expected.
Result<PolicyParameters> complete_parameters(const std::string& owner, const std::vector<ParameterInfo>& parameters,
                                             const PolicySpec& spec);

}  // namespace gpusched
