// SPDX-License-Identifier: Apache-2.0
// pods: what
//   kubectl get pods -A -o json
// prints (kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1): each pod is a job of one task. It was
// submitted at metadata.creationTimestamp, held its resources from the time of the condition PodScheduled (else
// status.startTime, else the first container's start) and ended with its last container. It asks for what its
// containers request together, or limit where they request nothing; an init container counts where it asks for more
// than they. The namespace is the virtual cluster, the owner (a Job, ...) the group, the priority class the QOS,
// activeDeadlineSeconds the estimate, and a node selector for a GPU product the GPU type.
#include <algorithm>

#include "traces/core/json_records.hpp"
#include "traces/core/kubernetes_json.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

// Time::max() where there is none.
Time time_at(const JsonRecord& value, std::string_view path) {
  return parse_calendar(json_word(value, path)).value_or(Time::max());
}

template <class Visit>
void for_each_entry(const JsonRecord& pod, std::string_view path, Visit visit) {
  const JsonRecord* const list = find_json(pod, path);
  if (list == nullptr || !list->is_array()) return;
  for (const JsonRecord& entry : *list) visit(entry);
}

struct PodDemand {
  std::int64_t cpu_milli = 0, memory_mib = 0, gpus = 0, shares = 0, slices = 0;
  std::string profile;  // of the slices; of several, the last
};

void add(PodDemand& sum, const KubernetesResources& part) {
  sum.cpu_milli += std::max<std::int64_t>(part.cpu_milli, 0);
  sum.memory_mib += std::max<std::int64_t>(part.memory_mib, 0);
  sum.gpus += part.gpus;
  sum.shares += part.shares;
  for (const auto& [profile, count] : part.slices) {
    sum.slices += count;
    sum.profile = profile;
  }
}

// What a container requests, of each resource its limit where it requests none.
std::optional<KubernetesResources> resources_of(const JsonRecord& container, std::string& wrong) {
  auto requests = kubernetes_resources(find_json(container, "resources/requests"), wrong);
  const auto limits = kubernetes_resources(find_json(container, "resources/limits"), wrong);
  if (!requests || !limits) return std::nullopt;
  if (requests->cpu_milli < 0) requests->cpu_milli = limits->cpu_milli;
  if (requests->memory_mib < 0) requests->memory_mib = limits->memory_mib;
  if (requests->gpus == 0) requests->gpus = limits->gpus;
  if (requests->shares == 0) requests->shares = limits->shares;
  if (requests->slices.empty()) requests->slices = limits->slices;
  return requests;
}

std::string gpu_type_of(const JsonRecord& pod) {
  for (const char* label : {"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "amd.com/gpu.product-name"}) {
    const JsonRecord* const selector = find_json(pod, "spec/nodeSelector");
    if (selector == nullptr || !selector->is_object()) return {};
    const auto place = selector->find(label);
    if (place != selector->end() && place->is_string()) return place->get<std::string>();
  }
  return {};
}

class PodsReader {
 public:
  explicit PodsReader(ReadContext& context) : context_(context) {}

  void take(const JsonRecord& pod, std::uint64_t line) {
    const std::string kind = json_word(pod, "kind");
    if (!kind.empty() && kind != "Pod") {
      ++others_;
      return;
    }
    ++context_.report.rows;
    const RecordPlace place{.file = context_.file.path(),
                            .line = line,
                            .submit = "creationTimestamp",
                            .start = "startTime",
                            .end = "finishedAt"};
    std::string wrong;
    const auto demand = demand_of(pod, wrong);
    if (!demand) return bad(place, wrong, "expected a quantity like 8, 500m or 64Gi");
    const std::string name = json_word(pod, "metadata/name"), space = json_word(pod, "metadata/namespace");
    const Time created = time_at(pod, "metadata/creationTimestamp");
    if (name.empty()) return bad(place, "metadata/name", "missing");
    if (created == Time::max()) {
      return bad(place, "metadata/creationTimestamp", "expected a time like 2025-03-03T08:00:00Z");
    }
    const std::string owner = owner_of(pod), type = gpu_type_of(pod), id = space.empty() ? name : space + "/" + name;
    const std::string phase = json_word(pod, "status/phase");
    JobRecord job{.id = id, .submit = created, .group = owner, .vc = space, .name = name};
    std::string spec = type;
    if (demand->slices > 0) spec = type.empty() ? demand->profile : type + "_" + demand->profile;
    job.gpu_spec = spec;
    job.shape = {.cpu_milli_per_task = std::min<std::int64_t>(demand->cpu_milli, 1'000'000'000),
                 .memory_mib_per_task = std::min<std::int64_t>(demand->memory_mib, 1'000'000'000)};
    const std::int64_t gpus = demand->slices > 0 ? demand->slices : demand->gpus;
    if (gpus > 1'000'000) return bad(place, "resources", "expected at most 1000000 GPUs");
    job.shape.gpu_milli_per_task = gpus * whole_gpu;
    if (demand->shares > 0 && gpus == 0) {
      return context_.drop("asks for a shared GPU: how much of it that is, the log does not tell", line);
    }
    if (const auto limit = json_count(pod, "spec/activeDeadlineSeconds");
        limit && *limit > 0 && *limit < 1'000'000'000'000) {
      job.estimate = whole_seconds(*limit);
    }
    if (const auto priority = json_count(pod, "spec/priority");
        priority && *priority >= INT32_MIN && *priority <= INT32_MAX) {
      job.priority = static_cast<std::int32_t>(*priority);
    }
    if (!context_.qos.empty()) job.priority = context_.qos.priority(json_word(pod, "spec/priorityClassName"));
    job.status =
        phase == "Succeeded" ? JobStatus::passed : (phase == "Failed" ? JobStatus::failed : JobStatus::unknown);
    if (context_.take_times(job, times_of(pod, created, phase), place)) context_.add(job, line);
  }

  void finish() {
    if (others_ > 0) context_.report.notes.push_back(std::to_string(others_) + " objects are no pods");
  }

 private:
  void bad(const RecordPlace& place, const std::string& field, const char* message) {
    context_.bad_row({.message = message, .file = place.file, .line = place.line, .field = field});
  }

  static std::optional<PodDemand> demand_of(const JsonRecord& pod, std::string& wrong) {
    PodDemand sum, least;
    bool good = true;
    const auto resources = [&](const JsonRecord& container) {
      auto found = resources_of(container, wrong);
      good = good && found.has_value();
      return found.value_or(KubernetesResources{});
    };
    for_each_entry(pod, "spec/containers", [&](const JsonRecord& container) { add(sum, resources(container)); });
    for_each_entry(pod, "spec/initContainers", [&](const JsonRecord& container) {
      PodDemand own;
      add(own, resources(container));
      least.cpu_milli = std::max(least.cpu_milli, own.cpu_milli);
      least.memory_mib = std::max(least.memory_mib, own.memory_mib);
      least.gpus = std::max(least.gpus, own.gpus);
    });
    if (!good) return std::nullopt;
    sum.cpu_milli = std::max(sum.cpu_milli, least.cpu_milli);
    sum.memory_mib = std::max(sum.memory_mib, least.memory_mib);
    sum.gpus = std::max(sum.gpus, least.gpus);
    return sum;
  }

  static std::string owner_of(const JsonRecord& pod) {
    std::string owner;
    for_each_entry(pod, "metadata/ownerReferences", [&](const JsonRecord& reference) {
      if (owner.empty()) owner = json_word(reference, "name");
    });
    return owner;
  }

  static LoggedTimes times_of(const JsonRecord& pod, Time created, const std::string& phase) {
    LoggedTimes times{.submit = created};
    Time first_start = Time::max(), last_end = Time{} - end_of_time;
    bool any_runs = false;
    for (const char* list : {"status/initContainerStatuses", "status/containerStatuses"}) {
      for_each_entry(pod, list, [&](const JsonRecord& container) {
        first_start = std::min(first_start, time_at(container, "state/terminated/startedAt"));
        first_start = std::min(first_start, time_at(container, "state/running/startedAt"));
        if (const Time end = time_at(container, "state/terminated/finishedAt"); end != Time::max()) {
          last_end = std::max(last_end, end);
        }
        any_runs = any_runs || find_json(container, "state/running") != nullptr;
      });
    }
    for_each_entry(pod, "status/conditions", [&](const JsonRecord& condition) {
      const bool scheduled = json_word(condition, "type") == "PodScheduled" && json_word(condition, "status") == "True";
      if (scheduled) times.start = std::min(times.start, time_at(condition, "lastTransitionTime"));
    });
    if (times.start == Time::max()) times.start = time_at(pod, "status/startTime");
    if (times.start == Time::max()) times.start = first_start;
    const bool is_over = phase == "Succeeded" || phase == "Failed";
    if (last_end >= created && !any_runs) times.end = last_end;
    if (times.end == Time::max() && is_over) times.end = time_at(pod, "metadata/deletionTimestamp");
    times.waits = phase == "Pending" && times.start == Time::max();
    times.runs = !is_over && !times.waits && times.start != Time::max();
    // Some clocks of nodes are behind that of the server by a second or two.
    const bool is_behind = times.start < created && created - times.start <= whole_seconds(2);
    if (is_behind) times.start = created;
    return times;
  }

  ReadContext& context_;
  std::uint64_t others_ = 0;
};

}  // namespace

bool is_pods(std::string_view head) { return is_kubernetes(head, "Pod"); }

Result<void> read_pods(ReadContext& context) {
  if (auto bound = context.filter.bind({}); !bound) return bound;
  PodsReader reader(context);
  const auto read = for_each_json_record(context.file, "items",
                                         [&](const JsonRecord& pod, std::uint64_t line) { reader.take(pod, line); });
  reader.finish();
  return read;
}

}  // namespace gpusched
