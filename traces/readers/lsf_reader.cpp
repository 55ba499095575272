// SPDX-License-Identifier: Apache-2.0
// lsf: lsb.acct of IBM Spectrum LSF (LSB_SHAREDIR/CLUSTER/logdir/lsb.acct*; LSF configuration reference, "lsb.acct"): a
// record a line, of blank-separated fields in a fixed order, texts in double quotes with "" for a quote. JOB_FINISH is
// the end of a job; other records are no jobs. Versions add fields at the end: what an older one lacks is not known.
//
// - A job counts from submitTime, or from beginTime (bsub -b), and ran from startTime to the time of the event; without
// a
//   startTime it never ran. A job that LSF requeued has a record a run.
// - GPUs are those that effectiveResReq (else resReq) reserves on each host (ngpus_physical=2.00, ngpus_shared, ...),
// else
//   those of the job's -gpu option ("num=2:mode=..."), times the hosts that it ran on.
// - runLimit is the user's estimate; slots are cores.
#include <algorithm>
#include <cmath>
#include <set>

#include "src/base/visible_text.hpp"
#include "traces/core/logged_runs.hpp"
#include "traces/core/slurm_gpus.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr std::string_view job_finish = "JOB_FINISH";

// Fields of a record. False when a quote is not closed: the record goes on in the next line.
bool split_record(std::string_view text, std::vector<std::string>& fields) {
  fields.clear();
  while (!(text = trim(text)).empty()) {
    std::string field;
    if (text.front() != '"') {
      const std::size_t stop = std::min(text.find_first_of(" \t"), text.size());
      field = text.substr(0, stop);
      text.remove_prefix(stop);
    } else {
      std::size_t at = 1;
      for (;; ++at) {
        if (at >= text.size()) return false;
        if (text[at] != '"') {
          field += text[at];
        } else if (at + 1 < text.size() && text[at + 1] == '"') {
          field += text[at++];
        } else {
          break;
        }
      }
      text.remove_prefix(at + 1);
    }
    fields.push_back(std::move(field));
  }
  return true;
}

// Takes the fields of a record one by one; those that are not there are empty.
class Fields {
 public:
  explicit Fields(const std::vector<std::string>& fields) : fields_(fields) {}
  const std::string& next() {
    static const std::string none;
    return at_ < fields_.size() ? fields_[at_++] : none;
  }
  void skip(std::size_t count) { at_ += std::min(count, fields_.size() - std::min(at_, fields_.size())); }
  // The entries of a list that its length stands in front of. Nothing when the length is none, or longer than the
  // record.
  std::optional<std::vector<std::string>> list(std::size_t fields_an_entry = 1) {
    const auto count = parse_integer(next());
    const std::size_t left = fields_.size() - std::min(at_, fields_.size());
    if (!count || *count < 0 || static_cast<std::size_t>(*count) > left / fields_an_entry) return std::nullopt;
    std::vector<std::string> entries;
    for (std::size_t i = 0; i < static_cast<std::size_t>(*count) * fields_an_entry; ++i) entries.push_back(next());
    return entries;
  }
  [[nodiscard]] bool at_end() const { return at_ >= fields_.size(); }

 private:
  const std::vector<std::string>& fields_;
  std::size_t at_ = 0;
};

// "16*node7" -> "node7".
std::string host_of(const std::string& text) {
  const std::size_t star = text.find('*');
  const bool counted = star != std::string::npos && star > 0 && text.find_first_not_of("0123456789") == star;
  return counted ? text.substr(star + 1) : text;
}

// The GPUs that "rusage[ngpus_physical=2.00:gmem=4G,mem=100]" reserves on a host; nothing where it reserves none.
std::optional<double> reserved_gpus(std::string_view requirement) {
  for (std::size_t at = requirement.find("rusage["); at != std::string_view::npos;
       at = requirement.find("rusage[", at + 1)) {
    const std::string_view inside = requirement.substr(at, requirement.find(']', at) - at);
    const std::size_t name = inside.find("ngpus");
    const std::size_t equals = name == std::string_view::npos ? name : inside.find('=', name);
    if (equals == std::string_view::npos) continue;
    const std::string_view value = inside.substr(equals + 1);
    const auto number = parse_number(value.substr(0, value.find_first_not_of("0123456789.")));
    if (number && *number > 0 && *number <= 1e6) return number;
  }
  return std::nullopt;
}

// "num=2:mode=shared:j_exclusive=yes:gmodel=TeslaV100" of bsub -gpu.
struct GpuOption {
  std::optional<double> gpus;
  std::string model;
};
GpuOption gpu_option(std::string_view text) {
  GpuOption option;
  if (!text.starts_with("num=")) return option;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    std::string_view value = part.substr(std::min(part.find('='), part.size() - 1) + 1);
    if (part.starts_with("num=")) {
      const auto number = parse_number(value.substr(0, value.find('/')));
      if (number && *number > 0 && *number <= 1e6) option.gpus = number;
    }
    if (part.starts_with("gmodel=")) option.model = value;
  }
  return option;
}

// What bacct calls the reason of the end (exitInfo, TERM_* of lsbatch.h): a person or the queue's owner ended it.
std::string state_of(const std::string& status, std::int64_t reason) {
  if (status == "64") return "COMPLETED";
  constexpr std::int64_t by_people[] = {8, 9, 14, 15};
  if (reason == 1) return "PREEMPTED";
  if (reason == 10 || reason == 11) return "REQUEUED";
  const bool killed = std::find(std::begin(by_people), std::end(by_people), reason) != std::end(by_people);
  return killed ? "CANCELLED" : "FAILED";
}

class LsfReader {
 public:
  explicit LsfReader(ReadContext& context) : context_(context), runs_(context) {}

  Result<void> bind_filter() { return runs_.bind_filter(); }
  void finish() { runs_.finish(); }

  void take(const std::vector<std::string>& record, std::uint64_t line) {
    line_ = line;
    bad_ = false;
    if (record.empty() || record.front() != job_finish) return;
    Fields fields(record);
    fields.skip(2);  // the type of the event, the version
    LoggedRun run{.id = {}, .line = line};
    const auto ended = time(fields.next(), "Event Time");
    const std::string id = fields.next();
    fields.skip(2);  // userId, options
    const auto slots = count(fields.next(), "numProcessors");
    const auto submitted = time(fields.next(), "submitTime");
    const auto begins = time(fields.next(), "beginTime");
    fields.skip(1);  // termTime
    const auto started = time(fields.next(), "startTime");
    if (!ended || !slots || !submitted || !begins || !started) return;
    if (id.empty() || *submitted == Time::max())
      return wrong("submitTime", "a job with the time of its submission", "0");
    run.user = fields.next();
    run.partition = fields.next();
    const std::string requirement = fields.next();
    fields.skip(8);  // dependCond to jobFile
    const auto asked = fields.list();
    const auto hosts = asked ? fields.list() : std::nullopt;
    if (!hosts) return wrong("numExHosts", "the number of hosts and as many hosts", "another");
    const std::string status = fields.next();
    if (status != "64" && status != "32") return wrong("jStatus", "64 or 32", status);
    fields.skip(1);  // hostFactor
    run.name = fields.next();
    fields.skip(21);  // command, lsfRusage, mailUser
    run.account = fields.next();
    fields.skip(4);  // exitStatus to timeEvent
    const std::int64_t index = parse_integer(fields.next()).value_or(0);
    run.id = index > 0 ? id + "[" + std::to_string(index) + "]" : id;
    fields.skip(5);           // maxRMem to rsvId
    run.qos = fields.next();  // the service class
    fields.skip(2);           // exceptMask, additionalInfo
    const std::int64_t reason = parse_integer(fields.next()).value_or(0);
    run.state = state_of(status, reason);
    fields.skip(14);  // warningAction to jobDescription
    const auto extension = fields.list(2);
    const auto usage = extension ? fields.list(5) : std::nullopt;
    std::string effective;
    if (usage) {
      const auto limit = parse_integer(fields.next());
      if (limit && *limit > 0 && *limit < 1'000'000'000) run.estimate = whole_seconds(*limit);
      fields.skip(2);  // options3, avgMem
      effective = fields.next();
      run.cluster = fields.next();
    }

    take_demand(run.demand, *slots, *hosts, effective.empty() ? requirement : effective,
                extension.value_or(std::vector<std::string>{}));
    run.eligible = *begins;
    run.times = {.submit = *submitted,
                 .start = *started,
                 .end = *ended,
                 .held_nothing = hosts->empty(),
                 .cancelled = run.state == "CANCELLED"};
    runs_.take(std::move(run), {.file = context_.file.path(),
                                .line = line,
                                .submit = "submitTime",
                                .start = "startTime",
                                .end = "Event Time"});
  }

 private:
  // The first that is wrong in a record makes it a bad row.
  void wrong(const char* field, const std::string& expected, const std::string& found) {
    if (bad_) return;
    bad_ = true;
    ++context_.report.rows;
    context_.bad_row({.message = "expected " + expected + ", found '" + excerpt(found) + "'",
                      .file = context_.file.path(),
                      .line = line_,
                      .field = field});
  }
  // Seconds since 1970; Time::max() for 0. Nothing, and a bad row, where it is none.
  std::optional<Time> time(const std::string& text, const char* field) {
    const auto seconds = parse_seconds(text);
    if (seconds && *seconds >= Time{}) return *seconds == Time{} ? Time::max() : *seconds;
    wrong(field, "seconds since 1970 or 0", text);
    return std::nullopt;
  }
  std::optional<std::int64_t> count(const std::string& text, const char* field) {
    const auto number = parse_integer(text);
    if (number && *number >= 0 && *number <= 1'000'000'000) return number;
    wrong(field, "a number", text);
    return std::nullopt;
  }

  static void take_demand(SlurmTres& demand, std::int64_t slots, const std::vector<std::string>& hosts,
                          std::string_view requirement, const std::vector<std::string>& extension) {
    std::set<std::string> distinct;
    for (const std::string& host : hosts) distinct.insert(host_of(host));
    demand.cores = slots;
    demand.nodes = std::max<std::int64_t>(static_cast<std::int64_t>(distinct.size()), 1);
    GpuOption option;
    for (const std::string& value : extension) {
      const GpuOption other = gpu_option(value);
      if (other.gpus) option = other;
    }
    const auto reserved = reserved_gpus(requirement);
    const double of_host = reserved ? *reserved : option.gpus.value_or(0);
    if (of_host <= 0) return;
    const SlurmGpu kind = slurm_gpu(option.model);
    demand.gpus.push_back({std::string(kind.model), kind.milli,
                           static_cast<std::int64_t>(std::ceil(of_host)) * demand.nodes, kind.profile});
  }

  ReadContext& context_;
  LoggedRuns runs_;
  std::uint64_t line_ = 0;
  bool bad_ = false;
};

}  // namespace

bool is_lsf(std::string_view head) {
  const std::string_view line = first_line(head);
  return line.starts_with("\"JOB_FINISH\" ") || line.starts_with("\"EVENT_ADRSV_FINISH\" ") ||
         line.starts_with("\"JOB_RESIZE\" ");
}

Result<void> read_lsf(ReadContext& context) {
  constexpr std::size_t longest_record = std::size_t{1} << 20;  // bytes: a quote may be a stray one
  LsfReader reader(context);
  if (auto bound = reader.bind_filter(); !bound) return bound;
  std::vector<std::string> fields;
  std::string record;  // of which a quote is open
  std::uint64_t begins = 0;
  const auto leave_open = [&] {
    ++context.report.rows;
    context.bad_row({.message = "a quote is not closed", .file = context.file.path(), .line = begins, .field = "row"});
    record.clear();
  };
  for (std::string_view line; context.file.next_line(line);) {
    if (!record.empty() && (is_lsf(line) || record.size() > longest_record)) leave_open();
    if (record.empty()) begins = context.file.line_number();
    record += record.empty() ? "" : "\n";
    record += line;
    if (!split_record(record, fields)) continue;
    reader.take(fields, begins);
    record.clear();
  }
  if (context.file.failure()) return Unexpected{*context.file.failure()};
  if (!record.empty()) leave_open();
  reader.finish();
  return {};
}

}  // namespace gpusched
