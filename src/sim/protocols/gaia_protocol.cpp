// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/gaia_protocol.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "src/calibration/profile/measured_csv.hpp"
#include "src/policies/carbon/start_rules.hpp"
#include "src/sim/protocols/python_heap.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t slot_s = 5;
constexpr double slots_per_hour = 3600.0 / slot_s;
constexpr std::int64_t short_slots = 7200 / slot_s;

Time time_of(std::int64_t slots) { return whole_seconds(slots * slot_s); }
std::int64_t slots_of(Time time) { return time.us / time_of(1).us; }

std::int64_t wait_slots(const GaiaJob& job, const GaiaOptions& options) {
  return static_cast<std::int64_t>((job.is_short() ? options.short_wait_h : options.long_wait_h) * slots_per_hour);
}

StartRule rule_of(GaiaPolicy policy) {
  switch (policy) {
    case GaiaPolicy::no_wait: return StartRule::no_wait;
    case GaiaPolicy::lowest_slot: return StartRule::lowest_slot;
    case GaiaPolicy::lowest_window: return StartRule::lowest_window;
    case GaiaPolicy::ecovisor: return StartRule::ecovisor;
    case GaiaPolicy::wait_awhile: return StartRule::wait_awhile;
    case GaiaPolicy::all_wait: return StartRule::all_wait;
    case GaiaPolicy::carbon_time:
    case GaiaPolicy::res_first:
    case GaiaPolicy::spot_res: break;
  }
  return StartRule::carbon_time;
}

// A job that waits, or a stretch of one that is suspended.
struct Waiting {
  const GaiaJob* job = nullptr;
  std::int64_t start = 0;  // at the latest
  std::int64_t length = 0;
};

struct ArrivedBefore {
  bool operator()(const Waiting& a, const Waiting& b) const { return a.job->arrival < b.job->arrival; }
};

using Heap = PythonHeap<Waiting, ArrivedBefore>;

class GaiaRun {
 public:
  GaiaRun(const GaiaTrace& trace, const Signal& carbon, GaiaPolicy policy, std::int64_t reserved,
          const GaiaOptions& options)
      : trace_(trace),
        carbon_(carbon),
        policy_(policy),
        reserved_(reserved),
        idle_(reserved),
        options_(options),
        end_(trace.jobs.size()) {}

  GaiaResult run() {
    while (next_ < trace_.jobs.size() || !waiting_.empty()) {
      if (waiting_.empty()) now_ = std::max(now_, trace_.jobs[next_].arrival);
      take_back();
      while (next_ < trace_.jobs.size() && trace_.jobs[next_].arrival <= now_) admit(trace_.jobs[next_++]);
      start_what_is_due();
      ++now_;
    }
    return {.carbon_g = static_cast<double>(cpu_integral_) * options_.watts_per_cpu / (1000 * 3600 * 1e12),
            .cost_usd = spot_h_ * options_.spot_usd_per_h + demand_h_ * options_.on_demand_usd_per_h +
                        options_.reserved_share * hours(reserved_ * last_start_) * options_.on_demand_usd_per_h,
            .mean_wait_h = mean_wait_h()};
  }

 private:
  static double hours(std::int64_t slots) { return static_cast<double>(slots) / slots_per_hour; }

  [[nodiscard]] bool uses_spot(const GaiaJob& job) const { return policy_ == GaiaPolicy::spot_res && job.is_spot; }

  // Starts before its latest when reserved capacity fits it.
  [[nodiscard]] bool looks_for_room(const GaiaJob& job) const {
    return policy_ == GaiaPolicy::all_wait || policy_ == GaiaPolicy::res_first ||
           (policy_ == GaiaPolicy::spot_res && !job.is_spot);
  }

  void admit(const GaiaJob& job) {
    const StartQuestion question{
        .now = time_of(job.arrival),
        .wait = time_of(wait_slots(job, options_)),
        .length = time_of(job.length),
        .expected = time_of(std::max<std::int64_t>(job.is_short() ? trace_.short_expected : trace_.long_expected, 1)),
        .slot = time_of(1)};
    for (const RunStretch& stretch : planned_runs(rule_of(policy_), carbon_, options_.forecast, question)) {
      waiting_.push({&job, slots_of(stretch.begin), slots_of(stretch.end - stretch.begin)});
    }
  }

  void start_what_is_due() {
    Heap staying;
    while (!waiting_.empty()) {
      const Waiting one = waiting_.pop();
      if (now_ >= one.start || (looks_for_room(*one.job) && idle_ >= one.job->cpus)) {
        start(one);
      } else {
        staying.push(one);
      }
    }
    waiting_ = std::move(staying);
  }

  void start(const Waiting& one) {
    const std::int64_t cpus = one.job->cpus, end = now_ + one.length;
    cpu_integral_ += carbon_.integral(time_of(now_), time_of(end)) * cpus;
    last_start_ = std::max(last_start_, now_);
    std::int64_t& job_end = end_[static_cast<std::size_t>(one.job - trace_.jobs.data())];
    job_end = std::max(job_end, end);
    if (uses_spot(*one.job)) {
      spot_h_ += hours(cpus * one.length);
    } else if (idle_ >= cpus) {
      idle_ -= cpus;
      busy_until_[end] += cpus;
    } else {
      demand_h_ += hours(cpus * one.length);
    }
  }

  // Reserved cpus whose jobs ended before this slot.
  void take_back() {
    while (!busy_until_.empty() && busy_until_.begin()->first < now_) {
      idle_ += busy_until_.begin()->second;
      busy_until_.erase(busy_until_.begin());
    }
  }

  [[nodiscard]] double mean_wait_h() const {
    std::int64_t waited = 0;
    for (std::size_t i = 0; i < end_.size(); ++i) waited += end_[i] - trace_.jobs[i].arrival - trace_.jobs[i].length;
    return end_.empty() ? 0 : hours(waited) / static_cast<double>(end_.size());
  }

  const GaiaTrace& trace_;
  const Signal& carbon_;
  GaiaPolicy policy_;
  std::int64_t reserved_, idle_;
  const GaiaOptions& options_;
  std::int64_t now_ = 0;
  std::size_t next_ = 0;  // of the jobs
  Heap waiting_;
  std::map<std::int64_t, std::int64_t> busy_until_;  // reserved cpus by slot
  std::vector<std::int64_t> end_;                    // by job
  Signal::WideInt cpu_integral_ = 0;                 // of the intensity, over all cpus
  double spot_h_ = 0, demand_h_ = 0;                 // cpu hours
  std::int64_t last_start_ = 0;
};

}  // namespace

bool GaiaJob::is_short() const { return length < short_slots; }

Result<GaiaTrace> read_gaia_jobs(const std::string& path) {
  constexpr std::array<MeasuredColumn, 3> columns{{{"arrival_time"}, {"length"}, {"cpus"}}};
  constexpr double most_s = 1e11, longest_s = 8e6;  // the second: exact products (planned_runs)
  GaiaTrace trace;
  double short_sum = 0, long_sum = 0;
  std::int64_t shorts = 0, longs = 0;
  const auto read = for_each_measured_cells(path, columns, [&](MeasuredCells& cells) {
    const double arrival_s = cells.number(0, 0), length_s = cells.number(1, 0);
    if (arrival_s > most_s) cells.fail(0, "seconds from the first job on");
    if (cells.good() && (length_s < slot_s || length_s > longest_s)) cells.fail(1, "5 to 8,000,000 seconds");
    const double length = length_s / slot_s;
    trace.jobs.push_back({.arrival = static_cast<std::int64_t>(arrival_s / slot_s),
                          .length = static_cast<std::int64_t>(length),
                          .cpus = cells.count(2, 1),
                          .is_spot = length <= short_slots});
    if (length <= short_slots) {
      short_sum += length;
      ++shorts;
    }
    if (length >= short_slots) {
      long_sum += length;
      ++longs;
    }
  });
  if (!read) return Unexpected{read.error()};
  std::stable_sort(trace.jobs.begin(), trace.jobs.end(),
                   [](const GaiaJob& a, const GaiaJob& b) { return a.arrival < b.arrival; });
  if (shorts > 0) trace.short_expected = static_cast<std::int64_t>(short_sum / static_cast<double>(shorts));
  if (longs > 0) trace.long_expected = static_cast<std::int64_t>(long_sum / static_cast<double>(longs));
  return trace;
}

GaiaResult run_gaia(const GaiaTrace& trace, const Signal& carbon, GaiaPolicy policy, std::int64_t reserved_cpus,
                    const GaiaOptions& options) {
  return GaiaRun(trace, carbon, policy, reserved_cpus, options).run();
}

Time gaia_horizon(const GaiaTrace& trace, const GaiaOptions& options) {
  std::int64_t last = 0;
  for (const GaiaJob& job : trace.jobs) last = std::max(last, job.arrival + wait_slots(job, options) + job.length);
  return time_of(last);
}

}  // namespace gpusched
