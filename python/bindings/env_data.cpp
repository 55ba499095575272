// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/env_data.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "gpusched/core/named_value.hpp"
#include "python/bindings/keywords.hpp"
#include "python/bindings/padded_observation.hpp"
#include "src/policies/learned/window_checks.hpp"
#include "src/world/run_input.hpp"

namespace gpusched::python {

namespace {

constexpr std::array<NamedValue<AutoresetMode>, 3> autoreset_names{{{"next_step", AutoresetMode::next_step},
                                                                    {"same_step", AutoresetMode::same_step},
                                                                    {"disabled", AutoresetMode::disabled}}};
constexpr std::array<NamedValue<Split>, 3> split_words{
    {{"train", Split::train}, {"validation", Split::validation}, {"test", Split::test}}};

}  // namespace

std::uint32_t EnvData::trace_of(std::uint32_t window) const {
  const auto after =
      std::find_if(traces.begin(), traces.end(), [window](const PlacedTrace& trace) { return trace.windows > window; });
  return static_cast<std::uint32_t>(after - traces.begin() - 1);
}

std::span<const Window> EnvData::windows_of(std::size_t trace) const {
  const std::size_t end = trace + 1 < traces.size() ? traces[trace + 1].windows : windows.size();
  return std::span(windows).subspan(traces[trace].windows, end - traces[trace].windows);
}

std::int64_t EnvData::first_job(std::uint32_t window) const {
  const Window& of = windows[window];
  return std::int64_t{traces[trace_of(window)].first} + of.start - of.first_scored;
}

std::uint64_t EnvData::fingerprint() const {
  std::uint64_t sum = 14695981039346656037u;  // FNV-1a
  const auto add = [&sum](std::uint64_t value) { sum = (sum ^ value) * 1099511628211u; };
  for (const PlacedTrace& trace : traces) {
    add(static_cast<std::uint64_t>(trace.world.cluster.total_gpus()));
    add(trace.world.cluster.nodes.size());
    for (const Time time : trace.jobs.submits()) add(static_cast<std::uint64_t>(time.us));
    for (const Time time : trace.jobs.works()) add(static_cast<std::uint64_t>(time.us));
  }
  for (const Window& window : windows) {
    add(window.start);
    add(window.jobs.size());
  }
  return sum;
}

FieldTable env_fields(EnvRequest& request) {
  VectorEnvOptions& options = request.options;
  WindowOptions& windows = request.windows;
  FieldTable fields = agent_fields(options.env.agenda);
  append_fields(fields, by_keyword(condition_fields(request.conditions, "VectorEnv")));
  for (std::size_t term = 0; term < reward_terms; ++term) {
    fields.push_back(option_row("weights." + std::string(reward_names[term]), &options.env.weights[term], -1e9, 1e9));
  }
  append_fields(fields, {option_row("discount_per_s", &options.env.discount_per_s, 0, 1e6),
                         word_field("autoreset", "", "", options.autoreset, autoreset_names),
                         option_row("num_envs", &options.environments, 1, 1u << 20),
                         option_row("envs_per_window", &options.environments_per_window, 1, 1u << 20),
                         option_row("threads", &options.threads, 1, 256),
                         option_row("window_jobs", &windows.jobs, 1, 1u << 30),
                         option_row("warmup_jobs", &windows.warm_up_jobs, 0, 1u << 30),
                         option_row("stride", &windows.stride, 1, 1u << 30),
                         option_row("train_fraction", &windows.train_fraction, 0, 1),
                         option_row("validation_fraction", &windows.validation_fraction, 0, 1),
                         option_row("arrival_scale", &windows.arrival_scale, 1e-6, 1e6),
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
  const AgendaOptions& agenda = request.options.env.agenda;
  check_agenda(agenda);
  if (agenda.signals && request.conditions.power.empty()) {
    throw InputError("signals: expected False without power, whose file holds them");
  }
  request.windows.service_history = agenda.mode == ActionMode::preempt;
  if (request.options.environments % request.options.environments_per_window != 0) {
    throw InputError("envs_per_window: expected a divisor of num_envs");
  }
  if (!request.conditions.changes.empty() && request.windows.arrival_scale != 1) {
    throw InputError("arrival_scale: expected 1 with changes, whose times it would not move");
  }
  return request;
}

namespace {

Result<void> add_trace(const Trace& trace, const std::string& cluster, const EnvRequest& request, EnvData& data) {
  auto input = fit_input({.trace = trace.report.path,
                          .cluster = cluster,
                          .placement = request.conditions.placement,
                          .oversize = oversize_from_word(request.oversize)},
                         trace);
  if (!input) return Unexpected{input.error()};
  const std::uint32_t first = data.traces.empty() ? 0 : data.traces.back().first + data.traces.back().jobs.size();
  PlacedTrace& placed = data.traces.emplace_back();
  placed.first = first;
  placed.windows = static_cast<std::uint32_t>(data.windows.size());
  placed.jobs = std::move(input->trace.jobs);
  placed.world.cluster = std::move(input->cluster);
  auto conditions = load_conditions(request.conditions, placed.jobs, placed.world.cluster, 0);
  if (!conditions) return Unexpected{conditions.error()};
  placed.conditions = *std::move(conditions);
  const bool moves_arrivals = request.windows.arrival_scale != 1;
  if (auto fit = check_for_windows(placed.conditions, request.conditions, moves_arrivals); !fit) return fit;
  placed.world.engine = {.placement = input->placement, .preemption = placed.conditions.preemption};
  placed.world.inputs = placed.conditions.inputs();
  auto windows = make_windows(placed.jobs, request.windows, request.split);
  if (!windows) return Unexpected{windows.error()};
  for (Window& window : *windows) {
    const std::uint32_t begin = window.start - window.first_scored;
    window.changes = placed.conditions.changes.slice(begin, window.jobs.size());
    window.world = &placed.world;
    data.windows.push_back(std::move(window));
  }
  return {};
}

// Windows of every trace must offer a choice, else its turns would bring none.
Result<void> check_each(const EnvData& data, const EnvOptions& options, const std::atomic<bool>& stop) {
  for (std::size_t i = 0; i < data.traces.size(); ++i) {
    const std::span<const Cluster> cluster(&data.traces[i].world.cluster, 1);
    auto checked = check_choices(data.windows_of(i), cluster, options, "mode", [&stop] { return stop.load(); });
    if (!checked) return checked;
  }
  return {};
}

}  // namespace

std::shared_ptr<EnvData> load_env_data(const std::vector<PyTrace>& traces, const std::vector<std::string>& clusters,
                                       EnvRequest& request) {
  const std::size_t count = std::max(traces.size(), clusters.size());
  if (traces.empty() || (traces.size() != count && traces.size() != 1) ||
      (clusters.size() != count && clusters.size() != 1)) {
    throw InputError("cluster: expected one for all traces, or one for each of " + std::to_string(traces.size()) +
                     ", not " + std::to_string(clusters.size()));
  }
  auto data = std::make_shared<EnvData>();
  Result<void> done;
  std::atomic<bool> stop = false;
  run_unlocked(stop, [&] {
    for (std::size_t i = 0; i < count && done; ++i) {
      const Trace& trace = *traces[traces.size() == 1 ? 0 : i].trace;
      done = add_trace(trace, clusters[clusters.size() == 1 ? 0 : i], request, *data);
    }
    if (done) done = check_each(*data, request.options.env, stop);
  });
  if (!done) throw keyword_error(done.error(), condition_table(request.conditions));
  for (const PlacedTrace& trace : data->traces) request.options.worlds.push_back(trace.windows);
  return data;
}

std::string note_of(const EnvData& data) {
  std::string note;
  for (std::size_t i = 0; i < data.traces.size(); ++i) {
    note = uncontended_note(data.windows_of(i), data.traces[i].world.cluster);
    if (note.empty()) break;
  }
  return note;
}

}  // namespace gpusched::python
