// SPDX-License-Identifier: Apache-2.0
#include "traces/core/job_records.hpp"

#include <utility>

#include "src/base/name_text.hpp"
#include "traces/core/job_filter.hpp"

namespace gpusched {

JobRecord NamedRecord::operator()(JobRecord job) {
  std::string* changed = changed_.data();
  for (std::string_view* name : {&job.id, &job.user, &job.group, &job.vc, &job.name, &job.gpu_spec, &job.family}) {
    if (is_plain_name(*name)) continue;
    *changed = name_text(*name);
    *name = *changed++;
  }
  return job;
}

JobRecord record_of(const JobTable& jobs, JobId job, const std::string& id, std::vector<Time>& attempts) {
  attempts.clear();
  if (jobs.attempts(job) > 1) {
    for (std::uint32_t k = 0; k < jobs.attempts(job); ++k) attempts.push_back(jobs.attempt_work(job, k));
  }
  JobRecord record;
  record.id = id;
  record.submit = jobs.submit(job);
  record.work = jobs.work(job);
  record.estimate = jobs.estimate(job);
  record.start = jobs.start(job);
  record.shape = jobs.shape(job);
  record.user = jobs.users()[jobs.user(job)];
  record.group = jobs.groups()[jobs.group(job)];
  record.vc = jobs.vcs()[jobs.vc(job)];
  record.name = jobs.names()[jobs.name(job)];
  record.gpu_spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec];
  record.family = jobs.families()[jobs.family(job)];
  record.status = jobs.status(job);
  record.priority = jobs.priority(job);
  record.deadline = jobs.deadline(job);
  record.attempts = attempts;
  return record;
}

Result<Trace> keep_jobs(Trace trace, const std::string& where) {
  auto filter = JobFilter::parse(where);
  if (!filter) return Unexpected{filter.error()};
  if (filter->empty()) return trace;
  if (auto bound = filter->bind({}); !bound) return Unexpected{bound.error()};
  JobTableBuilder kept(trace.jobs);
  std::vector<Time> attempts;
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    const std::string id = trace.jobs.external_id(JobId{i});
    const JobRecord record = record_of(trace.jobs, JobId{i}, id, attempts);
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
  return trace;
}

}  // namespace gpusched
