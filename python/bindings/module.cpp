// SPDX-License-Identifier: Apache-2.0
// gpusched_sim._core: the extension module. What users call is in python/src/gpusched_sim.
#include <limits>

#include "gpusched/core/config.hpp"
#include "gpusched/learn/detail/worker_team.hpp"
#include "python/bindings/common.hpp"

namespace gpusched::python {

namespace {

// The calls of this process: one that was forked has none of its parent's.
struct OpenCalls {
  long process = detail::process_number();
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t count = 0;
  std::vector<std::atomic<bool>*> stops;
  bool leaving = false;
};

// Precondition: the interpreter's lock is held, or a call is open.
OpenCalls& open_calls() {
  static OpenCalls* calls = new OpenCalls;  // for ever: threads may outlive what is destroyed at the end
  if (calls->process != detail::process_number()) calls = new OpenCalls;
  return *calls;
}

}  // namespace

OpenCall::OpenCall(std::atomic<bool>* stop) : stop_(stop) {
  OpenCalls& calls = open_calls();
  const std::lock_guard lock(calls.mutex);
  if (calls.leaving) throw std::runtime_error("the interpreter is ending");
  ++calls.count;
  if (stop != nullptr) calls.stops.push_back(stop);
}

OpenCall::~OpenCall() {
  OpenCalls& calls = open_calls();
  const std::lock_guard lock(calls.mutex);
  std::erase(calls.stops, stop_);
  if (--calls.count == 0) calls.ended.notify_all();
}

void end_open_calls() {
  OpenCalls& calls = open_calls();
  const nb::gil_scoped_release unlocked;
  std::unique_lock lock(calls.mutex);
  calls.leaving = true;
  for (std::atomic<bool>* const stop : calls.stops) *stop = true;
  calls.ended.wait(lock, [&] { return calls.count == 0; });
}

double seconds_or_nan(Time time) {
  return time == Time::max() ? std::numeric_limits<double>::quiet_NaN() : to_seconds(time);
}

}  // namespace gpusched::python

NB_MODULE(_core, module) {
  namespace nb = nanobind;
  using namespace gpusched::python;
  module.doc() = "Compiled part of gpusched_sim.";
  module.attr("version") = GPUSCHED_VERSION;
  nb::exception<InputError>(module, "Error", PyExc_ValueError).doc() =
      "Bad input or usage: one line that names the place and what was expected.";
  bind_trace(module);
  bind_policy(module);
  bind_runs(module);
  bind_sweeps(module);
  bind_vector_env(module);
  bind_service_env(module);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_open_calls));
}
