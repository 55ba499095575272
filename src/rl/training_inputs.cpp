// SPDX-License-Identifier: Apache-2.0
#include "src/rl/training_inputs.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/json_fields.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/learned/seed_folders.hpp"
#include "src/sim/manifest.hpp"
#include "src/world/cluster_reader.hpp"

namespace gpusched {
namespace {

namespace fs = std::filesystem;

// Where the hashes of a run stand: in its folder or, of one of several seeds, beside it.
std::string place_of_inputs(const std::string& folder) {
  const std::string own = folder + "/inputs.json";
  std::error_code ignored;
  const fs::path above = (fs::path(folder) / "").parent_path().parent_path();
  const std::string shared = above.empty() ? "." : above.string();
  return !fs::exists(own, ignored) && holds_seeds(shared) ? shared + "/inputs.json" : own;
}

// The files in a trace's folder, but for folders in it, which may be runs; of any other trace none.
std::vector<std::string> files_below(const std::string& path) {
  std::error_code ignored;
  std::vector<std::string> files;
  if (!fs::is_directory(path, ignored)) return files;
  for (const auto& entry : fs::directory_iterator(path, ignored)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> names_of_files(const TrainConfig& config) {
  std::vector<std::string> names = files_below(config.trace);
  const auto add = [&names](const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  add(files_of(config.conditions));
  add({cluster_without_added(config.cluster), config.qos});
  const std::string& teacher = config.ppo.teacher_model;
  if (config.ppo.imitate_iterations > 0 && !teacher.empty()) add({teacher + "/model.json", teacher + "/weights.bin"});
  const PolicyRegistry registry = PolicyRegistry::standard();
  if (const auto reference = parse_policies(registry, config.constraints.reference)) {
    add(files_of_policies(*reference, registry));
  }
  return names;
}

Unexpected changed(const std::string& path, const std::string& folder) {
  return Unexpected{Error{.message = "is not what the run " + folder +
                                     " began with (its SHA-256 differs), and losses of both could not be compared; "
                                     "train anew with another --out",
                          .file = path == "-" ? "standard input" : path}};
}

}  // namespace

std::vector<TrainingInput> training_inputs(const TrainConfig& config, const TraceReport& trace) {
  std::vector<TrainingInput> inputs;
  if (!trace.sha256.empty()) inputs.push_back({config.trace, trace.sha256});
  for (const std::string& name : existing_files(names_of_files(config))) {
    const Json file = file_json(name);
    if (file["sha256"].is_string()) inputs.push_back({name, file["sha256"].get<std::string>()});
  }
  return inputs;
}

Result<void> write_training_inputs(const std::string& folder, const std::vector<TrainingInput>& inputs) {
  Json files = Json::array();
  for (const TrainingInput& input : inputs) files.push_back({{"path", input.path}, {"sha256", input.sha256}});
  return replace_file(folder + "/inputs.json", json_text({{"files", std::move(files)}}));
}

void forget_training_inputs(const std::string& folder) {
  std::error_code ignored;
  fs::remove(folder + "/inputs.json", ignored);
}

bool knows_training_inputs(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(place_of_inputs(folder), ignored);
}

Result<void> check_training_inputs(const std::string& folder, const std::vector<TrainingInput>& inputs) {
  const std::string place = place_of_inputs(folder);
  const auto text = read_text_file(place);
  if (!text) return Unexpected{text.error()};
  const auto json = parse_json_strictly(*text, place);
  if (!json) return Unexpected{json.error()};
  std::vector<TrainingInput> before;
  JsonFields fields(*json, place);
  fields.require("files");
  fields.read_objects("files", [&](JsonFields& file, std::size_t) {
    TrainingInput& input = before.emplace_back();
    file.read("path", input.path);
    file.read("sha256", input.sha256);
  });
  if (auto done = fields.finish(); !done) return done;
  const auto holds = [](const std::vector<TrainingInput>& all, const TrainingInput& wanted) {
    return std::any_of(all.begin(), all.end(), [&wanted](const TrainingInput& input) {
      return input.path == wanted.path && input.sha256 == wanted.sha256;
    });
  };
  for (const TrainingInput& input : inputs) {
    if (!holds(before, input)) return changed(input.path, folder);
  }
  for (const TrainingInput& input : before) {
    if (!holds(inputs, input)) return changed(input.path, folder);
  }
  return {};
}

}  // namespace gpusched
