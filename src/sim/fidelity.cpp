// SPDX-License-Identifier: Apache-2.0
#include "src/sim/fidelity.hpp"

#include <algorithm>
#include <utility>

#include "src/calibration/profile/communication.hpp"
#include "src/calibration/profile/span_speeds.hpp"
#include "src/calibration/profile/step_times.hpp"
#include "src/calibration/profile/throughput_table.hpp"

namespace gpusched {

namespace {
constexpr std::string_view measured_word = "throughputs";  // of --span-speed and --interference
}  // namespace

FieldTable fidelity_fields(Fidelity& fidelity) {
  return {
      {"fidelity.profiles", "--profile",
       "device profiles that set how fast each job family runs on each GPU type: [TYPE=]FILE_OR_NAME[,...]",
       &fidelity.profiles},
      {"fidelity.reference", "--reference-profile",
       "profile of the device that the trace's durations are of; by default the first of --profile",
       &fidelity.reference_profile},
      {"fidelity.throughputs", "--throughputs",
       "measured throughputs, in place of profiles: a csv of family, gpu_type, throughput and, where they matter, "
       "gpus, "
       "span and beside; or the JSON of Gavel's artifact; or a folder of step times as in those of Pollux and Sia",
       &fidelity.throughputs},
      {"fidelity.reference_type", "--reference-type",
       "GPU type of --throughputs that the trace's durations are of; by default its first", &fidelity.reference_type},
      {"fidelity.throughput_fallback",
       "--throughput-fallback",
       "what stands for throughputs that --throughputs lacks: none (they are an error), or the ratio of memory "
       "bandwidths on data sheets",
       &fidelity.throughput_fallback,
       {"none", "datasheet"}},
      {"fidelity.slowdown", "--slowdown", "factor on every modelled duration, for what the model leaves out",
       &fidelity.slowdown},
      {"fidelity.span_speed", "--span-speed",
       "speed of gangs on several islands of a node, nodes of a rack, racks of a site, or sites, as a part of that on "
       "one "
       "node: nodes=0.9,racks=0.7,...; or throughputs: as --throughputs measured",
       &fidelity.span_speed},
      {"fidelity.communication", "--communication",
       "the same from how job families communicate (JSON) over the links of the cluster file", &fidelity.communication},
      {"fidelity.reference_span",
       "--reference-span",
       "where the trace's durations were measured: gangs on one node, or as near together as the cluster has room",
       &fidelity.reference_span,
       {"node", "narrowest"}},
      {"fidelity.interference",
       "--interference",
       "how much jobs that share a GPU slow each other: as the profiles say, as --throughputs measured, or not",
       &fidelity.interference,
       {"profile", std::string(measured_word), "none"}},
  };
}

namespace {

// [TYPE=]FILE_OR_NAME of each of --profile.
std::vector<std::string> given_profiles(const Fidelity& fidelity) {
  std::vector<std::string> given;
  for (std::size_t at = 0; at < fidelity.profiles.size();) {
    const std::size_t comma = std::min(fidelity.profiles.find(',', at), fidelity.profiles.size());
    given.push_back(fidelity.profiles.substr(at, comma - at));
    at = comma + 1;
  }
  return given;
}

Result<CalibratedRuntime> runtime_of_throughputs(const Fidelity& fidelity, const JobTable& jobs,
                                                 const Cluster& cluster) {
  if (!fidelity.profiles.empty() || !fidelity.reference_profile.empty() || fidelity.slowdown != 1) {
    return unexpected("--throughputs takes the place of --profile, --reference-profile and --slowdown");
  }
  const auto table = read_throughput_table(fidelity.throughputs, &jobs.families());
  if (!table) return Unexpected{table.error()};
  const auto fallback = value_from_name(throughput_fallback_names, fidelity.throughput_fallback);
  if (!fallback) {
    return unexpected("--throughput-fallback: expected none or datasheet, not '" + fidelity.throughput_fallback + "'");
  }
  auto runtime = runtime_model_from_throughputs(*table, fidelity.reference_type, jobs, cluster, *fallback);
  if (!runtime || fidelity.interference != measured_word) return runtime;
  if (auto done = add_measured_pairs(*runtime, *table, jobs, cluster); !done) return Unexpected{done.error()};
  return runtime;
}

// What devices make of run times.
Result<CalibratedRuntime> device_runtime_of(const Fidelity& fidelity, const JobTable& jobs, const Cluster& cluster) {
  const auto fail = [](const Error& error, const char* field) {
    return Unexpected{Error{.message = error.to_string(), .field = field}};
  };
  if (!fidelity.throughputs.empty()) return runtime_of_throughputs(fidelity, jobs, cluster);
  if (fidelity.interference == measured_word) {
    return Unexpected{
        Error{.message = "throughputs are those of a file; add --throughputs", .field = "--interference"}};
  }
  if (fidelity.throughput_fallback != "none") {
    return unexpected("--throughput-fallback fills gaps of measured throughputs; add --throughputs");
  }
  if (!fidelity.reference_type.empty()) {
    return unexpected("--reference-type is a GPU type of measured throughputs; add --throughputs");
  }
  std::vector<TypeProfile> profiles;
  for (const std::string& given : given_profiles(fidelity)) {
    auto profile = parse_type_profile(given);
    if (!profile) return fail(profile.error(), "fidelity.profiles");
    profiles.push_back(*std::move(profile));
  }
  if (profiles.empty()) {
    if (!fidelity.reference_profile.empty() || fidelity.slowdown != 1) {
      return unexpected("--reference-profile and --slowdown apply to durations that profiles give; add --profile");
    }
    return CalibratedRuntime{};
  }
  DeviceProfile reference = profiles.front().profile;
  if (!fidelity.reference_profile.empty()) {
    auto given = find_device_profile(fidelity.reference_profile);
    if (!given) return fail(given.error(), "fidelity.reference");
    reference = *std::move(given);
  }
  const bool any_share =
      std::any_of(jobs.shapes().begin(), jobs.shapes().end(), [](const Shape& shape) { return shape.is_share(); });
  RuntimeOptions options{.slowdown = fidelity.slowdown,
                         .interference = any_share && fidelity.interference == "profile"};
  for (std::uint32_t type = 0; type < cluster.gpu_types.size(); ++type) {
    const auto has_it = [type](const Node& node) { return node.gpus > 0 && node.gpu_type == type; };
    if (std::none_of(cluster.nodes.begin(), cluster.nodes.end(), has_it)) options.empty_types.push_back(type);
  }
  auto runtime = runtime_model_from_profiles(jobs.families(), cluster.gpu_types, profiles, reference, options);
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

Result<SpanModel> spans_of(const Fidelity& fidelity, const RuntimeModel& devices, const JobTable& jobs,
                           const Cluster& cluster, std::vector<std::string>& notes) {
  if (!fidelity.span_speed.empty() && !fidelity.communication.empty()) {
    return unexpected("--communication takes the place of --span-speed");
  }
  const bool measured = fidelity.span_speed == measured_word;
  if (measured && fidelity.throughputs.empty()) {
    return Unexpected{Error{.message = "throughputs are those of a file; add --throughputs", .field = "--span-speed"}};
  }
  const auto reference = value_from_name(span_reference_names, fidelity.reference_span);
  if (!reference)
    return unexpected("--reference-span: expected node or narrowest, not '" + fidelity.reference_span + "'");
  if (measured) {
    const auto table = read_throughput_table(fidelity.throughputs, &jobs.families());
    if (!table) return Unexpected{table.error()};
    return span_model_of_throughputs(*table, *reference, jobs, cluster);
  }
  if (!fidelity.span_speed.empty()) {
    const auto speeds = parse_span_speeds(fidelity.span_speed);
    if (!speeds) return Unexpected{Error{.message = speeds.error().message, .field = "fidelity.span_speed"}};
    note_widest_span(cluster, *speeds, notes);
    return span_model_of_speeds(*speeds, *reference, jobs, cluster);
  }
  if (!fidelity.communication.empty()) {
    const auto table = read_communication(fidelity.communication);
    if (!table) return Unexpected{table.error()};
    return span_model_of_communication(*table, *reference, devices, jobs, cluster);
  }
  if (*reference != SpanReference::node) {
    return unexpected(
        "--reference-span applies to gangs that are slower when they are apart; add --span-speed or "
        "--communication");
  }
  return SpanModel{};
}

}  // namespace

Result<CalibratedRuntime> runtime_of(const Fidelity& fidelity, const JobTable& jobs, const Cluster& cluster) {
  auto runtime = device_runtime_of(fidelity, jobs, cluster);
  if (!runtime) return runtime;
  auto spans = spans_of(fidelity, runtime->model, jobs, cluster, runtime->notes);
  if (!spans) return Unexpected{spans.error()};
  runtime->model.set_spans(*std::move(spans));
  return runtime;
}

Result<void> check_placement(Placement placement, const Fidelity& fidelity) {
  if (placement != Placement::skew || !fidelity.communication.empty()) return {};
  return Unexpected{Error{.message = "skew keeps families together that a file of --communication marks as skewed; "
                                     "none is given",
                          .field = "--placement"}};
}

bool changes_run_times(const Fidelity& fidelity) {
  return !fidelity.profiles.empty() || !fidelity.throughputs.empty() || !fidelity.span_speed.empty() ||
         !fidelity.communication.empty();
}

std::vector<std::string> files_of(const Fidelity& fidelity) {
  std::vector<std::string> names{fidelity.reference_profile, fidelity.throughputs, fidelity.communication};
  for (const std::string& profile : given_profiles(fidelity)) {
    names.push_back(profile);
    names.push_back(profile.substr(profile.find('=') + 1));  // TYPE=FILE
  }
  const std::vector<std::string> step_times = step_time_files(fidelity.throughputs);
  names.insert(names.end(), step_times.begin(), step_times.end());
  return names;
}

}  // namespace gpusched
