// SPDX-License-Identifier: Apache-2.0
#include "traces/core/qos_weights.hpp"

#include "src/base/field_parser.hpp"
#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/base/number_text.hpp"
#include "src/base/visible_text.hpp"
#include "traces/core/csv_splitter.hpp"

namespace gpusched {

Result<QosWeights> QosWeights::parse(const std::string& text) {
  QosWeights qos;
  if (trim(text).empty()) return qos;
  CsvSplitter splitter;
  const auto wrong = [](const std::string& message) { return Unexpected{Error{.message = message, .field = "--qos"}}; };
  if (!splitter.split(text)) return wrong("a quote is not closed");
  for (const std::string_view pair : splitter.fields()) {
    const std::size_t equals = pair.rfind('=');
    const auto weight = equals == std::string_view::npos ? std::nullopt : parse_integer(pair.substr(equals + 1));
    constexpr std::int64_t most = 1'000'000'000;
    if (!weight || *weight < -most || *weight > most) {
      return wrong("expected NAME=WEIGHT with a whole number, found '" + std::string(pair) + "'");
    }
    const std::string name = name_text(pair.substr(0, equals));
    if (!qos.weights_.try_emplace(name, Weight{.weight = static_cast<std::int32_t>(*weight)}).second) {
      return wrong("'" + name + "' is given twice");
    }
  }
  return qos;
}

std::int32_t QosWeights::priority(std::string_view name) {
  const auto known = weights_.find(name);
  if (known != weights_.end()) {
    ++known->second.jobs;
    return known->second.weight;
  }
  const auto other = others_.find(name);
  if (other != others_.end()) {
    ++other->second;
  } else if (others_.size() < 1000) {  // of a damaged log there may be one a job
    others_.emplace(name, 1);
  }
  return 0;
}

std::vector<std::string> QosWeights::notes() const {
  std::vector<std::string> notes, unused, without;
  for (const auto& [name, weight] : weights_) {
    if (weight.jobs == 0) unused.push_back(name);
  }
  std::uint64_t jobs = 0;
  for (const auto& [name, count] : others_) {
    without.push_back(name.empty() ? "none" : name);
    jobs += count;
  }
  if (!unused.empty()) notes.push_back("--qos: no job has " + excerpt(joined(unused, ", "), 100));
  if (jobs > 0) {
    notes.push_back("--qos: " + counted(jobs, "job has", "jobs have") + " another QOS (" +
                    excerpt(joined(without, ", "), 100) + "), of weight 0");
  }
  return notes;
}

}  // namespace gpusched
