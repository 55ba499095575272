// SPDX-License-Identifier: Apache-2.0
#include "src/search/trainings.hpp"

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "src/base/atomic_file.hpp"
#include "src/base/build_info.hpp"
#include "src/base/parallel.hpp"
#include "src/base/sha256.hpp"
#include "src/rl/train_config.hpp"

namespace gpusched {
namespace {

// The file that says that a training ended; what it holds is for people.
constexpr const char* trained_name = "trained.json";
constexpr const char* failed_name = "failed.txt";

// Puts `value` at "network.hidden".
void put(Json& config, const std::string& path, const Json& value) {
  Json* place = &config;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    place = &(*place)[path.substr(begin, dot - begin)];
    if (!place->is_object()) *place = Json::object();
    begin = dot + 1;
  }
  (*place)[path.substr(begin)] = value;
}

}  // namespace

Trainings::Trainings(const Search& search, const RunInput& input, const ConditionOptions& conditions,
                     std::uint32_t train_jobs, TrainingMethod* ppo)
    : search_(&search),
      input_(&input),
      conditions_(conditions),
      jobs_(input.trace.jobs.slice(0, train_jobs)),
      ppo_(ppo) {}

Result<TrainConfig> Trainings::config_of(const TrainingRequest& request) const {
  const std::string place = search_->policies[request.space].place() + "/train";
  Json text = *search_->policies[request.space].training;
  for (const auto& [path, value] : request.values) put(text, path, value);
  const auto refuse = [&](std::string message) {
    return Unexpected{Error{.message = std::move(message), .file = search_->file, .field = place}};
  };
  ConditionOptions conditions = conditions_;
  std::vector<std::string> of_base{"trace", "cluster"};
  for (const Field& field : condition_table(conditions)) of_base.push_back(field.path.substr(0, field.path.find('.')));
  for (const std::string& key : of_base) {
    if (text.contains(key))
      return refuse(key + " belongs to /base: trainings see its training part, under its conditions");
  }
  // The trace is not read: the jobs are there.
  auto config = read_train_config(json_text(text, -1), search_->file, input_->trace.report.path);
  if (!config) {
    Error error = config.error();
    error.field = place + error.field;
    return Unexpected{error};
  }
  if (config->test_at_end) return refuse("test_at_end: a search holds windows out itself");
  if (config->search.time_limit_s > 0 || config->ppo.time_limit_s > 0) {
    return refuse("time_limit_s: what is trained until a time is not the same twice");
  }
  if (config->method == Method::ppo && ppo_ == nullptr) {
    return refuse("method: a search trains by cma_es, es or random; ppo is for gpusched train");
  }
  config->cluster = input_->cluster.name;
  config->conditions = conditions_;
  config->threads = 1;
  const auto scaled = [&](std::uint32_t& count) { count = static_cast<std::uint32_t>(count * request.budget); };
  scaled(config->method == Method::ppo ? config->ppo.iterations : config->search.generations);
  if (auto known = check_method(*config, build_info().with_torch && ppo_ != nullptr); !known) {
    return refuse(known.error().message);
  }
  return config;
}

Result<void> Trainings::check(const TrainingRequest& request) const {
  const auto config = config_of(request);
  if (!config) return Unexpected{config.error()};
  return {};
}

TrainedCandidate Trainings::carry_out(const TrainConfig& config) const {
  const BuildInfo build = build_info();
  const std::string text = train_config_json(config);
  const std::string key =
      sha256_text(text + json_text(search_->base, -1) + input_->trace.report.sha256 + std::to_string(jobs_.size()) +
                  std::string(build.version) + " " + std::string(build.git_commit));
  const std::string folder = search_->out + "/models/" + key.substr(0, 16);
  std::error_code ignored;
  if (std::filesystem::exists(folder + "/" + trained_name, ignored)) return {.policy = "rl:" + folder, .failure = {}};
  if (auto why = read_text_file(folder + "/" + failed_name)) return {.policy = {}, .failure = *std::move(why)};
  std::filesystem::create_directories(folder, ignored);
  const auto summary = gpusched::train(
      config, jobs_, input_->cluster, folder, has_checkpoint(folder), [](const TrainProgress&) {}, ppo_);
  const Json told = summary ? Json{{"iterations", summary->iterations},
                                   {"best_iteration", summary->best_iteration},
                                   {"best_validation", summary->best_validation},
                                   {"validation_heuristic", summary->validation_heuristic}}
                            : Json();
  const auto written = summary ? replace_file(folder + "/" + trained_name, json_text(told))
                               : replace_file(folder + "/" + failed_name, summary.error().to_string());
  if (!written) return {.policy = {}, .failure = written.error().to_string()};
  if (!summary) return {.policy = {}, .failure = summary.error().to_string()};
  return {.policy = "rl:" + folder, .failure = {}};
}

Result<std::vector<TrainedCandidate>> Trainings::train(const std::vector<TrainingRequest>& requests,
                                                       const std::atomic<bool>* stop) {
  std::vector<std::optional<Result<TrainedCandidate>>> all(requests.size());
  for_each_index(requests.size(), search_->threads, [&](std::size_t i) {
    if (stop != nullptr && *stop) return;
    const auto config = config_of(requests[i]);
    all[i] = config ? Result(carry_out(*config)) : Result<TrainedCandidate>{Unexpected{config.error()}};
  });
  std::vector<TrainedCandidate> trained;
  for (auto& one : all) {
    if (!one) return unexpected("interrupted");
    if (!*one) return Unexpected{one->error()};
    trained.push_back(**std::move(one));
  }
  return trained;
}

}  // namespace gpusched
