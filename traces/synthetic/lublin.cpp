// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/lublin.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "traces/synthetic/daily_cycle.hpp"

namespace gpusched {
namespace {

constexpr double most_trace_s = 3.6e11;  // 11,000 years, so that times stay far from their limit
constexpr double least_kept = 0.01;      // share of draws that a limit must keep, so that drawing again soon ends

Unexpected bad(std::string parameter, std::string message) {
  return {Error{.message = std::move(message), .field = std::move(parameter)}};
}

// The published parameters, for a machine of 128 processors.
LublinModel published(std::string_view type) {
  LublinModel model;  // of batch jobs
  if (type == "interactive") {
    model.serial_prob = 0.1541, model.pow2_prob = 0.625;
    model.ulow = 1, model.umed = 3, model.uhi = 5.5, model.uprob = 0.705;
    model.a1 = 3.8351, model.b1 = 0.6605, model.a2 = 7.073, model.b2 = 0.6856;
    model.pa = -0.0118, model.pb = 0.9156;
    model.aarr = 6.5510, model.barr = 0.6621, model.anum = 8.9186, model.bnum = 3.6680, model.arar = 0.9797;
  } else if (type == "all") {
    model.serial_prob = 0.244, model.pow2_prob = 0.576;
    model.ulow = 0.8, model.umed = 4.5, model.uhi = 7, model.uprob = 0.86;
    model.a1 = 4.2, model.b1 = 0.94, model.a2 = 312, model.b2 = 0.03;
    model.pa = -0.0054, model.pb = 0.78;
    model.aarr = 10.2303, model.barr = 0.4871, model.anum = 8.1737, model.bnum = 3.9631, model.arar = 1.0225;
  }
  model.about = "Published parameters of " + std::string(type) + " jobs (Lublin and Feitelson, JPDC 63(11), 2003).";
  return model;
}

// Sizes scale with the machine: the largest and the middle one keep their distance from it.
LublinModel on_machine(LublinModel model, std::uint64_t processors) {
  const double doublings = std::log2(static_cast<double>(processors) / static_cast<double>(model.processors));
  model.processors = processors;
  model.uhi = std::max(model.uhi + doublings, std::min(1.0, std::log2(static_cast<double>(processors))));
  model.ulow = std::min(model.ulow, model.uhi);
  model.umed = std::max(model.umed + doublings, model.ulow);
  return model;
}

Result<void> apply_to_model(const FieldTable& fields, std::string_view settings) {
  auto done = apply_settings(fields, settings);
  if (done) return done;
  return Unexpected{Error{.message = done.error().to_string(), .field = "lublin"}};
}
Result<void> check_sizes(const LublinModel& model) {
  if (model.serial_prob + model.pow2_prob > 1) return bad("pow2_prob", "expected at most 1 - serial_prob");
  if (model.uhi > std::log2(static_cast<double>(model.processors)) + 1e-9) {
    return bad("uhi", "expected at most log2 of processors");
  }
  if (model.umed > model.uhi) return bad("umed", "expected at most uhi");
  if (model.ulow > model.umed) return bad("ulow", "expected at most umed");
  return {};
}

// A limit that nearly every draw exceeds would have it repeated for ever.
Result<void> check_limit(const GammaDistribution& gamma, double most, const std::string& parameter,
                         const std::string& limit) {
  if (gamma.cdf(most) >= least_kept) return {};
  return bad(parameter, "expected at least 1 % of the logarithms drawn to be at most " + limit);
}

double draw_up_to(const GammaDistribution& gamma, double most, Rng& rng) {
  double value = gamma.draw(rng);
  while (value > most) value = gamma.draw(rng);
  return value;
}

std::uint64_t rounded_size(const LublinModel& model, double log2_size) {
  const auto most = static_cast<std::uint64_t>(std::lround(std::exp2(model.uhi)));
  return std::min(static_cast<std::uint64_t>(std::lround(std::exp2(log2_size))), most);
}

std::uint64_t draw_size(const LublinModel& model, Rng& rng) {
  const double kind = rng.uniform();
  if (kind < model.serial_prob) return 1;
  const bool lower = rng.uniform() < model.uprob;
  const double low = lower ? model.ulow : model.umed, high = lower ? model.umed : model.uhi;
  const double log2_size = low + (high - low) * rng.uniform();
  return rounded_size(model, kind < model.serial_prob + model.pow2_prob ? std::floor(log2_size + 0.5) : log2_size);
}

double draw_run_s(const LublinModel& model, std::uint64_t size, Rng& rng) {
  const double short_share = model.short_share(static_cast<double>(size));
  for (;;) {  // which of the two is drawn again too
    const bool is_short = rng.uniform() < short_share;
    const double log_run = (is_short ? model.short_runs() : model.long_runs()).draw(rng);
    if (log_run <= model.most_log_run) return std::floor(std::exp(log_run));
  }
}

Time draw_estimate(const LublinModel& model, double run_s, Rng& rng) {
  if (model.estimate_factor == 0) return Time::max();
  return from_seconds(std::max(1.0, std::floor(run_s * (1 + model.estimate_factor * rng.uniform()))));
}

struct DrawnJob {
  double weighted_s = 0;  ///< submission, before the daily cycle
  std::uint64_t size = 1;
  double run_s = 0;
};

std::vector<DrawnJob> draw_jobs(const LublinModel& model, const SyntheticOptions& options) {
  const Rng root = Rng(options.seed).split("lublin");
  Rng arrivals = root.split("arrivals"), sizes = root.split("sizes"), run_times = root.split("run times");
  std::vector<DrawnJob> jobs;
  jobs.reserve(options.jobs);
  double weighted_s = 0;
  for (std::uint32_t i = 0; i < options.jobs && weighted_s < most_trace_s; ++i) {
    weighted_s += std::exp(draw_up_to(model.gaps(), model.most_log_gap, arrivals));
    const std::uint64_t size = draw_size(model, sizes);
    jobs.push_back({.weighted_s = weighted_s, .size = size, .run_s = draw_run_s(model, size, run_times)});
  }
  return jobs;
}

// The factor on gaps with which the trace takes as long as the load wants. Its length grows with the factor.
double factor_for_span(const std::vector<DrawnJob>& jobs, const DailyCycle& cycle, double span_s) {
  double low = 1e-9, high = 1e9;
  for (int step = 0; step < 100; ++step) {
    const double middle = std::sqrt(low * high);
    const double span =
        cycle.clock_s(middle * jobs.back().weighted_s) - cycle.clock_s(middle * jobs.front().weighted_s);
    (span < span_s ? low : high) = middle;
  }
  return low;
}

}  // namespace

double LublinModel::short_share(double size) const { return std::clamp(pa * size + pb, 0.0, 1.0); }

FieldTable lublin_fields(LublinModel& m) {
  constexpr Field::Range share{0, 1}, shape{0.01, 1e5}, scale{1e-6, 1e3}, log2_size{0, 20}, limit{1, 20};
  const auto number = [](std::string name, std::string meaning, double& target, Field::Range range) {
    return Field{.path = std::move(name), .flag = {}, .meaning = std::move(meaning), .target = &target, .range = range};
  };
  return {
      {.path = "processors", .flag = {}, .meaning = "of the machine", .target = &m.processors, .range = {{2, 1e6}}},
      {.path = "default_jobs", .flag = {}, .meaning = "jobs drawn", .target = &m.default_jobs, .range = {{2, 4e9}}},
      number("serial_prob", "share of jobs of one processor", m.serial_prob, share),
      number("pow2_prob", "share of parallel jobs whose log2 of the size is rounded", m.pow2_prob, share),
      number("ulow", "least log2 of a parallel job's size", m.ulow, log2_size),
      number("umed", "log2 of the size at which the density changes", m.umed, log2_size),
      number("uhi", "largest log2 of the size", m.uhi, log2_size),
      number("uprob", "share of parallel jobs below umed", m.uprob, share),
      number("a1", "shape of the short run times' logarithm", m.a1, shape),
      number("b1", "its scale", m.b1, scale),
      number("a2", "shape of the long run times' logarithm", m.a2, shape),
      number("b2", "its scale", m.b2, scale),
      number("pa", "change of the share of short run times with the size", m.pa, {-1, 1}),
      number("pb", "that share at size 0", m.pb, {-10, 10}),
      number("most_log_run", "limit of the run times' logarithm", m.most_log_run, limit),
      number("estimate_factor", "users ask for 1 to 1 + this times the run time; 0: no requests", m.estimate_factor,
             {0, 1e4}),
      number("aarr", "shape of the gaps' logarithm in rush hours", m.aarr, shape),
      number("barr", "its scale", m.barr, scale),
      number("anum", "shape of the daily cycle", m.anum, shape),
      number("bnum", "its scale, half hours", m.bnum, scale),
      number("arar", "factor on aarr for the whole day", m.arar, {0.01, 100}),
      number("most_log_gap", "limit of the gaps' logarithm", m.most_log_gap, limit),
  };
}

Result<LublinModel> lublin_model(std::string_view settings) {
  std::string type = "batch";
  LublinModel model;
  FieldTable fields = lublin_fields(model);
  fields.push_back({.path = "type",
                    .flag = {},
                    .meaning = "which published parameters",
                    .target = &type,
                    .words = {"batch", "interactive", "all"}});
  // Twice: first for type and processors, from which the defaults of the others follow.
  if (auto done = apply_to_model(fields, settings); !done) return Unexpected{done.error()};
  model = on_machine(published(type), model.processors);
  if (auto done = apply_to_model(fields, settings); !done) return Unexpected{done.error()};
  if (!settings.empty()) model.about += " As lublin{" + std::string(settings) + "}.";
  if (auto good = check_lublin(model); !good) {
    return Unexpected{Error{.message = good.error().to_string(), .field = "lublin"}};
  }
  return model;
}

Result<void> check_lublin(const LublinModel& model) {
  LublinModel copy = model;
  for (const Field& field : lublin_fields(copy)) {
    double* const* number = std::get_if<double*>(&field.target);
    if (number == nullptr || (**number >= field.range->least && **number <= field.range->most)) continue;
    return bad(field.path,
               "expected a number from " + exact_number(field.range->least) + " to " + exact_number(field.range->most));
  }
  if (model.processors < 2 || model.processors > 1'000'000) return bad("processors", "expected 2 to 1000000");
  if (model.default_jobs < 2 || model.default_jobs > 4'000'000'000) return bad("default_jobs", "expected 2 to 4e9");
  if (auto good = check_sizes(model); !good) return good;
  if (auto good = check_limit(model.short_runs(), model.most_log_run, "a1", "most_log_run"); !good) return good;
  if (auto good = check_limit(model.long_runs(), model.most_log_run, "a2", "most_log_run"); !good) return good;
  if (auto good = check_limit(model.gaps(), model.most_log_gap, "aarr", "most_log_gap"); !good) return good;
  if (!DailyCycle::has_weight(model.slot_counts())) return bad("anum", "expected a daily cycle within a day");
  return {};
}

bool is_lublin(std::string_view json) {
  const auto parsed = parse_json_strictly(json, "");
  return parsed && parsed->is_object() && parsed->contains("model");
}

namespace {

// A file also says what kind of model it holds, and where that comes from.
FieldTable file_fields(LublinModel& model, std::string& kind) {
  FieldTable fields = {
      {.path = "model", .flag = {}, .meaning = "kind of model", .target = &kind, .words = {"lublin"}},
      {.path = "about", .flag = {}, .meaning = "where it comes from", .target = &model.about},
  };
  for (Field& field : lublin_fields(model)) fields.push_back(std::move(field));
  return fields;
}

}  // namespace

Result<LublinModel> read_lublin(std::string_view json, const std::string& file) {
  LublinModel model;
  std::string kind;
  if (auto read = read_fields(file_fields(model, kind), json, file); !read) return Unexpected{read.error()};
  auto good = check_lublin(model);
  if (good) return model;
  Error error = good.error();
  error.file = file;
  error.field = "/" + error.field;
  return Unexpected{std::move(error)};
}

std::string write_lublin(const LublinModel& model) {
  LublinModel copy = model;
  std::string kind = "lublin";
  return fields_json(file_fields(copy, kind), true);
}

double two_stage_uniform_cdf(const LublinModel& model, double log2_size) {
  const auto part = [&](double low, double high) {
    if (log2_size >= high) return 1.0;
    return log2_size <= low ? 0.0 : (log2_size - low) / (high - low);
  };
  return model.uprob * part(model.ulow, model.umed) + (1 - model.uprob) * part(model.umed, model.uhi);
}

double size_probability(const LublinModel& model, std::uint64_t size) {
  const auto most = rounded_size(model, model.uhi);
  if (size > most) return 0;
  const auto between = [&](double low, double high) {
    return two_stage_uniform_cdf(model, high) - two_stage_uniform_cdf(model, low);
  };
  const auto n = static_cast<double>(size);
  double probability = size == 1 ? model.serial_prob : 0;
  // Every log2 that is rounded to this size; those beyond the largest size count as the largest.
  const double other_prob = 1 - model.serial_prob - model.pow2_prob;
  probability += other_prob * between(std::log2(n - 0.5), size == most ? model.uhi : std::log2(n + 0.5));
  const double exponent = std::ceil(std::log2(n));
  if (size == most) return probability + model.pow2_prob * between(exponent - 0.5, model.uhi + 1);
  if (std::exp2(exponent) == n) probability += model.pow2_prob * between(exponent - 0.5, exponent + 0.5);
  return probability;
}

Result<JobTable> generate_lublin(const LublinModel& model, const SyntheticOptions& options) {
  if (auto valid = check_lublin(model); !valid) return Unexpected{valid.error()};
  if (auto valid = check_options(options); !valid) return Unexpected{valid.error()};
  const std::vector<DrawnJob> jobs = draw_jobs(model, options);
  const DailyCycle cycle(model.slot_counts());
  double factor = 1;
  if (options.offered_load) {
    double work_s = 0;
    for (const DrawnJob& job : jobs) work_s += static_cast<double>(job.size) * job.run_s;
    factor = factor_for_span(jobs, cycle, work_s / (*options.offered_load * static_cast<double>(options.cluster_gpus)));
  }
  if (jobs.size() < options.jobs || factor * jobs.back().weighted_s > most_trace_s) {
    return bad("jobs", "expected a trace of at most 1e8 hours");
  }
  JobTableBuilder builder;
  builder.reserve(options.jobs);
  Rng estimates = Rng(options.seed).split("lublin").split("estimates");
  for (const DrawnJob& job : jobs) {
    const double submit_s = cycle.clock_s(factor * job.weighted_s);
    builder.add({.submit = from_seconds(options.offered_load ? submit_s : std::floor(submit_s)),
                 .work = from_seconds(job.run_s),
                 .estimate = draw_estimate(model, job.run_s, estimates),
                 .shape = gang_of_gpus(static_cast<double>(job.size))});
  }
  return std::move(builder).build();
}

}  // namespace gpusched
