// SPDX-License-Identifier: Apache-2.0
// The CUDA backend. The device is opened in a child process that is asked over a socket, for three reasons. A CUDA
// context does not survive a fork, and cold starts and co-located jobs need processes forked from one that never opened
// CUDA. A lost device may end its process, but not this one. And a device that hangs becomes a time-out.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "cuda/device.hpp"
#include "cuda/kernels.hpp"
#include "src/calibration/measure/backends.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "src/calibration/measure/server_process.hpp"

namespace gpusched {
namespace {

using Json = nlohmann::json;
using cuda::Device;
using cuda::Status;

constexpr double answer_limit_s = 300;  // far above the longest request; then the device counts as lost

// ---- requests and answers as text ----

Json json_of(std::span<const KernelCall> step) {
  Json calls = Json::array();
  for (const KernelCall& call : step) calls.push_back({to_string(call.kernel), call.m, call.n, call.k});
  return calls;
}

std::vector<KernelCall> step_of(const Json& calls) {
  std::vector<KernelCall> step;
  for (const Json& call : calls) {
    step.push_back({*parse_kernel(call[0].get<std::string>()), call[1], call[2], call[3]});
  }
  return step;
}

Json json_of(const Error& error) { return {{"error", error.to_string()}}; }

template <class T>
Json json_of(const Result<T>& numbers) {
  if (!numbers) return json_of(numbers.error());
  return {{"numbers", *numbers}};
}

Json done(const Result<void>& result) { return result ? Json::object() : json_of(result.error()); }

Json describe_device(const Device& device) {
  const DeviceFacts facts = device.facts();
  Json resources = Json::object();
  for (const auto& [name, value] : facts.resources) resources[name] = value.value;
  Json kernels = Json::array();
  for (std::size_t i = 0; i < kernel_count; ++i) {
    if (device.supports(static_cast<Kernel>(i))) kernels.push_back(to_string(static_cast<Kernel>(i)));
  }
  return {{"model", facts.model},
          {"environment", facts.environment},
          {"resources", resources},
          {"limits", {facts.limits.memory_bytes, facts.limits.flops, facts.limits.cache_bytes, facts.limits.gemm_most}},
          {"is_hopper", facts.is_hopper},
          {"kernels", kernels}};
}

DeviceFacts facts_of(const Json& json) {
  DeviceFacts facts{.kind = "gpu",
                    .vendor = "NVIDIA",
                    .model = json["model"],
                    .environment = json["environment"].get<std::map<std::string, std::string>>(),
                    .limits = {.memory_bytes = json["limits"][0],
                               .flops = json["limits"][1],
                               .cache_bytes = json["limits"][2],
                               .gemm_most = json["limits"][3]},
                    .co_location_mode = "streams",
                    .is_hopper = json["is_hopper"],
                    .has_step_floor = true,
                    .tile_sides = {{Kernel::gemm_tiled, cuda::gemm_tile_side}}};
  for (const auto& [name, value] : json["resources"].items()) {
    facts.resources[name] = quantity(name, value, Source::measured);
  }
  return facts;
}

// ---- the child that has the device ----

Json answer(Device& device, const Json& request) {
  const std::string what = request["do"];
  if (what == "facts") return describe_device(device);
  if (what == "free bytes") return {{"numbers", {static_cast<double>(device.free_bytes())}}};
  if (what == "run") return done(device.run_held(request["number"], request["times"]));
  if (what == "release") {
    device.release(request["number"]);
    return Json::object();
  }
  const std::vector<KernelCall> step = step_of(request["step"]);
  if (what == "hold") {
    const auto number = device.hold(step);
    return number ? Json{{"number", *number}} : json_of(number.error());
  }
  if (what == "time") return json_of(device.time_us(step, request["samples"]));
  if (what == "check") {
    const auto error = device.check(step.front());
    // JSON has no infinity: the error of a result that is not a number is written as 1e300.
    return error ? Json{{"numbers", {std::min(*error, 1e300)}}} : json_of(error.error());
  }
  if (what == "co-locate") return json_of(device.co_locate(step[0], step[1], request["seconds"]));
  const auto power = device.power(step, request["duty"], request["seconds"]);
  if (!power) return json_of(power.error());
  if (!*power) return {{"numbers", Json::array()}};
  return {{"numbers", {(*power)->watts, (*power)->idle_watts, (*power)->seconds}}};
}

ServerProcess::Handler open_in_child() {
  auto opened = Device::open();
  if (!opened) {
    return [error = opened.error()](const std::string&) { return json_of(error).dump(); };
  }
  // std::function wants what can be copied.
  const auto device = std::shared_ptr<Device>(*std::move(opened));
  return [device](const std::string& request) { return answer(*device, Json::parse(request)).dump(); };
}

// ---- the backend ----

// Runs in a fresh process: opens the device, runs a kernel, and reports the time after it and the free memory.
std::vector<double> first_kernel() {
  Status status;
  status.note(cudaSetDevice(0), "cudaSetDevice");
  const cuda::DeviceMemory memory = cuda::device_memory(1 << 20, status);
  status.note(cuda::queue_kernel({Kernel::launch}, {}, nullptr), "the first kernel");
  status.note(cudaDeviceSynchronize(), "the first kernel");
  const double ready_s = monotonic_s();
  std::size_t free = 0;
  std::size_t all = 0;
  status.note(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  if (!status.good()) return {};
  return {ready_s, static_cast<double>(free)};
}

Result<std::vector<double>> numbers_of(Result<ChildProcess> child, std::size_t count) {
  if (!child) return Unexpected{child.error()};
  auto numbers = child->wait();
  if (!numbers) return numbers;
  if (numbers->size() != count) return unexpected("CUDA: a fresh process could not use the device");
  return numbers;
}

/// The child process that has opened the device, as a Backend.
class Remote {
 public:
  explicit Remote(ServerProcess server) : server_(std::move(server)) {}

  Result<Json> ask(const Json& request) {
    const auto text = server_.ask(request.dump(), answer_limit_s);
    if (!text) return unexpected("the CUDA device is lost: " + text.error().to_string());
    Json json = Json::parse(*text);
    if (json.contains("error")) return unexpected(json["error"].get<std::string>());
    return json;
  }

  Result<std::vector<double>> numbers(const Json& request) {
    const auto json = ask(request);
    if (!json) return Unexpected{json.error()};
    return (*json)["numbers"].get<std::vector<double>>();
  }

 private:
  ServerProcess server_;
};

class HeldStep final : public PreparedStep {
 public:
  HeldStep(Remote& remote, std::uint64_t number) : remote_(remote), number_(number) {}
  ~HeldStep() override { static_cast<void>(remote_.ask({{"do", "release"}, {"number", number_}})); }

  Result<void> run(std::uint64_t times) override {
    const auto ran = remote_.ask({{"do", "run"}, {"number", number_}, {"times", times}});
    if (!ran) return Unexpected{ran.error()};
    return {};
  }

 private:
  Remote& remote_;
  std::uint64_t number_;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(ServerProcess server, const Json& device) : remote_(std::move(server)), facts_(facts_of(device)) {
    for (const Json& name : device["kernels"]) {
      supported_[static_cast<std::size_t>(*parse_kernel(name.get<std::string>()))] = true;
    }
  }

  [[nodiscard]] std::string name() const override { return "cuda"; }

  // Clock frequency and temperature change, so they are asked for each time. The memory of a context is measured at the
  // first request, because a job that only runs does not need it.
  [[nodiscard]] DeviceFacts facts() const override {
    if (!facts_.resources.contains("context_bytes")) measure_context();
    DeviceFacts facts = facts_;
    if (const auto now = remote_.ask({{"do", "facts"}})) facts.environment = facts_of(*now).environment;
    return facts;
  }

  [[nodiscard]] bool supports(Kernel kernel) const override { return supported_[static_cast<std::size_t>(kernel)]; }

  Result<std::vector<double>> time_us(std::span<const KernelCall> step, std::uint32_t samples) override {
    return remote_.numbers({{"do", "time"}, {"step", json_of(step)}, {"samples", samples}});
  }

  Result<double> check(const KernelCall& call) override {
    const auto error = remote_.numbers({{"do", "check"}, {"step", json_of({&call, 1})}});
    if (!error) return Unexpected{error.error()};
    return error->front();
  }

  Result<std::array<double, 2>> co_locate(const KernelCall& a, const KernelCall& b, double seconds) override {
    const std::array<KernelCall, 2> both = {a, b};
    const auto found = remote_.numbers({{"do", "co-locate"}, {"step", json_of(both)}, {"seconds", seconds}});
    if (!found) return Unexpected{found.error()};
    return std::array<double, 2>{(*found)[0], (*found)[1]};
  }

  Result<std::vector<double>> cold_start_s(std::uint32_t samples) override {
    std::vector<double> times;
    for (std::uint32_t i = 0; i < samples; ++i) {
      const double begin = monotonic_s();
      const auto ready = numbers_of(ChildProcess::start(first_kernel), 2);
      if (!ready) return Unexpected{ready.error()};
      times.push_back(ready->front() - begin);
    }
    return times;
  }

  Result<std::optional<PowerReading>> power(std::span<const KernelCall> step, double duty, double seconds) override {
    const auto found =
        remote_.numbers({{"do", "power"}, {"step", json_of(step)}, {"duty", duty}, {"seconds", seconds}});
    if (!found) return Unexpected{found.error()};
    if (found->empty()) return std::optional<PowerReading>();
    return std::optional(PowerReading{.watts = (*found)[0], .idle_watts = (*found)[1], .seconds = (*found)[2]});
  }

  Result<std::unique_ptr<PreparedStep>> prepare(std::span<const KernelCall> step) override {
    const auto held = remote_.ask({{"do", "hold"}, {"step", json_of(step)}});
    if (!held) return Unexpected{held.error()};
    return std::unique_ptr<PreparedStep>(std::make_unique<HeldStep>(remote_, (*held)["number"]));
  }

 private:
  /// Memory that one more process takes on the device before it has allocated anything of size.
  void measure_context() const {
    const auto free = remote_.numbers({{"do", "free bytes"}});
    const auto fresh = numbers_of(ChildProcess::start(first_kernel), 2);
    if (!free || !fresh) return;
    facts_.resources["context_bytes"] =
        quantity("context_bytes", std::max(0.0, free->front() - (*fresh)[1]), Source::measured);
  }

  // Asking the device for facts changes nothing that shows.
  mutable Remote remote_;
  mutable DeviceFacts facts_;
  std::array<bool, kernel_count> supported_{};
};

}  // namespace

Result<std::unique_ptr<Backend>> open_cuda_backend() {
  auto server = ServerProcess::start(open_in_child);
  if (!server) return Unexpected{server.error()};
  const auto text = server->ask(Json{{"do", "facts"}}.dump(), answer_limit_s);
  if (!text) return unexpected("the CUDA device cannot be opened: " + text.error().to_string());
  const Json device = Json::parse(*text);
  if (device.contains("error")) return unexpected(device["error"].get<std::string>());
  return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(*std::move(server), device));
}

}  // namespace gpusched
