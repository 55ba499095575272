// SPDX-License-Identifier: Apache-2.0
// philly: cluster_job_log of Microsoft's Philly (github.com/msr-fiddle/philly-traces, ATC'19), a JSON array of jobs:
// status, vc, jobid, user, submitted_time and attempts, each with start_time, end_time and detail (the GPUs it got, by
// machine). Times are calendar times of one zone. A job's work is the sum of its attempts' run times, each kept as an
// attempt; its GPUs are the most that an attempt held. As its authors say, a job may have no attempt, and an attempt no
// start or end: such attempts are not counted, and a job without any other is left out. Extracts that give num_gpus and
// id in place of detail and jobid are read too.
#include <algorithm>

#include "src/base/name_text.hpp"
#include "traces/core/json_records.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

struct Attempt {
  std::string start, end;
  std::int64_t gpus = 0;
};

struct PhillyJob {
  std::string id, vc, user, status, submitted;
  std::vector<Attempt> attempts;
  std::int64_t gpus = 0;  // as the job states it (num_gpus)
  std::uint64_t line = 0;
};

// Receives the parser's events and hands over each finished job. Containers that the format does not know are skipped
// over, whatever they hold.
class PhillyEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  PhillyEvents(ReadContext& context, FileBytes& bytes) : context_(context), bytes_(bytes) {}

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

  bool null() override { return text({}); }
  bool boolean(bool) override { return text({}); }
  bool number_integer(number_integer_t value) override { return number(value); }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<std::int64_t>(std::min<number_unsigned_t>(value, most_gpus + 1)));
  }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t& value) override { return text(value); }
  bool binary(binary_t&) override { return true; }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place()) {
      case Place::jobs:
        job_ = {};
        job_.line = bytes_.line();
        bytes_.begin_record();
        return enter(Place::job);
      case Place::attempts: job_.attempts.emplace_back(); return enter(Place::attempt);
      case Place::details: return enter(Place::detail);
      case Place::top: return fail("", "expected an array of jobs");
      default: return enter(Place::elsewhere);
    }
  }
  bool end_object() override {
    const bool job_ends = place() == Place::job;
    path_.pop_back();
    return !job_ends || finish_job();
  }
  bool start_array(std::size_t) override {
    switch (place()) {
      case Place::top: return enter(Place::jobs);
      case Place::job: return enter(key_ == "attempts" ? Place::attempts : Place::elsewhere);
      case Place::attempt: return enter(key_ == "detail" ? Place::details : Place::elsewhere);
      case Place::detail: return enter(key_ == "gpus" ? Place::gpus : Place::elsewhere);
      default: return enter(Place::elsewhere);
    }
  }
  bool end_array() override {
    path_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    return fail("", bytes_.record_is_too_long() ? "a job is longer than 64 MiB" : "is not valid JSON here");
  }

 private:
  enum class Place { top, jobs, job, attempts, attempt, details, detail, gpus, elsewhere };
  static constexpr std::int64_t most_gpus = 1'000'000;

  [[nodiscard]] Place place() const { return path_.empty() ? Place::top : path_.back(); }
  bool enter(Place place) {
    path_.push_back(place);
    return true;
  }
  bool fail(const std::string& field, const std::string& message) {
    error_ = Error{.message = message, .file = context_.file.path(), .line = bytes_.line(), .field = field};
    return false;
  }

  bool text(const std::string& value) {
    if (place() == Place::job) {
      if (key_ == "jobid" || key_ == "id") job_.id = value;
      if (key_ == "vc") job_.vc = value;
      if (key_ == "user") job_.user = value;
      if (key_ == "status") job_.status = value;
      if (key_ == "submitted_time") job_.submitted = value;
    } else if (place() == Place::attempt) {
      if (key_ == "start_time") job_.attempts.back().start = value;
      if (key_ == "end_time") job_.attempts.back().end = value;
    } else if (place() == Place::gpus) {
      ++job_.attempts.back().gpus;
    } else if (place() == Place::jobs) {
      return fail("", "expected a job, found '" + value + "'");
    }
    return true;
  }
  bool number(std::int64_t value) {
    if (place() != Place::job || key_ != "num_gpus") return true;
    if (value < 0 || value > most_gpus) return fail("num_gpus", "expected an integer from 0 to 1000000");
    job_.gpus = value;
    return true;
  }

  static bool is_blank(const std::string& time) { return time.empty() || time == "None"; }

  // The instant that `text` says. What is none is remembered as the job's error.
  Time instant(const std::string& field, const std::string& text) {
    const auto time = parse_calendar(text);
    if (!time) note_error(field, "expected a time like 2017-10-07 01:12:09, found '" + text + "'");
    return time.value_or(Time{});
  }
  void note_error(const std::string& field, std::string message) {
    if (job_error_) return;
    job_error_ = Error{.message = std::move(message), .file = context_.file.path(), .line = job_.line, .field = field};
  }

  bool finish_job() {
    ++context_.report.rows;
    const auto drop = [&](const char* reason) {
      context_.drop(reason, job_.line);
      return true;
    };
    if (job_.attempts.empty()) return drop(never_started);
    if (is_blank(job_.attempts.back().end)) return drop(still_running);

    job_error_.reset();
    std::int64_t gpus = job_.gpus;
    JobRecord job{.id = job_.id, .submit = instant("submitted_time", job_.submitted)};
    Time first_start = Time::max();
    runs_.clear();
    works_.clear();
    for (const Attempt& attempt : job_.attempts) {
      gpus = std::max(gpus, attempt.gpus);
      if (is_blank(attempt.start) || is_blank(attempt.end)) continue;
      const Time start = instant("start_time", attempt.start);
      const Time end = instant("end_time", attempt.end);
      const JudgedTimes judged = judge_times({.submit = start, .start = start, .end = end, .local = true});
      if (judged.fate == JobFate::bad) {
        note_error("end_time",
                   "expected an end not before the start " + attempt.start + ", found '" + attempt.end + "'");
      }
      runs_.emplace_back(start, judged.work);
    }
    std::stable_sort(runs_.begin(), runs_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    if (!runs_.empty()) first_start = runs_.front().first;
    for (const auto& [start, work] : runs_) {
      works_.push_back(work);
      job.work = later_by(job.work, work);
    }
    if (name_text(job_.id).empty()) note_error("jobid", "missing");
    if (job_error_) {
      context_.bad_row(*job_error_);
      return true;
    }
    if (works_.empty()) return drop("no attempt with start and end");
    const LoggedTimes times{.submit = job.submit, .start = first_start, .elapsed = job.work, .local = true};
    const RecordPlace place{.file = context_.file.path(),
                            .line = job_.line,
                            .submit = "submitted_time",
                            .start = "start_time",
                            .end = "end_time"};
    if (!context_.take_times(job, times, place)) return true;
    if (gpus == 0) return drop("no GPU");
    job.attempts = works_;
    job.shape = gang_of(gpus);
    job.user = job_.user;
    job.vc = job_.vc;
    job.status = status_from_word(job_.status);
    context_.add(job, job_.line);
    return true;
  }

  ReadContext& context_;
  FileBytes& bytes_;
  std::vector<Place> path_;
  std::string key_;
  PhillyJob job_;
  std::vector<std::pair<Time, Time>> runs_;  // of the present job's attempts: start and run time
  std::vector<Time> works_;                  // of these, in order
  std::optional<Error> job_error_;
  std::optional<Error> error_;
};

}  // namespace

Result<void> read_philly_json(ReadContext& context) {
  if (auto bound = context.filter.bind({}); !bound) return bound;
  FileBytes bytes(context.file);
  std::istream stream(&bytes);
  PhillyEvents events(context, bytes);
  const bool parsed = nlohmann::json::sax_parse(stream, &events);
  if (context.file.failure()) return Unexpected{*context.file.failure()};
  if (!parsed) return Unexpected{*events.error()};
  return {};
}

}  // namespace gpusched
