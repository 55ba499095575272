// SPDX-License-Identifier: Apache-2.0
#include "traces/core/logged_runs.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t most_tasks = 1'000'000'000;
constexpr Time requeue_slack = whole_seconds(3600);

// How much a row knows of how the run went.
int knowledge(const LoggedRun& run) {
  switch (run.judged.fate) {
    case JobFate::still_waits: return 0;
    case JobFate::still_runs: return 1;
    default: return 2;
  }
}

bool is_put_back(const LoggedRun& run) { return run.state.starts_with("REQUEUE") || run.state.starts_with("PREEMPT"); }

bool is_resized(const LoggedRun& run) { return run.state.starts_with("RESIZING"); }

bool same_run(const LoggedRun& a, const LoggedRun& b) {
  if (a.component != b.component || a.times.submit != b.times.submit) return false;
  const bool both_started = a.judged.start != Time::max() && b.judged.start != Time::max();
  if (both_started) return a.judged.start == b.judged.start;
  // The same run before it started, as an earlier export saw it; behind a requeue it is the next one.
  const bool a_waits = a.judged.fate == JobFate::still_waits, b_waits = b.judged.fate == JobFate::still_waits;
  return (a_waits && !is_put_back(b)) || (b_waits && !is_put_back(a)) ||
         (a.judged.fate == b.judged.fate && a.times.end == b.times.end && a.judged.work == b.judged.work);
}

bool fits_in_size(const SlurmTres& a, const SlurmTres& b) {
  const std::int64_t gpus_a = a.gpu_count(), gpus_b = b.gpu_count();
  const bool unknown = (gpus_a == 0 && a.cores == 0) || (gpus_b == 0 && b.cores == 0);
  return unknown || (gpus_a == gpus_b && (gpus_a > 0 || a.cores == b.cores));
}

// When the run ended; Time::max() where that is not known.
Time end_of(const LoggedRun& run) {
  if (run.times.end != Time::max() || run.judged.start == Time::max()) return run.times.end;
  return later_by(run.judged.start, run.judged.work);
}

// Whether `next` can be the run of the same job behind `run`.
bool goes_on(const LoggedRun& run, const LoggedRun& next) {
  const std::string_view state = run.state;
  const bool comes_back = is_put_back(run) || is_resized(run) || status_from_word(state) == JobStatus::failed;
  if (!comes_back || !fits_in_size(run.demand, next.demand)) return false;
  const Time end = end_of(run);
  if (end == Time::max()) return true;
  const bool starts_later =
      next.judged.start >= end || (next.times.local && clock_was_put_back(end, next.judged.start));
  return starts_later && next.times.submit <= later_by(end, requeue_slack);
}

// Slices of one profile keep it, for clusters whose cards are cut. As GpuDemand takes it.
std::string all_models(const std::vector<SlurmGpus>& gpus) {
  std::set<std::string> models;
  for (const SlurmGpus& kind : gpus) {
    const bool alike =
        std::all_of(gpus.begin(), gpus.end(), [&](const SlurmGpus& other) { return other.profile == kind.profile; });
    const std::string profile = alike && kind.milli != whole_gpu ? kind.profile : std::string();
    models.insert(kind.model + (kind.model.empty() || profile.empty() ? "" : "_") + profile);
  }
  if (models.contains("")) return {};
  std::string spec;
  for (const std::string& name : models) spec += (spec.empty() ? "" : "|") + name;
  return spec;
}

struct Gang {
  Shape shape;
  std::string models;
};

Gang joint_gang(const std::vector<const LoggedRun*>& components) {
  std::vector<SlurmGpus> kinds;
  std::int64_t cores = 0, memory_mib = 0, nodes = 0, common = 0, gpus = 0;
  MilliGpu milli = 0;
  bool slices = false;
  for (const LoggedRun* run : components) {
    const SlurmTres& demand = run->demand;
    cores += demand.cores;
    memory_mib += demand.memory_mib;
    nodes += std::max<std::int64_t>(demand.nodes, 1);
    const std::int64_t count = demand.gpu_count();
    if (count > 0) common = std::gcd(common, demand.nodes > 0 && count % demand.nodes == 0 ? count / demand.nodes : 1);
    gpus += count;
    for (const SlurmGpus& kind : demand.gpus) {
      kinds.push_back(kind);
      milli += kind.milli * kind.count;
      slices = slices || kind.milli != whole_gpu;
    }
  }
  Shape shape;
  const bool alike =
      std::all_of(kinds.begin(), kinds.end(), [&](const SlurmGpus& kind) { return kind.milli == kinds.front().milli; });
  if (gpus == 0) {
    shape.tasks = static_cast<std::uint32_t>(nodes);
  } else if (slices && alike) {
    shape.tasks = static_cast<std::uint32_t>(gpus);
    shape.gpu_milli_per_task = kinds.front().milli;
  } else if (slices) {
    shape = gang_of((milli + whole_gpu - 1) / whole_gpu);
  } else {
    shape.tasks = static_cast<std::uint32_t>(gpus / common);
    shape.gpu_milli_per_task = common * whole_gpu;
  }
  const std::int64_t tasks = shape.tasks;
  shape.cpu_milli_per_task = (cores * 1000 + tasks - 1) / tasks;
  shape.memory_mib_per_task = (memory_mib + tasks - 1) / tasks;
  return {shape, all_models(kinds)};
}

// As many tasks as joint_gang() may give the components together.
std::int64_t most_tasks_of(const std::vector<const LoggedRun*>& components) {
  std::int64_t gpus = 0, nodes = 0;
  for (const LoggedRun* run : components) {
    gpus += run->demand.gpu_count();
    nodes += std::max<std::int64_t>(run->demand.nodes, 1);
  }
  return std::max(gpus, nodes);
}

// The k-th run of every component, for each k.
std::vector<std::vector<const LoggedRun*>> attempts_of(std::vector<const LoggedRun*> runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const LoggedRun* a, const LoggedRun* b) {
    return std::tuple(a->component, a->times.submit, a->judged.start) <
           std::tuple(b->component, b->times.submit, b->judged.start);
  });
  std::vector<std::vector<const LoggedRun*>> attempts;
  std::size_t k = 0;
  for (std::size_t i = 0; i < runs.size(); ++i, ++k) {
    if (i > 0 && runs[i]->component != runs[i - 1]->component) k = 0;
    if (attempts.size() <= k) attempts.emplace_back();
    attempts[k].push_back(runs[i]);
  }
  return attempts;
}

// The component that says where the gang belongs: the first that has GPUs.
const LoggedRun& leader_of(const std::vector<const LoggedRun*>& components) {
  const auto leader = std::find_if(components.begin(), components.end(),
                                   [](const LoggedRun* run) { return run->demand.gpu_count() > 0; });
  return leader == components.end() ? *components.front() : **leader;
}

// A gang failed if one of its components did.
JobStatus status_of(const std::vector<const LoggedRun*>& components) {
  for (const JobStatus status : {JobStatus::failed, JobStatus::killed, JobStatus::unknown}) {
    for (const LoggedRun* run : components) {
      if (status_from_word(run->state) == status) return status;
    }
  }
  return JobStatus::passed;
}

// "17_[3-9%2,12]" -> 17_3, 17_4 and so on. None where the text is no such list; the id itself where it has no brackets.
std::vector<std::string> ids_of_array(const std::string& id) {
  const std::size_t open = id.find('[');
  if (open == std::string::npos) return {id};
  std::string_view list = std::string_view(id).substr(open + 1);
  list = list.substr(0, list.find(']'));
  list = list.substr(0, list.find('%'));  // how many may run at once
  std::vector<std::string> ids;
  while (!list.empty()) {
    std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(part.size() + 1, list.size()));
    std::int64_t step = 1;
    if (const std::size_t colon = part.find(':'); colon != std::string_view::npos) {
      step = parse_integer(part.substr(colon + 1)).value_or(0);
      part = part.substr(0, colon);
    }
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer(part.substr(dash + 1));
    constexpr std::int64_t most_of_an_array = 4'000'000;  // Slurm's greatest MaxArraySize is 4,000,001
    if (!first || !last || step < 1 || *first < 0 || *last < *first || *last > most_of_an_array) return {};
    for (std::int64_t task = *first; task <= *last; task += step) {
      if (ids.size() > static_cast<std::size_t>(most_of_an_array)) return {};
      ids.push_back(id.substr(0, open) + std::to_string(task));
    }
  }
  return ids;
}

// The array of a task or of waiting tasks: "17_3", "17_[4-9%2]".
std::string array_key(const std::string& cluster, const std::string& id) {
  return cluster + '\n' + id.substr(0, id.find('_'));
}

bool has_throttle(const std::string& id) {
  return id.find("_[") != std::string::npos && id.ends_with(']') && id.find('%') != std::string::npos;
}

}  // namespace

Time LoggedRun::queued() const {
  if (eligible == Time::max()) return times.submit;
  return std::max(times.submit, std::min(eligible, judged.start));
}

Result<void> LoggedRuns::bind_filter() {
  const std::vector<std::string> names{"JobID", "Cluster", "User", "Account", "Partition", "QOS", "State", "JobName"};
  if (auto bound = sink_.filter.bind(names); !bound) return bound;
  ask_last_runs(names);
  return {};
}

void LoggedRuns::ask_last_runs(const std::vector<std::string>& header) {
  constexpr std::string_view alike[] = {"JobID", "JobIDRaw", "Cluster", "User", "UID"};
  sink_.filter.ask_last_runs(alike, header);
}

void LoggedRuns::take(LoggedRun run, const RecordPlace& place) {
  ++sink_.report.rows;
  const std::vector<std::string_view> fields{run.id,        run.cluster, run.user,  run.account,
                                             run.partition, run.qos,     run.state, run.name};
  if (!sink_.filter.keeps_row(fields)) return sink_.drop(left_out_by_filter, run.line);
  run.wanted = sink_.filter.keeps_run(fields);
  const JudgedTimes judged = judge_times(run.times);
  if (judged.fate == JobFate::bad) {
    return run.wanted ? sink_.bad_times(run.times, judged, place) : sink_.drop(left_out_by_filter, run.line);
  }
  add(std::move(run), judged);
}

void LoggedRuns::add(LoggedRun run, const JudgedTimes& judged) {
  run.judged = judged;
  const auto [place, added] =
      numbers_.try_emplace(run.id + '\n' + run.user + '\n' + run.cluster, static_cast<std::uint32_t>(rows_.size()));
  if (added) rows_.push_back({run.id, run.user, run.cluster, {}});
  std::vector<LoggedRun>& runs = rows_[place->second].runs;
  const auto known =
      std::find_if(runs.begin(), runs.end(), [&](const LoggedRun& other) { return same_run(other, run); });
  if (known == runs.end()) {
    runs.push_back(std::move(run));
    return;
  }
  sink_.drop(same_run_again, run.line);
  if (knowledge(run) >= knowledge(*known)) *known = std::move(run);
}

// Runs in order of time, each with those of its component before. What a job goes on as under another size is a job of
// its own, queued when the first ended.
std::vector<LoggedRuns::Job> LoggedRuns::split(Rows& rows) {
  std::vector<LoggedRun*> runs;
  for (LoggedRun& run : rows.runs) runs.push_back(&run);
  std::stable_sort(runs.begin(), runs.end(), [](const LoggedRun* a, const LoggedRun* b) {
    return std::pair(a->times.submit, a->judged.start) < std::pair(b->times.submit, b->judged.start);
  });
  std::map<std::int64_t, std::pair<const LoggedRun*, std::size_t>>
      last;  // by component: its last run, and of which job
  std::vector<Job> jobs;
  for (LoggedRun* run : runs) {
    auto [place, is_first] = last.try_emplace(run->component, run, 0);
    auto& [before, number] = place->second;
    if (!is_first && !goes_on(*before, *run)) {
      ++number;
      const bool was_resized = is_resized(*before) && before->times.submit == run->times.submit;
      if (was_resized && end_of(*before) <= run->judged.start) {
        run->eligible = end_of(*before);
        ++resized_;
      }
    }
    before = run;
    if (jobs.size() <= number) jobs.resize(number + 1, Job{.rows = &rows, .runs = {}, .id = rows.id});
    jobs[number].runs.push_back(run);
  }
  return jobs;
}

// Jobs that end with a run that the filter does not take; of a gang its leader's.
void LoggedRuns::leave_out_unwanted(std::vector<Job>& jobs) {
  if (!sink_.filter.asks_last_runs()) return;
  std::vector<Job> wanted;
  for (Job& job : jobs) {
    if (leader_of(attempts_of(job.runs).back()).wanted) {
      wanted.push_back(std::move(job));
    } else {
      drop(job, left_out_by_filter);
    }
  }
  jobs = std::move(wanted);
}

void LoggedRuns::name_jobs(std::vector<Job>& jobs) const {
  std::set<std::string> clusters;
  for (const Rows& rows : rows_) clusters.insert(rows.cluster);
  std::map<std::string, std::vector<Job*>> by_id;
  for (Job& job : jobs) {
    if (clusters.size() > 1) job.id = job.rows->cluster + "/" + job.id;
    const bool is_kept = std::any_of(job.runs.begin(), job.runs.end(), [&](const LoggedRun* run) {
      return run->judged.fate == JobFate::ran || (sink_.options.backlog && run->judged.fate != JobFate::never_ran);
    });
    if (is_kept) by_id[job.id].push_back(&job);
  }
  std::uint64_t used_again = 0;
  for (auto& [id, twins] : by_id) {
    if (twins.size() == 1) continue;
    ++used_again;
    std::stable_sort(twins.begin(), twins.end(), [](const Job* a, const Job* b) {
      return std::pair(a->runs.front()->times.submit, a->rows->user) <
             std::pair(b->runs.front()->times.submit, b->rows->user);
    });
    for (std::size_t k = 1; k < twins.size(); ++k) twins[k]->id += "#" + std::to_string(k + 1);
  }
  sink_.note_ids_used_again(used_again);
  if (clusters.size() > 1) {
    const std::vector<std::string> names(clusters.begin(), clusters.end());
    sink_.report.notes.push_back(
        "jobs of " + std::to_string(names.size()) + " clusters (" + excerpt(joined(names, ", "), 100) +
        "), named CLUSTER/ID; --where Cluster=" + excerpt(names.back(), 40) + " reads those of one");
  }
}

void LoggedRuns::finish() {
  std::vector<Job> jobs;
  for (Rows& rows : rows_) {
    for (Job& job : split(rows)) jobs.push_back(std::move(job));
  }
  leave_out_unwanted(jobs);
  name_jobs(jobs);
  for (const Rows& rows : rows_) {
    if (has_throttle(rows.id)) throttled_.insert(array_key(rows.cluster, rows.id));
  }
  for (const Job& job : jobs) join(job);
  const auto note = [&](std::uint64_t count, const char* what) {
    if (count > 0) sink_.report.notes.push_back(what + (": " + std::to_string(count)));
  };
  note(requeued_, "requeued jobs, whose runs are attempts of one job");
  note(resized_, "changes of a running job's size, behind which it is another job");
  note(exceeding_, "jobs that were given more GPUs than they asked for (--exclusive), all of which count");
  note(heterogeneous_, "heterogeneous jobs, whose components are one gang");
  note(mixed_, "jobs with MIG slices of several sizes, which count as whole GPUs");
  if (!with_throttle_.empty()) {
    sink_.report.notes.push_back(
        counted(with_throttle_.size(), "job array") +
        " ran at most N tasks at once (%N), which is not kept: --limits 'array{jobs=N}' sets it");
  }
}

void LoggedRuns::drop(const Job& job, const char* reason) {
  for (const LoggedRun* run : job.runs) sink_.drop(reason, run->line);
}

void LoggedRuns::join(Job job) {
  leave_out_those_put_back(job);
  const auto fate_is = [](JobFate fate) { return [fate](const LoggedRun* run) { return run->judged.fate == fate; }; };
  const auto any = [&](JobFate fate) { return std::any_of(job.runs.begin(), job.runs.end(), fate_is(fate)); };
  if (any(JobFate::still_waits) || any(JobFate::still_runs)) return add_backlog(job);
  Job ran = job;
  std::erase_if(ran.runs, fate_is(JobFate::never_ran));  // requeued, and cancelled while it waited
  if (ran.runs.empty()) return drop(job, never_started);
  for (const LoggedRun* run : job.runs) {
    if (run->judged.fate == JobFate::never_ran) {
      sink_.drop(never_started, run->line);
    } else {
      sink_.count_explained(run->times, run->judged);
    }
  }
  add_job(ran, attempts_of(ran.runs));
}

// A run that was put back before it started waits no more where a later row says how the job went on.
void LoggedRuns::leave_out_those_put_back(Job& job) {
  std::vector<const LoggedRun*> kept;
  for (const LoggedRun* run : job.runs) {
    const bool waits = run->judged.fate == JobFate::still_waits && is_put_back(*run);
    const bool goes_on = waits && std::any_of(job.runs.begin(), job.runs.end(), [run](const LoggedRun* other) {
                           return other->component == run->component && other->times.submit > run->times.submit;
                         });
    if (goes_on) {
      sink_.drop(never_started, run->line);
    } else {
      kept.push_back(run);
    }
  }
  job.runs = std::move(kept);
}

// Jobs that had not ended: what they asked for last.
void LoggedRuns::add_backlog(const Job& job) {
  const auto has_not_ended = [](const LoggedRun* run) {
    return run->judged.fate == JobFate::still_waits || run->judged.fate == JobFate::still_runs;
  };
  const Attempts attempts = attempts_of(job.runs);
  const auto open = std::find_if(attempts.rbegin(), attempts.rend(), [&](const auto& components) {
    return std::any_of(components.begin(), components.end(), has_not_ended);
  });
  Job last{.rows = job.rows, .runs = *open, .id = job.id};
  const LoggedRun& run = **std::find_if(last.runs.begin(), last.runs.end(), has_not_ended);
  JobRecord record{.estimate = run.estimate};
  const std::vector<std::string> ids = ids_of_array(job.id);
  const char* const reason = sink_.why_left_out(record, run.times, run.judged, ids.size());
  if (reason != nullptr) return drop(job, reason);
  for (const LoggedRun* other : job.runs) {
    if (std::find(last.runs.begin(), last.runs.end(), other) == last.runs.end()) {
      sink_.drop("an earlier run of a job of the backlog", other->line);
    }
  }
  std::vector<LoggedRun> planned;
  for (const LoggedRun* component : last.runs) {
    planned.push_back(*component);
    planned.back().judged.work = record.work;
    planned.back().state.clear();  // how it ends nobody knows yet, whatever was asked of it
  }
  for (std::size_t i = 0; i < planned.size(); ++i) last.runs[i] = &planned[i];
  if (ids.empty()) return drop(last, "an array whose waiting tasks are not all listed");
  for (const std::string& id : ids) {
    last.id = id;
    add_job(last, {last.runs});
  }
}

void LoggedRuns::add_job(const Job& job, const Attempts& attempts) {
  const std::vector<const LoggedRun*>& first = attempts.front();
  const bool has_share = std::any_of(job.runs.begin(), job.runs.end(), [](const LoggedRun* run) {
    return run->demand.shares && run->demand.gpu_count() == 0;
  });
  if (has_share) return drop(job, unknown_share);
  if (most_tasks_of(first) > most_tasks) return drop(job, "asks for more than 1,000,000,000 GPUs or nodes");
  const Gang gang = joint_gang(first);
  if (static_cast<double>(gang.shape.cpu_milli_per_task) > most_cores * 1000 ||
      static_cast<double>(gang.shape.memory_mib_per_task) > most_memory_mib) {
    return drop(job, "asks for more cores or memory a node than any machine has");
  }
  std::vector<Time> works;
  JobRecord record{.id = job.id, .submit = Time::max(), .user = job.rows->user};
  for (const std::vector<const LoggedRun*>& components : attempts) {
    Time work{};
    for (const LoggedRun* run : components) work = std::max(work, run->judged.work);
    works.push_back(work);
    record.work = later_by(record.work, work);
  }
  for (const LoggedRun* run : first) {
    record.submit = std::min(record.submit, run->queued());
    record.start = std::min(record.start, run->judged.start);
  }
  const LoggedRun& last = leader_of(attempts.back());
  record.estimate = last.estimate;
  record.shape = gang.shape;
  record.gpu_spec = gang.models;
  record.group = last.account;
  record.vc = last.partition;
  record.qos = last.qos;
  record.name = last.name;
  if (!sink_.qos.empty()) record.priority = sink_.qos.priority(last.qos);
  record.status = status_of(attempts.back());
  exceeding_ +=
      std::any_of(job.runs.begin(), job.runs.end(), [](const LoggedRun* run) { return run->demand.exceeds_request; });
  if (works.size() > 1) record.attempts = works;
  requeued_ += works.size() > 1 ? 1 : 0;
  heterogeneous_ += first.size() > 1 ? 1 : 0;
  const auto& kinds = first.front()->demand.gpus;
  mixed_ +=
      std::any_of(kinds.begin(), kinds.end(), [&](const SlurmGpus& kind) { return kind.milli != kinds[0].milli; });
  if (!throttled_.empty()) {
    const std::string array = array_key(job.rows->cluster, job.rows->id);
    if (throttled_.contains(array)) with_throttle_.insert(array);
  }
  sink_.add(record, first.front()->line);
}

}  // namespace gpusched
