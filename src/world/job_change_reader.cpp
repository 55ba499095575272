// SPDX-License-Identifier: Apache-2.0
#include "src/world/job_change_reader.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpusched/engine/cluster_state.hpp"
#include "src/base/field_parser.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/visible_text.hpp"
#include "src/world/csv_rows.hpp"

namespace gpusched {
namespace {

constexpr std::array<std::string_view, 4> change_columns = {"time_s", "job", "change", "value"};

Unexpected wrong(std::string_view field, std::string message) {
  return Unexpected{Error{.message = std::move(message), .field = std::string(field)}};
}

// Turns rows into changes, after the header.
class ChangeRows {
 public:
  ChangeRows(JobTable& jobs, const Cluster& cluster) : jobs_(&jobs), cluster_(&cluster) {
    for (std::uint32_t i = 0; i < jobs.size(); ++i) ids_.emplace(jobs.external_id(JobId{i}), JobId{i});
  }

  [[nodiscard]] bool has_header() const { return width_ > 0; }

  Result<void> read_header(const std::vector<std::string_view>& cells) {
    width_ = cells.size();
    for (std::size_t i = 0; i < change_columns.size(); ++i) {
      const auto is_it = [&](std::string_view cell) { return trim(cell) == change_columns[i]; };
      places_[i] = static_cast<std::size_t>(std::find_if(cells.begin(), cells.end(), is_it) - cells.begin());
      if (places_[i] == width_) return wrong(change_columns[i], "expected a header with time_s, job, change and value");
    }
    return {};
  }

  Result<void> read(const std::vector<std::string_view>& cells, std::vector<JobChange>& changes) {
    if (cells.size() != width_) {
      return wrong("", "expected " + std::to_string(width_) + " fields, not " + std::to_string(cells.size()));
    }
    const auto cell = [&](std::size_t column) { return trim(cells[places_[column]]); };
    JobChange change;
    const auto job = ids_.find(std::string(cell(1)));
    if (job == ids_.end()) return wrong("job", "no job '" + excerpt(cell(1)) + "' is in the trace");
    change.job = job->second;
    if (auto done = read_time(cell(0), change); !done) return done;
    if (auto done = read_change(cell(2), cell(3), change); !done) return done;
    if (!seen_.emplace(index(change.job), change.time.us).second) {
      return wrong("time_s",
                   "expected one change of job '" + excerpt(cell(1)) + "' at an instant, and this is the second");
    }
    changes.push_back(change);
    return {};
  }

 private:
  Result<void> read_time(std::string_view text, JobChange& change) const {
    const auto time = parse_seconds(text);
    if (!time || *time > end_of_time || *time < Time{} - end_of_time) return wrong("time_s", "expected seconds");
    const Time submit = jobs_->submit(change.job);
    if (!(submit < *time)) {
      return wrong("time_s", "expected a time after the submission of job '" + jobs_->external_id(change.job) +
                                 "', at " + std::to_string(to_seconds(submit)) + " s");
    }
    change.time = *time;
    return {};
  }

  Result<void> read_change(std::string_view word, std::string_view value, JobChange& change) const {
    if (word == "cancel") {
      if (!value.empty()) return wrong("value", "expected none with cancel, not '" + excerpt(value) + "'");
      return {};
    }
    if (word == "gpus") return read_size(value, change);
    if (word != "priority") return wrong("change", "expected cancel, priority or gpus, not '" + excerpt(word) + "'");
    change.kind = JobChange::Kind::priority;
    const auto priority = parse_integer(value);
    using Limits = std::numeric_limits<std::int32_t>;
    if (!priority || *priority < Limits::min() || *priority > Limits::max()) {
      return wrong("value", "expected a whole number, not '" + excerpt(value) + "'");
    }
    change.priority = static_cast<std::int32_t>(*priority);
    return {};
  }

  Result<void> read_size(std::string_view value, JobChange& change) const {
    change.kind = JobChange::Kind::size;
    Shape shape = jobs_->shape(change.job);
    const std::string job = "job '" + jobs_->external_id(change.job) + "'";
    if (shape.gpu_milli_per_task == 0 || shape.is_share()) {
      return wrong("job", job + " does not ask for whole GPUs, so that its size cannot change");
    }
    const auto gpus = parse_integer(value);
    const std::int64_t each = shape.gpu_milli_per_task / whole_gpu;
    constexpr std::int64_t most = 1'000'000;
    if (!gpus || *gpus < 1 || *gpus > most || *gpus % each != 0) {
      const std::string multiple = each == 1 ? "" : ", a multiple of the " + std::to_string(each) + " of a task";
      return wrong("value", "expected a number of GPUs from 1" + multiple + ", not '" + excerpt(value) + "'");
    }
    shape.tasks = static_cast<std::uint32_t>(*gpus / each);
    const std::uint32_t queue = queue_of(change.job);
    if (!ClusterState::fits_when_empty(*cluster_, jobs_->gpu_specs(), shape, queue)) {
      const std::string where =
          queue < cluster_->vcs.size() ? " of virtual cluster '" + cluster_->vcs[queue].name + "'" : "";
      return wrong("value", "the cluster does not hold " + std::to_string(*gpus) + " GPUs for " + job + where);
    }
    change.shape = jobs_->number_of_shape(shape);
    return {};
  }

  // As the engine matches virtual clusters.
  [[nodiscard]] std::uint32_t queue_of(JobId job) const {
    const std::string& vc = jobs_->vcs()[jobs_->vc(job)];
    const auto& vcs = cluster_->vcs;
    const auto named = std::find_if(vcs.begin(), vcs.end(), [&](const auto& other) { return other.name == vc; });
    return static_cast<std::uint32_t>(named - vcs.begin());
  }

  JobTable* jobs_;
  const Cluster* cluster_;
  std::unordered_map<std::string, JobId> ids_;  // looked up, never iterated
  std::set<std::pair<std::uint32_t, std::int64_t>> seen_;
  std::array<std::size_t, change_columns.size()> places_ = {};
  std::size_t width_ = 0;
};

}  // namespace

Result<JobChanges> job_changes_from_csv(std::string_view text, const std::string& file, JobTable& jobs,
                                        const Cluster& cluster) {
  ChangeRows rows(jobs, cluster);
  std::vector<JobChange> changes;
  const auto read = for_each_csv_row(text, file, [&](const std::vector<std::string_view>& cells) {
    return rows.has_header() ? rows.read(cells, changes) : rows.read_header(cells);
  });
  if (!read) return Unexpected{read.error()};
  if (changes.empty()) return Unexpected{Error{.message = "no change in it", .file = file}};
  return JobChanges(std::move(changes), jobs.size());
}

Result<JobChanges> read_job_changes(const std::string& path, JobTable& jobs, const Cluster& cluster) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return job_changes_from_csv(*text, path, jobs, cluster);
}

}  // namespace gpusched
