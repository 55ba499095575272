// SPDX-License-Identifier: Apache-2.0
#include "traces/core/slurm_gpus.hpp"

#include <algorithm>
#include <string>

#include "src/base/letter_case.hpp"

namespace gpusched {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// "1g.5gb", "2g.10gb", "1g.10gb+me" at the front of `text`.
bool is_mig_profile(std::string_view text) {
  if (text.size() < 6 || !is_digit(text[0]) || text[0] == '0' || text.substr(1, 2) != "g.") return false;
  std::size_t at = 3;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == 3 || text.substr(at, 2) != "gb") return false;
  return at + 2 == text.size() || text[at + 2] == '+' || text[at + 2] == '.';
}

bool is_a30(std::string_view model, std::string_view profile) {
  return model.find("a30") != std::string_view::npos ||
         (model.empty() && (profile == "1g.6gb" || profile == "2g.12gb" || profile == "4g.24gb"));
}

}  // namespace

SlurmGpu slurm_gpu(std::string_view type) {
  const std::string lower = lower_case(type);
  for (std::size_t at = 0; at < type.size(); ++at) {
    const bool begins = at == 0 || type[at - 1] == '_' || type[at - 1] == '-' || type[at - 1] == '.';
    const std::string_view profile = std::string_view(lower).substr(at);
    if (!begins || !is_mig_profile(profile)) continue;
    const std::string_view model = type.substr(0, at == 0 ? 0 : at - 1);
    const MilliGpu slices = is_a30(std::string_view(lower).substr(0, model.size()), profile) ? 4 : 7;
    return {.model = model, .milli = std::min(whole_gpu, (profile[0] - '0') * whole_gpu / slices)};
  }
  return {.model = type};
}

}  // namespace gpusched
