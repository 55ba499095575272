// SPDX-License-Identifier: Apache-2.0
/// Owners: the users, groups or virtual clusters between which a policy is fair. An owner is its number in the trace's
/// table of names; number 0 is the unknown owner.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/view.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// The column of the trace that says who owns a job.
enum class OwnerColumn : std::uint8_t { user, group, vc };

/// The owner of a job.
[[nodiscard]] inline std::uint32_t owner_of(OwnerColumn column, const View& view, JobId job) {
  if (column == OwnerColumn::user) return view.user(job);
  return column == OwnerColumn::group ? view.group(job) : view.vc(job);
}
[[nodiscard]] std::uint32_t owner_of(OwnerColumn column, const JobTable& jobs, JobId job);

/// The names of all owners; their count is the bound of owner numbers.
[[nodiscard]] const NameTable& names_of(OwnerColumn column, const JobTable& jobs);

/// Whether the trace names owners of that kind.
[[nodiscard]] bool has_owners(OwnerColumn column, const JobTable& jobs);

/// That error.
[[nodiscard]] Unexpected too_large_for_owner(const std::string& policy, OwnerColumn column, const JobTable& jobs,
                                             JobId job, MilliGpu most);

/// The parameter `by` of a policy that is fair between owners.
ParameterInfo owner_parameter(std::string fallback);
/// What `by` says, or one line that names what the trace lacks.
Result<OwnerColumn> owner_column(std::string_view policy, const PolicyParameters& parameters,
                                 const PolicyContext& context);

/// "NAME=NUMBER" of each word, by the name's number in the table; a name is given once. `whose`: what has such names,
/// for messages ("a QOS or partition of the jobs"); `unit`: of the numbers ("SECONDS"), which lie in [least, most].
Result<std::map<std::uint32_t, double>> numbers_by_name(std::span<const std::string> words, const NameTable& names,
                                                        const std::string& whose, const std::string& unit, double least,
                                                        double most);
/// The same of a policy's parameter that gives owners numbers from 0 on; errors name the parameter.
Result<std::map<std::uint32_t, double>> numbers_of_owners(const std::string& parameter, const std::string& unit,
                                                          const PolicyParameters& parameters, OwnerColumn column,
                                                          const JobTable& jobs);

/// Such a number of GPUs in thousandths.
[[nodiscard]] inline MilliGpu milli_of_gpus(double gpus) { return std::llround(gpus * whole_gpu); }
/// A parameter for that; none are given unless the user does.
ParameterInfo numbers_parameter(std::string name, std::string meaning);

/// An error where a job asks for more GPU thousandths than `most(job)`, which its owner never holds; names both.
template <class Most>
Result<void> check_sizes(const std::string& policy, OwnerColumn column, const JobTable& jobs, Most most) {
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    if (jobs.shape(job).gpu_milli() > most(job)) return too_large_for_owner(policy, column, jobs, job, most(job));
  }
  return {};
}

/// Weights of owners in order of their first jobs, in thousandths; an owner beyond the list weighs one.
class OwnerWeights {
 public:
  OwnerWeights() = default;
  /// Entry 0 of a name table is the unknown owner; the list starts with the first named one.
  explicit OwnerWeights(const std::vector<double>& weights) : milli_{1000} {
    for (const double weight : weights) milli_.push_back(std::llround(weight * 1000));
  }
  [[nodiscard]] std::int64_t milli(std::uint32_t owner) const { return owner < milli_.size() ? milli_[owner] : 1000; }

 private:
  std::vector<std::int64_t> milli_;
};

/// The parameter `weights`, a list for OwnerWeights.
ParameterInfo weights_parameter();

/// A value for each owner, such as the GPU thousandths that it holds; grows on demand.
template <class T>
class PerOwner {
 public:
  /// `fresh`: the value of an owner that has none yet.
  explicit PerOwner(T fresh) : fresh_(std::move(fresh)) {}
  PerOwner() = default;

  [[nodiscard]] const T& operator[](std::uint32_t owner) const {
    return owner < values_.size() ? values_[owner] : fresh_;
  }
  T& operator[](std::uint32_t owner) {
    if (owner >= values_.size()) values_.resize(owner + 1, fresh_);
    return values_[owner];
  }
  /// Owners from this number on have no value yet.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(values_.size()); }

 private:
  T fresh_{};
  std::vector<T> values_;
};

}  // namespace gpusched
