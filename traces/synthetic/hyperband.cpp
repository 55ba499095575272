// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/hyperband.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "gpusched/core/rng.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"

namespace gpusched {
namespace {

constexpr double most_ratio = 1024;       // of run times: a rung has as many trials, and each waits for a whole rung
constexpr double most_trace_hours = 1e8;  // 11,000 years, so that times stay far from their limit

Unexpected bad_parameter(std::string parameter, std::string message) {
  return {Error{.message = std::move(message), .field = std::move(parameter)}};
}

// A file also says what kind of model it holds, and where that comes from.
FieldTable fields_of_file(HyperbandModel& model, std::string& kind) {
  FieldTable fields = {
      {.path = "model", .flag = {}, .meaning = "kind of model", .target = &kind, .words = {"hyperband"}},
      {.path = "about", .flag = {}, .meaning = "where it comes from", .target = &model.about},
  };
  for (Field& field : hyperband_fields(model)) fields.push_back(std::move(field));
  return fields;
}

// s_max of Algorithm 1. Exact powers of eta must not fall below a whole number by rounding.
std::uint32_t last_bracket(const HyperbandModel& model) {
  const double ratio = model.most_s / model.least_s, eta = static_cast<double>(model.eta);
  return static_cast<std::uint32_t>(std::floor(std::log(ratio) / std::log(eta) + 1e-9));
}

/// Adds the jobs of one study after another.
class StudyWriter {
 public:
  StudyWriter(const HyperbandModel& model, const SyntheticOptions& options)
      : model_(&model), rungs_(rungs_of_study(model)), most_jobs_(options.jobs) {
    builder_.reserve(options.jobs);
  }

  [[nodiscard]] bool done() const { return builder_.size() == most_jobs_; }

  void add(std::uint64_t number, Time submit, Rng rng) {
    user_ = "user" + std::to_string(rng.below(model_->users));
    study_ = "study" + std::to_string(number);
    before_.clear();
    std::vector<Trial> trials;
    std::uint32_t bracket = no_index;
    double trained_s = 0;  // of those that go on
    std::uint32_t named = 0;
    for (const HyperbandRung& rung : rungs_) {
      if (rung.bracket != bracket) {
        trials.clear();
        for (std::uint32_t i = 0; i < rung.trials; ++i) {
          trials.push_back(
              {.name = "trial" + std::to_string(named++), .slowness = std::exp(model_->speed_sigma * rng.normal())});
        }
        trained_s = 0;
      } else {
        keep_some(trials, rung.trials, rng);
      }
      bracket = rung.bracket;
      add_rung(trials, rung.run_s - (model_->resume ? trained_s : 0), submit);
      trained_s = rung.run_s;
    }
  }

  JobTable take() && { return std::move(builder_).build().value(); }

 private:
  struct Trial {
    std::string name;
    double slowness = 1;
  };

  // Which configurations are the best is not known here: a random choice of them.
  static void keep_some(std::vector<Trial>& trials, std::uint32_t count, Rng& rng) {
    for (std::uint32_t i = 0; i < count; ++i) std::swap(trials[i], trials[i + rng.below(trials.size() - i)]);
    trials.resize(count);
  }

  void add_rung(const std::vector<Trial>& trials, double run_s, Time submit) {
    std::vector<std::string> added;
    for (const Trial& trial : trials) {
      if (done()) break;
      added.push_back(std::to_string(builder_.size()));
      builder_.add({.id = added.back(),
                    .submit = submit,
                    .work = from_seconds(run_s * trial.slowness),
                    .shape = gang_of_gpus(static_cast<double>(model_->gpus)),
                    .user = user_,
                    .group = study_,
                    .name = trial.name,
                    .after = before_});
    }
    before_ = std::move(added);
  }

  const HyperbandModel* model_;
  std::vector<HyperbandRung> rungs_;
  std::uint32_t most_jobs_;
  JobTableBuilder builder_;
  std::string user_, study_;
  std::vector<std::string> before_;  // ids of the rung before
};

JobTable draw_studies(const HyperbandModel& model, const SyntheticOptions& options, double gap_factor) {
  const Rng root = Rng(options.seed).split("hyperband");
  Rng gaps = root.split("gaps");
  const Rng studies = root.split("studies");
  StudyWriter writer(model, options);
  double now_s = 0;
  for (std::uint64_t study = 0; !writer.done(); ++study) {
    writer.add(study, from_seconds(gap_factor * now_s), studies.split(study));
    now_s += gaps.exponential(3600 / model.studies_per_hour);
  }
  return std::move(writer).take();
}

}  // namespace

std::vector<HyperbandRung> rungs_of_study(const HyperbandModel& model) {
  const double eta = static_cast<double>(model.eta);
  const std::uint32_t last = last_bracket(model);
  std::vector<HyperbandRung> rungs;
  for (std::uint32_t s = last + 1; s-- > (model.halving ? last : 0);) {
    const double trials = std::ceil((last + 1.0) / (s + 1.0) * std::pow(eta, s) - 1e-9);
    for (std::uint32_t i = 0; i <= s; ++i) {
      rungs.push_back({.bracket = s,
                       .trials = static_cast<std::uint32_t>(trials / std::pow(eta, i) + 1e-9),
                       .run_s = model.most_s * std::pow(eta, static_cast<double>(i) - s)});
    }
  }
  return rungs;
}

FieldTable hyperband_fields(HyperbandModel& m) {
  const auto number = [](std::string name, std::string meaning, double& target, Field::Range range) {
    return Field{.path = std::move(name), .flag = {}, .meaning = std::move(meaning), .target = &target, .range = range};
  };
  const auto whole = [](std::string name, std::string meaning, std::uint64_t& target, Field::Range range) {
    return Field{.path = std::move(name), .flag = {}, .meaning = std::move(meaning), .target = &target, .range = range};
  };
  return {
      whole("default_jobs", "jobs drawn", m.default_jobs, {2, 4e9}),
      whole("eta", "of each rung's trials one in so many goes on, for so many times as long", m.eta, {2, 100}),
      number("least_s", "run time of the shortest trials, s", m.least_s, {1e-3, 1e9}),
      number("most_s", "run time of the longest trials, s", m.most_s, {1e-3, 1e9}),
      {.path = "halving", .flag = {}, .meaning = "successive halving alone: the first bracket", .target = &m.halving},
      {.path = "resume", .flag = {}, .meaning = "who goes on has a checkpoint", .target = &m.resume},
      whole("gpus", "of a trial", m.gpus, {1, 1e6}),
      number("speed_sigma", "of the logarithm of the factor by which a configuration is slower", m.speed_sigma, {0, 3}),
      number("studies_per_hour", "mean rate of studies", m.studies_per_hour, {1e-6, 1e6}),
      whole("users", "who start studies", m.users, {1, 1e6}),
  };
}

Result<HyperbandModel> hyperband_model(std::string_view settings) {
  HyperbandModel model;
  auto good = apply_settings(hyperband_fields(model), settings);
  model.about = "Hyperband (Li et al., JMLR 18(185), 2018, Algorithm 1); arrivals, users and speeds are assumed.";
  if (!settings.empty()) model.about += " As hyperband{" + std::string(settings) + "}.";
  if (good) good = check_hyperband(model);
  if (!good) return Unexpected{Error{.message = good.error().to_string(), .field = "hyperband"}};
  return model;
}

Result<void> check_hyperband(const HyperbandModel& model) {
  HyperbandModel copy = model;
  for (const Field& field : hyperband_fields(copy)) {
    double value = 0;
    if (double* const* number = std::get_if<double*>(&field.target)) {
      value = **number;
    } else if (std::uint64_t* const* count = std::get_if<std::uint64_t*>(&field.target)) {
      value = static_cast<double>(**count);
    } else {
      continue;
    }
    if (value >= field.range->least && value <= field.range->most) continue;
    return bad_parameter(field.path, "expected a number from " + exact_number(field.range->least) + " to " +
                                         exact_number(field.range->most));
  }
  if (model.most_s < model.least_s) return bad_parameter("most_s", "expected at least least_s");
  if (model.most_s / model.least_s > most_ratio) {
    return bad_parameter("most_s", "expected at most " + exact_number(most_ratio) + " times least_s");
  }
  return {};
}

bool is_hyperband(std::string_view json) {
  const auto parsed = parse_json_strictly(json, "");
  return parsed && parsed->is_object() && parsed->contains("model") && (*parsed)["model"] == "hyperband";
}

Result<HyperbandModel> read_hyperband(std::string_view json, const std::string& file) {
  HyperbandModel model;
  std::string kind;
  if (auto read = read_fields(fields_of_file(model, kind), json, file); !read) return Unexpected{read.error()};
  auto good = check_hyperband(model);
  if (good) return model;
  Error error = good.error();
  error.file = file;
  error.field = "/" + error.field;
  return Unexpected{std::move(error)};
}

std::string write_hyperband(const HyperbandModel& model) {
  HyperbandModel copy = model;
  std::string kind = "hyperband";
  return fields_json(fields_of_file(copy, kind), true);
}

Result<JobTable> generate_hyperband(const HyperbandModel& model, const SyntheticOptions& options) {
  if (auto valid = check_hyperband(model); !valid) return Unexpected{valid.error()};
  if (auto valid = check_options(options); !valid) return Unexpected{valid.error()};
  if (options.jobs / model.studies_per_hour > most_trace_hours) {
    return bad_parameter("jobs", "expected a trace of at most 1e8 hours");
  }
  JobTable jobs = draw_studies(model, options, 1);
  if (!options.offered_load) return jobs;
  const double load = offered_load(jobs, options.cluster_gpus);
  if (load == 0) return bad_parameter("load", "the jobs drawn are all of one study; ask for more jobs");
  const double factor = load / *options.offered_load;
  if (factor * to_seconds(jobs.submits().back()) > most_trace_hours * 3600) {
    return bad_parameter("load", "expected a trace of at most 1e8 hours");
  }
  return draw_studies(model, options, factor);
}

}  // namespace gpusched
