// SPDX-License-Identifier: Apache-2.0
/// A trained scheduler as a folder: model.json says what it is, weights.bin holds the parameters. Nothing of the
/// trainer is needed to read or run it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/learn/agenda_options.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

struct TrainedModel {
  AgendaOptions agenda;
  NetworkSpec network;
  Normaliser normaliser;
  std::vector<float> parameters;  ///< all of layout_of(network), critic included
};

/// Writes the folder: weights first, then model.json, each complete or not at all; model.json carries the checksum, so
/// that a folder cut off in between is refused when it is read.
Result<void> save_model(const TrainedModel& model, const std::string& folder);

/// The model in that folder; of `builtin/NAME`, one that comes with the program (shipped_models.hpp).
/// Errors: no such folder, one of several seeds (seed_folders.hpp), another format version, features or network that
/// this build does not have, a weights file that is cut off or altered, parameters that are not finite.
Result<TrainedModel> load_model(const std::string& folder);

/// A model from the text of model.json and the bytes of weights.bin; `folder` is for messages only.
Result<TrainedModel> parse_model(std::string_view model_json, std::string_view weights, const std::string& folder);

/// CRC-32C (Castagnoli, reflected 0x82F63B78) of `bytes`, as TFRecord uses it too.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace gpusched
