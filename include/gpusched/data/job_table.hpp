// SPDX-License-Identifier: Apache-2.0
/// JobTable: every job of a run, immutable, as columns indexed by JobId. Ids follow submission order, so "the next
/// arrival" is a cursor and "earlier submitted" is a smaller id; of equal instants, the job of the lower id in the
/// trace comes first. Engines borrow a table; many may share one.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/data/dependencies.hpp"
#include "gpusched/data/job_record.hpp"
#include "gpusched/data/names.hpp"

namespace gpusched {

class JobTableBuilder;

/// The immutable columns. Build one with JobTableBuilder.
class JobTable {
 public:
  /// Number of jobs; ids run from 0 to size() - 1 by (submit, external_id()), what is in_front() first.
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(submit_.size()); }
  /// The first rows are no jobs of a trace, but so many replicas of services (ServiceModel), submitted with the first
  /// job.
  [[nodiscard]] std::uint32_t replicas() const { return replicas_; }
  /// The same, with the tasks of studies (StudyModel) behind the replicas.
  [[nodiscard]] std::uint32_t in_front() const { return in_front_; }

  /// Instant of submission, on the trace's clock.
  [[nodiscard]] Time submit(JobId job) const { return submit_[GPUSCHED_JOB(job)]; }
  /// True run time on the reference device, all attempts together. Policies see it only through OracleView.
  [[nodiscard]] Time work(JobId job) const { return work_[GPUSCHED_JOB(job)]; }
  /// What the user asked for, or Time::max().
  [[nodiscard]] Time estimate(JobId job) const { return estimate_.empty() ? Time::max() : estimate_[index(job)]; }
  /// When it started on the cluster whose log this is, or Time::max(). What policy `as-recorded` repeats.
  [[nodiscard]] Time start(JobId job) const { return start_.empty() ? Time::max() : start_[GPUSCHED_JOB(job)]; }
  /// Number of the job's shape in shapes().
  [[nodiscard]] std::uint32_t shape_id(JobId job) const { return shape_[GPUSCHED_JOB(job)]; }
  /// What the job asks for.
  [[nodiscard]] const Shape& shape(JobId job) const { return shapes_[shape_[GPUSCHED_JOB(job)]]; }
  /// Number of the job's name in users(), groups(), vcs(), qos_names(), names() or families(); 0 = unknown.
  /// \{
  [[nodiscard]] std::uint32_t user(JobId job) const { return user_.empty() ? 0 : user_[GPUSCHED_JOB(job)]; }
  [[nodiscard]] std::uint32_t group(JobId job) const { return group_.empty() ? 0 : group_[GPUSCHED_JOB(job)]; }
  [[nodiscard]] std::uint32_t vc(JobId job) const { return vc_.empty() ? 0 : vc_[GPUSCHED_JOB(job)]; }
  [[nodiscard]] std::uint32_t qos(JobId job) const { return qos_.empty() ? 0 : qos_[GPUSCHED_JOB(job)]; }
  [[nodiscard]] std::uint32_t name(JobId job) const { return name_.empty() ? 0 : name_[GPUSCHED_JOB(job)]; }
  [[nodiscard]] std::uint32_t family(JobId job) const { return family_.empty() ? 0 : family_[GPUSCHED_JOB(job)]; }
  /// \}
  /// How the trace says that it ended.
  [[nodiscard]] JobStatus status(JobId job) const {
    return status_.empty() ? JobStatus::unknown : static_cast<JobStatus>(status_[GPUSCHED_JOB(job)]);
  }
  /// Larger is more urgent; 0 where the trace has none.
  [[nodiscard]] std::int32_t priority(JobId job) const { return priority_.empty() ? 0 : priority_[GPUSCHED_JOB(job)]; }
  /// Instant by which it should have ended, or Time::max().
  [[nodiscard]] Time deadline(JobId job) const { return deadline_.empty() ? Time::max() : deadline_[index(job)]; }
  /// Which jobs wait for the end of others.
  [[nodiscard]] const Dependencies& dependencies() const { return dependencies_; }
  /// Which jobs are waited for: those of successors().of(job) wait for the end of `job`.
  [[nodiscard]] const Dependencies& successors() const { return successors_; }
  /// The first submission of the trace whose slice this is, on whose clock its jobs are. Precondition: not empty.
  [[nodiscard]] Time trace_begin() const { return trace_begin_.value_or(submit(JobId{0})); }
  /// The time of day, past midnight, at second 0 of the trace's clock (SWF UnixStartTime).
  [[nodiscard]] Time midnight_to_zero() const { return midnight_to_zero_; }
  /// Says so.
  void set_midnight_to_zero(Time time_of_day) { midnight_to_zero_ = time_of_day; }
  /// Number of attempts, >= 1.
  [[nodiscard]] std::uint32_t attempts(JobId job) const {
    if (attempt_begin_.empty()) return 1;
    const std::uint32_t count = attempt_begin_[GPUSCHED_JOB(job) + 1] - attempt_begin_[GPUSCHED_JOB(job)];
    return count == 0 ? 1 : count;
  }
  /// Work of attempt `k` (0-based, k < attempts(job)).
  [[nodiscard]] Time attempt_work(JobId job, std::uint32_t k) const {
    if (attempt_begin_.empty()) return work_[GPUSCHED_JOB(job)];
    const std::uint32_t first = attempt_begin_[GPUSCHED_JOB(job)];
    return first == attempt_begin_[GPUSCHED_JOB(job) + 1] ? work_[GPUSCHED_JOB(job)] : attempt_work_[first + k];
  }

  /// The job's id in the trace (its row number when the trace has none).
  [[nodiscard]] std::string external_id(JobId job) const {
    if (!text_begin_.empty()) {
      return text_.substr(text_begin_[index(job)], text_begin_[index(job) + 1] - text_begin_[index(job)]);
    }
    return std::to_string(number_.empty() ? std::int64_t{index(job)} : number_[GPUSCHED_JOB(job)]);
  }

  /// Distinct shapes; a shape_id indexes them. Policies keep a queue for each demand (View::demand), of which there
  /// are at most as many.
  [[nodiscard]] const std::vector<Shape>& shapes() const { return shapes_; }
  /// Distinct GPU demands as written ("V100M16|V100M32"); entry 0 is "" = any.
  [[nodiscard]] const NameTable& gpu_specs() const { return gpu_specs_; }
  /// The names behind the numbers of user(), group() and so on; entry 0 of each table is "" (unknown).
  /// \{
  [[nodiscard]] const NameTable& users() const { return users_; }
  [[nodiscard]] const NameTable& groups() const { return groups_; }
  [[nodiscard]] const NameTable& vcs() const { return vcs_; }
  [[nodiscard]] const NameTable& qos_names() const { return qos_names_; }
  [[nodiscard]] const NameTable& names() const { return names_; }
  [[nodiscard]] const NameTable& families() const { return families_; }
  /// \}

  /// Whether any job has a value other than the default in that column.
  /// \{
  [[nodiscard]] bool has_estimates() const { return !estimate_.empty(); }
  /// Whether any job's start is recorded.
  [[nodiscard]] bool has_starts() const { return !start_.empty(); }
  [[nodiscard]] bool has_users() const { return !user_.empty(); }
  [[nodiscard]] bool has_groups() const { return !group_.empty(); }
  [[nodiscard]] bool has_vcs() const { return !vc_.empty(); }
  [[nodiscard]] bool has_qos() const { return !qos_.empty(); }
  [[nodiscard]] bool has_names() const { return !name_.empty(); }
  [[nodiscard]] bool has_statuses() const { return !status_.empty(); }
  [[nodiscard]] bool has_attempts() const { return !attempt_begin_.empty(); }
  [[nodiscard]] bool has_priorities() const { return !priority_.empty(); }
  [[nodiscard]] bool has_deadlines() const { return !deadline_.empty(); }
  /// \}

  /// `count` jobs from `first` on, as a table of their own with the same shapes, names and name numbers. Submissions
  /// keep their origin; their distances from the first are scaled by `arrival_scale` (0.5: twice the load), and
  /// recorded starts and deadlines stay as far behind their submissions as they were. No job waits for one outside.
  /// What is in_front() comes along, where none of it is among these. Preconditions: first + count <= size(),
  /// arrival_scale > 0.
  [[nodiscard]] JobTable slice(std::uint32_t first, std::uint32_t count, double arrival_scale = 1.0) const {
    GPUSCHED_ASSERT(first <= size() && count <= size() - first && arrival_scale > 0, "slice outside the table");
    JobTable part;
    const std::uint32_t in_front = first < in_front_ || count == 0 ? 0 : in_front_;
    part.replicas_ = in_front == 0 ? 0 : replicas_;
    part.in_front_ = in_front;
    const auto cut = [&in_front, &first, &count](auto& to, const auto& from) {
      if (from.empty()) return;
      to.assign(from.begin(), from.begin() + in_front);
      to.insert(to.end(), from.begin() + first, from.begin() + first + count);
    };
    cut(part.submit_, submit_);
    cut(part.work_, work_);
    cut(part.shape_, shape_);
    cut(part.estimate_, estimate_);
    cut(part.start_, start_);
    cut(part.deadline_, deadline_);
    cut(part.user_, user_);
    cut(part.group_, group_);
    cut(part.vc_, vc_);
    cut(part.qos_, qos_);
    cut(part.name_, name_);
    cut(part.family_, family_);
    cut(part.status_, status_);
    cut(part.priority_, priority_);
    for (std::uint32_t i = 0; i < in_front; ++i) part.submit_[i] = part.submit_[in_front];
    if (arrival_scale != 1.0) part.scale_arrivals(arrival_scale);
    if (size() > 0) part.trace_begin_ = trace_begin();
    part.midnight_to_zero_ = midnight_to_zero_;
    part.dependencies_ = dependencies_.slice(first, count, in_front);
    part.successors_ = part.dependencies_.reversed();
    if (has_attempts()) {
      part.attempt_begin_.assign(in_front, 0);
      part.attempt_begin_.insert(part.attempt_begin_.end(), attempt_begin_.begin() + first,
                                 attempt_begin_.begin() + first + count + 1);
      part.attempt_work_.assign(attempt_work_.begin() + attempt_begin_[first],
                                attempt_work_.begin() + attempt_begin_[first + count]);
      for (std::uint32_t i = in_front; i <= in_front + count; ++i) part.attempt_begin_[i] -= attempt_begin_[first];
    }
    part.cut_ids(*this, first, count, in_front);
    part.shapes_ = shapes_;
    part.gpu_specs_ = gpu_specs_;
    part.users_ = users_;
    part.groups_ = groups_;
    part.vcs_ = vcs_;
    part.qos_names_ = qos_names_;
    part.names_ = names_;
    part.families_ = families_;
    return part;
  }

  /// Number in shapes() of a shape whose gpu_spec is in gpu_specs(), added if absent: for changes of jobs (JobChange).
  std::uint32_t number_of_shape(const Shape& shape) {
    const auto known = std::find(shapes_.begin(), shapes_.end(), shape);
    if (known == shapes_.end()) return shapes_.push_back(shape), static_cast<std::uint32_t>(shapes_.size() - 1);
    return static_cast<std::uint32_t>(known - shapes_.begin());
  }

  /// Whole columns, each of size() entries.
  [[nodiscard]] std::span<const Time> submits() const { return submit_; }
  /// The column of work(), of size() entries.
  [[nodiscard]] std::span<const Time> works() const { return work_; }

 private:
  friend class JobTableBuilder;
  friend class BelievedJobs;
  friend class GrowingJobs;

  void scale_arrivals(double arrival_scale) {
    for (std::uint32_t i = 0; i < size(); ++i) {
      Time& submit = submit_[i];
      const Time scaled = submit_.front() + from_seconds(to_seconds(submit - submit_.front()) * arrival_scale);
      const auto follow = [&i, &scaled, &submit](std::vector<Time>& column) {
        if (column.empty() || column[i] == Time::max()) return;
        column[i] = scaled + std::min(column[i] - submit, Time::max() - scaled);
      };
      follow(start_);
      follow(deadline_);
      submit = scaled;
    }
  }

  // Of the first rows of `all`, and of those from `first` on.
  void cut_ids(const JobTable& all, std::uint32_t first, std::uint32_t count, std::uint32_t in_front) {
    if (all.text_begin_.empty()) {
      for (std::uint32_t i = 0; i < in_front + count; ++i) {
        const std::uint32_t row = i < in_front ? i : i - in_front + first;
        number_.push_back(all.number_.empty() ? std::int64_t{row} : all.number_[row]);
      }
      return;
    }
    const auto cut_text = [this, &all](std::uint32_t from, std::uint32_t rows) {
      const std::uint64_t shift = text_.size() - all.text_begin_[from];
      for (std::uint32_t i = from; i < from + rows; ++i) text_begin_.push_back(all.text_begin_[i] + shift);
      text_ += all.text_.substr(all.text_begin_[from], all.text_begin_[from + rows] - all.text_begin_[from]);
    };
    cut_text(0, in_front);
    cut_text(first, count);
    text_begin_.push_back(text_.size());
  }

  std::optional<Time> trace_begin_;  // of the trace that this was cut from; none: this is no part of one
  Time midnight_to_zero_{};
  std::uint32_t replicas_ = 0, in_front_ = 0;
  std::vector<Time> submit_, work_;
  std::vector<std::uint32_t> shape_;
  // The columns below are empty when no job has a value other than the default.
  std::vector<Time> estimate_, deadline_, start_;
  std::vector<std::uint32_t> user_, group_, vc_, qos_, name_, family_;
  std::vector<std::uint8_t> status_;
  std::vector<std::int32_t> priority_;
  std::vector<std::uint32_t> attempt_begin_;  // size() + 1 offsets into attempt_work_
  std::vector<Time> attempt_work_;
  Dependencies dependencies_, successors_;
  // External ids: nothing when they equal the row, numbers when all are canonical integers, else text.
  std::vector<std::int64_t> number_;
  std::vector<std::uint64_t> text_begin_;  // size() + 1 offsets into text_
  std::string text_;

  std::vector<Shape> shapes_;
  NameTable gpu_specs_, users_, groups_, vcs_, qos_names_, names_, families_;
};

/// Collects jobs row by row and builds the table once, which does not depend on the order of the rows: jobs come by
/// submission and id, and names and shapes are numbered by the first job that has them.
class JobTableBuilder {
 public:
  /// No jobs.
  JobTableBuilder() {
    for (NameTable* names : {&table_.gpu_specs_, &table_.users_, &table_.groups_, &table_.vcs_, &table_.qos_names_,
                             &table_.names_, &table_.families_}) {
      names->intern("");
    }
  }

  /// Starts with the names of `like`, so that their numbers (Shape::gpu_spec, users...) mean the same in both tables.
  explicit JobTableBuilder(const JobTable& like) {
    table_.gpu_specs_ = like.gpu_specs_;
    table_.users_ = like.users_;
    table_.groups_ = like.groups_;
    table_.vcs_ = like.vcs_;
    table_.qos_names_ = like.qos_names_;
    table_.names_ = like.names_;
    table_.families_ = like.families_;
    known_ = {like.gpu_specs_.size(), like.users_.size(), like.groups_.size(),  like.vcs_.size(),
              like.qos_names_.size(), like.names_.size(), like.families_.size()};
  }

  /// Makes room for that many jobs.
  void reserve(std::size_t jobs) {
    table_.submit_.reserve(jobs);
    table_.work_.reserve(jobs);
    table_.shape_.reserve(jobs);
  }

  /// Jobs added so far.
  [[nodiscard]] std::uint32_t size() const { return table_.size(); }

  /// Number of rows submitted before the row above them; build() sorts them.
  [[nodiscard]] std::uint32_t rows_out_of_order() const {
    std::uint32_t rows = 0;
    for (std::uint32_t row = 1; row < size(); ++row) rows += table_.submit_[row] < table_.submit_[row - 1] ? 1 : 0;
    return rows;
  }

  /// Appends a job. Preconditions: work >= 0, tasks >= 1, fewer than 2^32 - 1 jobs; the attempts, if any, sum to work.
  void add(const JobRecord& job) {
    const std::uint32_t row = size();
    GPUSCHED_ASSERT(job.work.us >= 0 && job.shape.tasks >= 1 && row < no_index - 1, "job record out of range");
    table_.submit_.push_back(job.submit);
    table_.work_.push_back(job.work);
    Shape shape = job.shape;
    shape.gpu_spec = table_.gpu_specs_.intern(job.gpu_spec);
    table_.shape_.push_back(intern_shape(shape));
    put(table_.estimate_, row, job.estimate, Time::max());
    put(table_.start_, row, job.start, Time::max());
    put(table_.deadline_, row, job.deadline, Time::max());
    put(table_.user_, row, table_.users_.intern(job.user), 0u);
    put(table_.group_, row, table_.groups_.intern(job.group), 0u);
    put(table_.vc_, row, table_.vcs_.intern(job.vc), 0u);
    put(table_.qos_, row, table_.qos_names_.intern(job.qos), 0u);
    put(table_.name_, row, table_.names_.intern(job.name), 0u);
    put(table_.family_, row, table_.families_.intern(job.family), 0u);
    put(table_.status_, row, static_cast<std::uint8_t>(job.status), std::uint8_t{0});
    put(table_.priority_, row, job.priority, 0);
    if (job.attempts.size() > 1 || !table_.attempt_begin_.empty()) {
      if (table_.attempt_begin_.empty()) table_.attempt_begin_.assign(row + 1, 0);
      table_.attempt_work_.insert(table_.attempt_work_.end(), job.attempts.begin(), job.attempts.end());
      table_.attempt_begin_.push_back(static_cast<std::uint32_t>(table_.attempt_work_.size()));
    }
    for (const std::string& id : job.after) {
      waits_.push_back({.row = row, .predecessor = awaited_.intern(id), .delay = job.after_delay});
    }
    add_id(job.id, row);
  }

  /// The table is one of the jobs of `jobs`, and on the clock of the same trace (JobTable::trace_begin).
  void keep_clock_of(const JobTable& jobs) {
    if (jobs.size() > 0) table_.trace_begin_ = jobs.trace_begin();
    table_.midnight_to_zero_ = jobs.midnight_to_zero_;
  }
  /// The rows so far are replicas of services (JobTable::replicas) and stay in front. Precondition: nothing is
  /// submitted before them.
  void end_replicas() { table_.replicas_ = table_.in_front_ = size(); }
  /// The same of the rows behind them, which are tasks of studies (JobTable::in_front).
  void end_studies() { table_.in_front_ = size(); }

  /// A job does not wait for one that is not in the table: for tables of a part of the jobs.
  void ignore_missing_predecessors() { ignores_missing_ = true; }

  /// The finished table, by submission; jobs of one instant by id, numbers or text by natural_less(), or by row where
  /// ids are rows. Errors: an id appears twice, a job waits for one that is not in the table, or jobs wait for each
  /// other in a circle.
  Result<JobTable> build() && {
    if (auto unique = check_ids_unique(); !unique) return Unexpected{unique.error()};
    std::vector<std::uint32_t> order = order_of_jobs();
    if (std::is_sorted(order.begin(), order.end())) {
      order.clear();
    } else {
      sort_rows(order);
      number_by_first_job();
    }
    if (auto linked = link(order); !linked) return Unexpected{linked.error()};
    return std::move(table_);
  }

 private:
  struct Wait {
    std::uint32_t row = 0;
    std::uint32_t predecessor = 0;  // number in awaited_
    Time delay{};                   // the same for all waits of a row
  };

  static Error wrong_after(std::string message) { return {.message = std::move(message), .field = "after"}; }

  // Finds the jobs that others wait for. `order`: the row of each job; empty where they are the same.
  [[nodiscard]] Result<void> link(const std::vector<std::uint32_t>& order) {
    if (waits_.empty()) return {};
    std::vector<JobId> job_of_name(awaited_.size(), no_job), job_of_row(size());
    for (std::uint32_t i = 0; i < size(); ++i) {
      const std::uint32_t name = awaited_.find(table_.external_id(JobId{i}));
      if (name != no_index) job_of_name[name] = JobId{i};
      job_of_row[order.empty() ? i : order[i]] = JobId{i};
    }
    std::vector<Dependencies::Edge> edges;
    std::vector<Time> delays(size());
    for (const Wait& wait : waits_) {
      const JobId job = job_of_row[wait.row];
      if (const JobId predecessor = job_of_name[wait.predecessor]; predecessor != no_job) {
        edges.push_back({.job = job, .predecessor = predecessor});
        delays[index(job)] = wait.delay;
      } else if (!ignores_missing_) {
        return Unexpected{wrong_after("job '" + table_.external_id(job) + "' waits for job '" +
                                      awaited_[wait.predecessor] + "', which is not in the table")};
      }
    }
    table_.dependencies_ = Dependencies(std::move(edges), size(), std::move(delays));
    table_.successors_ = table_.dependencies_.reversed();
    const std::vector<JobId> cycle = table_.dependencies_.find_cycle();
    if (cycle.empty()) return {};
    return Unexpected{wrong_after("jobs wait for each other: " + cycle_text(cycle))};
  }

  [[nodiscard]] std::string cycle_text(const std::vector<JobId>& cycle) const {
    constexpr std::size_t most_named = 5;
    std::string text;
    for (std::size_t i = 0; i < std::min(cycle.size(), most_named); ++i) {
      text += "job '" + table_.external_id(cycle[i]) + "' for ";
    }
    if (cycle.size() > most_named) text += std::to_string(cycle.size() - most_named) + " more, the last of them for ";
    return text + "job '" + table_.external_id(cycle.front()) + "'";
  }
  /// Stores `value` in a column that stays empty while every value is the default.
  template <class T>
  static void put(std::vector<T>& column, std::uint32_t row, T value, T fallback) {
    if (column.empty()) {
      if (value == fallback) return;
      column.assign(row, fallback);
    }
    // A column that started late is padded here, so that it always has one entry a row.
    column.resize(row, fallback);
    column.push_back(value);
  }

  std::uint32_t intern_shape(const Shape& shape) {
    if (!table_.shapes_.empty() && table_.shapes_[last_shape_] == shape) return last_shape_;
    const auto [place, added] = shape_numbers_.try_emplace(shape, static_cast<std::uint32_t>(table_.shapes_.size()));
    if (added) table_.shapes_.push_back(shape);
    return last_shape_ = place->second;
  }

  void add_id(std::string_view id, std::uint32_t row) {
    std::int64_t number = row;
    bool is_number = true;
    if (!id.empty()) {
      const auto [end, status] = std::from_chars(id.data(), id.data() + id.size(), number);
      const bool canonical = (id.front() != '0' || id.size() == 1) && !id.starts_with("-0");
      is_number = status == std::errc{} && end == id.data() + id.size() && canonical;
    }
    if (!text_ids_ && is_number) {
      if (number == row && table_.number_.empty()) return;
      if (table_.number_.empty()) {
        table_.number_.resize(row);
        std::iota(table_.number_.begin(), table_.number_.end(), std::int64_t{0});
      }
      table_.number_.push_back(number);
      return;
    }
    if (!text_ids_) switch_to_text_ids(row);
    table_.text_ += id.empty() ? std::to_string(row) : std::string(id);
    table_.text_begin_.push_back(table_.text_.size());
  }

  void switch_to_text_ids(std::uint32_t rows) {
    text_ids_ = true;
    table_.text_begin_.assign(1, 0);
    for (std::uint32_t row = 0; row < rows; ++row) {
      table_.text_ += std::to_string(table_.number_.empty() ? std::int64_t{row} : table_.number_[row]);
      table_.text_begin_.push_back(table_.text_.size());
    }
    table_.number_.clear();
    table_.number_.shrink_to_fit();
  }

  [[nodiscard]] Result<void> check_ids_unique() const {
    const auto duplicate = [](const std::string& id) {
      return Unexpected{Error{.message = "job id '" + id + "' appears twice; ids must be distinct", .field = "job_id"}};
    };
    if (text_ids_) {
      std::vector<std::string_view> ids;
      ids.reserve(size());
      for (std::uint32_t row = 0; row < size(); ++row) {
        ids.push_back(std::string_view(table_.text_)
                          .substr(table_.text_begin_[row], table_.text_begin_[row + 1] - table_.text_begin_[row]));
      }
      std::sort(ids.begin(), ids.end());
      const auto twin = std::adjacent_find(ids.begin(), ids.end());
      if (twin != ids.end()) return duplicate(std::string(*twin));
      return {};
    }
    const auto& numbers = table_.number_;
    if (std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end()) return {};
    std::vector<std::int64_t> ids = numbers;
    std::sort(ids.begin(), ids.end());
    const auto twin = std::adjacent_find(ids.begin(), ids.end());
    if (twin != ids.end()) return duplicate(std::to_string(*twin));
    return {};
  }

  // The row of each job.
  [[nodiscard]] std::vector<std::uint32_t> order_of_jobs() const {
    const auto id = [this](std::uint32_t row) {
      return std::string_view(table_.text_)
          .substr(table_.text_begin_[row], table_.text_begin_[row + 1] - table_.text_begin_[row]);
    };
    const auto before = [this, &id](std::uint32_t a, std::uint32_t b) {
      if (table_.submit_[a] != table_.submit_[b]) return table_.submit_[a] < table_.submit_[b];
      if (std::min(a, b) < table_.in_front_) return a < b;
      if (text_ids_) return natural_less(id(a), id(b));
      return table_.number_.empty() ? a < b : table_.number_[a] < table_.number_[b];
    };
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0u);
    if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);
    return order;
  }

  // `order`: the row of each job.
  void sort_rows(const std::vector<std::uint32_t>& order) {
    const auto permute = [&order](auto& column) {
      if (column.empty()) return;
      auto sorted = column;
      for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
      column = std::move(sorted);
    };
    if (table_.number_.empty() && !text_ids_) {  // rows move, so that "id = row" no longer holds
      table_.number_.resize(size());
      std::iota(table_.number_.begin(), table_.number_.end(), std::int64_t{0});
    }
    permute(table_.submit_);
    permute(table_.work_);
    permute(table_.shape_);
    permute(table_.estimate_);
    permute(table_.start_);
    permute(table_.deadline_);
    for (auto* column : {&table_.user_, &table_.group_, &table_.vc_, &table_.qos_, &table_.name_, &table_.family_}) {
      permute(*column);
    }
    permute(table_.status_);
    permute(table_.priority_);
    permute(table_.number_);
    permute_attempts(order);
    permute_text(order);
  }

  // Names and shapes get the numbers that they would have if the rows had come in the order of the jobs.
  void number_by_first_job() {
    std::vector<std::uint32_t> specs;
    specs.reserve(size());
    for (const std::uint32_t shape : table_.shape_) specs.push_back(table_.shapes_[shape].gpu_spec);
    number_names(table_.gpu_specs_, specs, known_[0]);
    number_names(table_.users_, table_.user_, known_[1]);
    number_names(table_.groups_, table_.group_, known_[2]);
    number_names(table_.vcs_, table_.vc_, known_[3]);
    number_names(table_.qos_names_, table_.qos_, known_[4]);
    number_names(table_.names_, table_.name_, known_[5]);
    number_names(table_.families_, table_.family_, known_[6]);
    std::vector<std::uint32_t> number(table_.shapes_.size(), no_index);
    std::vector<Shape> shapes;
    for (std::uint32_t job = 0; job < size(); ++job) {
      std::uint32_t& shape = table_.shape_[job];
      if (number[shape] == no_index) {
        number[shape] = static_cast<std::uint32_t>(shapes.size());
        shapes.push_back(table_.shapes_[shape]);
        shapes.back().gpu_spec = specs[job];
      }
      shape = number[shape];
    }
    table_.shapes_ = std::move(shapes);
  }

  // The first `known` names keep their numbers.
  static void number_names(NameTable& names, std::vector<std::uint32_t>& column, std::uint32_t known) {
    NameTable ordered;
    std::vector<std::uint32_t> number(names.size(), no_index);
    for (std::uint32_t name = 0; name < known; ++name) number[name] = ordered.intern(names[name]);
    for (std::uint32_t& name : column) {
      if (number[name] == no_index) number[name] = ordered.intern(names[name]);
      name = number[name];
    }
    names = std::move(ordered);
  }

  void permute_attempts(const std::vector<std::uint32_t>& order) {
    if (table_.attempt_begin_.empty()) return;
    std::vector<std::uint32_t> begin{0};
    std::vector<Time> works;
    for (const std::uint32_t row : order) {
      works.insert(works.end(), table_.attempt_work_.begin() + table_.attempt_begin_[row],
                   table_.attempt_work_.begin() + table_.attempt_begin_[row + 1]);
      begin.push_back(static_cast<std::uint32_t>(works.size()));
    }
    table_.attempt_begin_ = std::move(begin);
    table_.attempt_work_ = std::move(works);
  }

  void permute_text(const std::vector<std::uint32_t>& order) {
    if (!text_ids_) return;
    std::vector<std::uint64_t> begin{0};
    std::string text;
    text.reserve(table_.text_.size());
    for (const std::uint32_t row : order) {
      text.append(table_.text_, table_.text_begin_[row], table_.text_begin_[row + 1] - table_.text_begin_[row]);
      begin.push_back(text.size());
    }
    table_.text_begin_ = std::move(begin);
    table_.text_ = std::move(text);
  }

  JobTable table_;
  std::array<std::uint32_t, 7> known_{1, 1, 1, 1, 1, 1, 1};  // names of each kind that keep their numbers
  std::vector<Wait> waits_;
  NameTable awaited_;  // ids of jobs that others wait for
  bool ignores_missing_ = false;
  std::map<Shape, std::uint32_t> shape_numbers_;
  std::uint32_t last_shape_ = 0;
  bool text_ids_ = false;
};

}  // namespace gpusched
