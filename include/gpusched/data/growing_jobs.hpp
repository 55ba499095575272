// SPDX-License-Identifier: Apache-2.0
/// GrowingJobs: a table with spare rows, which become jobs one after the other while engine and policy read it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/job_table.hpp"

namespace gpusched {

/// A table behind whose jobs stand rows that are never submitted, until each becomes a job. What readers prepare for by
/// the table stays true of it: a job whose shape, owner or column the table does not have is not taken.
class GrowingJobs {
 public:
  /// The jobs of `jobs` and so many spare rows. `like` had more columns or shapes perhaps, and these are kept; null:
  /// nothing was before. O(rows + shapes).
  GrowingJobs(JobTable jobs, std::uint32_t spare, const JobTable* like)
      : table_(std::move(jobs)), count_(table_.size()) {
    if (like != nullptr) keep_columns(*like);
    if (spare > 0 && count_ > 0) add_rows(spare);
    if (like != nullptr && like->shapes_.size() <= most_kept_shapes) {
      for (const Shape& shape : like->shapes_) table_.number_of_shape(shape);
    }
    for (std::uint32_t shape = 0; shape < table_.shapes_.size(); ++shape) shapes_.emplace(table_.shapes_[shape], shape);
    const auto& priorities = table_.priority_;
    const std::vector<std::uint32_t>* const names[] = {&table_.user_, &table_.group_, &table_.vc_, &table_.family_};
    for (std::size_t i = 0; i < some_without_.size(); ++i) {
      const auto jobs_end = names[i]->empty() ? names[i]->end() : names[i]->begin() + count_;
      some_without_[i] = std::find(names[i]->begin(), jobs_end, 0u) != jobs_end;
    }
    if (!priorities.empty()) most_urgent_ = *std::max_element(priorities.begin(), priorities.begin() + count_);
  }
  /// Others borrow the table.
  /// \{
  GrowingJobs(const GrowingJobs&) = delete;
  GrowingJobs& operator=(const GrowingJobs&) = delete;
  /// \}

  /// Jobs and spare rows; valid while this object lives.
  [[nodiscard]] const JobTable& table() const { return table_; }
  /// The rows that are jobs, the first ones.
  [[nodiscard]] std::uint32_t count() const { return count_; }

  /// The first spare row becomes this job. False, and nothing changes, where there is none or the table does not have
  /// what the job brings. O(log shapes). Precondition: it comes after all jobs so far, in one attempt, and waits for
  /// none.
  bool add(const JobRecord& job) {
    if (count_ == table_.size()) return false;
    Shape shape = job.shape;
    shape.gpu_spec = table_.gpu_specs_.find(job.gpu_spec);
    const auto known = shapes_.find(shape);
    const std::uint32_t user = table_.users_.find(job.user), group = table_.groups_.find(job.group),
                        vc = table_.vcs_.find(job.vc), family = table_.families_.find(job.family);
    const bool knows_names = has(table_.user_, user, some_without_[0]) && has(table_.group_, group, some_without_[1]) &&
                             has(table_.vc_, vc, some_without_[2]) && has(table_.family_, family, some_without_[3]);
    const bool has_columns =
        (!table_.name_.empty() || job.name.empty()) && (!table_.estimate_.empty() || job.estimate == Time::max()) &&
        (!table_.deadline_.empty() || job.deadline == Time::max()) && (!table_.priority_.empty() || job.priority == 0);
    // Some policies scale priorities by the greatest.
    const bool fits = known != shapes_.end() && knows_names && has_columns && job.priority <= most_urgent_;
    if (!fits) return false;
    const std::uint32_t at = count_++;
    table_.submit_[at] = job.submit;
    table_.work_[at] = job.work;
    table_.shape_[at] = known->second;
    set(table_.estimate_, at, job.estimate);
    set(table_.deadline_, at, job.deadline);
    set(table_.user_, at, user);
    set(table_.group_, at, group);
    set(table_.vc_, at, vc);
    set(table_.family_, at, family);
    if (!table_.name_.empty()) table_.name_[at] = table_.names_.intern(job.name);
    set(table_.priority_, at, job.priority);
    table_.text_ += job.id;
    table_.text_begin_[at + 1] = table_.text_.size();
    return true;
  }

  /// A builder that numbers owners and demands as `jobs` does. It knows no names of jobs, of which each may have its
  /// own.
  static JobTableBuilder builder_like(const JobTable& jobs) {
    JobTable kinds;
    kinds.gpu_specs_ = jobs.gpu_specs_;
    kinds.users_ = jobs.users_;
    kinds.groups_ = jobs.groups_;
    kinds.vcs_ = jobs.vcs_;
    kinds.families_ = jobs.families_;
    for (NameTable* names : {&kinds.names_, &kinds.qos_names_}) names->intern("");
    return JobTableBuilder(kinds);
  }

 private:
  // Logs with a column of memory have nearly as many shapes as jobs.
  static constexpr std::size_t most_kept_shapes = 256;

  void keep_columns(const JobTable& like) {
    const auto keep = [this](auto& column, const auto& other, auto value) {
      if (column.empty() && !other.empty()) column.assign(count_, value);
    };
    keep(table_.estimate_, like.estimate_, Time::max());
    keep(table_.deadline_, like.deadline_, Time::max());
    keep(table_.user_, like.user_, 0u);
    keep(table_.group_, like.group_, 0u);
    keep(table_.vc_, like.vc_, 0u);
    keep(table_.name_, like.name_, 0u);
    keep(table_.family_, like.family_, 0u);
    keep(table_.priority_, like.priority_, 0);
  }

  void add_rows(std::uint32_t spare) {
    const std::uint32_t rows = count_ + spare;
    std::vector<std::uint64_t> begin{0};
    std::string text;
    for (std::uint32_t i = 0; i < count_; ++i) begin.push_back((text += table_.external_id(JobId{i})).size());
    begin.resize(rows + 1, text.size());
    table_.text_ = std::move(text);
    table_.text_begin_ = std::move(begin);
    table_.number_.clear();
    table_.submit_.resize(rows, Time::max());
    table_.work_.resize(rows);
    table_.shape_.resize(rows);
    const auto grow = [&rows](auto& column, auto value) {
      if (!column.empty()) column.resize(rows, value);
    };
    grow(table_.estimate_, Time::max());
    grow(table_.deadline_, Time::max());
    for (auto* column : {&table_.user_, &table_.group_, &table_.vc_, &table_.qos_, &table_.name_, &table_.family_}) {
      grow(*column, 0u);
    }
    grow(table_.status_, std::uint8_t{0});
    grow(table_.priority_, 0);
    grow(table_.start_, Time::max());
  }

  // Jobs without a name are those of one owner more, who is not expected where all others have one.
  [[nodiscard]] static bool has(const std::vector<std::uint32_t>& column, std::uint32_t number, bool some_without) {
    return column.empty() ? number == 0 : number != no_index && (number != 0 || some_without);
  }

  template <class T>
  static void set(std::vector<T>& column, std::uint32_t at, T value) {
    if (!column.empty()) column[at] = value;
  }

  JobTable table_;
  std::uint32_t count_ = 0;
  std::int32_t most_urgent_ = 0;
  std::array<bool, 4> some_without_{};  // some job has no user, group, virtual cluster, family
  std::map<Shape, std::uint32_t> shapes_;
};

}  // namespace gpusched
