// SPDX-License-Identifier: Apache-2.0
#include "src/conditions/speed_options.hpp"

#include <algorithm>
#include <utility>

#include "src/base/field_table.hpp"
#include "src/calibration/profile/communication.hpp"
#include "src/calibration/profile/span_speeds.hpp"
#include "src/calibration/profile/step_times.hpp"
#include "src/calibration/profile/throughput_table.hpp"
#include "src/world/absent_names.hpp"

namespace gpusched {

namespace {

constexpr std::string_view measured_word = "throughputs";  // of --span-speed and --interference

// [TYPE=]FILE_OR_NAME of each of --profile.
std::vector<std::string> given_profiles(const SpeedOptions& options) {
  std::vector<std::string> given;
  for (std::size_t at = 0; at < options.profiles.size();) {
    const std::size_t comma = std::min(options.profiles.find(',', at), options.profiles.size());
    given.push_back(options.profiles.substr(at, comma - at));
    at = comma + 1;
  }
  return given;
}

Result<CalibratedRuntime> runtime_of_throughputs(const SpeedOptions& options, const JobTable& jobs,
                                                 const Cluster& cluster, const JobChanges& changes) {
  if (!options.profiles.empty() || !options.reference_profile.empty() || options.slowdown != 1) {
    return bad_option("fidelity.throughputs", "takes the place of --profile, --reference-profile and --slowdown");
  }
  const auto table = read_throughput_table(options.throughputs, &jobs.families());
  if (!table) return Unexpected{table.error()};
  const auto fallback = value_from_name(throughput_fallback_names, options.throughput_fallback);
  if (!fallback) {
    return bad_option("fidelity.throughput_fallback",
                      "expected none or datasheet, not '" + options.throughput_fallback + "'");
  }
  auto runtime = runtime_model_from_throughputs(*table, options.reference_type, jobs, cluster, *fallback, changes);
  if (!runtime || options.interference != measured_word) return runtime;
  if (auto done = add_measured_pairs(*runtime, *table, jobs, cluster); !done) return Unexpected{done.error()};
  return runtime;
}

// What devices make of run times.
Result<CalibratedRuntime> device_runtime_of(const SpeedOptions& options, const JobTable& jobs, const Cluster& cluster,
                                            const JobChanges& changes) {
  const auto fail = [](const Error& error, const char* field) {
    return Unexpected{Error{.message = error.to_string(), .field = field}};
  };
  if (!options.throughputs.empty()) return runtime_of_throughputs(options, jobs, cluster, changes);
  if (options.interference == measured_word) {
    return bad_option("fidelity.interference", "throughputs are those of a file; add --throughputs");
  }
  if (options.throughput_fallback != "none") {
    return bad_option("fidelity.throughput_fallback", "fills gaps of measured throughputs; add --throughputs");
  }
  if (!options.reference_type.empty()) {
    return bad_option("fidelity.reference_type", "is a GPU type of measured throughputs; add --throughputs");
  }
  std::vector<TypeProfile> profiles;
  for (const std::string& given : given_profiles(options)) {
    auto profile = parse_type_profile(given);
    if (!profile) return fail(profile.error(), "fidelity.profiles");
    profiles.push_back(*std::move(profile));
  }
  if (profiles.empty()) {
    if (!options.reference_profile.empty() || options.slowdown != 1) {
      return bad_option(options.slowdown != 1 ? "fidelity.slowdown" : "fidelity.reference",
                        "applies to durations that profiles give; add --profile");
    }
    return CalibratedRuntime{};
  }
  DeviceProfile reference = profiles.front().profile;
  if (!options.reference_profile.empty()) {
    auto given = find_device_profile(options.reference_profile);
    if (!given) return fail(given.error(), "fidelity.reference");
    reference = *std::move(given);
  }
  const bool any_share =
      std::any_of(jobs.shapes().begin(), jobs.shapes().end(), [](const Shape& shape) { return shape.is_share(); });
  RuntimeOptions how{.slowdown = options.slowdown, .interference = any_share && options.interference == "profile"};
  for (std::uint32_t type = 0; type < cluster.gpu_types.size(); ++type) {
    const auto has_it = [type](const Node& node) { return node.gpus > 0 && node.gpu_type == type; };
    if (std::none_of(cluster.nodes.begin(), cluster.nodes.end(), has_it)) how.empty_types.push_back(type);
  }
  auto runtime = runtime_model_from_profiles(jobs.families(), cluster.gpu_types, profiles, reference, how);
  if (!runtime) return fail(runtime.error(), "fidelity.profiles");
  std::uint32_t without_family = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) without_family += jobs.families()[jobs.family(JobId{i})].empty();
  if (without_family > 0) {
    runtime->notes.push_back(std::to_string(without_family) + " of " + std::to_string(jobs.size()) +
                             " jobs state no family and run as 'mixed'");
  }
  return runtime;
}

// The widest span that has a speed of its own.
Span widest_named(const SpanSpeeds& speeds) {
  std::size_t span = span_count - 1;
  while (span > 0 && speeds[span] == speeds[span - 1]) --span;
  return static_cast<Span>(span);
}

// A line where nothing on this cluster is as far apart as the user may think.
void note_widest_span(const Cluster& cluster, const SpanSpeeds& speeds, std::vector<std::string>& notes) {
  const Span widest = cluster.widest_span();
  if (widest_named(speeds) <= widest) return;
  const std::string name(name_of(span_names, widest_named(speeds)));
  notes.push_back("--span-speed: no gang can span several " + name + " of this cluster");
}

// Families of the file that no job has: one of them may be a slip, and its jobs run as "*" then.
void note_absent_families(const CommunicationTable& table, const NameTable& families, std::vector<std::string>& notes) {
  std::vector<std::string> absent;
  for (const auto& [key, row] : table.rows) {
    const std::string& name = key.first;
    const bool is_known = name == any_other_family || families.find(name) != no_index;
    if (!is_known && (absent.empty() || absent.back() != name)) absent.push_back(name);
  }
  for (std::string& note : absent_names_note(table.file, "/families", absent, families.names())) {
    notes.push_back(std::move(note));
  }
}

Result<SpanModel> spans_of(const SpeedOptions& options, const RuntimeModel& devices, const JobTable& jobs,
                           const Cluster& cluster, const JobChanges& changes, std::vector<std::string>& notes) {
  if (!options.span_speed.empty() && !options.communication.empty()) {
    return bad_option("fidelity.communication", "takes the place of --span-speed");
  }
  const bool measured = options.span_speed == measured_word;
  if (measured && options.throughputs.empty()) {
    return bad_option("fidelity.span_speed", "throughputs are those of a file; add --throughputs");
  }
  const auto reference = value_from_name(span_reference_names, options.reference_span);
  if (!reference)
    return bad_option("fidelity.reference_span", "expected node or narrowest, not '" + options.reference_span + "'");
  if (measured) {
    const auto table = read_throughput_table(options.throughputs, &jobs.families());
    if (!table) return Unexpected{table.error()};
    return span_model_of_throughputs(*table, *reference, jobs, cluster, changes);
  }
  if (!options.span_speed.empty()) {
    const auto speeds = parse_span_speeds(options.span_speed);
    if (!speeds) return Unexpected{Error{.message = speeds.error().message, .field = "fidelity.span_speed"}};
    note_widest_span(cluster, *speeds, notes);
    return span_model_of_speeds(*speeds, *reference, jobs, cluster, changes);
  }
  if (!options.communication.empty()) {
    const auto table = read_communication(options.communication);
    if (!table) return Unexpected{table.error()};
    note_absent_families(*table, jobs.families(), notes);
    auto model = span_model_of_communication(*table, *reference, devices, jobs, cluster, changes);
    if (!model) return Unexpected{in_option("fidelity.communication", model.error())};
    return model;
  }
  if (*reference != SpanReference::node) {
    return bad_option("fidelity.reference_span",
                      "applies to gangs that are slower when they are apart; add --span-speed or --communication");
  }
  return SpanModel{};
}

}  // namespace

Result<CalibratedRuntime> runtime_of(const SpeedOptions& options, const JobTable& jobs, const Cluster& cluster,
                                     const JobChanges& changes) {
  auto runtime = device_runtime_of(options, jobs, cluster, changes);
  if (!runtime) return runtime;
  auto spans = spans_of(options, runtime->model, jobs, cluster, changes, runtime->notes);
  if (!spans) return Unexpected{spans.error()};
  runtime->model.set_spans(*std::move(spans));
  return runtime;
}

Result<void> check_placement(Placement placement, const SpeedOptions& options) {
  if (placement != Placement::skew || !options.communication.empty()) return {};
  return bad_option("placement",
                    "skew keeps families together that a file of --communication marks as skewed; none is given");
}

bool changes_run_times(const SpeedOptions& options) {
  return !options.profiles.empty() || !options.throughputs.empty() || !options.span_speed.empty() ||
         !options.communication.empty();
}

std::vector<std::string> files_of(const SpeedOptions& options) {
  std::vector<std::string> names{options.reference_profile, options.throughputs, options.communication};
  for (const std::string& profile : given_profiles(options)) {
    names.push_back(profile);
    names.push_back(profile.substr(profile.find('=') + 1));  // TYPE=FILE
  }
  const std::vector<std::string> step_times = step_time_files(options.throughputs);
  names.insert(names.end(), step_times.begin(), step_times.end());
  return names;
}

}  // namespace gpusched
