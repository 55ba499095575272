// SPDX-License-Identifier: Apache-2.0
#include "traces/core/kubernetes_json.hpp"

#include <cmath>

#include "src/base/field_parser.hpp"

namespace gpusched {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};
constexpr Suffix suffixes[] = {{"Ki", 1024.0},
                               {"Mi", 1024.0 * 1024},
                               {"Gi", 1024.0 * 1024 * 1024},
                               {"Ti", 1024.0 * 1024 * 1024 * 1024},
                               {"Pi", 1024.0 * 1024 * 1024 * 1024 * 1024},
                               {"n", 1e-9},
                               {"u", 1e-6},
                               {"m", 1e-3},
                               {"k", 1e3},
                               {"M", 1e6},
                               {"G", 1e9},
                               {"T", 1e12},
                               {"P", 1e15}};

}  // namespace

std::optional<std::int64_t> kubernetes_milli(const JsonRecord& value) {
  constexpr double most = 4e18;
  double number = 0, factor = 1;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_string()) {
    const auto& whole = value.get_ref<const std::string&>();
    std::string_view text = whole;
    for (const Suffix& suffix : suffixes) {
      if (!text.ends_with(suffix.text)) continue;
      factor = suffix.factor;
      text.remove_suffix(suffix.text.size());
      break;
    }
    const auto parsed = parse_number(text);
    if (!parsed) return std::nullopt;
    number = *parsed;
  } else {
    return std::nullopt;
  }
  const double milli = number * factor * 1000;
  constexpr double rounding = 1e-6;  // 0.1 x 1000 is no more than 100
  if (!(milli >= 0 && milli < most)) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(milli - rounding));
}

std::optional<KubernetesResources> kubernetes_resources(const JsonRecord* map, std::string& wrong) {
  KubernetesResources resources;
  if (map == nullptr || !map->is_object()) return resources;
  constexpr std::int64_t bytes_per_mib = std::int64_t{1024} * 1024;
  constexpr std::string_view mig = "nvidia.com/mig-";
  for (const auto& [name, value] : map->items()) {
    const bool is_slice = name.starts_with(mig), is_gpu = name.ends_with("/gpu");
    const bool is_share =
        name.ends_with("/gpu.shared") || name.ends_with("/sharedgpu") || name.ends_with("/vgpu-number");
    const bool is_device = name.find('/') != std::string::npos;
    if (name != "cpu" && name != "memory" && !is_slice && !is_gpu && !is_share && !is_device) continue;
    const auto milli = kubernetes_milli(value);
    if (is_device && !is_slice && !is_gpu && !is_share) {
      if (milli != std::int64_t{0}) resources.unread.push_back(name);
      continue;
    }
    if (!milli) {
      wrong = name;
      return std::nullopt;
    }
    const std::int64_t whole = (*milli + 999) / 1000;
    if (name == "cpu") resources.cpu_milli = *milli;
    if (name == "memory") resources.memory_mib = (whole + bytes_per_mib - 1) / bytes_per_mib;
    if (is_gpu) resources.gpus += whole;
    if (is_share) resources.shares += whole;
    if (is_slice && whole > 0) {
      // "mig-1g.10gb.me" is the profile with media extensions.
      std::string profile = name.substr(mig.size());
      if (profile.ends_with(".me")) profile.resize(profile.size() - 3);
      resources.slices[profile] += whole;
    }
  }
  return resources;
}

std::string kubernetes_product(std::string name) {
  if (const std::size_t mig = name.find("-MIG-"); mig != std::string::npos) name.resize(mig);
  if (name.ends_with("-SHARED")) name.resize(name.size() - 7);
  return name;
}

bool is_kubernetes(std::string_view head, std::string_view kind) {
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || (head[start] != '{' && head[start] != '[')) return false;
  if (head.find("\"apiVersion\"") == std::string_view::npos) return false;
  for (std::size_t at = head.find("\"kind\""); at != std::string_view::npos; at = head.find("\"kind\"", at + 1)) {
    const std::size_t colon = head.find_first_not_of(" \t\r\n", at + 6);
    if (colon == std::string_view::npos || head[colon] != ':') continue;
    std::size_t quote = head.find_first_not_of(" \t\r\n", colon + 1);
    if (quote == std::string_view::npos || head[quote] != '"') continue;
    const std::string_view word = head.substr(quote + 1, head.find('"', quote + 1) - quote - 1);
    if (word == kind || word == std::string(kind) + "List") return true;
    if (word != "List") return false;  // an object of another kind
  }
  return false;
}

}  // namespace gpusched
