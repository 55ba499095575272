// SPDX-License-Identifier: Apache-2.0
// sacct: what
//   sacct -a -X -D -P -S START -E END -o COLUMNS
// prints (slurm.schedmd.com/sacct.html), COLUMNS being
// JobID,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,
// ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES,NNodes,JobName: fields joined by '|', unquoted, under a header line; a
// job's name, last, may hold bars. Needed are JobID, Submit, a TRES column and the run time (ElapsedRaw in seconds,
// else Elapsed, else End - Start).
//
// - A job counts from the instant at which it became eligible (Eligible): what it waited for dependencies or its begin
//   time was no waiting for GPUs.
// - With -D a requeued job has a row a run; its runs are the attempts of one job. A row that an overlapping export
//   repeats counts once.
// - The components of a heterogeneous job (17+0, 17+1) are one gang; see joint_gang().
// - GPUs are gres/gpu of ReqTRES, else of AllocTRES, their types what ReqTRES names, else what AllocTRES says that the
//   job got: its run time is known for that type only. MIG slices are shares (slurm_gpus.hpp).
// - A job on several nodes that divide its GPUs is one task a node, one without GPUs too. The time limit is the user's
//   estimate. Steps ("17.batch") and jobs that never started or still run are left out.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <unordered_map>

#include "traces/core/slurm_gpus.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

// GPUs of one kind.
struct Gpus {
  std::string model;  // empty: any
  MilliGpu milli = whole_gpu;
  std::int64_t count = 0;
  std::string profile = {};  // of a MIG slice
};

// "billing=8,cpu=8,gres/gpu=4,gres/gpu:a100=4,mem=64G,node=1". Numbers that are not there stay at 0.
struct Tres {
  std::vector<Gpus> gpus;  // none of count 0
  std::int64_t cores = 0;
  std::int64_t memory_mib = 0;
  std::int64_t nodes = 0;
  bool shares = false;  // gres/shard or gres/mps, whose size the log does not tell

  [[nodiscard]] std::int64_t gpu_count() const {
    return std::accumulate(gpus.begin(), gpus.end(), std::int64_t{0},
                           [](std::int64_t sum, const Gpus& kind) { return sum + kind.count; });
  }
  [[nodiscard]] bool names_types() const {
    return std::any_of(gpus.begin(), gpus.end(),
                       [](const Gpus& kind) { return !kind.model.empty() || kind.milli != whole_gpu; });
  }
};

// "64G" -> MiB; a number alone is megabytes.
std::optional<std::int64_t> parse_memory_mib(std::string_view text) {
  if (text.empty()) return std::nullopt;
  constexpr std::string_view units = "KMGTP";
  constexpr double most_mib = 1e12;  // an exabyte; those of a million components can be added
  double mib = 1;
  if (const std::size_t unit = units.find(text.back()); unit != std::string_view::npos) {
    mib = std::pow(1024.0, static_cast<double>(unit) - 1);
    text.remove_suffix(1);
  }
  const auto number = parse_number(text);
  if (!number || *number < 0 || *number * mib > most_mib) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(*number * mib));
}

// gres/gpu:TYPE usually repeats a part of gres/gpu.
void add_gpus(Tres& tres, std::int64_t all, const std::vector<std::pair<std::string_view, std::int64_t>>& by_type) {
  for (const auto& [type, count] : by_type) {
    const SlurmGpu gpu = slurm_gpu(type);
    if (count > 0) tres.gpus.push_back({std::string(gpu.model), gpu.milli, count, gpu.profile});
  }
  if (const std::int64_t rest = all - tres.gpu_count(); rest > 0) tres.gpus.push_back({.model = {}, .count = rest});
}

// Nothing when a part is not NAME=VALUE with a value of the kind that the name has.
std::optional<Tres> parse_tres(std::string_view text) {
  Tres tres;
  std::int64_t gpus = 0;
  std::vector<std::pair<std::string_view, std::int64_t>> by_type;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, std::min(text.find(','), text.size()));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view name = part.substr(0, equals);
    const std::string_view value = part.substr(equals + 1);
    const bool is_type = name.starts_with("gres/gpu:");
    const bool counts = name == "cpu" || name == "node" || name == "gres/gpu" || is_type;
    const std::int64_t count = counts ? parse_integer(value).value_or(-1) : 0;
    if (count < 0 || count > 1'000'000'000) return std::nullopt;
    if (name == "cpu") tres.cores = count;
    if (name == "node") tres.nodes = count;
    if (name == "gres/gpu") gpus = count;
    if (is_type) by_type.emplace_back(name.substr(std::string_view("gres/gpu:").size()), count);
    if (name.starts_with("gres/shard") || name.starts_with("gres/mps")) tres.shares = true;
    if (name == "mem") {
      const auto memory = parse_memory_mib(value);
      if (!memory) return std::nullopt;
      tres.memory_mib = *memory;
    }
  }
  add_gpus(tres, gpus, by_type);
  return tres;
}

bool is_unknown(std::string_view text) { return text.empty() || text == "Unknown" || text == "None"; }

struct SacctColumns {
  Column id, submit, eligible, start, end, elapsed_raw, elapsed, limit_raw, limit, requested, allocated, nodes, user,
      account, partition, name, state;
};

// One row: a run of a job, or of one component of a heterogeneous job.
struct Run {
  std::int64_t component = 0;  // the offset behind '+'
  Time submit{}, start = Time::max(), work{}, estimate = Time::max();
  bool started = false, running = false;
  Tres demand;
  std::string account, partition, name, state;
  std::uint64_t line = 0;
};

// The rows of one JobID, in the order of the file.
struct Job {
  std::string id, user;
  std::vector<Run> runs;
};

// What the row asks for: ReqTRES, or AllocTRES where that has no GPU.
Tres demand_of(RowReader& row, const SacctColumns& columns) {
  const auto requested = parse_tres(row.text(columns.requested));
  const auto allocated = parse_tres(row.text(columns.allocated));
  constexpr const char* expected = "resources like cpu=8,mem=64G,gres/gpu=4";
  if (!requested) row.expect(columns.requested, expected);
  if (!allocated) row.expect(columns.allocated, expected);
  if (!requested || !allocated) return {};
  const bool by_request = requested->gpu_count() > 0 || (allocated->gpu_count() == 0 && requested->cores > 0);
  Tres demand = by_request ? *requested : *allocated;
  demand.shares = requested->shares || allocated->shares;
  if (by_request && !demand.names_types() && allocated->names_types()) {
    // Named no type: what it got, in the number that it asked for.
    if (allocated->gpus.size() == 1) {
      const std::int64_t count = demand.gpu_count();
      demand.gpus.front() = allocated->gpus.front();
      demand.gpus.front().count = count;
    } else {
      demand.gpus = allocated->gpus;
    }
  }
  if (columns.nodes && !row.is_blank(columns.nodes)) demand.nodes = row.integer(columns.nodes);
  return demand;
}

Time run_time(RowReader& row, const SacctColumns& columns) {
  if (columns.elapsed_raw) return row.seconds(columns.elapsed_raw);
  if (columns.elapsed) {
    const auto span = parse_slurm_span(row.text(columns.elapsed));
    if (!span) row.expect(columns.elapsed, "a span like 1-02:03:04");
    return span.value_or(Time{});
  }
  const Time start = row.instant(columns.start);
  const Time end = row.instant(columns.end);
  if (end < start) row.expect(columns.end, "an end not before Start");
  return end < start ? Time{} : end - start;
}

Time time_limit(RowReader& row, const SacctColumns& columns) {
  if (columns.limit_raw && !is_unknown(row.text(columns.limit_raw))) {
    const auto minutes = parse_integer(row.text(columns.limit_raw));
    const bool is_limit = minutes && *minutes >= 0 && *minutes < 1'000'000'000;
    return is_limit ? whole_seconds(*minutes * 60) : Time::max();  // UNLIMITED, Partition_Limit
  }
  const auto span = columns.limit ? parse_slurm_span(row.text(columns.limit)) : std::nullopt;
  return span.value_or(Time::max());
}

// The instant from which the job could have run. A Start before Eligible is Slurm's own rounding of the latter.
Time eligible_time(RowReader& row, const SacctColumns& columns, Time submit, Time start) {
  if (!columns.eligible || is_unknown(row.text(columns.eligible))) return submit;
  return std::max(submit, std::min(row.instant(columns.eligible), start));
}

SacctColumns find_columns(RowReader& rows) {
  const SacctColumns columns{.id = rows.require({"JobID"}),
                             .submit = rows.require({"Submit"}),
                             .eligible = rows.find({"Eligible"}),
                             .start = rows.find({"Start"}),
                             .end = rows.find({"End"}),
                             .elapsed_raw = rows.find({"ElapsedRaw"}),
                             .elapsed = rows.find({"Elapsed"}),
                             .limit_raw = rows.find({"TimelimitRaw"}),
                             .limit = rows.find({"Timelimit"}),
                             .requested = rows.find({"ReqTRES"}),
                             .allocated = rows.find({"AllocTRES"}),
                             .nodes = rows.find({"NNodes", "AllocNodes"}),
                             .user = rows.find({"User"}),
                             .account = rows.find({"Account"}),
                             .partition = rows.find({"Partition"}),
                             .name = rows.find({"JobName"}),
                             .state = rows.find({"State"})};
  rows.require({"ReqTRES", "AllocTRES"});
  rows.require({"ElapsedRaw", "Elapsed", "End"});
  rows.require({"ElapsedRaw", "Elapsed", "Start"});
  return columns;
}

// Fills what is known of a run that did not end, and all of one that did.
Run read_run(RowReader& row, const SacctColumns& columns) {
  const std::string_view state = row.text(columns.state);
  Run run{.demand = {},
          .account = std::string(row.text(columns.account)),
          .partition = std::string(row.text(columns.partition)),
          .name = std::string(row.text(columns.name)),
          .state = std::string(state),
          .line = row.line()};
  const std::string_view id = row.text(columns.id);
  if (const std::size_t plus = id.find('+'); plus != std::string_view::npos) {
    const auto offset = parse_integer(id.substr(plus + 1));
    if (!offset || *offset < 0) row.expect(columns.id, "a job id like 17, 17_3 or 17+1");
    run.component = offset.value_or(0);
  }
  run.started = !(columns.start && is_unknown(row.text(columns.start))) && !state.starts_with("PENDING");
  if (!run.started) return run;
  run.running = state.starts_with("RUNNING") || state.starts_with("SUSPENDED") ||
                (columns.end && is_unknown(row.text(columns.end)));
  if (run.running) return run;
  const Time submit = row.instant(columns.submit);
  run.work = run_time(row, columns);
  if (columns.start) {
    run.start = row.instant(columns.start);
    if (run.start < submit) row.expect(columns.start, "a start not before Submit");
  }
  run.demand = demand_of(row, columns);
  run.submit = eligible_time(row, columns, submit, run.start);
  run.estimate = time_limit(row, columns);
  return run;
}

// As GpuDemand takes it. Slices of one profile keep it, for clusters whose cards are cut.
std::string all_models(const std::vector<Gpus>& gpus) {
  std::set<std::string> models;
  for (const Gpus& kind : gpus) {
    const bool alike =
        std::all_of(gpus.begin(), gpus.end(), [&](const Gpus& other) { return other.profile == kind.profile; });
    const std::string profile = alike && kind.milli != whole_gpu ? kind.profile : std::string();
    models.insert(kind.model + (kind.model.empty() || profile.empty() ? "" : "_") + profile);
  }
  if (models.contains("")) return {};
  std::vector<std::string> names(models.begin(), models.end());
  std::string spec;
  for (const std::string& name : names) spec += (spec.empty() ? "" : "|") + name;
  return spec;
}

// The gang of one run. A component is a task a node, where the nodes divide its GPUs, else a task a GPU; a gang's tasks
// are equal, so that where the components' tasks differ, they are cut into what they have in common: 8 and 4 GPUs a
// node into tasks of 4. Components without GPUs beside some with them add their cores and memory, spread evenly. Slices
// of several sizes in one job become whole GPUs.
struct Gang {
  Shape shape;
  std::string models;
};
Gang joint_gang(const std::vector<const Run*>& components) {
  std::vector<Gpus> kinds;
  std::int64_t cores = 0, memory_mib = 0, nodes = 0, common = 0, gpus = 0;
  MilliGpu milli = 0;
  bool slices = false;
  for (const Run* run : components) {
    const Tres& demand = run->demand;
    cores += demand.cores;
    memory_mib += demand.memory_mib;
    nodes += std::max<std::int64_t>(demand.nodes, 1);
    const std::int64_t count = demand.gpu_count();
    if (count > 0) common = std::gcd(common, demand.nodes > 0 && count % demand.nodes == 0 ? count / demand.nodes : 1);
    gpus += count;
    for (const Gpus& kind : demand.gpus) {
      kinds.push_back(kind);
      milli += kind.milli * kind.count;
      slices = slices || kind.milli != whole_gpu;
    }
  }
  Shape shape;
  const bool alike =
      std::all_of(kinds.begin(), kinds.end(), [&](const Gpus& kind) { return kind.milli == kinds.front().milli; });
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

// As many tasks as gang_of() may give the components together.
std::int64_t most_tasks_of(const std::vector<const Run*>& components) {
  std::int64_t gpus = 0, nodes = 0;
  for (const Run* run : components) {
    gpus += run->demand.gpu_count();
    nodes += std::max<std::int64_t>(run->demand.nodes, 1);
  }
  return std::max(gpus, nodes);
}

// Turns the rows of each job into the job.
class JobJoiner {
 public:
  explicit JobJoiner(ReadContext& context) : context_(context) {}

  void add(std::string_view id, std::string_view user, Run run) {
    // Ids are used again after years: another user's is another job, which the table refuses.
    const std::string_view base = id.substr(0, id.find('+'));
    const auto [place, added] =
        numbers_.try_emplace(std::string(base) + '\n' + std::string(user), static_cast<std::uint32_t>(jobs_.size()));
    if (added) jobs_.push_back({std::string(base), std::string(user), {}});
    std::vector<Run>& runs = jobs_[place->second].runs;
    const auto same = [&](const Run& known) {
      return known.component == run.component && known.started && run.started && known.start == run.start &&
             known.submit == run.submit && run.start != Time::max();
    };
    if (const auto known = std::find_if(runs.begin(), runs.end(), same); known != runs.end()) {
      context_.drop("the same run again", run.line);
      *known = std::move(run);
      return;
    }
    runs.push_back(std::move(run));
  }

  void finish() {
    for (Job& job : jobs_) join(job);
    note(requeued_, "were requeued; their runs are attempts of one job");
    note(heterogeneous_, "are heterogeneous; their components are one gang");
    note(mixed_, "hold MIG slices of several sizes, which count as whole GPUs");
  }

 private:
  void note(std::uint64_t jobs, const char* what) {
    if (jobs > 0) context_.report.notes.push_back(std::to_string(jobs) + (jobs == 1 ? " job: " : " jobs ") + what);
  }

  void drop(const std::vector<Run>& runs, const char* reason) {
    for (const Run& run : runs) context_.drop(reason, run.line);
  }

  void join(Job& job) {
    std::vector<Run>& runs = job.runs;
    const auto all = [&](auto holds) { return std::all_of(runs.begin(), runs.end(), holds); };
    if (all([](const Run& run) { return !run.started; })) return drop(runs, "never started");
    if (!all([](const Run& run) { return !run.running; })) return drop(runs, "still running");
    std::erase_if(runs, [](const Run& run) { return !run.started; });  // requeued, and cancelled while it waited
    if (!all([](const Run& run) { return !run.demand.shares || run.demand.gpu_count() > 0; })) {
      return drop(runs, "asks for gres/shard or gres/mps: how much of a GPU that is, the log does not tell");
    }
    std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
      return std::pair(a.component, a.submit) < std::pair(b.component, b.submit);
    });
    const auto attempts = attempts_of(runs);
    if (most_tasks_of(attempts.front()) > 1'000'000'000) {
      return drop(runs, "asks for more than 1,000,000,000 GPUs or nodes");
    }
    const Gang gang = joint_gang(attempts.front());
    if (static_cast<double>(gang.shape.cpu_milli_per_task) > most_cores * 1000 ||
        static_cast<double>(gang.shape.memory_mib_per_task) > most_memory_mib) {
      return drop(runs, "asks for more cores or memory a node than any machine has");
    }
    add(job, attempts, gang);
  }

  // The k-th run of every component, for each k.
  static std::vector<std::vector<const Run*>> attempts_of(const std::vector<Run>& runs) {
    std::vector<std::vector<const Run*>> attempts;
    std::size_t k = 0;
    for (std::size_t i = 0; i < runs.size(); ++i, ++k) {
      if (i > 0 && runs[i].component != runs[i - 1].component) k = 0;
      if (attempts.size() <= k) attempts.emplace_back();
      attempts[k].push_back(&runs[i]);
    }
    return attempts;
  }

  void add(const Job& job, const std::vector<std::vector<const Run*>>& attempts, const Gang& gang) {
    std::vector<Time> works;
    JobRecord record{.id = job.id, .submit = Time::max(), .user = job.user};
    for (const std::vector<const Run*>& components : attempts) {
      Time work{};
      for (const Run* run : components) work = std::max(work, run->work);
      works.push_back(work);
      record.work = later_by(record.work, work);
    }
    for (const Run* run : attempts.front()) {
      record.submit = std::min(record.submit, run->submit);
      record.start = std::min(record.start, run->start);
    }
    const Run& last = *attempts.back().front();
    record.estimate = last.estimate;
    record.shape = gang.shape;
    record.gpu_spec = gang.models;
    record.group = last.account;
    record.vc = last.partition;
    record.name = last.name;
    record.status = status_from_word(last.state);
    if (works.size() > 1) record.attempts = works;
    requeued_ += works.size() > 1 ? 1 : 0;
    heterogeneous_ += attempts.front().size() > 1 ? 1 : 0;
    const auto& kinds = attempts.front().front()->demand.gpus;
    mixed_ += std::any_of(kinds.begin(), kinds.end(), [&](const Gpus& kind) { return kind.milli != kinds[0].milli; });
    context_.add(record, attempts.front().front()->line);
  }

  ReadContext& context_;
  std::vector<Job> jobs_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // looked up, never iterated
  std::uint64_t requeued_ = 0, heterogeneous_ = 0, mixed_ = 0;
};

}  // namespace

Result<void> read_sacct(ReadContext& context) {
  RowReader rows(context, RowReader::Style{.separator = '|', .quotes = false, .last_takes_rest = true});
  if (auto header = rows.read_header(); !header) return header;
  const SacctColumns columns = find_columns(rows);
  JobJoiner jobs(context);
  const auto outcome = for_each_row(rows, context, [&](RowReader& row) {
    const std::string_view id = row.text(columns.id);
    if (id.find('.') != std::string_view::npos) return row.drop("step of a job");
    Run run = read_run(row, columns);
    if (!row.bad()) jobs.add(id, row.text(columns.user), std::move(run));
  });
  if (outcome) jobs.finish();
  return outcome;
}

}  // namespace gpusched
