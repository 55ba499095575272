// SPDX-License-Identifier: Apache-2.0
/// PyVectorEnv: the learning environment as padded numpy arrays, which are made once and written in place by every
/// step.
#pragma once

#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include "gpusched/learn/vector_env.hpp"
#include "python/bindings/env_data.hpp"
#include "python/bindings/env_state.hpp"
#include "python/bindings/job_rows.hpp"
#include "python/bindings/keywords.hpp"
#include "python/bindings/padded_observation.hpp"

namespace gpusched::python {

using Actions = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Scores = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Rewards = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class PyVectorEnv {
 public:
  // `numbers_tokens`: the jobs of last observations are kept, for final_token_jobs().
  PyVectorEnv(std::shared_ptr<const EnvData> data, const VectorEnvOptions& options, bool numbers_tokens)
      : data_(std::move(data)),
        options_(options),
        numbers_tokens_(numbers_tokens),
        env_(data_->windows, {}, data_->traces.front().world.cluster, watched(options)) {
    for (const PlacedTrace& trace : data_->traces) {
      const PaddedShape shape = padded_shape(options.env.agenda, trace.world.cluster);
      shape_ = {std::max(shape_.tokens, shape.tokens), std::max(shape_.groups, shape.groups)};
    }
    const std::size_t count = options.environments;
    jobs_.resize(count * shape_.tokens * job_features);
    prior_.resize(count * (shape_.tokens + 1));
    mask_.resize(count * (shape_.tokens + 1));
    group_rows_.resize(count * shape_.groups * group_features);
    global_.resize(count * global_features);
    signals_.resize(options_.env.agenda.signals ? count * signal_features : 0);
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
    traces_.resize(count);
    steps_.resize(count);
    replaced_.resize(count);
    was_done_.resize(count);
    first_jobs_.assign(count, -1);
  }

  void reset(std::uint64_t seed) {
    begin_all([&] { env_.reset(seed); });
  }
  void reset_each(const std::vector<std::uint64_t>& seeds) {
    if (seeds.size() != env_.size()) {
      throw InputError("seed: expected " + std::to_string(env_.size()) + ", one for each environment, not " +
                       std::to_string(seeds.size()));
    }
    begin_all([&] { env_.reset(std::span<const std::uint64_t>(seeds)); });
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
      if (wrong.empty()) {
        for (std::uint32_t e = 0; e < env_.size(); ++e) note_step(e, actions_[e]);
        advance([&] { env_.step(std::span<const std::uint32_t>(actions_)); });
      }
    }
    if (!wrong.empty()) throw InputError(wrong);
    raise_interrupt();
    return replaced;
  }

  // Mode preempt: scores [environments, tokens]; of the jobs that have no token the heuristic's preference counts.
  void step_scores(const Scores& given) {
    const Turn turn(*this);
    require_open();
    require_unfinished();
    if (given.shape(0) != env_.size() || given.shape(1) != shape_.tokens) {
      throw InputError("actions: expected " + std::to_string(env_.size()) + " x " + std::to_string(shape_.tokens) +
                       " scores");
    }
    const std::optional<std::uint32_t> wrong = lay_out(given);
    if (wrong) {
      throw InputError("actions[" + std::to_string(*wrong) + "]: expected a finite score for each token");
    }
    {
      const nb::gil_scoped_release unlocked;
      advance([&] { env_.step(std::span<const float>(scores_)); });
    }
    raise_interrupt();
  }

  void step_heuristic() {
    const Turn turn(*this);
    require_open();
    require_unfinished();
    {
      const nb::gil_scoped_release unlocked;
      for (std::uint32_t e = 0; e < env_.size(); ++e) note_step(e, EpisodeSteps::by_heuristic);
      advance([&] { env_.step(options_.env.agenda.heuristic); });
    }
    raise_interrupt();
  }

  // The heuristic's actions, as step() takes them.
  nb::object heuristic_actions() {
    const Turn turn(*this);
    require_open();
    if (ranks()) return shaped(padded_prior(), {env_.size(), shape_.tokens});
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
    if (!seen.signals.empty()) {
      result["signals"] = shaped(std::vector<float>(seen.signals), {env_.size(), signal_features});
    }
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

  // Which of the jobs of all traces each token is, -1: none. [environments, tokens]
  [[nodiscard]] nb::object tokens_of_jobs() {
    const Turn turn(*this);
    require_open();
    std::vector<std::int64_t> all(std::size_t{env_.size()} * shape_.tokens, -1), jobs;
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      token_jobs(env_.env(e), first_jobs_[e], jobs);
      std::copy_n(jobs.begin(), std::min<std::size_t>(jobs.size(), shape_.tokens),
                  all.begin() + std::ptrdiff_t{e} * shape_.tokens);
    }
    return shaped(std::move(all), {env_.size(), shape_.tokens});
  }
  // The same of the last observations of the episodes that the last step ended. [ended, tokens]
  [[nodiscard]] nb::object final_token_jobs() {
    const Turn turn(*this);
    const std::vector<std::uint32_t>& ended = env_.batch().ended;
    std::vector<std::int64_t> all(ended.size() * shape_.tokens, -1);
    for (std::size_t i = 0; i < ended.size(); ++i) {
      const std::vector<std::int64_t>& jobs = rows_[ended[i]].tokens;
      std::copy_n(jobs.begin(), std::min<std::size_t>(jobs.size(), shape_.tokens),
                  all.begin() + static_cast<std::ptrdiff_t>(i * shape_.tokens));
    }
    return shaped(std::move(all), {ended.size(), shape_.tokens});
  }

  // {finished, started, waiting: columns of jobs, seconds, now_s: [environments]} of the last step.
  [[nodiscard]] nb::dict step_jobs() {
    const Turn turn(*this);
    nb::dict result;
    const auto add = [&](const char* name, std::vector<JobRow> StepRows::*list) {
      std::vector<JobRow> all;
      for (std::uint32_t e = 0; e < env_.size(); ++e) {
        if (!was_done_[e]) all.insert(all.end(), (rows_[e].*list).begin(), (rows_[e].*list).end());
      }
      result[name] = columns_of(all);
    };
    add("finished", &StepRows::finished);
    add("started", &StepRows::started);
    add("waiting", &StepRows::waiting);
    std::vector<double> seconds(env_.size()), now(env_.size());
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      seconds[e] = env_.batch().results[e].seconds;
      now[e] = rows_[e].now_s;
    }
    result["seconds"] = column(std::move(seconds));
    result["now_s"] = column(std::move(now));
    return result;
  }
  // Rewards of one's own for the last step, where jobs are listed: none is counted before this call.
  void set_rewards(const Rewards& rewards) {
    const Turn turn(*this);
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      if (!std::isfinite(rewards.data()[e])) {
        throw InputError("reward: expected finite numbers; that of environment " + std::to_string(e) + " is none");
      }
    }
    count_rewards([&](std::uint32_t e) { return was_done_[e] ? 0.0 : rewards.data()[e]; });
  }

  // What can be looked at in one environment: {now_s, nodes, waiting, running}.
  [[nodiscard]] nb::dict look(std::uint32_t e) {
    const Turn turn(*this);
    require_open();
    if (e >= env_.size()) throw nb::index_error("no such environment");
    const Env& env = env_.env(e);
    const ClusterState& cluster = env.engine().view().cluster();
    std::vector<std::uint32_t> gpus(cluster.node_count());
    std::vector<double> free_gpus(gpus.size());
    for (std::uint32_t i = 0; i < gpus.size(); ++i) {
      gpus[i] = cluster.node_gpus(NodeId{i});
      free_gpus[i] = static_cast<double>(cluster.node_free_gpu_milli(NodeId{i})) / static_cast<double>(whole_gpu);
    }
    nb::dict nodes, result;
    nodes["gpus"] = column(std::move(gpus));
    nodes["free_gpus"] = column(std::move(free_gpus));
    result["now_s"] = to_seconds(env.now());
    result["nodes"] = nodes;
    result["waiting"] = columns_of(waiting_rows(env, e, first_jobs_[e]));
    result["running"] = columns_of(running_rows(env, e, first_jobs_[e]));
    return result;
  }

  // Columns of the jobs of one trace, without true run times unless asked for, and their ids.
  [[nodiscard]] nb::dict job_table(std::size_t trace, bool true_times) const {
    return job_columns(data_->traces.at(trace).jobs, true_times);
  }
  [[nodiscard]] std::vector<std::string> job_ids() const {
    std::vector<std::string> ids;
    for (const PlacedTrace& trace : data_->traces) {
      for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) ids.push_back(trace.jobs.external_id(JobId{i}));
    }
    return ids;
  }
  // Between a reset and what closes the environments.
  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] std::size_t trace_count() const { return data_->traces.size(); }

  std::unique_ptr<PyEnvState> save() {
    const Turn turn(*this);
    require_open();
    VectorEnv::State state = env_.save();
    RecordedState recorded{.fingerprint = data_->fingerprint(),
                           .seed = state.seed,
                           .seeds = state.seeds,
                           .episodes = state.episodes,
                           .windows = state.windows,
                           .done = state.done,
                           .steps = steps_,
                           .returns = returns_,
                           .lengths = lengths_};
    return std::make_unique<PyEnvState>(PyEnvState{std::move(recorded), data_, std::move(state)});
  }
  void restore(const PyEnvState& state) {
    const Turn turn(*this);
    const RecordedState& recorded = state.recorded;
    if (state.data != data_ && recorded.fingerprint != data_->fingerprint()) {
      throw InputError("state: expected one of this environment, of its copies, or of one made alike");
    }
    if (recorded.windows.size() != env_.size()) {
      throw InputError("state: expected one of " + std::to_string(env_.size()) + " environments, not " +
                       std::to_string(recorded.windows.size()));
    }
    const nb::gil_scoped_release unlocked;
    env_.restore(state.data == data_ ? state.state : replayed(recorded, *data_, options_));
    open_ = true;
    steps_ = recorded.steps;
    returns_ = recorded.returns;
    lengths_ = recorded.lengths;
    take();
  }
  [[nodiscard]] std::unique_ptr<PyVectorEnv> fork() {
    auto other = std::make_unique<PyVectorEnv>(data_, options_, numbers_tokens_);
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
    if (!signals_.empty()) add("signals", signals_, {count, signal_features});
    add("privileged", privileged_, {count, privileged_features});
    add("rewards", rewards_, {count});
    add("components", components_, {count, reward_terms});
    add("terminated", terminated_, {count});
    add("truncated", truncated_, {count});
    add("episode_returns", ended_returns_, {count});
    add("episode_lengths", ended_lengths_, {count});
    add("window", windows_, {count});
    add("trace", traces_, {count});
    add("replaced", replaced_, {count});
    return result;
  }

  // What the maker of the environments should know; empty: nothing.
  [[nodiscard]] std::string note() const { return note_of(*data_); }
  [[nodiscard]] std::uint32_t tokens() const { return shape_.tokens; }
  // Mode preempt: scores instead of actions.
  [[nodiscard]] bool ranks() const { return options_.env.agenda.mode == ActionMode::preempt; }
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

  template <class Begin>
  void begin_all(Begin begin) {
    const Turn turn(*this);
    {
      const nb::gil_scoped_release unlocked;
      begin();
      open_ = true;
      for (std::uint32_t e = 0; e < env_.size(); ++e) forget_episode(e);
      take();
    }
    raise_interrupt();
  }

  // The options with somebody who takes notes of each step, where jobs are listed, and with a look at signals while an
  // environment looks for a window with a choice. They are handled by the thread that called; others stop when it has
  // found one.
  VectorEnvOptions watched(VectorEnvOptions options) {
    if (options.env.lists_jobs || numbers_tokens_) {
      rows_.resize(options.environments);
      options.watch = [this](std::uint32_t e, const Env& env) {
        if (options_.env.lists_jobs) take_rows(env, e, first_jobs_[e], rows_[e]);
        if (numbers_tokens_ && env_.is_done(e)) token_jobs(env, first_jobs_[e], rows_[e].tokens);
      };
    }
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
    steps_[e].clear();
  }

  // For EnvState.
  void note_step(std::uint32_t e, std::uint32_t action) {
    if (!env_.is_done(e)) steps_[e].actions.push_back(action);
  }

  // Scores as the environments take them. Gives the first environment with a score that is not finite, before which
  // nothing is noted.
  std::optional<std::uint32_t> lay_out(const Scores& given) {
    const Observation& seen = env_.batch().observation;
    scores_ = seen.prior;
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      const float* const from = given.data() + std::size_t{e} * shape_.tokens;
      const std::uint32_t count = std::min(seen.tokens(e), shape_.tokens);
      for (std::uint32_t i = 0; i < count; ++i) {
        if (!env_.is_done(e) && !std::isfinite(from[i])) return e;
      }
      std::copy_n(from, count, scores_.begin() + seen.job_begin[e] + e);
    }
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      if (env_.is_done(e)) continue;
      const auto begin = scores_.begin() + seen.job_begin[e] + e;
      note_step(e, seen.tokens(e));
      steps_[e].scores.insert(steps_[e].scores.end(), begin, begin + seen.tokens(e));
    }
    return std::nullopt;
  }

  [[nodiscard]] std::vector<float> padded_prior() const {
    std::vector<float> scores(std::size_t{env_.size()} * shape_.tokens);
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      std::copy_n(prior_.begin() + std::ptrdiff_t{e} * (shape_.tokens + 1), shape_.tokens,
                  scores.begin() + std::ptrdiff_t{e} * shape_.tokens);
    }
    return scores;
  }

  // Actions as the environment takes them; `wrong` is filled when one is not allowed.
  std::uint32_t translate(const Actions& given, bool replace, std::string& wrong) {
    actions_.assign(env_.size(), 0);
    std::uint32_t replaced = 0;
    if (was_replaced_any_) std::fill(replaced_.begin(), replaced_.end(), std::uint8_t{0});
    was_replaced_any_ = false;
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      if (env_.is_done(e)) continue;
      const Agenda& agenda = env_.env(e).agenda();
      const std::int64_t action = given.data()[e];
      const std::uint32_t size = agenda.size();
      const bool in_range = action >= 0 && (action < size || action == shape_.tokens);
      actions_[e] = action == shape_.tokens ? size : static_cast<std::uint32_t>(action);
      if (in_range && agenda.allowed(actions_[e])) continue;
      if (!replace || action < 0 || action > shape_.tokens) {
        wrong = "actions[" + std::to_string(e) + "]: " + std::to_string(action) +
                " is not allowed; expected one that action_mask has 1 for";
        return replaced;
      }
      actions_[e] = agenda.heuristic_action(options_.env.agenda.heuristic);
      replaced_[e] = 1;
      was_replaced_any_ = true;
      ++replaced;
    }
    return replaced;
  }

  template <class Step>
  void advance(Step step) {
    was_done_.resize(env_.size());
    for (std::uint32_t e = 0; e < env_.size(); ++e) was_done_[e] = env_.is_done(e);
    step();
    if (!options_.env.lists_jobs) {
      count_rewards([&](std::uint32_t e) { return env_.batch().results[e].scalar; });
    }
    take();
  }

  template <class Reward>
  void count_rewards(Reward reward) {
    for (std::uint32_t e = 0; e < env_.size(); ++e) {
      const StepResult& result = env_.batch().results[e];
      rewards_[e] = reward(e);
      if (was_done_[e]) {
        if (options_.autoreset == AutoresetMode::next_step) forget_episode(e);
        continue;
      }
      returns_[e] += rewards_[e];
      lengths_[e] += 1;
      ended_returns_[e] = returns_[e];
      ended_lengths_[e] = lengths_[e];
      if (result.done() && options_.autoreset == AutoresetMode::same_step) forget_episode(e);
    }
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
      std::copy(result.reward.begin(), result.reward.end(), components_.begin() + std::size_t{e} * reward_terms);
      terminated_[e] = result.terminated ? 1 : 0;
      truncated_[e] = result.truncated ? 1 : 0;
      if (windows_[e] != env_.window(e) || first_jobs_[e] < 0) {
        windows_[e] = env_.window(e);
        traces_[e] = data_->trace_of(windows_[e]);
        first_jobs_[e] = data_->first_job(windows_[e]);
      }
    }
    std::copy(seen.global.begin(), seen.global.end(), global_.begin());
    std::copy(seen.signals.begin(), seen.signals.end(), signals_.begin());
    std::copy(seen.privileged.begin(), seen.privileged.end(), privileged_.begin());
  }

  std::shared_ptr<const EnvData> data_;
  VectorEnvOptions options_;
  bool numbers_tokens_;
  std::vector<StepRows> rows_;  // of the last step, where jobs are listed or tokens numbered
  VectorEnv env_;
  PaddedShape shape_;
  bool open_ = false;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> interrupted_ = false;  // a signal's handler raised, and its error waits to be thrown
  std::thread::id caller_;                 // of the open call
  std::vector<float> jobs_, prior_;
  std::vector<std::int8_t> mask_;
  std::vector<float> group_rows_, global_, signals_, privileged_, scores_;
  std::vector<std::uint32_t> used_, actions_;
  std::vector<double> rewards_, components_;
  std::vector<std::uint8_t> terminated_, truncated_;
  std::vector<bool> was_done_;
  std::vector<double> returns_, ended_returns_;
  std::vector<std::int64_t> lengths_, ended_lengths_;
  std::vector<std::uint32_t> windows_, traces_;  // of the open episodes, with the numbers of their first jobs
  std::vector<std::int64_t> first_jobs_;
  std::vector<EpisodeSteps> steps_;
  std::vector<std::uint8_t> replaced_;  // 1: of the last actions, that of the environment was not allowed
  bool was_replaced_any_ = false;
};

}  // namespace gpusched::python
