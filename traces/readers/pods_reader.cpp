// SPDX-License-Identifier: Apache-2.0
// pods: what
//   kubectl get pods -A -o json
// prints (kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1): each pod is a job of one task. It was
// submitted at metadata.creationTimestamp, held its resources from the time of the condition PodScheduled (else
// status.startTime, else the first container's start) and ended with its last container. It asks for what its
// containers request together, or limit where they request nothing, with the pod's overhead; an init container counts
// where it asks for more than they, and one that restarts always is one of them. A pod that two exports tell of counts
// once, and one that has an earlier one's name is ID#2. The namespace is the virtual cluster, the owner (a Job, ...)
// the group, the priority class the QOS, activeDeadlineSeconds the estimate, and a node selector, or required affinity,
// for GPU products the GPU type.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
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
  std::string profile;              // of the slices; of several, the last
  std::vector<std::string> unread;  // devices
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
  sum.unread.insert(sum.unread.end(), part.unread.begin(), part.unread.end());
}

// As much as the other needs of what init containers count for.
void raise_to(PodDemand& demand, const PodDemand& least) {
  demand.cpu_milli = std::max(demand.cpu_milli, least.cpu_milli);
  demand.memory_mib = std::max(demand.memory_mib, least.memory_mib);
  demand.gpus = std::max(demand.gpus, least.gpus);
  demand.unread.insert(demand.unread.end(), least.unread.begin(), least.unread.end());
}

// "A_1g.5gb|B_1g.5gb" of "A|B".
std::string with_profile(const std::string& types, const std::string& profile) {
  if (types.empty()) return profile;
  std::string spec;
  for (const char c : types) spec += c == '|' ? "_" + profile + "|" : std::string(1, c);
  return spec + "_" + profile;
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
  if (requests->unread.empty()) requests->unread = limits->unread;
  return requests;
}

// The products that a term of a required affinity allows, "A|B"; empty where it allows any.
std::string products_of(const JsonRecord& term) {
  std::string products;
  for_each_entry(term, "matchExpressions", [&products](const JsonRecord& expression) {
    const std::string key = json_word(expression, "key");
    const bool is_product =
        std::find(std::begin(kubernetes_products), std::end(kubernetes_products), key) != std::end(kubernetes_products);
    if (!is_product || json_word(expression, "operator") != "In") return;
    for_each_entry(expression, "values", [&products](const JsonRecord& value) {
      if (value.is_string()) products += (products.empty() ? "" : "|") + kubernetes_product(value.get<std::string>());
    });
  });
  return products;
}

std::string gpu_type_of(const JsonRecord& pod) {
  const JsonRecord* const selector = find_json(pod, "spec/nodeSelector");
  for (const char* label : kubernetes_products) {
    if (selector == nullptr || !selector->is_object()) break;
    const auto place = selector->find(label);
    if (place != selector->end() && place->is_string()) return kubernetes_product(place->get<std::string>());
  }
  std::string types;
  bool any = false;
  for_each_entry(pod, "spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms",
                 [&](const JsonRecord& term) {
                   const std::string products = products_of(term);
                   any = any || products.empty();
                   types += (types.empty() ? "" : "|") + products;
                 });
  return any ? std::string() : types;
}

// A pod as its record will be.
struct Pod {
  std::string id, owner, space, name, spec, uid;
  JobRecord job = {};  // but for names
  LoggedTimes times = {};
  JobFate fate = JobFate::ran;
  bool is_endless = false;  // over, and the log does not tell since when
  std::uint64_t line = 0;
  std::vector<std::string> unread = {};

  // How much the export knew of how it went.
  [[nodiscard]] int knowledge() const {
    if (is_endless || fate == JobFate::ran) return 3;
    return fate == JobFate::still_runs ? 2 : (fate == JobFate::still_waits ? 1 : 0);
  }
  [[nodiscard]] bool is_same(const Pod& other) const {
    return uid.empty() || other.uid.empty() ? times.submit == other.times.submit : uid == other.uid;
  }
};

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
    const RecordPlace place = place_of(line);
    std::string wrong;
    const auto demand = demand_of(pod, wrong);
    if (!demand) return bad(place, wrong, "expected a quantity like 8, 500m or 64Gi");
    const std::string name = json_word(pod, "metadata/name"), space = json_word(pod, "metadata/namespace");
    const Time created = time_at(pod, "metadata/creationTimestamp");
    if (name.empty()) return bad(place, "metadata/name", "missing");
    if (created == Time::max()) {
      return bad(place, "metadata/creationTimestamp", "expected a time like 2025-03-03T08:00:00Z");
    }
    Pod taken{.id = space.empty() ? name : space + "/" + name,
              .owner = owner_of(pod),
              .space = space,
              .name = name,
              .spec = gpu_type_of(pod),
              .uid = json_word(pod, "metadata/uid"),
              .job = job_of(pod, *demand),
              .times = {},
              .line = line,
              .unread = demand->unread};
    if (demand->slices > 0) taken.spec = with_profile(taken.spec, demand->profile);
    if (demand->gpus > most_gpus || demand->slices > most_gpus) {
      return bad(place, "resources", "expected at most 1000000 GPUs");
    }
    if (demand->shares > 0 && taken.job.shape.gpu_milli_per_task == 0) {
      return context_.drop("asks for a shared GPU: how much of it that is, the log does not tell", line);
    }
    const std::string phase = json_word(pod, "status/phase");
    const bool is_over = phase == "Succeeded" || phase == "Failed";
    taken.job.status =
        phase == "Succeeded" ? JobStatus::passed : (phase == "Failed" ? JobStatus::failed : JobStatus::unknown);
    taken.times = times_of(pod, created, phase);
    taken.is_endless = is_over && taken.times.end == Time::max();
    const JudgedTimes judged = judge_times(taken.times);
    if (judged.fate == JobFate::bad) return context_.bad_times(taken.times, judged, place);
    taken.fate = judged.fate;
    if (const JsonRecord* claims = find_json(pod, "spec/resourceClaims"); claims != nullptr && !claims->empty()) {
      taken.unread.emplace_back("resourceClaims");
    }
    keep(std::move(taken));
  }

  void finish() {
    std::vector<std::string>& notes = context_.report.notes;
    if (others_ > 0) notes.push_back(std::to_string(others_) + " objects are no pods");
    number_names_used_again();
    std::map<std::string, std::uint64_t> unread;
    for (const Pod& pod : pods_) {
      for (const std::string& device : distinct(pod.unread)) ++unread[device];
      add(pod);
    }
    for (const auto& [device, pods] : unread) {
      notes.push_back(counted(pods, "pod asks", "pods ask") + " for " + excerpt(device, 60) + ", which is not read");
    }
  }

 private:
  static constexpr std::int64_t most_gpus = 1'000'000;

  [[nodiscard]] RecordPlace place_of(std::uint64_t line) const {
    return {.file = context_.file.path(),
            .line = line,
            .submit = "creationTimestamp",
            .start = "startTime",
            .end = "finishedAt"};
  }

  // Of two exports, the one that knows more.
  void keep(Pod pod) {
    std::vector<std::size_t>& twins = by_id_[pod.id];
    for (const std::size_t at : twins) {
      Pod& known = pods_[at];
      if (!known.is_same(pod)) continue;
      context_.drop(same_run_again, pod.line);
      if (pod.knowledge() > known.knowledge()) known = std::move(pod);
      return;
    }
    twins.push_back(pods_.size());
    pods_.push_back(std::move(pod));
  }

  void number_names_used_again() {
    std::uint64_t used_again = 0;
    for (auto& [id, twins] : by_id_) {
      std::erase_if(twins, [this](std::size_t at) {
        const JobFate fate = pods_[at].fate;
        if (pods_[at].is_endless) return true;
        return fate == JobFate::never_ran || (fate != JobFate::ran && !context_.options.backlog);
      });
      if (twins.size() < 2) continue;
      ++used_again;
      std::stable_sort(twins.begin(), twins.end(), [this](std::size_t a, std::size_t b) {
        return std::tie(pods_[a].times.submit, pods_[a].uid) < std::tie(pods_[b].times.submit, pods_[b].uid);
      });
      for (std::size_t k = 1; k < twins.size(); ++k) pods_[twins[k]].id += "#" + std::to_string(k + 1);
    }
    context_.note_ids_used_again(used_again);
  }

  void add(const Pod& pod) {
    if (pod.is_endless) return context_.drop("over, and the log does not tell since when", pod.line);
    JobRecord job = pod.job;
    job.id = pod.id;
    job.group = pod.owner;
    job.vc = pod.space;
    job.name = pod.name;
    job.gpu_spec = pod.spec;
    if (context_.take_times(job, pod.times, place_of(pod.line))) context_.add(job, pod.line);
  }

  // All but its names, its status and what its times say.
  [[nodiscard]] JobRecord job_of(const JsonRecord& pod, const PodDemand& demand) const {
    JobRecord job{.submit = time_at(pod, "metadata/creationTimestamp")};
    job.shape = {.gpu_milli_per_task = std::min(most_gpus, demand.slices > 0 ? demand.slices : demand.gpus) * whole_gpu,
                 .cpu_milli_per_task = std::min<std::int64_t>(demand.cpu_milli, 1'000'000'000),
                 .memory_mib_per_task = std::min<std::int64_t>(demand.memory_mib, 1'000'000'000)};
    if (const auto limit = json_count(pod, "spec/activeDeadlineSeconds");
        limit && *limit > 0 && *limit < 1'000'000'000'000) {
      job.estimate = whole_seconds(*limit);
    }
    if (const auto priority = json_count(pod, "spec/priority");
        priority && *priority >= INT32_MIN && *priority <= INT32_MAX) {
      job.priority = static_cast<std::int32_t>(*priority);
    }
    if (!context_.qos.empty()) job.priority = context_.qos.priority(json_word(pod, "spec/priorityClassName"));
    return job;
  }

  void bad(const RecordPlace& place, const std::string& field, const char* message) {
    context_.bad_row({.message = message, .file = place.file, .line = place.line, .field = field});
  }

  // "Resource sharing within containers" and "Pod overhead" of Kubernetes' documentation: init containers run one after
  // the other, beside those before them that restart always.
  static std::optional<PodDemand> demand_of(const JsonRecord& pod, std::string& wrong) {
    PodDemand sum, least, beside;
    bool good = true;
    const auto resources = [&](const JsonRecord& container) {
      auto found = resources_of(container, wrong);
      good = good && found.has_value();
      return found.value_or(KubernetesResources{});
    };
    for_each_entry(pod, "spec/initContainers", [&](const JsonRecord& container) {
      PodDemand with_own = beside;
      gpusched::add(with_own, resources(container));
      raise_to(least, with_own);
      if (json_word(container, "restartPolicy") == "Always") beside = with_own;
    });
    sum = beside;
    for_each_entry(pod, "spec/containers",
                   [&](const JsonRecord& container) { gpusched::add(sum, resources(container)); });
    const auto overhead = kubernetes_resources(find_json(pod, "spec/overhead"), wrong);
    if (!good || !overhead) return std::nullopt;
    raise_to(sum, least);
    gpusched::add(sum, *overhead);
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
  std::vector<Pod> pods_;                                  // in the order of the log
  std::map<std::string, std::vector<std::size_t>> by_id_;  // their places
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
