// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/job_rows.hpp"

#include <algorithm>

namespace gpusched::python {

JobRow row_of(const Env& env, std::uint32_t e, std::int64_t first_job, JobId job) {
  const Engine& engine = env.engine();
  const Time submit = engine.submit(job), ran = engine.ran(job), end = engine.end(job);
  const Time until = end == Time::max() ? env.now() : end;
  return {.env = e,
          .job = first_job + index(job),
          .submit_s = to_seconds(submit),
          .start_s = seconds_or_nan(engine.first_start(job)),
          .end_s = seconds_or_nan(end),
          .wait_s = std::max(0.0, to_seconds(until - submit - ran)),
          .ran_s = to_seconds(ran),
          .gpus = static_cast<double>(engine.view().shape(job).gpu_milli()) / static_cast<double>(whole_gpu),
          .duration_s = to_seconds(engine.jobs().work(job))};
}

namespace {

template <class Jobs>
void add_rows(const Env& env, std::uint32_t e, std::int64_t first_job, const Jobs& jobs, bool all,
              std::vector<JobRow>& rows) {
  for (const JobId job : jobs) {
    if (all || env.scored(job)) rows.push_back(row_of(env, e, first_job, job));
  }
}

void add_waiting(const Env& env, std::uint32_t e, std::int64_t first_job, bool all, std::vector<JobRow>& rows) {
  const OracleView view = env.engine().view();
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    add_rows(env, e, first_job, view.queue(queue), all, rows);
  }
}

}  // namespace

void take_rows(const Env& env, std::uint32_t e, std::int64_t first_job, StepRows& rows) {
  rows.finished.clear();
  rows.started.clear();
  rows.waiting.clear();
  add_rows(env, e, first_job, env.finished(), true, rows.finished);
  add_rows(env, e, first_job, env.started(), true, rows.started);
  add_waiting(env, e, first_job, false, rows.waiting);
  rows.now_s = to_seconds(env.now());
}

void token_jobs(const Env& env, std::int64_t first_job, std::vector<std::int64_t>& jobs) {
  const Agenda& agenda = env.agenda();
  jobs.resize(agenda.size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) jobs[i] = first_job + index(agenda.job(i));
}

std::vector<JobRow> waiting_rows(const Env& env, std::uint32_t e, std::int64_t first_job) {
  std::vector<JobRow> rows;
  add_waiting(env, e, first_job, true, rows);
  return rows;
}

std::vector<JobRow> running_rows(const Env& env, std::uint32_t e, std::int64_t first_job) {
  std::vector<JobRow> rows;
  add_rows(env, e, first_job, env.engine().view().running(), true, rows);
  return rows;
}

nb::dict columns_of(std::span<const JobRow> rows) {
  nb::dict columns;
  const auto add = [&](const char* name, auto field) {
    std::vector<std::remove_cvref_t<decltype(rows.front().*field)>> values(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) values[i] = rows[i].*field;
    columns[name] = column(std::move(values));
  };
  add("env", &JobRow::env);
  add("job", &JobRow::job);
  add("submit_s", &JobRow::submit_s);
  add("start_s", &JobRow::start_s);
  add("end_s", &JobRow::end_s);
  add("wait_s", &JobRow::wait_s);
  add("ran_s", &JobRow::ran_s);
  add("gpus", &JobRow::gpus);
  add("duration_s", &JobRow::duration_s);
  return columns;
}

}  // namespace gpusched::python
