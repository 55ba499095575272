// SPDX-License-Identifier: Apache-2.0
#include "src/rl/ppo/checkpoint.hpp"

#include <cstring>

#include "src/base/atomic_file.hpp"
#include "src/base/json_fields.hpp"
#include "src/policies/learned/trained_model.hpp"

namespace gpusched {
namespace {

// Layout: magic, length of the JSON part (8 bytes), the JSON part, arrays of floats (parameters, Adam's moments, with
// "has_start" those that training began with), CRC-32C of all that (4 bytes). Little-endian.
constexpr std::string_view magic = "GPUSCHED checkpoint 2\n";

std::string_view bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

template <class T>
std::string_view bytes_of_value(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

template <class T>
T value_at(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

}  // namespace

Result<void> save_checkpoint(const Checkpoint& checkpoint, const std::string& path) {
  const Json json{{"iteration", checkpoint.iteration},
                  {"steps", checkpoint.steps},
                  {"trained_s", checkpoint.trained_s},
                  {"learning_rate", checkpoint.learning_rate},
                  {"temperature", checkpoint.temperature},
                  {"return_mean", checkpoint.return_mean},
                  {"return_scale", checkpoint.return_scale},
                  {"reward_per_s", checkpoint.reward_per_s},
                  {"best_validation", checkpoint.best_validation},
                  {"best_iteration", checkpoint.best_iteration},
                  {"adam_steps", checkpoint.adam.steps},
                  {"adam_policy_steps", checkpoint.adam.policy_steps},
                  {"parameters", checkpoint.parameters.size()},
                  {"has_start", !checkpoint.start.empty()},
                  {"job_mean", checkpoint.normaliser.job_mean},
                  {"job_scale", checkpoint.normaliser.job_scale},
                  {"global_mean", checkpoint.normaliser.global_mean},
                  {"global_scale", checkpoint.normaliser.global_scale},
                  {"metrics_csv", checkpoint.metrics_csv},
                  {"config", checkpoint.config}};
  const std::string text = json.dump();
  std::string bytes(magic);
  bytes += bytes_of_value(static_cast<std::uint64_t>(text.size()));
  bytes += text;
  for (const auto* values :
       {&checkpoint.parameters, &checkpoint.adam.first, &checkpoint.adam.second, &checkpoint.start}) {
    bytes += bytes_of(*values);
  }
  bytes += bytes_of_value(crc32c(bytes));
  return replace_file(path, bytes);
}

Result<Checkpoint> load_checkpoint(const std::string& path, const NetworkSpec& spec) {
  const auto fail = [&](std::string message) { return Unexpected{Error{.message = std::move(message), .file = path}}; };
  const auto file = read_text_file(path);
  if (!file) return Unexpected{file.error()};
  const std::string_view bytes = *file;
  if (!bytes.starts_with(magic)) return fail("is no checkpoint of this version");
  const std::size_t head = magic.size() + sizeof(std::uint64_t);
  if (bytes.size() < head + sizeof(std::uint32_t)) return fail("is cut off");
  const std::string_view covered = bytes.substr(0, bytes.size() - sizeof(std::uint32_t));
  if (crc32c(covered) != value_at<std::uint32_t>(bytes, covered.size())) return fail("is cut off or altered");
  const auto length = value_at<std::uint64_t>(bytes, magic.size());
  if (length > covered.size() - head) return fail("is cut off or altered");

  const auto json = parse_json_strictly(covered.substr(head, length), path);
  if (!json) return Unexpected{json.error()};
  Checkpoint checkpoint;
  std::uint64_t count = 0;
  bool has_start = false;
  constexpr double any = 1e300;
  JsonFields fields(*json, path);
  fields.read("iteration", checkpoint.iteration);
  fields.read("steps", checkpoint.steps);
  fields.read("trained_s", checkpoint.trained_s);
  fields.read("learning_rate", checkpoint.learning_rate);
  fields.read("temperature", checkpoint.temperature);
  fields.read("return_mean", checkpoint.return_mean, -any, any);
  fields.read("return_scale", checkpoint.return_scale, 0, any);
  fields.read("reward_per_s", checkpoint.reward_per_s, -any, any);
  fields.read("best_validation", checkpoint.best_validation, -any, any);
  fields.read("best_iteration", checkpoint.best_iteration);
  fields.read("adam_steps", checkpoint.adam.steps);
  fields.read("adam_policy_steps", checkpoint.adam.policy_steps);
  fields.read("parameters", count);
  fields.read("has_start", has_start);
  fields.read("job_mean", checkpoint.normaliser.job_mean, job_features);
  fields.read("job_scale", checkpoint.normaliser.job_scale, job_features);
  fields.read("global_mean", checkpoint.normaliser.global_mean, global_features);
  fields.read("global_scale", checkpoint.normaliser.global_scale, global_features);
  fields.read("metrics_csv", checkpoint.metrics_csv);
  fields.read("config", checkpoint.config);
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};

  const std::size_t expected = layout_of(spec).size;
  if (count != expected) {
    return fail("holds a network of " + std::to_string(count) + " parameters; the configuration's has " +
                std::to_string(expected));
  }
  std::size_t at = head + length;
  std::vector<std::vector<float>*> arrays{&checkpoint.parameters, &checkpoint.adam.first, &checkpoint.adam.second};
  if (has_start) arrays.push_back(&checkpoint.start);
  if (covered.size() - at != arrays.size() * expected * sizeof(float)) return fail("is cut off or altered");
  for (auto* values : arrays) {
    values->resize(expected);
    std::memcpy(values->data(), bytes.data() + at, expected * sizeof(float));
    at += expected * sizeof(float);
  }
  return checkpoint;
}

}  // namespace gpusched
