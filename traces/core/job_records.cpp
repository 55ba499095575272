// SPDX-License-Identifier: Apache-2.0
#include "traces/core/job_records.hpp"

#include <algorithm>
#include <utility>

#include "src/base/name_text.hpp"
#include "traces/core/job_filter.hpp"

namespace gpusched {

JobRecord NamedRecord::operator()(JobRecord job) {
  std::string* changed = changed_.data();
  for (std::string_view* name :
       {&job.id, &job.user, &job.group, &job.vc, &job.qos, &job.name, &job.gpu_spec, &job.family}) {
    if (is_plain_name(*name)) continue;
    *changed = name_text(*name);
    *name = *changed++;
  }
  return job;
}

JobRecord TableRecord::operator()(JobId job) {
  const JobTable& jobs = *jobs_;
  id_ = jobs.external_id(job);
  attempts_.clear();
  if (jobs.attempts(job) > 1) {
    for (std::uint32_t k = 0; k < jobs.attempts(job); ++k) attempts_.push_back(jobs.attempt_work(job, k));
  }
  after_.clear();
  for (const JobId other : jobs.dependencies().of(job)) after_.push_back(jobs.external_id(other));
  JobRecord record;
  record.id = id_;
  record.submit = jobs.submit(job);
  record.work = jobs.work(job);
  record.estimate = jobs.estimate(job);
  record.start = jobs.start(job);
  record.shape = jobs.shape(job);
  record.user = jobs.users()[jobs.user(job)];
  record.group = jobs.groups()[jobs.group(job)];
  record.vc = jobs.vcs()[jobs.vc(job)];
  record.qos = jobs.qos_names()[jobs.qos(job)];
  record.name = jobs.names()[jobs.name(job)];
  record.gpu_spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec];
  record.family = jobs.families()[jobs.family(job)];
  record.status = jobs.status(job);
  record.priority = jobs.priority(job);
  record.deadline = jobs.deadline(job);
  record.attempts = attempts_;
  record.after = after_;
  record.after_delay = jobs.dependencies().delay(job);
  return record;
}

void split_ids(std::string_view text, std::vector<std::string>& ids) {
  ids.clear();
  while (!text.empty()) {
    const std::size_t stop = std::min(text.find(';'), text.size());
    ids.push_back(name_text(text.substr(0, stop)));
    text.remove_prefix(std::min(stop + 1, text.size()));
  }
}

Result<Trace> keep_jobs(Trace trace, const std::string& where) {
  auto filter = JobFilter::parse(where);
  if (!filter) return Unexpected{filter.error()};
  if (filter->empty()) return trace;
  if (auto bound = filter->bind({}); !bound) return Unexpected{bound.error()};
  JobTableBuilder kept(trace.jobs);
  kept.ignore_missing_predecessors();
  TableRecord record_of(trace.jobs);
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    const JobRecord record = record_of(JobId{i});
    if (filter->keeps_job(record)) {
      kept.add(record);
    } else {
      trace.report.drop(left_out_by_filter, 0);
    }
  }
  if (kept.size() == 0) return unexpected("no job is what --where asks for: " + where);
  trace.report.kept = kept.size();
  auto jobs = std::move(kept).build();
  if (!jobs) return Unexpected{jobs.error()};
  trace.jobs = *std::move(jobs);
  trace.jobs.set_midnight_to_zero(trace.report.clock);
  return trace;
}

}  // namespace gpusched
