// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/sc20_protocol.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <variant>

#include "gpusched/core/slowdown_bound.hpp"
#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/metrics.hpp"
#include "src/base/field_parser.hpp"
#include "src/policies/seam/unfinished.hpp"
#include "traces/core/input_file.hpp"

namespace gpusched {
namespace {

constexpr std::size_t swf_fields = 18;

// "; MaxProcs: 256" -> 256 for name "MaxProcs"; 0 for any other line.
std::int64_t header_number(std::string_view comment, std::string_view name) {
  comment = trim(comment.substr(1));
  if (!comment.starts_with(name)) return 0;
  comment = trim(comment.substr(name.size()));
  return comment.starts_with(':') ? parse_integer(trim(comment.substr(1))).value_or(0) : 0;
}

// The job of one line, or the number (from 1) of the field that is not an integer.
std::variant<Sc20Job, std::size_t> parse_job(std::string_view line) {
  std::array<std::int64_t, swf_fields> values{};
  for (std::size_t i = 0; i < swf_fields; ++i) {
    line = trim(line);
    const std::size_t stop = std::min(line.find_first_of(" \t"), line.size());
    // Fields beyond the ninth play no part and may be fractions.
    const auto value = parse_number(line.substr(0, stop));
    if (!value) return i + 1;
    values[i] = static_cast<std::int64_t>(*value);
    line.remove_prefix(stop);
  }
  const std::int64_t run = values[3];
  return Sc20Job{.id = values[0],
                 .submit = whole_seconds(values[1]),
                 .requested = whole_seconds(values[8] == -1 ? run : values[8]),
                 .run = whole_seconds(run < 0 ? 10 : run),
                 .processors = std::max(values[4], values[7])};
}

auto is_job(const Sc20Job& wanted) {
  return [id = wanted.id](const Sc20Job& job) { return job.id == id; };
}

class Sc20Window {
 public:
  Sc20Window(const Sc20Log& log, std::span<const Sc20Job> window, bool backfill, const Sc20Chooser& choose)
      : log_(log), window_(window), free_(log.nodes), backfill_(backfill), choose_(choose) {}

  Sc20Result run() {
    now_ = window_.front().submit;
    arrive();
    while (!waiting_.empty()) {
      choose_(waiting_, {now_, free_, log_.nodes});
      const Sc20Job chosen = waiting_.front();
      if (chosen.nodes > free_) wait_for(chosen);
      start(
          static_cast<std::size_t>(std::find_if(waiting_.begin(), waiting_.end(), is_job(chosen)) - waiting_.begin()));
      while (waiting_.empty() && next_ < window_.size()) step();
    }
    double slowdowns = 0;
    for (const double slowdown : slowdowns_) slowdowns += slowdown;
    // Where all start at the first submission there is no time to be utilised.
    const double span = to_seconds(last_start_ - window_.front().submit) * static_cast<double>(log_.processors);
    return {slowdowns / static_cast<double>(window_.size()), span > 0 ? work_s_ / span : 0};
  }

 private:
  struct Running {
    Time end{};                // when it truly ends
    Time requested_end{};      // when it should
    std::size_t sequence = 0;  // of starts
    Sc20Job job;
  };
  struct EndsLater {
    bool operator()(const Running& a, const Running& b) const {
      return a.end != b.end ? a.end > b.end : a.sequence > b.sequence;
    }
  };

  // One event: the next arrival, unless a completion is strictly earlier.
  void step() {
    if (next_ < window_.size() && (running_.empty() || window_[next_].submit <= running_.front().end)) {
      now_ = std::max(now_, window_[next_].submit);
      arrive();
      return;
    }
    std::pop_heap(running_.begin(), running_.end(), EndsLater{});
    now_ = std::max(now_, running_.back().end);
    free_ += running_.back().job.nodes;
    running_.pop_back();
  }

  void arrive() { waiting_.push_back(window_[next_++]); }

  // Steps until the chosen job fits.
  void wait_for(const Sc20Job& chosen) {
    const Time reserved = backfill_ ? reservation(chosen) : Time{};
    while (chosen.nodes > free_) {
      if (backfill_) start_before(reserved, chosen);
      step();
    }
  }

  // The instant at which the chosen job first fits if running jobs end as requested.
  [[nodiscard]] Time reservation(const Sc20Job& chosen) const {
    std::vector<std::pair<Time, std::int64_t>> ends;
    for (const Running& running : running_) ends.emplace_back(running.requested_end, running.job.nodes);
    std::sort(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::int64_t free = free_;
    for (const auto& [end, nodes] : ends) {
      free += nodes;
      if (free >= chosen.nodes) return end;
    }
    return now_;
  }

  // One pass in order of submission over the jobs that fit and should end before the reservation.
  void start_before(Time reserved, const Sc20Job& chosen) {
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [](const Sc20Job& a, const Sc20Job& b) { return a.submit < b.submit; });
    for (std::size_t at = 0; at < waiting_.size();) {
      const Sc20Job& job = waiting_[at];
      const bool starts = job.id != chosen.id && job.nodes <= free_ && now_ + job.requested < reserved;
      if (starts) {
        start(at);
      } else {
        ++at;
      }
    }
  }

  // Precondition: the job fits.
  void start(std::size_t at) {
    const Sc20Job job = waiting_[at];
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(at));
    free_ -= job.nodes;
    running_.push_back({now_ + job.run, now_ + job.requested, slowdowns_.size(), job});
    std::push_heap(running_.begin(), running_.end(), EndsLater{});
    last_start_ = now_;
    const double run_s = to_seconds(job.run);
    slowdowns_.push_back(
        std::max(1.0, (to_seconds(now_ - job.submit) + run_s) / std::max(run_s, to_seconds(slowdown_bound))));
    work_s_ += run_s * static_cast<double>(job.processors);
  }

  const Sc20Log& log_;
  std::span<const Sc20Job> window_;
  std::int64_t free_;     // nodes
  std::size_t next_ = 0;  // arrival
  bool backfill_;
  const Sc20Chooser& choose_;

  Time now_{};
  Time last_start_{};
  std::vector<Sc20Job> waiting_;
  std::vector<Running> running_;  // heap, earliest end in front
  std::vector<double> slowdowns_;
  double work_s_ = 0;
};

}  // namespace

Result<Sc20Log> read_sc20_log(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  Sc20Log log;
  std::int64_t header_processors = 0;
  std::int64_t header_nodes = 0;
  std::string_view line;
  const auto fail = [&](std::string field, std::string message) {
    return Unexpected{
        Error{.message = std::move(message), .file = path, .line = file->line_number(), .field = std::move(field)}};
  };
  while (file->next_line(line)) {
    if (trim(line).empty()) continue;
    if (line.starts_with(';')) {
      header_processors = std::max(header_processors, header_number(line, "MaxProcs"));
      header_nodes = std::max(header_nodes, header_number(line, "MaxNodes"));
      continue;
    }
    const auto parsed = parse_job(line);
    if (const auto* field = std::get_if<std::size_t>(&parsed)) {
      return fail("field " + std::to_string(*field),
                  "expected one of the 18 numbers of a Standard Workload Format row");
    }
    const Sc20Job& job = std::get<Sc20Job>(parsed);
    if (job.processors < 1) return fail("field 5 (processors)", "expected at least 1 here or in field 8");
    if (job.run > Time{}) log.jobs.push_back(job);
  }
  if (file->failure()) return Unexpected{*file->failure()};
  log.processors = header_processors > 0 ? header_processors : header_nodes;
  if (log.processors < 1) return fail("header", "expected a comment MaxProcs or MaxNodes");
  std::stable_sort(log.jobs.begin(), log.jobs.end(), [](const Sc20Job& a, const Sc20Job& b) { return a.id < b.id; });
  if (log.jobs.size() > sc20_log_jobs) log.jobs.resize(sc20_log_jobs);
  const bool by_node = header_processors > 0 && header_nodes > 0;
  const std::int64_t per_node = by_node ? std::max<std::int64_t>(header_processors / header_nodes, 1) : 1;
  for (Sc20Job& job : log.jobs) job.nodes = (job.processors + per_node - 1) / per_node;
  log.nodes = by_node ? header_nodes : log.processors;
  return log;
}

Sc20Chooser choose_by_score(std::function<double(const JobFacts&)> score) {
  return [score = std::move(score)](std::vector<Sc20Job>& waiting, const Sc20Moment& moment) {
    std::vector<std::pair<double, Sc20Job>> scored;
    scored.reserve(waiting.size());
    for (const Sc20Job& job : waiting) {
      scored.emplace_back(score({.submit_s = to_seconds(job.submit),
                                 .requested_s = to_seconds(job.requested),
                                 .processors = static_cast<double>(job.processors),
                                 .wait_s = to_seconds(moment.now - job.submit)}),
                          job);
    }
    std::stable_sort(scored.begin(), scored.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < waiting.size(); ++i) waiting[i] = scored[i].second;
  };
}

Result<Sc20Chooser> make_sc20_chooser(const PolicyRegistry& registry, const PolicySpec& policy) {
  // The order is made over no jobs, so that it cannot ask more of them than the protocol tells.
  const JobTable no_jobs;
  auto order = registry.make_order(policy, {.jobs = &no_jobs});
  if (!order) return Unexpected{order.error()};
  return choose_by_score(order->score);
}

Sc20Result run_sc20_window(const Sc20Log& log, std::span<const Sc20Job> window, bool backfill,
                           const Sc20Chooser& choose) {
  GPUSCHED_ASSERT(!window.empty(), "a window has jobs");
  return Sc20Window(log, window, backfill, choose).run();
}

Result<std::vector<Sc20Result>> run_sc20_windows(const Sc20Log& log, bool backfill, const Sc20Chooser& choose) {
  std::vector<Sc20Result> results;
  for (const std::uint32_t start : sc20_window_starts) {
    if (log.jobs.size() < start + sc20_window_jobs) {
      return unexpected("protocol sc20: the window of " + std::to_string(sc20_window_jobs) + " jobs from job " +
                        std::to_string(start) + " lies beyond the log's " + std::to_string(log.jobs.size()) + " jobs");
    }
    const auto window = std::span(log.jobs).subspan(start, sc20_window_jobs);
    for (const Sc20Job& job : window) {
      if (job.nodes <= log.nodes) continue;
      return unexpected("protocol sc20: job " + std::to_string(job.id) + " asks for " + std::to_string(job.nodes) +
                        " of " + std::to_string(log.nodes) + " nodes");
    }
    results.push_back(run_sc20_window(log, window, backfill, choose));
  }
  return results;
}

Result<Sc20Result> run_sc20_protocol(const Sc20Log& log, bool backfill, const Sc20Chooser& choose) {
  const auto windows = run_sc20_windows(log, backfill, choose);
  if (!windows) return Unexpected{windows.error()};
  return mean_of(*windows);
}

namespace {

Sc20Result result_of(const Engine& engine, const RunLog& log) {
  const JobTable& jobs = engine.jobs();
  double work_s = 0;
  Time last_start = jobs.submit(JobId{0});
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    const JobId job{i};
    work_s += to_seconds(jobs.work(job)) * static_cast<double>(jobs.shape(job).gpu_milli()) / whole_gpu;
    last_start = std::max(last_start, engine.first_start(job));
  }
  const double span =
      to_seconds(last_start - jobs.submit(JobId{0})) * static_cast<double>(engine.view().cluster().total_gpus());
  return {.avg_bounded_slowdown = compute_metrics(engine, log).avg_bounded_slowdown.value(),
          .utilization = span > 0 ? work_s / span : 0};
}

}  // namespace

Result<std::vector<Sc20Result>> run_sc20_agent_windows(const PolicySpec& policy, const PolicyRegistry& registry,
                                                       const JobTable& jobs, const Cluster& cluster) {
  std::vector<Sc20Result> results;
  for (const std::uint32_t start : sc20_window_starts) {
    if (start + sc20_window_jobs > jobs.size()) {
      return unexpected("protocol sc20: the window from job " + std::to_string(start) + " lies beyond the log's " +
                        std::to_string(jobs.size()) + " jobs");
    }
    const JobTable window = jobs.slice(start, sc20_window_jobs);
    auto made = registry.make(policy, {.jobs = &window, .cluster = &cluster});
    if (!made) return Unexpected{made.error()};
    Engine engine(window, cluster, {.one_event_a_step = true});
    RunLog log;
    if (!simulate(engine, *made, log)) return unexpected("policy " + policy.text + " " + why_unfinished(engine));
    for (std::uint32_t i = 0; i < window.size(); ++i) {
      if (engine.view().preemptions(JobId{i}) > 0) {
        return unexpected("protocol sc20 knows no preemption, and policy " + policy.text + " preempts");
      }
    }
    results.push_back(result_of(engine, log));
  }
  return results;
}

Result<Sc20Result> run_sc20_agent(const PolicySpec& policy, const PolicyRegistry& registry, const JobTable& jobs,
                                  const Cluster& cluster) {
  const auto windows = run_sc20_agent_windows(policy, registry, jobs, cluster);
  if (!windows) return Unexpected{windows.error()};
  return mean_of(*windows);
}

Sc20Result mean_of(std::span<const Sc20Result> windows) {
  Sc20Result mean;
  for (const Sc20Result& window : windows) {
    mean.avg_bounded_slowdown += window.avg_bounded_slowdown / static_cast<double>(windows.size());
    mean.utilization += window.utilization / static_cast<double>(windows.size());
  }
  return mean;
}

}  // namespace gpusched
