// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/trace_model.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include "src/base/nearest_name.hpp"

namespace gpusched {
namespace {

constexpr std::string_view lublin = "lublin", hyperband = "hyperband";

// "50000" -> 50000; nothing of anything but a whole number from 1 on.
std::optional<std::uint32_t> job_count(std::string_view text) {
  std::uint32_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || rest != text.data() + text.size() || count == 0) return std::nullopt;
  return count;
}

template <class Model>
Result<TraceModel> either(Result<Model> model) {
  if (!model) return Unexpected{model.error()};
  return TraceModel{*std::move(model)};
}

}  // namespace

std::vector<std::string> trace_model_names() {
  std::vector<std::string> names = builtin_model_names();
  names.emplace_back(lublin);
  names.emplace_back(hyperband);
  return names;
}

Result<TraceModel> named_trace_model(std::string_view text) {
  const std::string_view name = text.substr(0, text.find('{'));
  const std::string_view braces = text.substr(name.size());
  if (name == lublin || name == hyperband) {
    if (!braces.empty() && braces.back() != '}') {
      return unexpected("model '" + std::string(text) + "': expected '}' at the end");
    }
    const std::string_view settings = braces.empty() ? braces : braces.substr(1, braces.size() - 2);
    return name == lublin ? either(lublin_model(settings)) : either(hyperband_model(settings));
  }
  auto model = builtin_model(name);
  if (model && !braces.empty()) return unexpected("model " + std::string(name) + " takes no parameters");
  if (model) return either(std::move(model));
  const std::vector<std::string> names = trace_model_names();
  return unexpected("no synthetic model '" + std::string(name) + "'" + suggest_nearest(name, names) +
                    "; there are: " + joined(names, ", "));
}

Result<TraceModel> read_trace_model(std::string_view json, const std::string& file) {
  if (is_hyperband(json)) return either(read_hyperband(json, file));
  return is_lublin(json) ? either(read_lublin(json, file)) : either(read_model(json, file));
}

std::string write_trace_model(const TraceModel& model) {
  if (const auto* of_jobs = std::get_if<LublinModel>(&model)) return write_lublin(*of_jobs);
  if (const auto* of_studies = std::get_if<HyperbandModel>(&model)) return write_hyperband(*of_studies);
  return write_model(std::get<SyntheticModel>(model));
}

SyntheticOptions default_options(const TraceModel& model) {
  if (const auto* of_users = std::get_if<SyntheticModel>(&model)) return default_options(*of_users);
  if (const auto* of_studies = std::get_if<HyperbandModel>(&model)) {
    return {.jobs = static_cast<std::uint32_t>(of_studies->default_jobs),
            .cluster_gpus = gpus_of_size(hyperband_cluster)};
  }
  const auto& of_jobs = std::get<LublinModel>(model);
  return {.jobs = static_cast<std::uint32_t>(of_jobs.default_jobs),
          .cluster_gpus = static_cast<std::int64_t>(of_jobs.processors)};
}

std::string default_cluster(const TraceModel& model) {
  if (const auto* of_users = std::get_if<SyntheticModel>(&model)) return of_users->default_cluster;
  if (const auto* of_jobs = std::get_if<LublinModel>(&model)) return std::to_string(of_jobs->processors);
  return std::string(hyperband_cluster);
}

Result<JobTable> generate_trace(const TraceModel& model, const SyntheticOptions& options) {
  if (const auto* of_jobs = std::get_if<LublinModel>(&model)) return generate_lublin(*of_jobs, options);
  if (const auto* of_studies = std::get_if<HyperbandModel>(&model)) return generate_hyperband(*of_studies, options);
  return generate_synthetic(std::get<SyntheticModel>(model), options);
}

Result<Trace> synthetic_trace(std::string_view name, std::uint64_t seed) {
  const std::size_t colon = name.find(':');
  const auto model = named_trace_model(name.substr(0, colon));
  if (!model) return Unexpected{model.error()};
  SyntheticOptions options = default_options(*model);
  options.seed = seed;
  if (colon != std::string_view::npos) {
    const auto count = job_count(name.substr(colon + 1));
    if (!count) {
      return unexpected("synthetic:" + std::string(name) + ": expected a number of jobs behind the second colon");
    }
    options.jobs = *count;
  }
  auto jobs = generate_trace(*model, options);
  if (!jobs) return Unexpected{jobs.error()};
  Trace trace{.jobs = *std::move(jobs), .report = {}};
  trace.report.path = "synthetic:" + std::string(name);
  trace.report.format = "synthetic";
  trace.report.cluster = default_cluster(*model);
  trace.report.rows = trace.report.kept = trace.jobs.size();
  return trace;
}

}  // namespace gpusched
