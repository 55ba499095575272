// SPDX-License-Identifier: Apache-2.0
#include "traces/core/job_sink.hpp"

#include <algorithm>

#include "src/base/number_text.hpp"
#include "traces/core/slurm_gpus.hpp"

namespace gpusched {

void JobSink::add(const JobRecord& record, std::uint64_t line) {
  JobRecord job = named_(record);
  count_mig_slices(job.shape, job.gpu_spec);
  if (is_unknown_work(job.work)) return hold(job, line);
  if (!filter.keeps_job(job)) return drop(left_out_by_filter, line);
  if (job.start != Time::max() && job.start > later_by(job.submit, ten_years)) {
    return bad_row({.message = "expected a start within ten years of the submission, found one " +
                               human_duration(to_seconds(job.start - job.submit)) + " behind it",
                    .line = line,
                    .field = "start"});
  }
  const Time from = std::min(job.submit, job.start);
  const Time until = later_by(job.start == Time::max() ? job.submit : std::max(job.submit, job.start), job.work);
  if (!window.holds(from, until)) {
    return bad_row({.message = "expected times near those of the other jobs, found " + exact_seconds(from) + " s to " +
                               exact_seconds(until) + " s",
                    .line = line,
                    .field = "times"});
  }
  extent_ = {.first = std::min(extent_.first, from), .last = std::max(extent_.last, until)};
  if (spans_ != nullptr) spans_->push_back({.first = from, .last = until});
  jobs_.add(job);
  if (options.backlog) works_.push_back(job.work);
  if (log != nullptr) {
    const Time longest = job.attempts.empty() ? job.work : *std::max_element(job.attempts.begin(), job.attempts.end());
    log->jobs.push_back(
        {std::string(job.id), job.submit, job.work, job.estimate, longest, job.shape.gpu_milli(), line});
  }
}

void JobSink::drop(const std::string& reason, std::uint64_t line) {
  report.drop(reason, line);
  if (log != nullptr) log->left_out.push_back({line, reason});
}

void JobSink::bad_row(const Error& error) {
  ++bad_rows_;
  if (!options.drop_bad_rows) {
    if (!first_bad_) first_bad_ = error;
    return;
  }
  report.drop("bad " + error.field + ": " + error.message.substr(0, error.message.find(", found")), error.line);
  if (log != nullptr) log->left_out.push_back({error.line, error.field + ": " + error.message, true});
}

void JobSink::take_bad_rows(const JobSink& part) {
  if (!first_bad_) first_bad_ = part.first_bad_;
  bad_rows_ += part.bad_rows_;
}

void JobSink::hold(const JobRecord& job, std::uint64_t line) {
  HeldJob held{.record = job, .names = {}, .line = line};
  for (const std::string_view name :
       {job.id, job.user, job.group, job.vc, job.qos, job.name, job.gpu_spec, job.family}) {
    held.names.emplace_back(name);
  }
  held.record.attempts = {};
  held.record.after = {};
  held_.push_back(std::move(held));
}

const char* JobSink::why_left_out(JobRecord& job, const LoggedTimes& times, const JudgedTimes& judged,
                                  std::uint64_t jobs) {
  job.start = judged.start;
  job.work = judged.work;
  const bool is_waiting = judged.fate == JobFate::still_waits;
  if (is_waiting || judged.fate == JobFate::still_runs) {
    if (options.backlog) {
      const bool limited = job.estimate != Time::max();
      const Time ran = times.elapsed == Time::max() ? Time{} : times.elapsed;
      backlog_ += limited ? jobs : 0;
      job.work = limited ? std::max(job.estimate, ran) : unknown_work(ran);
      return nullptr;
    }
    if (job.estimate == Time::max()) return is_waiting ? still_waiting : still_running;
    return is_waiting ? "still waiting at the end of the trace (--backlog keeps such jobs)"
                      : "still running at the end of the trace (--backlog keeps such jobs)";
  }
  if (judged.fate == JobFate::never_ran) return never_started;
  count_explained(times, judged);
  return nullptr;
}

void JobSink::count_explained(const LoggedTimes& times, const JudgedTimes& judged) {
  clock_moved_ += judged.clock_moved ? 1 : 0;
  start_not_recorded_ += times.has_start && judged.start == Time::max() && times.start != Time::max() ? 1 : 0;
}

bool JobSink::take_times(JobRecord& job, const LoggedTimes& times, const RecordPlace& place) {
  const JudgedTimes judged = judge_times(times);
  if (judged.fate == JobFate::bad) {
    bad_times(times, judged, place);
    return false;
  }
  const char* const reason = why_left_out(job, times, judged);
  if (reason != nullptr) drop(reason, place.line);
  return reason == nullptr;
}

void JobSink::bad_times(const LoggedTimes& times, const JudgedTimes& judged, const RecordPlace& place) {
  const bool is_start = judged.wrong == LoggedTime::start;
  const bool after_start = !is_start && !is_unset_time(times.start, times.submit);
  const Time from = after_start ? times.start : times.submit;
  const Time before = from - (is_start ? times.start : times.end);
  bad_row({.message = (is_start ? "expected a start not before " : "expected an end not before ") +
                      (after_start ? place.start : place.submit) + ", found one " + human_duration(to_seconds(before)) +
                      " before",
           .file = place.file,
           .line = place.line,
           .field = is_start ? place.start : place.end});
}

void JobSink::note_ids_used_again(std::uint64_t ids) {
  if (ids == 0) return;
  report.notes.push_back(counted(ids, "id is", "ids are") +
                         " used again by later jobs, which are named ID#2 and so on");
}

Result<void> JobSink::outcome() const {
  if (first_bad_) return Unexpected{*first_bad_};
  return {};
}

Result<void> JobSink::outcome(const Result<void>& read) const {
  const bool stopped_before = !read && first_bad_ && read.error().line < first_bad_->line;
  if (!first_bad_ || stopped_before) return read;
  Error error = *first_bad_;
  const std::string rows = bad_rows_ == 1 ? "1 row is bad" : human_count(bad_rows_) + " rows are bad";
  error.message += "; " + rows + ", which --drop-bad-rows leaves out";
  return Unexpected{std::move(error)};
}

void JobSink::finish() {
  Time median{};
  if (!works_.empty() && !held_.empty()) {
    const auto middle = works_.begin() + static_cast<std::ptrdiff_t>(works_.size() / 2);
    std::nth_element(works_.begin(), middle, works_.end());
    median = *middle;
  }
  const bool any_ended = !works_.empty();
  for (HeldJob& held : held_) {
    JobRecord& job = held.record;
    std::size_t next = 0;
    for (std::string_view* name :
         {&job.id, &job.user, &job.group, &job.vc, &job.qos, &job.name, &job.gpu_spec, &job.family}) {
      *name = held.names[next++];
    }
    job.work = std::max(median, ran_of_unknown_work(job.work));
    if (any_ended) {
      add(job, held.line);
    } else {
      drop("had not ended, and nothing says how long it may run: no time limit, and no job that ended", held.line);
    }
  }
  if (any_ended && !held_.empty()) {
    report.notes.push_back(counted(held_.size(), "job of the backlog has", "jobs of the backlog have") +
                           " no time limit: their run time is the median of the others, " +
                           human_duration(to_seconds(median)) + ", or what they ran where that is more");
  }
  if (!qos.empty()) {
    for (std::string& line : qos.notes()) report.notes.push_back(std::move(line));
  }
  const auto note = [&](std::uint64_t jobs, const char* one, const char* several) {
    if (jobs > 0) report.notes.push_back(counted(jobs, one, several));
  };
  note(clock_moved_, "job has times that a clock moved which was put back meanwhile",
       "jobs have times that a clock moved which was put back meanwhile");
  note(start_not_recorded_, "job ran, but its start is not set: it has no recorded waiting",
       "jobs ran, but their starts are not set: they have no recorded waiting");
  note(backlog_,
       "job had not ended when the log was written: its time limit, or what it ran where that is more, is its run time",
       "jobs had not ended when the log was written: their time limits, or what they ran where that is more, are their "
       "run times");
}

}  // namespace gpusched
