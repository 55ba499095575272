// SPDX-License-Identifier: Apache-2.0
/// The folders of models/ as they were when the program was built, so that rl:builtin/NAME runs from any folder.
#pragma once

#include <span>
#include <string_view>

namespace gpusched {

/// What their names begin with, where a folder of a model could stand too.
inline constexpr std::string_view builtin_model_prefix = "builtin/";

struct ShippedModel {
  std::string_view name;  ///< of the folder
  std::string_view model_json;
  std::string_view weights;  ///< bytes of weights.bin
  std::string_view card;     ///< the first line is a summary; then what it was trained on, is good at and bad at
};

/// All of them, by name.
std::span<const ShippedModel> shipped_models();

}  // namespace gpusched
