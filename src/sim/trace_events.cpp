// SPDX-License-Identifier: Apache-2.0
#include "src/sim/trace_events.hpp"

#include <bit>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <utility>
#include <vector>

#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/visible_text.hpp"

namespace gpusched {
namespace {

constexpr std::uint32_t cluster_process = 1;  // Perfetto takes process 0 for the idle processor
constexpr std::uint32_t first_node_process = 2;
constexpr int counted_device = -1;  // of GPUs that are not told apart

std::string json_name(std::string_view name) { return Json(visible_line(name)).dump(); }

const char* name_of(RunEnd how) {
  switch (how) {
    case RunEnd::finished: return "finished";
    case RunEnd::retried: return "retried";
    case RunEnd::preempted: return "preempted";
    case RunEnd::killed: return "killed";
    case RunEnd::resized: return "resized";
    case RunEnd::moved: break;
  }
  return "moved";
}

// A list of JSON values, handed on when enough has come together.
class EventList {
 public:
  explicit EventList(const PieceSink& sink) : sink_(&sink) {}

  void begin(const std::string& text) { text_ = text; }
  void add(const std::string& event) {
    text_ += first_ ? "\n" : ",\n";
    text_ += event;
    first_ = false;
    if (text_.size() >= piece_bytes) flush();
  }
  void end(std::string_view text) {
    text_ += text;
    flush();
  }

 private:
  static constexpr std::size_t piece_bytes = 64 * 1024;

  void flush() {
    (*sink_)(text_);
    text_.clear();
  }

  const PieceSink* sink_;
  std::string text_;
  bool first_ = true;
};

// Threads of one GPU, of which each holds one run at a time.
class Slots {
 public:
  // The lowest that is free at `start`, busy until `end` from then on. Precondition: starts do not fall.
  std::uint32_t take(Time start, Time end) {
    while (!busy_.empty() && busy_.top().first <= start) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    if (free_.empty()) free_.push(count_++);
    const std::uint32_t slot = free_.top();
    free_.pop();
    busy_.emplace(end, slot);
    return slot;
  }

 private:
  template <class T>
  using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;

  LeastFirst<std::pair<Time, std::uint32_t>> busy_;
  LeastFirst<std::uint32_t> free_;
  std::uint32_t count_ = 0;
};

class TraceEventWriter {
 public:
  TraceEventWriter(const JobTable& jobs, const Cluster& cluster, const PieceSink& sink)
      : jobs_(&jobs), cluster_(&cluster), list_(sink), has_process_(cluster.nodes.size()) {}

  void write(const GpuLog& log, const TraceEventsSource& source) {
    list_.begin(R"({"displayTimeUnit":"ms","otherData":{"policy":)" + json_name(source.policy) + R"(,"trace":)" +
                json_name(source.trace) + R"(,"cluster":)" + json_name(cluster_->name) +
                R"(,"time":"microseconds of the simulation"},"traceEvents":[)");
    name_process(cluster_process, "cluster", 0);
    ClusterLevel before;
    bool first = true;
    for (const ClusterLevel& level : log.levels()) {
      add_counters(level, before, first);
      before = level;
      first = false;
    }
    add_runs(log.runs());
    list_.end("\n]}\n");
  }

 private:
  static std::string head(char phase, std::uint32_t process) {
    return std::string(R"({"ph":")") + phase + R"(","pid":)" + std::to_string(process);
  }

  void add_metadata(std::uint32_t process, std::uint32_t thread, const char* name, const std::string& arguments) {
    list_.add(head('M', process) + R"(,"tid":)" + std::to_string(thread) + R"(,"name":")" + name + R"(","args":{)" +
              arguments + "}}");
  }

  void name_process(std::uint32_t process, std::string_view name, std::uint32_t place) {
    add_metadata(process, 0, "process_name", "\"name\":" + json_name(name));
    add_metadata(process, 0, "process_sort_index", "\"sort_index\":" + std::to_string(place));
  }

  void add_counter(const char* name, const char* unit, Time at, const std::string& value) {
    list_.add(head('C', cluster_process) + R"(,"ts":)" + std::to_string(at.us) + R"(,"name":")" + name +
              R"(","args":{")" + unit + "\":" + value + "}}");
  }

  // Those that changed, and at the first instant all.
  void add_counters(const ClusterLevel& level, const ClusterLevel& before, bool all) {
    const auto gpus = [](MilliGpu milli) {
      std::string text;
      append_decimal(text, milli, whole_gpu);
      return text;
    };
    const Time at = level.since;
    if (all || level.used_milli != before.used_milli) add_counter("GPUs in use", "GPUs", at, gpus(level.used_milli));
    if (all || level.waiting_milli != before.waiting_milli) {
      add_counter("waiting GPUs", "GPUs", at, gpus(level.waiting_milli));
    }
    if (all || level.waiting_jobs != before.waiting_jobs) {
      add_counter("waiting jobs", "jobs", at, std::to_string(level.waiting_jobs));
    }
    if (all || level.running_jobs != before.running_jobs) {
      add_counter("running jobs", "jobs", at, std::to_string(level.running_jobs));
    }
  }

  void name_node(NodeId id) {
    if (has_process_[index(id)]) return;
    has_process_[index(id)] = true;
    const Node& node = cluster_->nodes[index(id)];
    const std::uint32_t process = first_node_process + index(id);
    name_process(process, node.name.empty() ? "node " + std::to_string(index(id)) : node.name, index(id) + 1);
    if (node.gpu_type < cluster_->gpu_types.size()) {
      add_metadata(process, 0, "process_labels", "\"labels\":" + json_name(cluster_->gpu_types[node.gpu_type]));
    }
  }

  // The thread of a slot, named when it is used first. Numbers are unique in the file: viewers mix up threads of two
  // processes that have the same one.
  std::uint32_t thread_of(NodeId node, int device, std::uint32_t slot) {
    const auto [entry, is_new] = threads_.try_emplace({{index(node), device}, slot}, 0);
    if (!is_new) return entry->second;
    name_node(node);
    entry->second = ++thread_count_;
    std::string name = "slot " + std::to_string(slot + 1);
    if (device != counted_device) {
      name = "GPU " + std::to_string(device) + (slot == 0 ? "" : ", share " + std::to_string(slot + 1));
    }
    const std::uint32_t process = first_node_process + index(node);
    constexpr std::uint64_t most_shares = 1000;  // of a GPU: a share is a thousandth at least
    const std::uint64_t place =
        device == counted_device ? slot : static_cast<std::uint64_t>(device) * most_shares + slot;
    add_metadata(process, entry->second, "thread_name", "\"name\":\"" + name + "\"");
    add_metadata(process, entry->second, "thread_sort_index", "\"sort_index\":" + std::to_string(place));
    return entry->second;
  }

  void add_event(const GpuRun& run, int device, MilliGpu gpu_milli) {
    const std::uint32_t slot = slots_[{index(run.node), device}].take(run.start, run.end);
    const std::uint32_t thread = thread_of(run.node, device, slot);
    std::string event = head('X', first_node_process + index(run.node)) + R"(,"tid":)" + std::to_string(thread) +
                        R"(,"ts":)" + std::to_string(run.start.us) + R"(,"dur":)" +
                        std::to_string((run.end - run.start).us) + R"(,"cat":")" + name_of(run.how) + R"(","name":)" +
                        json_name(jobs_->external_id(run.job)) + R"(,"args":{"user":)" +
                        json_name(jobs_->users()[jobs_->user(run.job)]) + R"(,"vc":)" +
                        json_name(jobs_->vcs()[jobs_->vc(run.job)]) + R"(,"gpus":)";
    append_decimal(event, gpu_milli, whole_gpu);
    append_decimal(event += R"(,"job_gpus":)", job_milli_, whole_gpu);
    event += R"(,"run":)" + std::to_string(run.run) + R"(,"attempt":)" + std::to_string(run.attempt) + R"(,"end":")" +
             name_of(run.how) + R"(","status":")";
    event += to_string(jobs_->status(run.job));
    list_.add(event + "\"}}");
  }

  void add_run(const GpuRun& run) {
    if (run.gpu_milli == 0) return;  // of a task without GPUs
    if (run.devices == 0) return add_event(run, counted_device, run.gpu_milli);
    MilliGpu left = run.gpu_milli;
    auto count = static_cast<MilliGpu>(std::popcount(run.devices));
    for (std::uint64_t bits = run.devices; bits != 0; bits &= bits - 1, --count) {
      const MilliGpu part = left / count;
      add_event(run, std::countr_zero(bits), part);
      left -= part;
    }
  }

  // Those of one run of a job stand together.
  void add_runs(std::span<const GpuRun> runs) {
    for (std::size_t at = 0, next = 0; at < runs.size(); at = next) {
      job_milli_ = 0;
      for (; next < runs.size() && runs[next].job == runs[at].job && runs[next].run == runs[at].run; ++next) {
        job_milli_ += runs[next].gpu_milli;
      }
      for (const GpuRun& run : runs.subspan(at, next - at)) add_run(run);
    }
  }

  using Gpu = std::pair<std::uint32_t, int>;  // node, device
  const JobTable* jobs_;
  const Cluster* cluster_;
  EventList list_;
  std::vector<bool> has_process_;
  std::map<Gpu, Slots> slots_;
  std::map<std::pair<Gpu, std::uint32_t>, std::uint32_t> threads_;
  std::uint32_t thread_count_ = 0;
  MilliGpu job_milli_ = 0;  // what the job of the present run holds in all
};

}  // namespace

void write_trace_events(const GpuLog& log, const JobTable& jobs, const Cluster& cluster,
                        const TraceEventsSource& source, const PieceSink& sink) {
  TraceEventWriter(jobs, cluster, sink).write(log, source);
}

}  // namespace gpusched
