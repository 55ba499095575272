// SPDX-License-Identifier: Apache-2.0
#include "traces/core/slurm_tres.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "src/base/field_parser.hpp"
#include "src/base/letter_case.hpp"
#include "traces/core/slurm_gpus.hpp"

namespace gpusched {
namespace {

constexpr std::int64_t most_of_resource = 1'000'000'000;
constexpr std::string_view typed_gpu = "gres/gpu:";

// The part of `text` in front of the separator, which is taken away with it; separators in brackets are text.
std::string_view take_part(std::string_view& text, char separator) {
  int depth = 0;
  std::size_t stop = 0;
  for (; stop < text.size() && (depth > 0 || text[stop] != separator); ++stop) {
    depth += text[stop] == '(' ? 1 : (text[stop] == ')' ? -1 : 0);
  }
  const std::string_view part = text.substr(0, stop);
  text.remove_prefix(std::min(stop + 1, text.size()));
  return part;
}

// What the database calls a resource by its number, and users without its kind.
std::string_view full_name(std::string_view name) {
  if (name == "1") return "cpu";
  if (name == "2") return "mem";
  if (name == "4") return "node";
  if (name == "1001" || name == "gpu") return "gres/gpu";
  return name;
}

}  // namespace

std::int64_t SlurmTres::gpu_count() const {
  return std::accumulate(gpus.begin(), gpus.end(), std::int64_t{0},
                         [](std::int64_t sum, const SlurmGpus& kind) { return sum + kind.count; });
}

bool SlurmTres::names_types() const {
  return std::any_of(gpus.begin(), gpus.end(),
                     [](const SlurmGpus& kind) { return !kind.model.empty() || kind.milli != whole_gpu; });
}

bool SlurmTresParts::add(std::string_view name, std::int64_t count) {
  const bool is_type = name.starts_with(typed_gpu);
  const bool counts = name == "cpu" || name == "node" || name == "gres/gpu" || is_type;
  if (name.starts_with("gres/shard") || name.starts_with("gres/mps")) tres_.shares = true;
  if (!counts) return true;
  if (count < 0 || count > most_of_resource) return false;
  if (name == "cpu") tres_.cores = count;
  if (name == "node") tres_.nodes = count;
  if (name == "gres/gpu") gpus_ = count;
  if (is_type && count > 0) {
    const SlurmGpu gpu = slurm_gpu(name.substr(typed_gpu.size()));
    by_type_.push_back({std::string(gpu.model), gpu.milli, count, gpu.profile});
  }
  return true;
}

SlurmTres SlurmTresParts::finish() {
  tres_.gpus = std::move(by_type_);
  if (const std::int64_t rest = gpus_ - tres_.gpu_count(); rest > 0) tres_.gpus.push_back({.count = rest});
  return std::move(tres_);
}

std::optional<std::int64_t> parse_slurm_memory_mib(std::string_view text) {
  if (text.ends_with('n') || text.ends_with('c')) text.remove_suffix(1);
  if (text.empty()) return std::nullopt;
  constexpr std::string_view units = "KMGTP";
  constexpr double most_mib = 1e12;  // an exabyte; those of a million components can be added
  double mib = 1;
  if (const std::size_t unit = units.find(text.back()); unit != std::string_view::npos) {
    mib = std::pow(1024.0, static_cast<double>(unit) - 1);
    text.remove_suffix(1);
  }
  const auto number = parse_number(text);
  if (!number || *number < 0 || *number * mib > most_mib) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(*number * mib));
}

std::optional<SlurmTres> parse_slurm_tres(std::string_view text) {
  SlurmTresParts parts;
  while (!text.empty()) {
    const std::string_view part = take_part(text, ',');
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || part.ends_with('+')) return std::nullopt;  // cut to the column's width
    const std::string_view given = trim(part.substr(0, equals));
    const std::string of_type = given.starts_with("gpu:") ? "gres/" + std::string(given) : "";
    const std::string_view name = of_type.empty() ? full_name(given) : std::string_view(of_type);
    const std::string_view value = part.substr(equals + 1);
    if (name == "mem") {
      const auto memory = parse_slurm_memory_mib(value);
      if (!memory) return std::nullopt;
      parts.set_memory_mib(*memory);
    } else if (!parts.add(name, parse_integer(value).value_or(-1))) {
      return std::nullopt;
    }
  }
  return parts.finish();
}

std::optional<SlurmTres> parse_slurm_gres(std::string_view text) {
  SlurmTres gres;
  while (!text.empty()) {
    std::string_view part = trim(take_part(text, ','));
    part = part.substr(0, part.find('('));
    if (part.starts_with("PER_SOCKET:") || part.starts_with("PER_TASK:") || parse_number(part)) return std::nullopt;
    if (part.starts_with("PER_JOB:")) gres.of_job = true;
    if (part.starts_with("PER_JOB:") || part.starts_with("PER_NODE:")) take_part(part, ':');
    if (part.starts_with("gres:") || part.starts_with("gres/")) part.remove_prefix(5);
    const std::string name = lower_case(part.substr(0, part.find_first_of(":=")));
    part.remove_prefix(std::min(name.size() + 1, part.size()));
    if (name == "shard" || name == "mps") gres.shares = true;
    if (name != "gpu") continue;
    const std::size_t colon = part.find_last_of(":=");
    const std::string_view last = part.substr(colon == std::string_view::npos ? 0 : colon + 1);
    const auto count = parse_integer(last);
    const std::string_view type = count ? part.substr(0, colon == std::string_view::npos ? 0 : colon) : part;
    if (count && (*count < 0 || *count > most_of_resource)) return std::nullopt;
    if (count.value_or(1) == 0) continue;
    const SlurmGpu gpu = slurm_gpu(type);
    gres.gpus.push_back({std::string(gpu.model), gpu.milli, count.value_or(1), gpu.profile});
  }
  return gres;
}

}  // namespace gpusched
