// SPDX-License-Identifier: Apache-2.0
// The learning environment as padded numpy arrays, which are made once and written in place by every step.
#include "gpusched/learn/vector_env.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "gpusched/core/named_value.hpp"
#include "python/bindings/keywords.hpp"
#include "python/bindings/padded_observation.hpp"
#include "python/bindings/trace.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/learned/window_checks.hpp"
#include "src/world/run_input.hpp"

namespace gpusched::python {
namespace {

// What environments borrow; kept by each of them and by their states.
struct EnvData {
  std::vector<Window> windows;
  Cluster cluster;
  Placement placement = Placement::consolidate;
  RunConditions conditions;
};

struct PyEnvState {
  std::shared_ptr<const EnvData> data;
  VectorEnv::State state;
  std::vector<double> returns;
  std::vector<std::int64_t> lengths;
};

using Actions = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class PyVectorEnv {
 public:
  PyVectorEnv(std::shared_ptr<const EnvData> data, const VectorEnvOptions& options)
      : data_(std::move(data)), options_(options), env_(data_->windows, {}, data_->cluster, stoppable(options)) {
    shape_ = padded_shape(options.env.agenda, data_->cluster);
    const std::size_t count = options.environments;
    jobs_.resize(count * shape_.tokens * job_features);
    prior_.resize(count * (shape_.tokens + 1));
    mask_.resize(count * (shape_.tokens + 1));
    group_rows_.resize(count * shape_.groups * group_features);
    global_.resize(count * global_features);
    privileged_.resize(count * privileged_features);
    used_.resize(count);
    rewards_.resize(count);
    components_.resize(count * reward_terms);
    terminated_.resize(count);
    truncated_.resize(count);
    returns_.resize(count);
    lengths_.resize(count);
    ended_returns_.resize(count);
    ended_lengths_.resize(count);
    windows_.resize(count);
  }

  void reset(std::uint64_t seed) {
    const Turn turn(*this);
    {
      const nb::gil_scoped_release unlocked;
      env_.reset(seed);
      open_ = true;
      std::fill(returns_.begin(), returns_.end(), 0.0);
      std::fill(lengths_.begin(), lengths_.end(), 0);
      take();
    }
    raise_interrupt();
  }

  void reset_done() {
    const Turn turn(*this);
    require_open();
    {
      const nb::gil_scoped_release unlocked;
      for (std::uint32_t e = 0; e < env_.size(); ++e) {
        if (env_.is_done(e)) forget_episode(e);
      }
      env_.reset_done();
      take();
    }
    raise_interrupt();
  }

  // Returns how many actions were not allowed and replaced.
  std::uint32_t step(const Actions& given, bool replace) {
    const Turn turn(*this);
    require_open();
    require_unfinished();
    if (given.shape(0) != env_.size()) {
      throw InputError("actions: expected " + std::to_string(env_.size()) + ", one for each environment, not " +
                       std::to_string(given.shape(0)));
    }
    std::uint32_t replaced = 0;
    std::string wrong;
    {
      const nb::gil_scoped_release unlocked;
      replaced = translate(given, replace, wrong);
      if (wrong.empty()) advance([&] { env_.step(std::span<const std::uint32_t>(actions_)); });
    }
    if (!wrong.empty()) throw InputError(wrong);
    raise_interrupt();
    return replaced;
  }

  void step_heuristic() {
    const Turn turn(*this);
    require_open();
    require_unfinished();
    {
      const nb::gil_scoped_release unlocked;
      advance([&] { env_.step(options_.env.agenda.heuristic); });
    }
    raise_interrupt();
  }

  // The heuristic's actions, as step() takes them.
  nb::object heuristic_actions() {
    const Turn turn(*this);
    require_open();
    std::vector<std::uint32_t> chosen(env_.size());
    env_.heuristic_actions(options_.env.agenda.heuristic, chosen);
    std::vector<std::int64_t> actions(env_.size());
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      const std::uint32_t size = env_.env(e).agenda().size();
      actions[e] = env_.is_done(e) || chosen[e] == size ? shape_.tokens : chosen[e];
    }
    return column(std::move(actions));
  }

  // Arrays of the last observation of episode number `which` of those that the last step ended (autoreset same_step).
  nb::dict final_observation(std::size_t which) {
    const Turn turn(*this);
    const Observation& seen = env_.batch().final_observation;
    if (which >= seen.count()) throw nb::index_error("no such final observation");
    return padded_observation(seen, static_cast<std::uint32_t>(which), shape_, false);
  }

  [[nodiscard]] nb::dict ragged() {
    const Turn turn(*this);
    require_open();
    const Observation& seen = env_.batch().observation;
    nb::dict result;
    result["jobs"] = shaped(std::vector<float>(seen.jobs), {seen.jobs.size() / job_features, job_features});
    result["prior"] = column(std::vector<float>(seen.prior));
    std::vector<std::int8_t> mask(seen.mask.begin(), seen.mask.end());
    result["action_mask"] = column(std::move(mask));
    result["job_begin"] = column(std::vector<std::uint32_t>(seen.job_begin));
    result["groups"] = shaped(std::vector<float>(seen.groups), {seen.groups.size() / group_features, group_features});
    result["group_begin"] = column(std::vector<std::uint32_t>(seen.group_begin));
    result["global"] = shaped(std::vector<float>(seen.global), {env_.size(), global_features});
    return result;
  }

  [[nodiscard]] nb::object ended() {
    const Turn turn(*this);
    return column(std::vector<std::uint32_t>(env_.batch().ended));
  }
  [[nodiscard]] nb::object done() {
    const Turn turn(*this);
    std::vector<std::uint8_t> done(env_.size());
    for (std::uint32_t e = 0; e < env_.size(); ++e) done[e] = env_.is_done(e) ? 1 : 0;
    return column(std::move(done));
  }
  // [ended, reward terms]
  [[nodiscard]] nb::object episode_totals() {
    const Turn turn(*this);
    std::vector<double> totals;
    for (const RewardVector& total : env_.batch().episode_totals)
      totals.insert(totals.end(), total.begin(), total.end());
    return shaped(std::move(totals), {env_.batch().ended.size(), reward_terms});
  }

  std::unique_ptr<PyEnvState> save() {
    const Turn turn(*this);
    require_open();
    return std::make_unique<PyEnvState>(PyEnvState{data_, env_.save(), returns_, lengths_});
  }
  void restore(const PyEnvState& state) {
    const Turn turn(*this);
    if (state.data != data_) throw InputError("state: expected one of this environment or of its copies");
    if (state.state.envs.size() != env_.size()) {
      throw InputError("state: expected one of " + std::to_string(env_.size()) + " environments, not " +
                       std::to_string(state.state.envs.size()));
    }
    const nb::gil_scoped_release unlocked;
    env_.restore(state.state);
    open_ = true;
    returns_ = state.returns;
    lengths_ = state.lengths;
    take();
  }
  [[nodiscard]] std::unique_ptr<PyVectorEnv> fork() {
    auto other = std::make_unique<PyVectorEnv>(data_, options_);
    if (open_) other->restore(*save());
    return other;
  }

  // Every array, over the memory that each step writes; `self` keeps it alive.
  nb::dict arrays(nb::handle self) {
    const std::size_t count = env_.size();
    nb::dict result;
    const auto add = [&](const char* name, auto& values, std::initializer_list<std::size_t> shape) {
      using Value = typename std::remove_reference_t<decltype(values)>::value_type;
      result[name] = nb::cast(nb::ndarray<nb::numpy, Value>(values.data(), shape, self));
    };
    add("jobs", jobs_, {count, shape_.tokens, job_features});
    add("prior", prior_, {count, shape_.tokens + 1});
    add("action_mask", mask_, {count, shape_.tokens + 1});
    add("groups", group_rows_, {count, shape_.groups, group_features});
    add("global", global_, {count, global_features});
    add("privileged", privileged_, {count, privileged_features});
    add("rewards", rewards_, {count});
    add("components", components_, {count, reward_terms});
    add("terminated", terminated_, {count});
    add("truncated", truncated_, {count});
    add("episode_returns", ended_returns_, {count});
    add("episode_lengths", ended_lengths_, {count});
    add("window", windows_, {count});
    return result;
  }

  // What the maker of the environments should know; empty: nothing.
  [[nodiscard]] std::string note() const { return uncontended_note(data_->windows, data_->cluster); }
  [[nodiscard]] std::uint32_t tokens() const { return shape_.tokens; }
  [[nodiscard]] std::string agent_options() const { return agent_options_text(options_.env.agenda); }
  [[nodiscard]] std::uint32_t groups() const { return shape_.groups; }
  [[nodiscard]] std::size_t window_count() const { return data_->windows.size(); }

 private:
  // One call at a time: others would write the same arrays.
  class Turn {
   public:
    explicit Turn(PyVectorEnv& env) : env_(&env) {
      if (env.busy_.exchange(true)) throw std::runtime_error("another thread is stepping this environment");
      env.caller_ = std::this_thread::get_id();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn() { env_->busy_ = false; }

   private:
    OpenCall open_;
    PyVectorEnv* env_;
  };

  void require_open() const {
    if (!open_) throw std::runtime_error("call reset() first");
  }

  void require_unfinished() const {
    if (options_.autoreset != AutoresetMode::disabled) return;
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      if (!env_.is_done(e)) continue;
      throw std::runtime_error(
          "environment " + std::to_string(e) +
          " is finished; call reset() first, or with options={'reset_mask': ...} for those that are");
    }
  }

  // The options with a look at signals while an environment looks for a window with a choice. They are handled by the
  // thread that called; others stop when it has found one.
  VectorEnvOptions stoppable(VectorEnvOptions options) {
    options.interrupted = [this] {
      if (std::this_thread::get_id() != caller_ || interrupted_) return interrupted_.load();
      const nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) interrupted_ = true;
      return interrupted_.load();
    };
    return options;
  }

  // Precondition: the interpreter's lock is held. The environments must be reset then.
  void raise_interrupt() {
    if (!interrupted_.exchange(false)) return;
    open_ = false;
    throw nb::python_error();
  }

  void forget_episode(std::uint32_t e) {
    returns_[e] = 0;
    lengths_[e] = 0;
  }

  // Actions as the environment takes them; `wrong` is filled when one is not allowed.
  std::uint32_t translate(const Actions& given, bool replace, std::string& wrong) {
    actions_.assign(env_.size(), 0);
    std::uint32_t replaced = 0;
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      if (env_.is_done(e)) continue;
      const Agenda& agenda = env_.env(e).agenda();
      const std::int64_t action = given.data()[e];
      const std::uint32_t size = agenda.size();
      const bool in_range = action >= 0 && (action < size || action == shape_.tokens);
      actions_[e] = action == shape_.tokens ? size : static_cast<std::uint32_t>(action);
      if (in_range && agenda.allowed(actions_[e])) continue;
      if (!replace) {
        wrong = "actions[" + std::to_string(e) + "]: " + std::to_string(action) +
                " is not allowed; expected one that action_mask has 1 for";
        return replaced;
      }
      actions_[e] = agenda.heuristic_action(options_.env.agenda.heuristic);
      ++replaced;
    }
    return replaced;
  }

  template <class Step>
  void advance(Step step) {
    was_done_.resize(env_.size());
    for (std::uint32_t e = 0; e < env_.size(); ++e) was_done_[e] = env_.is_done(e);
    step();
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      const StepResult& result = env_.batch().results[e];
      if (was_done_[e]) {
        if (options_.autoreset == AutoresetMode::next_step) forget_episode(e);
        continue;
      }
      returns_[e] += result.scalar;
      lengths_[e] += 1;
      ended_returns_[e] = returns_[e];
      ended_lengths_[e] = lengths_[e];
      if (result.done() && options_.autoreset == AutoresetMode::same_step) forget_episode(e);
    }
    take();
  }

  void take() {
    const Batch& batch = env_.batch();
    const Observation& seen = batch.observation;
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      pad(seen, e, shape_,
          {.jobs = jobs_.data() + std::size_t{e} * shape_.tokens * job_features,
           .prior = prior_.data() + std::size_t{e} * (shape_.tokens + 1),
           .mask = mask_.data() + std::size_t{e} * (shape_.tokens + 1),
           .groups = group_rows_.data() + std::size_t{e} * shape_.groups * group_features},
          used_[e]);
      used_[e] = std::min(seen.tokens(e), shape_.tokens);
      const StepResult& result = batch.results[e];
      rewards_[e] = result.scalar;
      std::copy(result.reward.begin(), result.reward.end(), components_.begin() + std::size_t{e} * reward_terms);
      terminated_[e] = result.terminated ? 1 : 0;
      truncated_[e] = result.truncated ? 1 : 0;
      windows_[e] = env_.window(e);
    }
    std::copy(seen.global.begin(), seen.global.end(), global_.begin());
    std::copy(seen.privileged.begin(), seen.privileged.end(), privileged_.begin());
  }

  std::shared_ptr<const EnvData> data_;
  VectorEnvOptions options_;
  VectorEnv env_;
  PaddedShape shape_;
  bool open_ = false;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> interrupted_ = false;  // a signal's handler raised, and its error waits to be thrown
  std::thread::id caller_;                 // of the open call
  std::vector<float> jobs_, prior_;
  std::vector<std::int8_t> mask_;
  std::vector<float> group_rows_, global_, privileged_;
  std::vector<std::uint32_t> used_, actions_;
  std::vector<double> rewards_, components_;
  std::vector<std::uint8_t> terminated_, truncated_;
  std::vector<bool> was_done_;
  std::vector<double> returns_, ended_returns_;
  std::vector<std::int64_t> lengths_, ended_lengths_;
  std::vector<std::uint32_t> windows_;
};

constexpr std::array<NamedValue<AutoresetMode>, 3> autoreset_names{{{"next_step", AutoresetMode::next_step},
                                                                    {"same_step", AutoresetMode::same_step},
                                                                    {"disabled", AutoresetMode::disabled}}};
constexpr std::array<NamedValue<Split>, 3> split_words{
    {{"train", Split::train}, {"validation", Split::validation}, {"test", Split::test}}};

// What is asked for by keyword.
struct EnvRequest {
  VectorEnvOptions options;
  WindowOptions windows = {};
  ConditionOptions conditions = {};
  Split split = Split::train;
  std::string oversize = "error";
};

// Each row's path is its keyword.
FieldTable env_fields(EnvRequest& request) {
  VectorEnvOptions& options = request.options;
  WindowOptions& windows = request.windows;
  const auto row = [](const char* path, FieldTarget target, double least, double most) {
    return Field{
        .path = path, .flag = "", .meaning = "", .target = std::move(target), .range = Field::Range{least, most}};
  };
  FieldTable fields = agent_fields(options.env.agenda);
  append_fields(fields, by_keyword(condition_fields(request.conditions, "VectorEnv")));
  for (std::size_t term = 0; term < reward_terms; ++term) {
    fields.push_back(
        row(("weights." + std::string(reward_names[term])).c_str(), &options.env.weights[term], -1e9, 1e9));
  }
  append_fields(fields, {row("discount_per_s", &options.env.discount_per_s, 0, 1e6),
                         word_field("autoreset", "", "", options.autoreset, autoreset_names),
                         row("num_envs", &options.environments, 1, 1u << 20),
                         row("envs_per_window", &options.environments_per_window, 1, 1u << 20),
                         row("threads", &options.threads, 1, 256),
                         row("window_jobs", &windows.jobs, 1, 1u << 30),
                         row("warmup_jobs", &windows.warm_up_jobs, 0, 1u << 30),
                         row("stride", &windows.stride, 1, 1u << 30),
                         row("train_fraction", &windows.train_fraction, 0, 1),
                         row("validation_fraction", &windows.validation_fraction, 0, 1),
                         row("arrival_scale", &windows.arrival_scale, 1e-6, 1e6),
                         {"truncate", "", "", &windows.truncate},
                         word_field("split", "", "", request.split, split_words),
                         {"oversize", "", "", &request.oversize, {"error", "drop", "clamp"}}});
  return fields;
}

EnvRequest env_request(const std::string& json) {
  EnvRequest request{.options = {.environments = 16}};
  if (nlohmann::json::parse(json).contains("weights")) request.options.env.weights = {};
  set_options(env_fields(request), json,
              {{"restart_cost_s", "restart_cost"},
               {"checkpoint_interval_s", "checkpoint_interval"},
               {"checkpoint_write_s", "checkpoint_write"}});
  check_agenda(request.options.env.agenda);
  if (request.options.environments % request.options.environments_per_window != 0) {
    throw InputError("envs_per_window: expected a divisor of num_envs");
  }
  if (!request.conditions.changes.empty() && request.windows.arrival_scale != 1) {
    throw InputError("arrival_scale: expected 1 with changes, whose times it would not move");
  }
  return request;
}

// Cluster, windows and conditions of a trace, as asked for.
Result<std::shared_ptr<EnvData>> load_data(const PyTrace& trace, const std::string& cluster,
                                           const EnvRequest& request) {
  auto input = fit_input({.trace = trace.trace->report.path,
                          .cluster = cluster,
                          .placement = request.conditions.placement,
                          .oversize = oversize_from_word(request.oversize)},
                         *trace.trace);
  if (!input) return Unexpected{input.error()};
  auto data = std::make_shared<EnvData>();
  data->cluster = std::move(input->cluster);
  data->placement = input->placement;
  auto conditions = load_conditions(request.conditions, input->trace.jobs, data->cluster, 0);
  if (!conditions) return Unexpected{conditions.error()};
  data->conditions = *std::move(conditions);
  if (auto fit = check_for_windows(data->conditions, request.conditions); !fit) return Unexpected{fit.error()};
  auto windows = make_windows(input->trace.jobs, request.windows, request.split);
  if (!windows) return Unexpected{windows.error()};
  data->windows = *std::move(windows);
  for (Window& window : data->windows) {
    const std::uint32_t first = window.start - window.first_scored;
    window.changes = data->conditions.changes.slice(first, window.jobs.size());
  }
  return data;
}

std::unique_ptr<PyVectorEnv> make_env(const PyTrace& trace, const std::string& cluster, const std::string& json) {
  EnvRequest request = env_request(json);
  std::optional<Result<std::shared_ptr<EnvData>>> loaded;
  EnvOptions& env = request.options.env;
  Result<void> choices;
  std::atomic<bool> stop = false;
  run_unlocked(stop, [&] {
    loaded.emplace(load_data(trace, cluster, request));
    if (!*loaded) return;
    const EnvData& data = ***loaded;
    env.engine.placement = data.placement;
    env.engine.preemption = data.conditions.preemption;
    env.inputs = data.conditions.inputs();
    choices = check_choices(data.windows, std::span(&data.cluster, 1), env, "mode", [&] { return stop.load(); });
  });
  if (!*loaded) throw keyword_error(loaded->error(), condition_table(request.conditions));
  check(choices);
  return std::make_unique<PyVectorEnv>(**loaded, request.options);
}

nb::list env_keywords() {
  EnvRequest request;
  FieldTable fields = env_fields(request);
  for (Field& field : fields) field.flag.clear();  // paths are keywords here
  return keywords_of(fields);
}

template <std::size_t size>
nb::list words(const std::array<std::string_view, size>& names) {
  nb::list list;
  for (const std::string_view name : names) list.append(nb::str(name.data(), name.size()));
  return list;
}

}  // namespace

void bind_vector_env(nb::module_& module) {
  nb::class_<PyEnvState>(module, "EnvState", "Everything that changes in an environment; of use to its maker alone.");
  nb::class_<PyVectorEnv>(module, "CoreVectorEnv")
      .def("reset", &PyVectorEnv::reset, nb::arg("seed"))
      .def("reset_done", &PyVectorEnv::reset_done)
      .def("step", &PyVectorEnv::step, nb::arg("actions").noconvert(), nb::arg("replace"))
      .def("step_heuristic", &PyVectorEnv::step_heuristic)
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
      .def_prop_ro("windows", &PyVectorEnv::window_count);
  module.def("make_env", &make_env, nb::arg("trace"), nb::arg("cluster"), nb::arg("options"));
  module.def("env_keywords", &env_keywords);
  module.attr("reward_terms") = words(reward_names);
}

}  // namespace gpusched::python
