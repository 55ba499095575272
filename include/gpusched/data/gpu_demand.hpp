// SPDX-License-Identifier: Apache-2.0
/// GpuDemand: which devices a job accepts, as the text of JobTable::gpu_specs() says it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpusched/data/cluster.hpp"

namespace gpusched {

/// Alternatives joined by '|', each a GPU type's name or "kind:" with a kind of devices, and behind them "@" with the
/// device memory that each GPU of the job needs, as "@24GiB" or "@500MiB" (bytes in powers of two). "A100|V100@24GiB":
/// A100 or V100 of at least 24 GiB; "@24GiB": any GPU of as much; "kind:fpga": any FPGA; empty: any GPU. What is not
/// of this form is a name. A name may end with a MIG profile, as "A100_1g.5gb", or be one alone: a card that is cut (or
/// can be) gives the job an instance of that profile, another card of the type the share that the job asks for.
class GpuDemand {
 public:
  /// Reads the text, which must outlive this.
  explicit GpuDemand(std::string_view text) {
    text = without_memory(text);
    while (!text.empty()) {
      const std::size_t bar = std::min(text.find('|'), text.size());
      const std::string_view alternative = text.substr(0, bar);
      if (alternative.starts_with(kind_prefix)) {
        kinds_.push_back(alternative.substr(kind_prefix.size()));
      } else {
        names_.push_back(alternative);
      }
      text.remove_prefix(std::min(bar + 1, text.size()));
    }
  }

  /// MiB that each GPU must have; 0: any.
  [[nodiscard]] std::int64_t memory_mib() const { return memory_mib_; }
  /// Names of GPU types, in order.
  [[nodiscard]] const std::vector<std::string_view>& names() const { return names_; }

  /// True when the job may use devices of this type: one that it names, or of a kind that it names, or any GPU when it
  /// names nothing. GPUs without description (`any_gpu_type`) meet every name.
  [[nodiscard]] bool accepts(std::string_view type, const DeviceType& device) const {
    if (device.memory_mib < memory_mib_) return false;
    if (contains(kinds_, device.kind) || contains(names_, type)) return true;
    if (device.kind == gpu_kind && !mig_profile(type).empty()) return true;
    const bool any_gpu = names_.empty() ? kinds_.empty() : type == any_gpu_type;
    return any_gpu && device.kind == gpu_kind;
  }

  /// The MIG profile that the job names for cards of this type, "1g.5gb"; empty: it names none.
  [[nodiscard]] std::string_view mig_profile(std::string_view type) const {
    for (const std::string_view name : names_) {
      if (name == type) return {};
      const MigName parts = mig_name(name);
      if (!parts.profile.empty() && (parts.card.empty() || parts.card == type || type == any_gpu_type)) {
        return parts.profile;
      }
    }
    return {};
  }

 private:
  static constexpr std::string_view kind_prefix = "kind:";

  static bool contains(const std::vector<std::string_view>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  }

  // Takes "@24GiB" off the end of the text.
  std::string_view without_memory(std::string_view text) {
    const std::size_t at = text.rfind('@');
    if (at == std::string_view::npos) return text;
    const std::string_view amount = text.substr(at + 1);
    const bool gib = amount.ends_with("GiB");
    if (!gib && !amount.ends_with("MiB")) return text;
    std::int64_t number = 0;
    const char* const end = amount.data() + amount.size() - 3;
    const auto [stop, failure] = std::from_chars(amount.data(), end, number);
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (failure != std::errc() || stop != end || number < 0 || number > most) return text;
    memory_mib_ = number * (gib ? 1024 : 1);
    return text.substr(0, at);
  }

  std::vector<std::string_view> names_, kinds_;
  std::int64_t memory_mib_ = 0;
};

}  // namespace gpusched
