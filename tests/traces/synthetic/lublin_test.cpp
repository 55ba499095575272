// SPDX-License-Identifier: Apache-2.0
#include "traces/synthetic/lublin.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/files.hpp"
#include "traces/core/trace.hpp"
#include "traces/synthetic/daily_cycle.hpp"
#include "traces/synthetic/lublin_fit.hpp"
#include "traces/synthetic/trace_model.hpp"

namespace gpusched {
namespace {

using testing::HasSubstr;

LublinModel lublin(const std::string& settings) {
  auto model = lublin_model(settings);
  EXPECT_TRUE(model) << model.error().to_string();
  return *std::move(model);
}

JobTable drawn_from(const LublinModel& model, const SyntheticOptions& options) {
  auto jobs = generate_lublin(model, options);
  EXPECT_TRUE(jobs) << jobs.error().to_string();
  return *std::move(jobs);
}

std::uint64_t size_of(const JobTable& jobs, std::uint32_t i) {
  return static_cast<std::uint64_t>(jobs.shape(JobId{i}).gpu_milli() / whole_gpu);
}

/// What a trace holds, by kind.
struct Columns {
  std::vector<double> sizes, run_s, submit_s, gap_s;
};

Columns columns_of(const JobTable& jobs) {
  Columns columns;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    columns.sizes.push_back(static_cast<double>(size_of(jobs, i)));
    columns.run_s.push_back(to_seconds(jobs.work(JobId{i})));
    columns.submit_s.push_back(to_seconds(jobs.submit(JobId{i})));
    if (i > 0) columns.gap_s.push_back(columns.submit_s[i] - columns.submit_s[i - 1]);
  }
  return columns;
}

TEST(Lublin, UsersAskForUpToTheFactorMore) {
  const SyntheticOptions options{.jobs = 20'000, .seed = 3};
  const JobTable without = drawn_from(lublin(""), options);
  const JobTable with = drawn_from(lublin("estimate_factor=3"), options);
  EXPECT_FALSE(without.has_estimates());
  double sum = 0, counted = 0;
  for (std::uint32_t i = 0; i < with.size(); ++i) {
    const JobId job{i};
    ASSERT_EQ(with.submit(job), without.submit(job));
    ASSERT_EQ(with.work(job), without.work(job));
    const double run_s = to_seconds(with.work(job)), asked_s = to_seconds(with.estimate(job));
    EXPECT_GE(asked_s, std::max(1.0, run_s));
    EXPECT_LE(asked_s, std::max(1.0, 4 * run_s));
    if (run_s < 1000) continue;  // whole seconds matter little
    sum += asked_s / run_s;
    counted += 1;
  }
  EXPECT_NEAR(sum / counted, 2.5, 0.05);
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// The integral of f from `low` to `high` by Simpson's rule.
double integral(const std::function<double(double)>& f, double low, double high, int steps = 2000) {
  double sum = f(low) + f(high);
  for (int i = 1; i < steps; ++i) sum += (i % 2 == 1 ? 4 : 2) * f(low + (high - low) * i / steps);
  return sum * (high - low) / steps / 3;
}

double gamma_density(double x, double shape, double scale) {
  if (x <= 0) return 0;
  return std::exp((shape - 1) * std::log(x / scale) - x / scale - std::lgamma(shape)) / scale;
}

/// The greatest distance of the values' distribution function from `cdf` (Kolmogorov and Smirnov).
double distance(std::vector<double> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = static_cast<double>(values.size());
  double most = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]), k = static_cast<double>(i);
    most = std::max({most, p - k / n, (k + 1) / n - p});
  }
  return most;
}

/// The same between two samples, which may have ties.
double distance(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  double most = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const double x = std::min(a[i], b[j]);
    while (i < a.size() && a[i] <= x) ++i;
    while (j < b.size() && b[j] <= x) ++j;
    most = std::max(most, std::abs(static_cast<double>(i) / static_cast<double>(a.size()) -
                                   static_cast<double>(j) / static_cast<double>(b.size())));
  }
  return most;
}

/// What the distance of n values from their own distribution exceeds in one of a thousand samples.
double rare_distance(std::size_t n) { return 1.95 / std::sqrt(static_cast<double>(n)); }

TEST(GammaDistribution, HasTheProbabilitiesOfItsDensity) {
  for (const double x : {0.01, 0.5, 1.0, 3.0, 20.0}) {
    EXPECT_NEAR((GammaDistribution{1, 2}.cdf(x)), 1 - std::exp(-x / 2), 1e-12);
    EXPECT_NEAR((GammaDistribution{3, 1}.cdf(x)), 1 - std::exp(-x) * (1 + x + x * x / 2), 1e-12);
    EXPECT_NEAR((GammaDistribution{0.5, 1}.cdf(x)), std::erf(std::sqrt(x)), 1e-12);
  }
  for (const double x : {9.0, 9.8, 10.2, 11.0}) {
    const double p = integral([](double y) { return gamma_density(y, 639.1, 0.0156); }, 5, x, 20'000);
    EXPECT_NEAR((GammaDistribution{639.1, 0.0156}.cdf(x)), p, 1e-9);
  }
  EXPECT_EQ((GammaDistribution{4, 1}.cdf(-1)), 0);
}

TEST(GammaDistribution, DrawsFollowTheDistribution) {
  for (const double shape : {0.3, 1.0, 4.2, 639.1}) {
    const GammaDistribution gamma{shape, 0.7};
    Rng rng(17);
    std::vector<double> values;
    for (int i = 0; i < 20'000; ++i) values.push_back(gamma.draw(rng));
    EXPECT_LT(distance(values, [&](double x) { return gamma.cdf(x); }), rare_distance(values.size())) << shape;
  }
}

TEST(DailyCycle, WeighsEachHalfHourByTheGammaDensityFromFiveInTheMorning) {
  const LublinModel model = lublin("type=all");
  const DailyCycle cycle(model.slot_counts());
  double sum = 0;
  std::vector<double> expected;
  for (int i = 11; i < 59; ++i) {
    expected.push_back(integral([](double x) { return gamma_density(x, 8.1737, 3.9631); }, i - 0.5, i + 0.5));
    sum += expected.back();
  }
  for (std::size_t i = 0; i < 48; ++i) EXPECT_NEAR(cycle.weight((i + 10) % 48), expected[i] * 48 / sum, 1e-9);
  for (const double clock_s : {0.0, 1.0, 17'999.0, 18'001.0, 86'399.0, 86'400.0, 1'000'000.5}) {
    EXPECT_NEAR(cycle.clock_s(cycle.weighted_s(clock_s)), clock_s, 1e-6);
  }
  EXPECT_NEAR(cycle.weighted_s(86'400), 86'400, 1e-6);
}

TEST(Lublin, TheDefaultsAreThePublishedBatchJobsAndTypesTheOthers) {
  EXPECT_EQ(lublin("").umed, LublinModel{}.umed);
  EXPECT_EQ(lublin("type=batch").a2, 639.1);
  EXPECT_EQ(lublin("type=all").aarr, 10.2303);
  EXPECT_EQ(lublin("type=interactive").uhi, 5.5);
  // On a larger machine the largest and the middle size move along.
  const LublinModel larger = lublin("umed=5.25,processors=512,type=all");
  EXPECT_EQ(larger.uhi, 9);
  EXPECT_EQ(larger.umed, 5.25);
  EXPECT_EQ(lublin("processors=512,type=all").umed, 6.5);
  EXPECT_EQ(lublin("processors=512,type=all").ulow, 0.8);
}

TEST(Lublin, EveryParameterCanBeSet) {
  LublinModel defaults = lublin("");
  for (const Field& field : lublin_fields(defaults)) {
    if (!std::holds_alternative<double*>(field.target)) continue;
    const double value = *std::get<double*>(field.target) * 0.999;
    LublinModel model = lublin(field.path + "=" + std::to_string(value));
    const FieldTable fields = lublin_fields(model);
    EXPECT_NEAR(*std::get<double*>(find_field(fields, field.path)->target), value, 1e-6) << field.path;
  }
}

TEST(Lublin, RefusesWhatCannotBeDrawn) {
  const auto refused = [](const std::string& settings) {
    const auto model = lublin_model(settings);
    return model ? "accepted" : model.error().to_string();
  };
  EXPECT_THAT(refused("umid=5"), HasSubstr("did you mean 'umed'"));
  EXPECT_THAT(refused("umed"), HasSubstr("key=value"));
  EXPECT_THAT(refused("type=serial"), HasSubstr("batch|interactive|all"));
  EXPECT_THAT(refused("serial_prob=1.5"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(refused("serial_prob=0.5"), HasSubstr("pow2_prob: expected at most 1 - serial_prob"));
  EXPECT_THAT(refused("umed=7.5"), HasSubstr("umed: expected at most uhi"));
  EXPECT_THAT(refused("ulow=6"), HasSubstr("ulow: expected at most umed"));
  EXPECT_THAT(refused("uhi=8"), HasSubstr("uhi: expected at most log2 of processors"));
  EXPECT_THAT(refused("a2=2000"), HasSubstr("a2: expected at least 1 %"));
  EXPECT_THAT(refused("aarr=100"), HasSubstr("aarr: expected at least 1 %"));
  EXPECT_THAT(refused("anum=1,bnum=0.01"), HasSubstr("daily cycle"));
  LublinModel nonsense;
  nonsense.b1 = std::nan("");
  EXPECT_THAT(check_lublin(nonsense).error().to_string(), HasSubstr("b1: expected a number"));
  EXPECT_FALSE(generate_lublin(LublinModel{}, {.jobs = 0}));
  EXPECT_FALSE(generate_lublin(LublinModel{}, {.jobs = 10, .offered_load = -1, .cluster_gpus = 8}));
}

TEST(Lublin, AFileGivesBackTheModelThatItWasWrittenFrom) {
  const LublinModel model = lublin("type=all,processors=256,umed=5.125");
  const auto again = read_trace_model(write_trace_model(model), "again");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(std::get<LublinModel>(*again), model);
  EXPECT_THAT(read_trace_model(R"({"model": "lubin"})", "f").error().to_string(), HasSubstr("f: /model: expected one"));
  EXPECT_THAT(read_trace_model(R"({"model": "lublin", "umid": 1})", "f").error().to_string(), HasSubstr("umed"));
  EXPECT_THAT(read_trace_model(R"({"model": "lublin", "uhi": 9})", "f").error().to_string(), HasSubstr("f: /uhi"));
}

TEST(Lublin, TheSameSeedGivesTheSameTraceAndAShorterOneIsItsBeginning) {
  const LublinModel model = lublin("");
  const Columns longer = columns_of(drawn_from(model, {.jobs = 3000, .seed = 5}));
  const Columns shorter = columns_of(drawn_from(model, {.jobs = 1000, .seed = 5}));
  EXPECT_TRUE(std::equal(shorter.submit_s.begin(), shorter.submit_s.end(), longer.submit_s.begin()));
  EXPECT_TRUE(std::equal(shorter.run_s.begin(), shorter.run_s.end(), longer.run_s.begin()));
  EXPECT_TRUE(std::equal(shorter.sizes.begin(), shorter.sizes.end(), longer.sizes.begin()));
  EXPECT_NE(longer.run_s, columns_of(drawn_from(model, {.jobs = 3000, .seed = 6})).run_s);
}

// Sizes by enumeration of the two-stage uniform's quantiles, without size_probability().
std::vector<double> enumerated_sizes(const LublinModel& model) {
  constexpr int steps = 400'000;
  std::vector<double> probability(model.processors + 1);
  const auto most = std::lround(std::exp2(model.uhi));
  const double other = 1 - model.serial_prob - model.pow2_prob;
  probability[1] = model.serial_prob;
  for (int i = 0; i < steps; ++i) {
    const double p = (i + 0.5) / steps;
    const double log2_size = p < model.uprob
                                 ? model.ulow + (model.umed - model.ulow) * p / model.uprob
                                 : model.umed + (model.uhi - model.umed) * (p - model.uprob) / (1 - model.uprob);
    const auto size = std::lround(std::exp2(log2_size)), power = std::lround(std::exp2(std::round(log2_size)));
    probability[static_cast<std::size_t>(std::min(size, most))] += other / steps;
    probability[static_cast<std::size_t>(std::min(power, most))] += model.pow2_prob / steps;
  }
  return probability;
}

TEST(Lublin, SizesHaveTheirProbabilities) {
  for (const char* settings : {"", "type=all,processors=256", "type=interactive,processors=100", "ulow=0.2,uhi=6.3"}) {
    const LublinModel model = lublin(settings);
    const std::vector<double> expected = enumerated_sizes(model);
    double sum = 0;
    for (std::uint64_t size = 1; size <= model.processors; ++size) {
      EXPECT_NEAR(size_probability(model, size), expected[size], 2e-5) << settings << ", size " << size;
      sum += size_probability(model, size);
    }
    EXPECT_NEAR(sum, 1, 1e-9) << settings;
    const JobTable jobs = drawn_from(model, {.jobs = 100'000, .seed = 2});
    std::vector<double> count(model.processors + 1);
    for (std::uint32_t i = 0; i < jobs.size(); ++i) count.at(size_of(jobs, i)) += 1;
    double chi_square = 0, cells = 0;
    for (std::uint64_t size = 1; size <= model.processors; ++size) {
      const double wanted = size_probability(model, size) * jobs.size();
      if (wanted < 5) continue;
      chi_square += (count[size] - wanted) * (count[size] - wanted) / wanted;
      cells += 1;
    }
    // Mean cells - 1, variance twice that; 3.3 standard deviations.
    EXPECT_LT(chi_square, cells + 3.3 * std::sqrt(2 * cells)) << settings;
  }
}

// The shares and the mean as the paper defines them: of all jobs, serial ones and those of a power of two.
TEST(Lublin, SharesAndMeanSizeAreThoseOfTheParameters) {
  const LublinModel model = lublin("");
  const Columns columns = columns_of(drawn_from(model, {.jobs = 200'000, .seed = 3}));
  double serial = 0, powers = 0, log2_sum = 0, parallel = 0;
  for (const double size : columns.sizes) {
    const double exponent = std::log2(size);
    serial += size == 1;
    powers += size > 1 && exponent == std::round(exponent);
    log2_sum += exponent;
    parallel += size > 1;
  }
  const auto n = static_cast<double>(columns.sizes.size());
  EXPECT_NEAR(serial / n, 0.2927, 0.004);
  double by_chance = 0;  // an unrounded size that is a power of two
  for (int k = 1; k <= 7; ++k) {
    const double size = std::exp2(k);
    by_chance +=
        two_stage_uniform_cdf(model, std::log2(size + 0.5)) - two_stage_uniform_cdf(model, std::log2(size - 0.5));
  }
  EXPECT_NEAR(powers / n, 0.6686 + (1 - 0.2927 - 0.6686) * by_chance, 0.004);
  // (uprob ulow + umed + (1 - uprob) uhi) / 2, which rounding hardly moves.
  EXPECT_NEAR(log2_sum / parallel, (0.875 * 1.2 + 5 + 0.125 * 7) / 2, 0.03);
}

TEST(Lublin, RunTimesAreHyperGammaWithAShareThatFallsWithTheSize) {
  for (const double exponent : {1.0, 4.0, 8.0}) {  // 2, 16 and 256 processors
    const std::string e = std::to_string(exponent);
    const LublinModel model = lublin("type=all,processors=256,serial_prob=0,pow2_prob=1,ulow=" + e + ",umed=" + e +
                                     ",uhi=" + e + ",most_log_run=20");
    const double p = std::clamp(0.78 - 0.0054 * std::exp2(exponent), 0.0, 1.0);
    std::vector<double> logs, squares;
    for (const double run_s : columns_of(drawn_from(model, {.jobs = 50'000, .seed = 4})).run_s) {
      logs.push_back(std::log(run_s + 0.5));  // the middle of the second
      squares.push_back(logs.back() * logs.back());
    }
    const double first = p * 4.2 * 0.94 + (1 - p) * 312 * 0.03;
    const double second = p * 4.2 * 5.2 * 0.94 * 0.94 + (1 - p) * 312 * 313 * 0.03 * 0.03;
    const double error = std::sqrt((second - first * first) / static_cast<double>(logs.size()));
    EXPECT_NEAR(mean(logs), first, 4 * error + 0.005) << exponent;
    EXPECT_NEAR(mean(squares), second, 0.02 * second) << exponent;
    const auto cdf = [&](double x) {
      return p * GammaDistribution{4.2, 0.94}.cdf(x) + (1 - p) * GammaDistribution{312, 0.03}.cdf(x);
    };
    std::erase_if(logs, [](double x) { return x < 3; });  // below 20 s whole seconds are far apart
    const double below = cdf(3);
    EXPECT_LT(distance(logs, [&](double x) { return (cdf(x) - below) / (1 - below); }), rare_distance(logs.size()));
  }
}

TEST(Lublin, LogarithmsAboveTheLimitsAreDrawnAgain) {
  const LublinModel model = lublin("most_log_run=8,most_log_gap=6,a1=10,a2=500");
  const Columns columns = columns_of(drawn_from(model, {.jobs = 20'000, .seed = 1}));
  EXPECT_LE(*std::max_element(columns.run_s.begin(), columns.run_s.end()), std::exp(8));
  EXPECT_GT(*std::max_element(columns.run_s.begin(), columns.run_s.end()), 0.9 * std::exp(8));
  const DailyCycle cycle(model.slot_counts());
  for (std::size_t i = 1; i < columns.submit_s.size(); ++i) {
    const double weighted_s = cycle.weighted_s(columns.submit_s[i]) - cycle.weighted_s(columns.submit_s[i - 1]);
    ASSERT_LT(weighted_s, std::exp(6) + 4);  // whole seconds of up to 1.9 weighted ones
  }
}

TEST(Lublin, ArrivalsAreGammaGapsInWeightedTimeAndFollowTheDay) {
  const LublinModel model = lublin("type=all");
  const DailyCycle cycle(model.slot_counts());
  const Columns columns = columns_of(drawn_from(model, {.jobs = 200'000, .seed = 9}));
  std::vector<double> logs, of_slot(48);
  for (std::size_t i = 0; i < columns.submit_s.size(); ++i) {
    of_slot[static_cast<std::size_t>(columns.submit_s[i] / 1800) % 48] += 1;
    if (i == 0) continue;
    const double gap_s = cycle.weighted_s(columns.submit_s[i]) - cycle.weighted_s(columns.submit_s[i - 1]);
    if (gap_s > std::exp(4.0)) logs.push_back(std::log(gap_s));  // 55 s: above, whole seconds matter little
  }
  const GammaDistribution gaps{10.2303 * 1.0225, 0.4871};
  const double below = gaps.cdf(4), upto = gaps.cdf(13);
  EXPECT_LT(distance(logs, [&](double x) { return (gaps.cdf(x) - below) / (upto - below); }),
            rare_distance(logs.size()));
  // Long gaps make a day's jobs come together, so that a slot's count scatters more than independent jobs would.
  for (std::size_t slot = 0; slot < 48; ++slot) {
    EXPECT_NEAR(of_slot[slot] / 200'000 * 48, cycle.weight(slot), 0.05 + 0.1 * cycle.weight(slot)) << slot;
  }
}

TEST(Lublin, MeetsTheAskedLoadAndKeepsTheDailyCycle) {
  for (const double load : {0.3, 0.8, 1.6}) {
    const LublinModel model = lublin("type=all,processors=256");
    const SyntheticOptions options{.jobs = 20'000, .offered_load = load, .cluster_gpus = 256, .seed = 8};
    const JobTable jobs = drawn_from(model, options);
    EXPECT_NEAR(offered_load(jobs, 256), load, 0.001 * load);
    const Columns columns = columns_of(jobs);
    const auto at_night = std::count_if(columns.submit_s.begin(), columns.submit_s.end(),
                                        [](double s) { return std::fmod(s, 86'400) < 6 * 3600; });
    const auto at_noon = std::count_if(columns.submit_s.begin(), columns.submit_s.end(), [](double s) {
      return std::fmod(s, 86'400) >= 10 * 3600 && std::fmod(s, 86'400) < 16 * 3600;
    });
    EXPECT_GT(static_cast<double>(at_noon), 4 * static_cast<double>(at_night)) << load;
    EXPECT_EQ(columns.run_s, columns_of(drawn_from(model, {.jobs = 20'000, .seed = 8})).run_s);
  }
}

TEST(LublinFit, RecoversTheParametersThatDrewALog) {
  for (const char* settings :
       {"", "type=all,processors=256", "type=all,processors=256,umed=6,pa=-0.002,pb=0.6,barr=0.4"}) {
    const LublinModel truth = lublin(settings);
    const auto fitted = fit_lublin(drawn_from(truth, {.jobs = 20'000, .seed = 12}), truth.processors);
    ASSERT_TRUE(fitted) << fitted.error().to_string();
    EXPECT_NEAR(fitted->serial_prob, truth.serial_prob, 0.015);
    EXPECT_NEAR(fitted->pow2_prob, truth.pow2_prob, 0.015);
    EXPECT_NEAR(fitted->ulow, truth.ulow, 0.05);
    EXPECT_NEAR(fitted->umed, truth.umed, 0.1);
    EXPECT_NEAR(fitted->uprob, truth.uprob, 0.02);
    EXPECT_EQ(fitted->uhi, truth.uhi);
    EXPECT_NEAR(fitted->a1 * fitted->b1, truth.a1 * truth.b1, 0.08) << "mean log of the short run times";
    EXPECT_NEAR(fitted->b1 / truth.b1, 1, 0.06);
    EXPECT_NEAR(fitted->a2 * fitted->b2, truth.a2 * truth.b2, 0.03) << "mean log of the long run times";
    EXPECT_NEAR(fitted->b2 / truth.b2, 1, 0.1);
    EXPECT_NEAR(fitted->pa, truth.pa, 0.0006);
    EXPECT_NEAR(fitted->pb, truth.pb, 0.02);
    EXPECT_NEAR(fitted->aarr * fitted->barr, truth.aarr * truth.arar * truth.barr, 0.05) << "mean log of the gaps";
    EXPECT_NEAR(fitted->barr / truth.barr, 1, 0.06);
    EXPECT_NEAR(fitted->anum * fitted->bnum, truth.anum * truth.bnum, 1.5) << "mean slot of the day";
    EXPECT_NEAR(fitted->bnum / truth.bnum, 1, 0.2);
  }
}

TEST(LublinFit, RecoversTheFactorOfRequestedTimes) {
  const JobTable jobs = drawn_from(lublin("estimate_factor=3"), {.jobs = 5000, .seed = 2});
  EXPECT_NEAR(fit_lublin(jobs, 128)->estimate_factor, 3, 0.15);
  EXPECT_EQ(fit_lublin(drawn_from(lublin(""), {.jobs = 500, .seed = 2}), 128)->estimate_factor, 0);
}

TEST(LublinFit, CountsTheJobsThatOptionsName) {
  const LublinModel truth = lublin("type=all");
  const JobTable jobs = drawn_from(truth, {.jobs = 3000, .seed = 1});
  const auto first = fit_lublin(jobs, 128, {.jobs = 2000});
  const auto same = fit_lublin(jobs.slice(0, 2000), 128);
  ASSERT_TRUE(first && same);
  EXPECT_EQ(first->default_jobs, 2000);
  EXPECT_NEAR(first->a1, same->a1, 1e-9);
  const auto later = fit_lublin(jobs, 128, {.from = jobs.submit(JobId{1000})});
  ASSERT_TRUE(later);
  EXPECT_EQ(later->default_jobs, 2000);
  EXPECT_NE(later->a1, first->a1);
}

TEST(LublinFit, RefusesLogsThatSayTooLittle) {
  const auto refused = [](const JobTable& jobs, std::uint64_t processors) {
    const auto model = fit_lublin(jobs, processors);
    return model ? "fitted" : model.error().to_string();
  };
  EXPECT_THAT(refused(drawn_from(lublin(""), {.jobs = 99}), 0), HasSubstr("at least 100 jobs"));
  EXPECT_THAT(refused(drawn_from(lublin("serial_prob=1,pow2_prob=0"), {.jobs = 500}), 0),
              HasSubstr("more than one GPU"));
  EXPECT_THAT(refused(drawn_from(lublin(""), {.jobs = 500}), 4), HasSubstr("more than the machine's 4"));
  EXPECT_THAT(refused(drawn_from(lublin(""), {.jobs = 500, .offered_load = 1000, .cluster_gpus = 1'000'000}), 0),
              HasSubstr("more than an hour"));
}

// Lublin-1 is a log of this model: the parameters of all jobs, on 256 processors.
TEST(Lublin, DrawsWhatLublin1Holds) {
  const std::string path = test::real_trace("swf/lublin_256.swf");
  GPUSCHED_NEEDS_TRACE(path, "swf/lublin_256.swf");
  const auto trace = read_trace(path);
  ASSERT_TRUE(trace);
  const LublinModel model = lublin("type=all,processors=256");
  const Columns real = columns_of(trace->jobs);
  const Columns drawn = columns_of(drawn_from(model, {.jobs = 100'000, .seed = 1}));
  const double rare = 1.95 * std::sqrt(1.0 / 10'000 + 1.0 / 100'000);
  EXPECT_LT(distance(real.sizes, drawn.sizes), rare);
  EXPECT_LT(distance(real.run_s, drawn.run_s), rare);
  EXPECT_LT(distance(real.gap_s, drawn.gap_s), rare);
  // And its parameters are found in it. Its day is 0.6 h ahead of the published cycle.
  const auto fitted = fit_lublin(trace->jobs, 256);
  ASSERT_TRUE(fitted);
  EXPECT_NEAR(fitted->serial_prob, 0.244, 0.015);
  EXPECT_NEAR(fitted->pow2_prob, 0.576, 0.015);
  EXPECT_NEAR(fitted->umed, 5.5, 0.1);
  EXPECT_NEAR(fitted->uprob, 0.86, 0.02);
  EXPECT_NEAR(fitted->a1 * fitted->b1, 4.2 * 0.94, 0.05);
  EXPECT_NEAR(fitted->a2 * fitted->b2, 312 * 0.03, 0.05);
  EXPECT_NEAR(fitted->pa, -0.0054, 0.0006);
  EXPECT_NEAR(fitted->pb, 0.78, 0.02);
  EXPECT_NEAR(fitted->aarr * fitted->barr, 10.2303 * 1.0225 * 0.4871, 0.06);
  EXPECT_NEAR(fitted->anum * fitted->bnum, 8.1737 * 3.9631, 2);
}

TEST(Lublin, IsATraceOfEveryCommand) {
  const auto trace = read_trace("synthetic:lublin{type=all,processors=256}:500");
  ASSERT_TRUE(trace) << trace.error().to_string();
  EXPECT_EQ(trace->jobs.size(), 500u);
  EXPECT_EQ(trace->report.cluster, "256");
  EXPECT_EQ(read_trace("synthetic:lublin")->jobs.size(), 10'000u);
  EXPECT_THAT(read_trace("synthetic:lubln").error().to_string(), HasSubstr("did you mean 'lublin'?"));
  EXPECT_THAT(read_trace("synthetic:pai{a=1}").error().to_string(), HasSubstr("takes no parameters"));
  EXPECT_THAT(read_trace("synthetic:lublin{umed=5").error().to_string(), HasSubstr("expected '}'"));
}

}  // namespace
}  // namespace gpusched
