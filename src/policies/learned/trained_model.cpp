// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/trained_model.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "src/base/atomic_file.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/nearest_name.hpp"
#include "src/policies/learned/agent_fields.hpp"
#include "src/policies/learned/seed_folders.hpp"
#include "src/policies/learned/shipped_models.hpp"

namespace gpusched {
namespace {

static_assert(std::endian::native == std::endian::little, "weights.bin is little-endian");

constexpr const char* format_name = "gpusched trained scheduler";
constexpr std::uint32_t format_version = 1;
constexpr std::uint32_t most_model_jobs = 100'000;

std::string model_file(const std::string& folder) { return folder + "/model.json"; }
std::string weights_file(const std::string& folder) { return folder + "/weights.bin"; }

std::string model_json(const TrainedModel& model, std::uint32_t checksum) {
  const bool guarded = model.agenda.starvation != Time::max();
  Json json{{"format", format_name},
            {"version", format_version},
            {"job_features", static_cast<std::uint32_t>(job_features)},
            {"global_features", static_cast<std::uint32_t>(global_features)},
            {"group_features", static_cast<std::uint32_t>(group_features)},
            {"agenda",
             {{"mode", name_of(action_mode_names, model.agenda.mode)},
              {"knowledge", name_of(runtime_knowledge_names, model.agenda.knowledge)},
              {"heuristic", name_of(heuristic_names, model.agenda.heuristic)},
              {"max_jobs", model.agenda.max_jobs},
              {"choose_nodes", model.agenda.choose_nodes},
              {"sc20_backfill", model.agenda.sc20_backfill},
              {"starvation_s", guarded ? to_seconds(model.agenda.starvation) : 0.0}}},
            {"network",
             {{"kind", name_of(network_kind_names, model.network.kind)},
              {"width", model.network.width},
              {"heads", model.network.heads},
              {"critic_width", model.network.critic_width},
              {"alpha", model.network.alpha},
              {"hidden", model.network.hidden},
              {"hold_s", model.network.hold_s},
              {"hold_jobs", model.network.hold_jobs},
              {"deviation", model.network.deviation}}},
            {"normaliser",
             {{"job_mean", model.normaliser.job_mean},
              {"job_scale", model.normaliser.job_scale},
              {"global_mean", model.normaliser.global_mean},
              {"global_scale", model.normaliser.global_scale}}},
            {"parameters", model.parameters.size()},
            {"weights_crc32c", checksum}};
  if (model.agenda.node_speeds)
    json["agenda"]["node_speeds"] = true;  // not in models of before there was such a choice
  if (model.agenda.signals) {
    json["agenda"]["signals"] = true;
    json["agenda"]["forecast"] = name_of(forecast_names, model.agenda.forecast.kind);
    json["agenda"]["forecast_sigma"] = model.agenda.forecast.sigma;
    json["signal_features"] = static_cast<std::uint32_t>(signal_features);
  }
  return json.dump(2) + "\n";
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> entries{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t rest = i;
      for (int bit = 0; bit < 8; ++bit) rest = (rest >> 1) ^ ((rest & 1u) != 0 ? 0x82F63B78u : 0u);
      entries[i] = rest;
    }
    return entries;
  }();
  std::uint32_t sum = ~0u;
  for (const char byte : bytes) sum = (sum >> 8) ^ table[(sum ^ static_cast<unsigned char>(byte)) & 0xFFu];
  return ~sum;
}

Result<void> save_model(const TrainedModel& model, const std::string& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) return Unexpected{Error{.message = "the folder cannot be made", .file = folder}};
  const std::string_view bytes(reinterpret_cast<const char*>(model.parameters.data()),
                               model.parameters.size() * sizeof(float));
  if (auto done = replace_file(weights_file(folder), bytes); !done) return done;
  return replace_file(model_file(folder), model_json(model, crc32c(bytes)));
}

namespace {

Result<TrainedModel> shipped_model(const std::string& folder) {
  const std::string wanted = folder.substr(builtin_model_prefix.size());
  std::vector<std::string> known;
  for (const ShippedModel& shipped : shipped_models()) {
    if (shipped.name == wanted) return parse_model(shipped.model_json, shipped.weights, folder);
    known.emplace_back(shipped.name);
  }
  return unexpected("no model '" + wanted + "' comes with the program; expected one of " + joined(known, "|") +
                    suggest_nearest(wanted, known));
}

// Which runs there are, and how to name one of them or all.
Unexpected several_models(const std::string& folder) {
  const auto seeds = read_seeds(folder);
  if (!seeds) return {seeds.error()};
  std::string all;
  for (const std::uint64_t seed : *seeds) all += (all.empty() ? "rl:" : ",rl:") + seed_folder(folder, seed);
  return Unexpected{Error{.message = "holds the runs of training seeds " + seeds_text(*seeds) +
                                     ": give one, rl:" + seed_folder(folder, seeds->front()) +
                                     ", or to evaluate all as one, --group 'NAME=" + all + "'",
                          .file = folder}};
}

}  // namespace

Result<TrainedModel> load_model(const std::string& folder) {
  if (folder.starts_with(builtin_model_prefix)) return shipped_model(folder);
  const auto json = read_text_file(model_file(folder));
  if (!json && holds_seeds(folder)) return several_models(folder);
  if (!json) return Unexpected{json.error()};
  const auto weights = read_text_file(weights_file(folder));
  if (!weights) return Unexpected{weights.error()};
  return parse_model(*json, *weights, folder);
}

Result<TrainedModel> parse_model(std::string_view model_json, std::string_view weights, const std::string& folder) {
  const std::string file = model_file(folder);
  const auto json = parse_json_strictly(model_json, file);
  if (!json) return Unexpected{json.error()};

  TrainedModel model;
  std::string format;
  std::uint32_t version = 0;
  std::uint32_t features[3] = {};
  std::uint64_t count = 0;
  std::uint32_t checksum = 0;
  JsonFields fields(*json, file);
  for (const char* key : {"format", "version", "agenda", "network", "normaliser", "parameters", "weights_crc32c"}) {
    fields.require(key);
  }
  fields.read("format", format);
  if (format != format_name) fields.fail("format", std::string("expected \"") + format_name + "\"");
  fields.read("version", version);
  if (version != format_version) {
    fields.fail("version",
                "is " + std::to_string(version) + "; this build reads version " + std::to_string(format_version));
  }
  fields.read("job_features", features[0]);
  fields.read("global_features", features[1]);
  fields.read("group_features", features[2]);
  if (features[0] != job_features || features[1] != global_features || features[2] != group_features) {
    fields.fail("job_features", "the model was trained on other features than this build has");
  }
  fields.read_object("agenda",
                     [&](JsonFields& agenda) { read_table(agenda, agenda_fields(model.agenda, "", most_model_jobs)); });
  fields.read_object("network", [&](JsonFields& network) {
    read_table(network, network_fields(model.network, ""));
    if (const auto wrong = network_contradiction(model.network)) network.fail(wrong->field, wrong->message);
  });
  fields.read_object("normaliser", [&](JsonFields& normaliser) {
    const auto read = [&](const char* key, std::vector<float>& values, std::size_t size) {
      normaliser.read(key, values, size);
      const auto is_finite = [](float value) { return std::isfinite(value); };
      if (!std::all_of(values.begin(), values.end(), is_finite)) normaliser.fail(key, "holds a number too large");
    };
    read("job_mean", model.normaliser.job_mean, job_features);
    read("job_scale", model.normaliser.job_scale, job_features);
    read("global_mean", model.normaliser.global_mean, global_features);
    read("global_scale", model.normaliser.global_scale, global_features);
  });
  if (model.agenda.signals) {
    std::uint32_t signals = 0;
    fields.read("signal_features", signals);
    if (signals != signal_features) {
      fields.fail("signal_features", "the model was trained on other features than this build has");
    }
  }
  fields.read("parameters", count);
  fields.read("weights_crc32c", checksum);
  if (const auto wrong = contradiction(model.agenda)) fields.fail("agenda", std::string(*wrong));
  if (!matches(model.network.kind, model.agenda.mode)) {
    fields.fail("network", "the network rank goes with mode preempt, and no other does");
  }
  if (auto done = fields.finish(); !done) return Unexpected{done.error()};

  model.network = for_agenda(model.network, model.agenda);
  const std::size_t expected = layout_of(model.network).size;
  if (count != expected) {
    return Unexpected{
        Error{.message = "has " + std::to_string(count) + " parameters; this network has " + std::to_string(expected),
              .file = file,
              .field = "/parameters"}};
  }
  const auto wrong_weights = [&folder](std::string message) {
    return Unexpected{Error{.message = std::move(message), .file = weights_file(folder)}};
  };
  if (weights.size() != expected * sizeof(float)) {
    return wrong_weights("has " + std::to_string(weights.size()) + " bytes; expected " +
                         std::to_string(expected * sizeof(float)) + " (cut off?)");
  }
  if (crc32c(weights) != checksum) return wrong_weights("does not match the checksum in model.json");
  model.parameters.resize(expected);
  std::memcpy(model.parameters.data(), weights.data(), weights.size());
  for (const float value : model.parameters) {
    if (!std::isfinite(value)) return wrong_weights("holds a parameter that is not finite");
  }
  return model;
}

}  // namespace gpusched
