// SPDX-License-Identifier: Apache-2.0
// What Python calls of PyVectorEnv.
#include "python/bindings/vector_env.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <memory>

namespace gpusched::python {
namespace {

std::unique_ptr<PyVectorEnv> make_env(const std::vector<PyTrace>& traces, const std::vector<std::string>& clusters,
                                      const std::string& json, bool lists_jobs, bool numbers_tokens) {
  EnvRequest request = env_request(json);
  auto data = load_env_data(traces, clusters, request);
  request.options.env.lists_jobs = lists_jobs;
  return std::make_unique<PyVectorEnv>(std::move(data), request.options, numbers_tokens);
}

nb::list env_keywords() {
  EnvRequest request;
  return option_keywords(env_fields(request));
}

}  // namespace

void bind_vector_env(nb::module_& module) {
  bind_env_state(module);
  nb::class_<PyVectorEnv>(module, "CoreVectorEnv")
      .def("reset", &PyVectorEnv::reset, nb::arg("seed"))
      .def("reset_each", &PyVectorEnv::reset_each, nb::arg("seeds"))
      .def("reset_done", &PyVectorEnv::reset_done)
      .def("step", &PyVectorEnv::step, nb::arg("actions").noconvert(), nb::arg("replace"))
      .def("step_scores", &PyVectorEnv::step_scores, nb::arg("scores").noconvert())
      .def("step_heuristic", &PyVectorEnv::step_heuristic)
      .def("step_jobs", &PyVectorEnv::step_jobs)
      .def("set_rewards", &PyVectorEnv::set_rewards, nb::arg("rewards").noconvert())
      .def("token_jobs", &PyVectorEnv::tokens_of_jobs)
      .def("final_token_jobs", &PyVectorEnv::final_token_jobs)
      .def("look", &PyVectorEnv::look, nb::arg("env"))
      .def("job_table", &PyVectorEnv::job_table, nb::arg("trace"), nb::arg("true_times"))
      .def("job_ids", &PyVectorEnv::job_ids)
      .def("heuristic_actions", &PyVectorEnv::heuristic_actions)
      .def("final_observation", &PyVectorEnv::final_observation, nb::arg("which"))
      .def("ragged", &PyVectorEnv::ragged)
      .def("ended", &PyVectorEnv::ended)
      .def("done", &PyVectorEnv::done)
      .def("episode_totals", &PyVectorEnv::episode_totals)
      .def("save", &PyVectorEnv::save)
      .def("restore", &PyVectorEnv::restore, nb::arg("state"))
      .def("fork", &PyVectorEnv::fork)
      .def("arrays", [](nb::handle self) { return nb::cast<PyVectorEnv&>(self).arrays(self); })
      .def_prop_ro("note", &PyVectorEnv::note)
      .def_prop_ro("tokens", &PyVectorEnv::tokens)
      .def_prop_ro("groups", &PyVectorEnv::groups)
      .def_prop_ro("agent_options", &PyVectorEnv::agent_options)
      .def_prop_ro("is_open", &PyVectorEnv::is_open)
      .def_prop_ro("ranks", &PyVectorEnv::ranks)
      .def_prop_ro("traces", &PyVectorEnv::trace_count)
      .def_prop_ro("windows", &PyVectorEnv::window_count);
  module.def("make_env", &make_env, nb::arg("traces"), nb::arg("clusters"), nb::arg("options"), nb::arg("lists_jobs"),
             nb::arg("numbers_tokens"));
  module.def("env_keywords", &env_keywords);
  module.attr("reward_terms") = words_of_names(reward_names);
}

}  // namespace gpusched::python
