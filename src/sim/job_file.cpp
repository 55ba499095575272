// SPDX-License-Identifier: Apache-2.0
#include "src/sim/job_file.hpp"

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"

namespace gpusched {

void add_gpu_types(const Cluster& cluster, std::span<const Interval> intervals, std::vector<std::string>& all) {
  for (const Interval& interval : intervals) {
    const Node& node = cluster.nodes[index(interval.node)];
    if (node.gpu_type >= cluster.gpu_types.size() || interval.gpu_milli == 0) continue;
    const std::string& type = cluster.gpu_types[node.gpu_type];
    std::string& types = all[index(interval.job)];
    if (("|" + types + "|").find("|" + type + "|") != std::string::npos) continue;
    types += (types.empty() ? "" : "|") + type;
  }
}

namespace {

bool decisions_cancel(const JobFile& file) {
  const JobTable& jobs = file.engine(JobId{0}).jobs();
  for (std::uint32_t i = jobs.in_front(); i < jobs.size(); ++i) {
    if (file.engine(JobId{i}).is_cancelled(JobId{i})) return true;
  }
  return false;
}

}  // namespace

std::string jobs_csv(const JobFile& file) {
  const Engine& any = file.engine(JobId{0});
  const JobTable& jobs = any.jobs();
  std::string text =
      "job_id,user,group,gpus,submit_s,first_start_s,end_s,run_s,wait_s,jct_s,preemptions,status,vc,class,"
      "gpu_type,requested_s,measured,estimate_s";
  const bool waits = !jobs.dependencies().is_empty();
  const bool fails = any.view().nodes_can_fail();
  if (jobs.has_deadlines()) text += ",deadline_s";
  if (waits) text += ",eligible_s";
  if (fails) text += ",kills";
  if (any.has_elastic_jobs()) text += ",held_gpu_s";
  const bool cancels = any.has_changes() || decisions_cancel(file);
  if (cancels) text += ",cancelled";
  if (any.has_limits()) text += ",refused";
  if (cancels || any.has_limits()) text += ",averaged";
  if (any.has_time_limits()) text += ",ended_at_limit";
  text += file.bills.names + file.more_names + '\n';
  text.reserve(std::size_t{jobs.size()} * 96);
  const std::uint32_t end = file.window.end(jobs.size());
  for (std::uint32_t i = jobs.in_front(); i < jobs.size(); ++i) {
    const JobId job{i};
    const Engine& engine = file.engine(job);
    const Time eligible = file.eligible(job), jct = engine.end(job) - eligible;
    append_csv_field(text, jobs.external_id(job));
    append_csv_field(text += ',', jobs.users()[jobs.user(job)]);
    append_csv_field(text += ',', jobs.groups()[jobs.group(job)]);
    append_decimal(text += ',', jobs.shape(job).gpu_milli(), whole_gpu);
    append_seconds(text += ',', jobs.submit(job));
    text += ',';
    if (engine.first_start(job) != Time::max()) append_seconds(text, engine.first_start(job));
    append_seconds(text += ',', engine.end(job));
    append_seconds(text += ',', engine.ran(job));
    append_seconds(text += ',', jct - engine.ran(job));
    append_seconds(text += ',', jct);
    append_integer(text += ',', engine.preemptions(job));
    text += ',';
    text += to_string(jobs.status(job));
    append_csv_field(text += ',', jobs.vcs()[jobs.vc(job)]);
    append_csv_field(text += ',', jobs.families()[jobs.family(job)]);
    append_csv_field(text += ',', file.gpu_types[i]);
    text += ',';
    if (jobs.estimate(job) != Time::max()) append_seconds(text, jobs.estimate(job));
    text += i >= file.window.first && i < end ? ",true," : ",false,";
    if (!file.estimates.empty()) append_seconds(text, file.estimates[i]);
    if (jobs.has_deadlines()) text += ',';
    if (jobs.deadline(job) != Time::max()) append_seconds(text, jobs.deadline(job));
    if (waits) append_seconds(text += ',', eligible);
    if (fails) append_integer(text += ',', engine.kills(job));
    if (engine.has_elastic_jobs()) {
      append_seconds(text += ',', Time{static_cast<std::int64_t>(engine.gpu_time(job).held() / whole_gpu)});
    }
    if (cancels) text += engine.is_cancelled(job) ? ",true" : ",false";
    if (engine.has_limits()) text += engine.is_refused(job) ? ",true" : ",false";
    if (cancels || engine.has_limits()) text += engine.may_be_cancelled(job) ? ",false" : ",true";
    if (engine.has_time_limits()) text += engine.is_ended_at_limit(job) ? ",true" : ",false";
    if (!file.bills.cells.empty()) text += file.bills.cells[i];
    if (file.more) text += file.more(job);
    text += '\n';
  }
  return text;
}

}  // namespace gpusched
