// SPDX-License-Identifier: Apache-2.0
#include "src/sim/fidelity.hpp"

#include <algorithm>
#include <utility>

namespace gpusched {

FieldTable fidelity_fields(Fidelity& fidelity) {
  return {
      {"fidelity.profiles", "--profile",
       "device profiles that set how fast each job family runs on each GPU type: [TYPE=]FILE_OR_NAME[,...]",
       &fidelity.profiles},
      {"fidelity.reference", "--reference-profile",
       "profile of the device that the trace's durations are of; by default the first of --profile",
       &fidelity.reference_profile},
      {"fidelity.slowdown", "--slowdown", "factor on every modelled duration, for what the model leaves out",
       &fidelity.slowdown},
      {"fidelity.interference",
       "--interference",
       "how much jobs that share a GPU slow each other: as the profiles say, or not",
       &fidelity.interference,
       {"profile", "none"}},
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

}  // namespace

Result<CalibratedRuntime> runtime_of(const Fidelity& fidelity, const JobTable& jobs, const Cluster& cluster) {
  const auto fail = [](const Error& error, const char* field) {
    return Unexpected{Error{.message = error.to_string(), .field = field}};
  };
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

std::vector<std::string> files_of(const Fidelity& fidelity) {
  std::vector<std::string> names{fidelity.reference_profile};
  for (const std::string& profile : given_profiles(fidelity)) {
    names.push_back(profile);
    names.push_back(profile.substr(profile.find('=') + 1));  // TYPE=FILE
  }
  return names;
}

}  // namespace gpusched
