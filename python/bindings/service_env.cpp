// SPDX-License-Identifier: Apache-2.0
// The environments that set the replicas of services, for Python.
#include "gpusched/learn/service_env.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/common.hpp"
#include "python/bindings/keywords.hpp"
#include "python/bindings/padded_observation.hpp"
#include "python/bindings/trace.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/registry.hpp"
#include "src/world/run_input.hpp"

namespace gpusched::python {
namespace {

// What is asked for by keyword.
struct ServiceEnvRequest {
  ServiceEnvOptions options;
  ConditionOptions conditions = {};
  std::string policy = "fifo";
  std::string oversize = "error";
  std::uint32_t environments = 1, threads = 1;
};

// Each path is the keyword. The pointers live as long as `request`.
FieldTable service_env_fields(ServiceEnvRequest& request) {
  FieldTable fields = by_keyword(condition_fields(request.conditions, "ServiceVectorEnv"));
  for (std::size_t term = 0; term < service_reward_terms; ++term) {
    const std::string path = "weights." + std::string(service_reward_names[term]);
    fields.push_back(option_row(path, &request.options.weights[term], -1e9, 1e9));
  }
  append_fields(fields, {option_row("period_s", &request.options.period, 1e-3, 1e9),
                         option_row("longest_s", LimitTarget{&request.options.longest}, 0, 1e9),
                         option_row("num_envs", &request.environments, 1, 1u << 16),
                         option_row("threads", &request.threads, 1, 256),
                         {"policy", "", "", &request.policy},
                         {"oversize", "", "", &request.oversize, {"error", "drop", "clamp"}}});
  return fields;
}

ServiceEnvRequest service_env_request(const std::string& json) {
  ServiceEnvRequest request;
  if (nlohmann::json::parse(json).contains("weights")) request.options.weights = {};
  set_options(service_env_fields(request), json);
  return request;
}

// What a scene points at.
struct PlacedServices {
  JobTable jobs;
  Cluster cluster;
  RunConditions conditions;
};

Result<ServiceScene> made_scene(const Trace* trace, const std::string& cluster, const ServiceEnvRequest& request,
                                PlacedServices& placed) {
  static const PolicyRegistry registry = PolicyRegistry::standard();
  const InputRequest asked{.trace = trace == nullptr ? "" : trace->report.path,
                           .cluster = cluster,
                           .placement = request.conditions.placement,
                           .oversize = oversize_from_word(request.oversize),
                           .has_services = true};
  auto input = trace == nullptr ? load_input(asked) : fit_input(asked, *trace);
  if (!input) return Unexpected{input.error()};
  placed.jobs = std::move(input->trace.jobs);
  placed.cluster = std::move(input->cluster);
  auto conditions = load_conditions(request.conditions, placed.jobs, placed.cluster, 0);
  if (!conditions) return Unexpected{conditions.error()};
  placed.conditions = *std::move(conditions);
  placed.conditions.services = told_replicas(std::move(placed.conditions.services));
  const RunInputs inputs = placed.conditions.inputs();
  const auto specs = parse_policies(registry, request.policy);
  if (!specs) return Unexpected{specs.error()};
  if (specs->size() != 1 || (*registry.find(specs->front().name))->is_process) {
    return Unexpected{Error{.message = "expected one policy that is no program", .field = "policy"}};
  }
  auto policy = make_policy(
      registry, specs->front(),
      {.jobs = &placed.jobs, .cluster = &placed.cluster, .seed = 0, .runtime = inputs.runtime, .power = inputs.power});
  if (!policy) return Unexpected{policy.error()};
  return ServiceScene{.jobs = &placed.jobs,
                      .cluster = &placed.cluster,
                      .engine = {.placement = input->placement, .preemption = placed.conditions.preemption},
                      .inputs = inputs,
                      .scheduler = *std::move(policy)};
}

using Replicas = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// What environments borrow; kept by each of them and by their states.
struct ServiceData {
  std::deque<PlacedServices> placed;  // their addresses stay
  std::vector<ServiceScene> scenes;
};

struct PyServiceState {
  std::shared_ptr<const ServiceData> data;
  ServiceVectorEnv::State state;
};

class PyServiceEnv {
 public:
  PyServiceEnv(std::shared_ptr<const ServiceData> data, const ServiceEnvRequest& request)
      : data_(std::move(data)),
        request_(request),
        env_(data_->scenes, request.options, request.environments, request.threads) {}

  void reset(std::uint64_t seed) {
    const nb::gil_scoped_release unlocked;
    env_.reset(seed);
    is_open_ = true;
  }
  void step(const Replicas& replicas) {
    if (!is_open_) throw InputError("call reset() first");
    if (replicas.shape(0) != env_.count() || replicas.shape(1) != env_.services()) {
      throw InputError("actions: expected [" + std::to_string(env_.count()) + ", " + std::to_string(env_.services()) +
                       "] numbers of replicas");
    }
    const std::span<const std::int32_t> all(replicas.data(), replicas.size());
    const nb::gil_scoped_release unlocked;
    env_.step(all);
  }

  // [environments, size]
  [[nodiscard]] nb::object observation() const { return rows_of(env_.batch().observation); }
  // [ended, size]
  [[nodiscard]] nb::object final_observation() const { return rows_of(env_.batch().final_observation); }
  [[nodiscard]] nb::object ended() const { return column(std::vector<std::uint32_t>(env_.batch().ended)); }
  [[nodiscard]] nb::object scenes() const { return column(std::vector<std::uint32_t>(env_.batch().scenes)); }
  // [ended, terms]
  [[nodiscard]] nb::object episode_totals() const {
    std::vector<double> all;
    for (const ServiceRewardVector& totals : env_.batch().episode_totals)
      all.insert(all.end(), totals.begin(), totals.end());
    return shaped(std::move(all), {env_.batch().ended.size(), service_reward_terms});
  }
  // [environments, terms]
  [[nodiscard]] nb::object components() const {
    std::vector<double> all;
    for (const ServiceStep& step : env_.batch().results) all.insert(all.end(), step.reward.begin(), step.reward.end());
    return shaped(std::move(all), {env_.count(), service_reward_terms});
  }
  [[nodiscard]] nb::object rewards() const {
    return of_steps<double>([](const ServiceStep& step) { return step.scalar; });
  }
  [[nodiscard]] nb::object terminated() const {
    return of_steps<std::uint8_t>([](const ServiceStep& step) { return step.terminated ? 1 : 0; });
  }
  [[nodiscard]] nb::object truncated() const {
    return of_steps<std::uint8_t>([](const ServiceStep& step) { return step.truncated ? 1 : 0; });
  }
  // [environments, services]
  [[nodiscard]] nb::object needed() const {
    if (!is_open_) throw InputError("call reset() first");
    std::vector<std::int32_t> all;
    for (std::uint32_t e = 0; e < env_.count(); ++e) {
      for (std::uint32_t i = 0; i < env_.services(); ++i) all.push_back(env_.env(e).needed(i));
    }
    return shaped(std::move(all), {env_.count(), env_.services()});
  }
  [[nodiscard]] nb::object now_s() const {
    std::vector<double> all;
    for (std::uint32_t e = 0; e < env_.count(); ++e) all.push_back(to_seconds(env_.env(e).now()));
    return column(std::move(all));
  }

  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const ServiceSpec& service : first().services) all.push_back(service.name);
    return all;
  }
  // The most replicas of each service.
  [[nodiscard]] std::vector<std::uint32_t> most() const {
    std::vector<std::uint32_t> all;
    for (const ServiceSpec& service : first().services) all.push_back(service.most);
    return all;
  }
  [[nodiscard]] bool is_open() const { return is_open_; }

  [[nodiscard]] std::unique_ptr<PyServiceState> save() const {
    if (!is_open_) throw InputError("call reset() first");
    return std::make_unique<PyServiceState>(PyServiceState{data_, env_.save()});
  }
  void restore(const PyServiceState& state) {
    if (state.data != data_ || state.state.envs.size() != env_.count()) {
      throw InputError("state: expected one of this environment or of its copies");
    }
    env_.restore(state.state);
    is_open_ = true;
  }
  [[nodiscard]] std::unique_ptr<PyServiceEnv> fork() const {
    auto other = std::make_unique<PyServiceEnv>(data_, request_);
    if (is_open_) other->restore({data_, env_.save()});
    return other;
  }

 private:
  [[nodiscard]] const ServiceModel& first() const { return *data_->scenes.front().inputs.services; }
  [[nodiscard]] nb::object rows_of(const std::vector<float>& values) const {
    return shaped(std::vector<float>(values), {values.size() / env_.size(), env_.size()});
  }
  template <class T, class Value>
  [[nodiscard]] nb::object of_steps(Value value) const {
    std::vector<T> all;
    for (const ServiceStep& step : env_.batch().results) all.push_back(static_cast<T>(value(step)));
    return column(std::move(all));
  }

  std::shared_ptr<const ServiceData> data_;
  ServiceEnvRequest request_;
  ServiceVectorEnv env_;
  bool is_open_ = false;
};

// One of `values` for each of `count` scenes, or one for all.
template <class T>
const T& of_scene(const std::vector<T>& values, std::size_t scene, std::size_t count, const char* name) {
  if (values.size() != 1 && values.size() != count) {
    throw InputError(std::string(name) + ": expected one for all scenes, or one for each of " + std::to_string(count) +
                     ", not " + std::to_string(values.size()));
  }
  return values[values.size() == 1 ? 0 : scene];
}

// No traces: services alone.
std::unique_ptr<PyServiceEnv> make_service_env(const std::vector<PyTrace>& traces,
                                               const std::vector<std::string>& clusters,
                                               const std::vector<std::string>& services, const std::string& json) {
  ServiceEnvRequest request = service_env_request(json);
  const std::size_t count = std::max({traces.size(), clusters.size(), services.size()});
  auto data = std::make_shared<ServiceData>();
  std::vector<ServiceScene>& scenes = data->scenes;
  std::optional<Error> wrong;
  std::atomic<bool> stop = false;
  for (std::size_t i = 0; i < count && !wrong; ++i) {
    const Trace* const trace = traces.empty() ? nullptr : of_scene(traces, i, count, "trace").trace.get();
    const std::string& cluster = of_scene(clusters, i, count, "cluster");
    request.conditions.services = of_scene(services, i, count, "services");
    run_unlocked(stop, [&] {
      auto scene = made_scene(trace, cluster, request, data->placed.emplace_back());
      if (!scene) {
        wrong = scene.error();
      } else {
        scenes.push_back(*std::move(scene));
      }
    });
  }
  if (wrong) throw keyword_error(*wrong, condition_table(request.conditions));
  const auto alike = [&scenes](const ServiceScene& scene) {
    const auto& a = scene.inputs.services->services;
    const auto& b = scenes.front().inputs.services->services;
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& one, const auto& other) {
             return one.name == other.name && one.most == other.most;
           });
  };
  if (!std::all_of(scenes.begin(), scenes.end(), alike)) {
    throw InputError("services: expected the same services, with as many replicas at most, in every scene");
  }
  return std::make_unique<PyServiceEnv>(std::move(data), request);
}

nb::list service_env_keywords() {
  ServiceEnvRequest request;
  return option_keywords(service_env_fields(request));
}

}  // namespace

void bind_service_env(nb::module_& module) {
  nb::class_<PyServiceState>(module, "ServiceEnvState", "Where the environments of a ServiceVectorEnv stand.");
  nb::class_<PyServiceEnv>(module, "CoreServiceEnv")
      .def("reset", &PyServiceEnv::reset, nb::arg("seed"))
      .def("step", &PyServiceEnv::step, nb::arg("replicas").noconvert())
      .def("observation", &PyServiceEnv::observation)
      .def("final_observation", &PyServiceEnv::final_observation)
      .def("ended", &PyServiceEnv::ended)
      .def("scenes", &PyServiceEnv::scenes)
      .def("episode_totals", &PyServiceEnv::episode_totals)
      .def("components", &PyServiceEnv::components)
      .def("rewards", &PyServiceEnv::rewards)
      .def("terminated", &PyServiceEnv::terminated)
      .def("truncated", &PyServiceEnv::truncated)
      .def("needed", &PyServiceEnv::needed)
      .def("now_s", &PyServiceEnv::now_s)
      .def("save", &PyServiceEnv::save)
      .def("restore", &PyServiceEnv::restore, nb::arg("state"))
      .def("fork", &PyServiceEnv::fork)
      .def_prop_ro("names", &PyServiceEnv::names)
      .def_prop_ro("most", &PyServiceEnv::most)
      .def_prop_ro("is_open", &PyServiceEnv::is_open);
  module.def("make_service_env", &make_service_env, nb::arg("traces"), nb::arg("clusters"), nb::arg("services"),
             nb::arg("options"));
  module.def("service_env_keywords", &service_env_keywords);
  module.attr("service_reward_terms") = words_of_names(service_reward_names);
}

}  // namespace gpusched::python
