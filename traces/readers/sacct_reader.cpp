// SPDX-License-Identifier: Apache-2.0
// sacct: what
//   sacct -a -X -D -P -S START -E END -o COLUMNS
// prints (slurm.schedmd.com/sacct.html), COLUMNS being
// JobID,Cluster,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,
// ElapsedRaw,TimelimitRaw,ReqTRES,AllocTRES,NNodes,JobName: fields joined by '|', unquoted, under a header line; a
// free text, last, may hold bars and line ends. Other delimiters (comma, semicolon, tab) and the table of fixed widths
// that sacct prints without -P are read too; with ReadOptions::columns a file without a header (sacct -n). Needed are
// JobID (or JobIDRaw), Submit, a column with GPUs (ReqTRES, AllocTRES; of older versions AllocGRES, ReqGRES) and the
// run time (ElapsedRaw in seconds, else Elapsed, else End - Start).
//
// - A job counts from the instant at which it became eligible (Eligible): what it waited for dependencies or its begin
//   time was no waiting for GPUs.
// - What rows are runs of one job, and what becomes of them, LoggedRuns says. Steps ("17.batch") are left out.
// - The time limit is the user's estimate.
#include <algorithm>

#include "traces/core/logged_runs.hpp"
#include "traces/core/slurm_rows.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

bool is_unknown(std::string_view text) { return text.empty() || text == "Unknown" || text == "None" || text == "NA"; }

struct SacctColumns {
  Column id, cluster, submit, eligible, start, end, elapsed_raw, elapsed, limit_raw, limit, requested, allocated,
      requested_gres, allocated_gres, nodes, cores, memory, user, account, partition, qos, name, state, node_list;
};

SacctColumns find_columns(RowReader& rows) {
  SacctColumns columns{.id = rows.require({"JobID", "JobIDRaw"}),
                       .cluster = rows.find({"Cluster"}),
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
                       .requested_gres = rows.find({"ReqGRES"}),
                       .allocated_gres = rows.find({"AllocGRES"}),
                       .nodes = rows.find({"NNodes", "AllocNodes"}),
                       .cores = {},
                       .memory = {},
                       .user = rows.find({"User"}),
                       .account = rows.find({"Account"}),
                       .partition = rows.find({"Partition"}),
                       .qos = rows.find({"QOS"}),
                       .name = rows.find({"JobName"}),
                       .state = rows.find({"State"}),
                       .node_list = rows.find({"NodeList"})};
  rows.require({"ReqTRES", "AllocTRES", "AllocGRES", "ReqGRES"});
  rows.require({"ElapsedRaw", "Elapsed", "End"});
  rows.require({"ElapsedRaw", "Elapsed", "Start"});
  if (!columns.requested && !columns.allocated) {
    columns.cores = rows.find({"AllocCPUS", "NCPUS", "ReqCPUS"});
    columns.memory = rows.find({"ReqMem"});
  }
  return columns;
}

// What the row asks for, of TRES and, where these have no GPU, of GRES.
SlurmTres demand_of(RowReader& row, const SacctColumns& columns) {
  auto requested = parse_slurm_tres(row.text(columns.requested));
  auto allocated = parse_slurm_tres(row.text(columns.allocated));
  const auto gres_of = [&](Column column) {
    return parse_slurm_gres(row.is_blank(column) ? std::string_view() : row.text(column));
  };
  const auto gres_requested = gres_of(columns.requested_gres), gres_allocated = gres_of(columns.allocated_gres);
  if (!requested) row.expect(columns.requested, "resources like cpu=8,mem=64G,gres/gpu=4");
  if (!allocated) row.expect(columns.allocated, "resources like cpu=8,mem=64G,gres/gpu=4");
  if (!gres_requested) row.expect(columns.requested_gres, "generic resources like gpu:a100:4");
  if (!gres_allocated) row.expect(columns.allocated_gres, "generic resources like gpu:a100:4");
  const std::int64_t nodes = columns.nodes && !row.is_blank(columns.nodes) ? row.integer(columns.nodes) : 0;
  if (row.bad()) return {};
  if (requested->gpu_count() == 0 && allocated->gpu_count() == 0) {
    requested->gpus = gres_requested->gpus;
    const std::int64_t parts = gres_requested->of_job ? 1 : std::max<std::int64_t>(nodes, 1);
    for (SlurmGpus& kind : requested->gpus) kind.count *= parts;
    allocated->gpus = gres_allocated->gpus;
    requested->shares = requested->shares || gres_requested->shares || gres_allocated->shares;
  }
  SlurmTres demand = slurm_demand(*requested, *allocated, nodes);
  if (columns.cores && !row.is_blank(columns.cores)) demand.cores = row.integer(columns.cores);
  if (columns.memory && !row.is_blank(columns.memory)) {
    const std::string_view text = row.text(columns.memory);
    const auto mib = parse_slurm_memory_mib(text);
    const std::int64_t parts =
        text.ends_with('c') ? demand.cores : (text.ends_with('n') ? std::max<std::int64_t>(nodes, 1) : 1);
    demand.memory_mib = std::min<std::int64_t>(mib.value_or(0), 1'000'000'000'000) * std::max<std::int64_t>(parts, 1);
  }
  return demand;
}

// INVALID is what sacct prints where it cannot tell.
bool is_no_limit(std::string_view text) {
  return text == "UNLIMITED" || text == "Partition_Limit" || text == "INVALID";
}

Time time_limit(RowReader& row, const SacctColumns& columns) {
  if (columns.limit_raw && !is_unknown(row.text(columns.limit_raw))) {
    const std::string_view text = row.text(columns.limit_raw);
    const auto minutes = parse_integer(text);
    if (!minutes && !is_no_limit(text)) row.expect(columns.limit_raw, "a number of minutes, or UNLIMITED");
    const bool is_limit = minutes && *minutes >= 0 && *minutes < 1'000'000'000;
    return is_limit ? whole_seconds(*minutes * 60) : Time::max();
  }
  if (!columns.limit || is_unknown(row.text(columns.limit))) return Time::max();
  const auto span = parse_slurm_span(row.text(columns.limit));
  if (!span && !is_no_limit(row.text(columns.limit))) row.expect(columns.limit, "a span like 1-02:03:04, or UNLIMITED");
  return span.value_or(Time::max());
}

Time elapsed_time(RowReader& row, const SacctColumns& columns) {
  if (columns.elapsed_raw && !row.is_blank(columns.elapsed_raw)) return row.seconds(columns.elapsed_raw);
  if (!columns.elapsed || row.is_blank(columns.elapsed)) return Time::max();
  const auto span = parse_slurm_span(row.text(columns.elapsed));
  if (!span) row.expect(columns.elapsed, "a span like 1-02:03:04");
  return span.value_or(Time{});
}

LoggedTimes times_of(RowReader& row, const SacctColumns& columns, std::string_view state) {
  LoggedTimes times{.submit = row.instant(columns.submit),
                    .start = row.instant_if(columns.start),
                    .end = row.instant_if(columns.end),
                    .elapsed = elapsed_time(row, columns),
                    .has_start = bool(columns.start)};
  take_slurm_state(state, times);
  const bool ends_unknown = columns.end && is_unset_time(times.end, times.submit);
  times.runs = times.runs || (ends_unknown && times.start != Time::max() && !state.starts_with("COMPLETING"));
  const bool no_node = row.text(columns.node_list) == "None assigned";
  times.held_nothing = no_node || (columns.allocated && row.is_blank(columns.allocated));
  return times;
}

// The first of several: a job that was given partitions to choose from ran in one of them.
std::string_view first_of_list(std::string_view text) { return text.substr(0, text.find(',')); }

struct SacctRow {
  LoggedRun run;
  JudgedTimes judged;
};

SacctRow read_run(RowReader& row, const SacctColumns& columns) {
  const std::string_view state = row.text(columns.state);
  LoggedRun run{.id = {},
                .cluster = std::string(row.text(columns.cluster)),
                .user = std::string(row.text(columns.user)),
                .account = std::string(row.text(columns.account)),
                .partition = std::string(first_of_list(row.text(columns.partition))),
                .qos = std::string(row.text(columns.qos)),
                .name = std::string(row.text(columns.name)),
                .state = std::string(state),
                .line = row.line()};
  if (!split_slurm_id(row.text(columns.id), run)) row.expect(columns.id, "a job id like 17, 17_3 or 17+1");
  run.times = times_of(row, columns, state);
  const auto judged = row.judge(run.times, {columns.submit, columns.start, columns.end});
  if (!judged || judged->fate == JobFate::never_ran) return {std::move(run), judged.value_or(JudgedTimes{})};
  run.demand = demand_of(row, columns);
  run.eligible = row.instant_if(columns.eligible);
  run.estimate = time_limit(row, columns);
  return {std::move(run), *judged};
}

// Texts that Slurm's users and administrators write.
constexpr std::string_view free_texts[] = {"JobName", "SubmitLine", "Comment", "AdminComment", "SystemComment",
                                           "WorkDir", "Extra",      "StdOut",  "StdErr",       "StdIn"};

// Not the rest of a text that holds a line end.
bool begins_sacct_row(std::string_view first_field) {
  return !first_field.empty() && first_field.front() >= '0' && first_field.front() <= '9' &&
         first_field.find_first_not_of("0123456789_+.[]-%:,abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
}

constexpr char sacct_separators[] = {'|', ',', ';', '\t', '^', '~', '#', '@', '%', '$', '!', '&', '*', '\x1f'};

bool is_sacct_header(std::string_view head, char separator) {
  const bool has_id = header_has(head, {"JobID"}, separator) || header_has(head, {"JobIDRaw"}, separator);
  constexpr const char* others[] = {"Submit", "State", "Start", "End", "Elapsed", "ElapsedRaw", "AllocTRES", "ReqTRES"};
  return has_id && std::any_of(std::begin(others), std::end(others),
                               [&](const char* name) { return header_has(head, {name}, separator); });
}

// The columns that the user names, where the file has no header line.
std::vector<std::string> names_given(const std::string& columns) {
  CsvSplitter splitter;
  std::vector<std::string> names;
  if (splitter.split(columns)) {
    for (const std::string_view name : splitter.fields()) names.emplace_back(trim(name));
  }
  return names;
}

RowStyle sacct_style(std::string_view head, std::size_t columns_given) {
  RowStyle style{.separator = '|',
                 .quotes = false,
                 .any_case = true,
                 .ends_with_separator = true,
                 .no_value = {},
                 .free_texts = free_texts,
                 .begins_row = begins_sacct_row,
                 .advice = "; or export with another --delimiter"};
  if (columns_given == 0 && has_fixed_widths(head)) {
    style.fixed_widths = true;
    style.advice = "; export with -P";
    return style;
  }
  for (const char separator : sacct_separators) {
    CsvSplitter splitter(separator, separator == ',');
    const bool is_it = columns_given == 0
                           ? is_sacct_header(head, separator)
                           : splitter.split(first_line(head)) && splitter.fields().size() >= columns_given;
    if (!is_it) continue;
    style.separator = separator;
    style.quotes = separator == ',';
    break;
  }
  return style;
}

}  // namespace

bool is_sacct(std::string_view head) {
  if (has_fixed_widths(head)) return first_line(head).find("JobID") != std::string_view::npos;
  return std::any_of(std::begin(sacct_separators), std::end(sacct_separators),
                     [&](char separator) { return is_sacct_header(head, separator); });
}

Result<void> read_sacct(ReadContext& context) {
  const std::vector<std::string> given = names_given(context.options.columns);
  const bool has_header = context.options.columns.empty();
  RowReader rows(context, sacct_style(context.file.head(), has_header ? 0 : given.size()));
  if (auto header = has_header ? rows.read_header() : rows.use_header(given); !header) return header;
  const SacctColumns columns = find_columns(rows);
  LoggedRuns jobs(context);
  jobs.ask_last_runs(rows.names());
  const auto outcome = for_each_row(rows, context, [&](RowReader& row) {
    const std::string_view id = row.text(columns.id);  // Slurm cuts a long list of waiting tasks: 17_[1,3,...]
    if (id.substr(0, id.find('[')).find('.') != std::string_view::npos) return row.drop("step of a job");
    SacctRow entry = read_run(row, columns);
    entry.run.wanted = row.wanted_as_last();
    if (!entry.run.wanted && row.bad()) return row.drop_unread(left_out_by_filter);
    const bool is_demand_known =
        columns.requested || columns.requested_gres || entry.judged.fate != JobFate::still_waits;
    if (context.options.backlog && !is_demand_known) {
      return row.drop("waits, and without ReqTRES the log does not say for how many GPUs");
    }
    if (!row.bad()) jobs.add(std::move(entry.run), entry.judged);
  });
  if (outcome) jobs.finish();
  return outcome;
}

}  // namespace gpusched
