// SPDX-License-Identifier: Apache-2.0
// gpusched_sim._core: the extension module. What users call is in python/src/gpusched_sim.
#include <limits>

#include "gpusched/core/config.hpp"
#include "python/bindings/common.hpp"

namespace gpusched::python {

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
}
