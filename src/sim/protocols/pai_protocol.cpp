// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/pai_protocol.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "src/base/python_random.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t percent = 100;

// Python's round(): halves to even.
std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

bool id_before(const std::string& a, const std::string& b) {
  const auto x = parse_integer(a), y = parse_integer(b);
  return x && y ? *x < *y : a < b;
}

void rank_by_id(std::vector<PaiJob>& jobs, const std::vector<std::string>& ids) {
  std::vector<std::size_t> order(jobs.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return id_before(ids[a], ids[b]); });
  for (std::size_t i = 0; i < order.size(); ++i) jobs[order[i]].rank = static_cast<std::int64_t>(i);
}

double key_of(const PaiJob& job, PaiOrder order) {
  switch (order) {
    case PaiOrder::sjf: return static_cast<double>(job.duration_s);
    case PaiOrder::sju: return job.user_dur_s;
    case PaiOrder::sjg: return job.group_dur_s;
    case PaiOrder::sjgg: return job.group_gpu_dur_s;
    case PaiOrder::fifo: break;
  }
  return static_cast<double>(job.submit_s);
}

class PaiRun {
 public:
  PaiRun(const std::vector<PaiJob>& sample, PaiOrder order, const PaiOptions& options)
      : order_(order), idle_gpu_(options.gpus * percent), idle_cpu_(options.cpus() * percent) {
    for (const PaiJob& job : sample) arrivals_.push_back(&job);
    std::stable_sort(arrivals_.begin(), arrivals_.end(),
                     [](const PaiJob* a, const PaiJob* b) { return a->submit_s < b->submit_s; });
  }

  PaiResult run() {
    std::int64_t now = 0;
    while (next_ < arrivals_.size() || !running_.empty()) {
      const bool arrives =
          next_ < arrivals_.size() && (running_.empty() || arrivals_[next_]->submit_s <= running_.top().first);
      now = std::max(now, arrives ? arrivals_[next_]->submit_s : running_.top().first);
      while (!running_.empty() && running_.top().first <= now) end_first();
      while (next_ < arrivals_.size() && arrivals_[next_]->submit_s <= now) admit(*arrivals_[next_++]);
      pass(now);
    }
    const auto instances = static_cast<double>(std::max<std::int64_t>(instances_, 1));
    return {static_cast<double>(jct_s_) / instances, static_cast<double>(wait_s_) / instances, now + 1};
  }

 private:
  using Waiting = std::tuple<double, std::int64_t, const PaiJob*>;  // key, rank
  using Running = std::pair<std::int64_t, const PaiJob*>;           // end
  struct EndsLater {
    bool operator()(const Running& a, const Running& b) const {
      return a.first != b.first ? a.first > b.first : a.second->rank > b.second->rank;
    }
  };
  struct Before {
    bool operator()(const Waiting& a, const Waiting& b) const {
      return std::get<0>(a) != std::get<0>(b) ? std::get<0>(a) < std::get<0>(b) : std::get<1>(a) < std::get<1>(b);
    }
  };

  void admit(const PaiJob& job) { waiting_.insert({key_of(job, order_), job.rank, &job}); }

  void end_first() {
    const PaiJob& job = *running_.top().second;
    running_.pop();
    take(job, -1);
  }

  void take(const PaiJob& job, std::int64_t sign) {
    idle_gpu_ -= sign * job.instances * job.gpu_percent;
    idle_cpu_ -= sign * job.instances * job.cpu_percent;
  }

  void pass(std::int64_t now) {
    for (auto at = waiting_.begin(); at != waiting_.end() && (idle_gpu_ > 0 || idle_cpu_ > 0);) {
      const PaiJob& job = *std::get<2>(*at);
      if (job.instances * job.gpu_percent > idle_gpu_ || job.instances * job.cpu_percent > idle_cpu_) {
        ++at;
        continue;
      }
      take(job, +1);
      running_.push({now + job.duration_s, &job});
      instances_ += job.instances;
      wait_s_ += job.instances * (now - job.submit_s);
      jct_s_ += job.instances * (now - job.submit_s + job.duration_s);
      at = waiting_.erase(at);
    }
  }

  PaiOrder order_;
  std::vector<const PaiJob*> arrivals_;
  std::size_t next_ = 0;
  std::set<Waiting, Before> waiting_;
  std::priority_queue<Running, std::vector<Running>, EndsLater> running_;
  std::int64_t idle_gpu_, idle_cpu_;
  std::int64_t instances_ = 0, wait_s_ = 0, jct_s_ = 0;
};

}  // namespace

std::int64_t PaiOptions::cpus() const { return rounded(23.22 * static_cast<double>(gpus)); }

Result<std::vector<PaiJob>> read_pai_jobs(const std::string& path, const PaiOptions& options) {
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  const ReadOptions plain;
  JobTableBuilder unused;
  TraceReport report;
  ReadContext context(*file, plain, unused, report);
  RowReader rows(context);
  if (auto header = rows.read_header(); !header) return Unexpected{header.error()};
  std::vector<Column> needed;
  for (const char* name : {"job_id", "duration", "user_dur", "group_dur", "group_gpu_dur"}) {
    needed.push_back(rows.require({name}));
  }
  const Column submit = rows.find({"submit_time"}), instances = rows.find({"num_inst"}), gpus = rows.find({"num_gpu"}),
               cpus = rows.find({"num_cpu"});
  std::vector<PaiJob> jobs;
  std::vector<std::string> ids;
  const std::size_t most = 10 * options.jobs + 1;
  const auto done = for_each_row(rows, context, [&](RowReader& row) {
    if (jobs.size() >= most) return;
    const auto number = [&](Column column, double blank) {
      return column && !row.is_blank(column) ? row.number(column) : blank;
    };
    PaiJob job{.submit_s = rounded(number(submit, 1)),
               .duration_s = std::max<std::int64_t>(static_cast<std::int64_t>(row.number(needed[1])), 1),
               .instances = rounded(number(instances, 1)),
               .gpu_percent = rounded(percent * number(gpus, 0)),
               .cpu_percent = rounded(percent * number(cpus, 0)),
               .user_dur_s = row.number(needed[2]),
               .group_dur_s = row.number(needed[3]),
               .group_gpu_dur_s = row.number(needed[4])};
    if (instances && job.instances < 1) row.expect(instances, "at least 1 instance");
    if (row.bad()) return;
    jobs.push_back(job);
    ids.emplace_back(row.text(needed[0]));
  });
  if (!done) return Unexpected{done.error()};
  if (const auto good = context.outcome(); !good) return Unexpected{good.error()};
  rank_by_id(jobs, ids);
  return jobs;
}

std::vector<PaiJob> draw_pai_jobs(std::vector<PaiJob> jobs, const PaiOptions& options) {
  if (options.jobs <= jobs.size()) {
    PythonRandom(options.seed).shuffle(jobs);
    jobs.resize(options.jobs);
  }
  if (options.arrivals > 0) {
    std::sort(jobs.begin(), jobs.end(), [](const PaiJob& a, const PaiJob& b) {
      return std::pair(a.submit_s, a.rank) < std::pair(b.submit_s, b.rank);
    });
    for (std::size_t k = 0; k < jobs.size(); ++k) {
      jobs[k].submit_s = static_cast<std::int64_t>(k) / options.arrivals * options.interval_s;
    }
  }
  for (PaiJob& job : jobs) {
    job.gpu_percent = std::min(job.gpu_percent, options.gpus * percent);
    job.cpu_percent = std::min(job.cpu_percent, options.cpus() * percent);
  }
  return jobs;
}

Result<PaiResult> run_pai(const std::vector<PaiJob>& sample, PaiOrder order, const PaiOptions& options) {
  for (const PaiJob& job : sample) {
    if (job.instances * job.gpu_percent <= options.gpus * percent &&
        job.instances * job.cpu_percent <= options.cpus() * percent) {
      continue;
    }
    return unexpected("a job of " + std::to_string(job.instances) + " instances of " + std::to_string(job.gpu_percent) +
                      "/100 GPUs and " + std::to_string(job.cpu_percent) + "/100 cores can never run on " +
                      std::to_string(options.gpus) + " GPUs");
  }
  return PaiRun(sample, order, options).run();
}

}  // namespace gpusched
