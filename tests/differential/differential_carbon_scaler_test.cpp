// SPDX-License-Identifier: Apache-2.0
// The policy `carbonscaler` against its definition: the same ends of all jobs on random small cases, elastic and rigid
// jobs on clusters that are often full, where changes of size cost nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/reference_carbon_scaler.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

/// Jobs of one-GPU tasks; each elastic one has a family of its own.
struct ScalerCase {
  std::vector<Row> rows;
  std::vector<ElasticCurve> curves;  // by job; a rigid one has no phases
  std::uint32_t gpus = 1;
};

const std::vector<std::string> scaled_families{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};

std::ostream& operator<<(std::ostream& out, const ScalerCase& drawn) {
  out << drawn.gpus << " GPUs\n";
  for (std::size_t i = 0; i < drawn.rows.size(); ++i) {
    const Row& row = drawn.rows[i];
    out << row.submit << ' ' << row.work << ' ' << row.gpus << ' ' << row.deadline << ':';
    for (const ElasticCurve::Phase& phase : drawn.curves[i].phases) {
      for (const RatePpm rate : phase.rates) out << ' ' << rate;
    }
    out << '\n';
  }
  return out;
}

// Around the size that it asks for; some speeds fall, and no two are alike.
ElasticCurve random_scaler_curve(std::uint32_t asked, std::int64_t own) {
  ElasticCurve curve{.min_tasks = *rc::gen::inRange<std::uint32_t>(1, asked + 1),
                     .max_tasks = asked + *rc::gen::inRange<std::uint32_t>(0, 5),
                     .phases = {{}}};
  std::int64_t rate = 200'000 + *rc::gen::inRange(0, 700'000);
  for (std::uint32_t tasks = curve.min_tasks; tasks <= curve.max_tasks; ++tasks) {
    curve.phases[0].rates.push_back(tasks == asked ? reference_rate : static_cast<RatePpm>(rate + 1009 * own));
    rate = std::max<std::int64_t>(rate + *rc::gen::inRange(-200'003, 900'001), 100'000 + tasks);
  }
  return curve;
}

ScalerCase random_scaler_case() {
  ScalerCase drawn;
  drawn.gpus = *rc::gen::inRange<std::uint32_t>(3, 13);
  const auto count = *rc::gen::inRange<std::size_t>(1, scaled_families.size() + 1);
  std::int64_t now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += *rc::gen::inRange(0, 12);
    Row row{.submit = now, .work = *rc::gen::inRange(1, 40)};
    row.gpus = *rc::gen::inRange<std::uint32_t>(1, 4);
    row.family = scaled_families[i];
    row.deadline = now + *rc::gen::inRange(1, 90);
    drawn.curves.emplace_back();
    if (*rc::gen::inRange(0, 3) > 0) {
      drawn.curves.back() = random_scaler_curve(row.gpus, static_cast<std::int64_t>(i));
    } else {
      drawn.curves.back().phases.clear();
    }
    drawn.rows.push_back(row);
  }
  return drawn;
}

/// How long a job may wait, in seconds; those of less than 18 s are short.
struct Waits {
  bool by_trace = false;
  std::int64_t long_s = 36, short_s = 18;

  [[nodiscard]] std::int64_t latest_end(const Row& row) const {
    if (by_trace) return row.deadline;
    return row.submit + row.work + (row.work < 18 ? short_s : long_s);
  }
};

std::vector<double> ends_by_reference(const ScalerCase& drawn, ReferenceCarbonScaler rule, const Waits& waits) {
  std::vector<ReferenceScaledJob> jobs;
  for (std::size_t i = 0; i < drawn.rows.size(); ++i) {
    const Row& row = drawn.rows[i];
    ReferenceScaledJob job{.submit = row.submit, .work = row.work, .latest_end = waits.latest_end(row)};
    const ElasticCurve& curve = drawn.curves[i];
    job.rates.assign(curve.phases.empty() ? row.gpus : curve.max_tasks, 0);
    job.rates.back() = 1;
    for (std::uint32_t tasks = curve.min_tasks; !curve.phases.empty() && tasks <= curve.max_tasks; ++tasks) {
      job.rates[tasks - 1] = static_cast<double>(curve.rate(tasks, 0)) / static_cast<double>(reference_rate);
    }
    jobs.push_back(job);
  }
  rule.play(jobs, static_cast<int>(drawn.gpus));
  std::vector<double> ends;
  for (const ReferenceScaledJob& job : jobs) ends.push_back(job.end);
  return ends;
}

bool all_jobs_fit(const ScalerCase& drawn) {
  for (std::size_t i = 0; i < drawn.rows.size(); ++i) {
    if (drawn.rows[i].gpus > drawn.gpus) return false;
  }
  return true;
}

std::vector<double> ends_by_policy(const std::string& text, const ScalerCase& drawn) {
  const JobTable jobs = table_of(drawn.rows);
  ElasticModel model(jobs.shapes().size());
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (!drawn.curves[i].phases.empty()) model.add(jobs.family(JobId{i}), jobs.shape_id(JobId{i}), drawn.curves[i]);
  }
  const Cluster cluster = Cluster::pool(drawn.gpus);
  static const PolicyRegistry registry = PolicyRegistry::standard();
  auto policy = registry.make(parse_policy_list(text)->front(),
                              {.jobs = &jobs, .cluster = &cluster, .power = &signals_of_tests()});
  RC_ASSERT(static_cast<bool>(policy));
  Engine engine(jobs, cluster, {}, {.elastic = &model});
  RC_ASSERT(static_cast<bool>(simulate(engine, *policy)));
  std::vector<double> ends;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) ends.push_back(to_seconds(engine.end(JobId{i})));
  return ends;
}

void expect_ends_of(const std::string& policy, const ReferenceCarbonScaler& rule, const Waits& waits) {
  check_many(2000, [&] {
    const ScalerCase drawn = random_scaler_case();
    RC_PRE(all_jobs_fit(drawn));
    RC_LOG() << drawn;
    const std::vector<double> theirs = ends_by_reference(drawn, rule, waits), ours = ends_by_policy(policy, drawn);
    RC_ASSERT(theirs.size() == ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      RC_LOG() << "job " << i << ": " << ours[i] << ", reference " << theirs[i] << '\n';
      RC_ASSERT(std::abs(ours[i] - theirs[i]) < 1e-3);
    }
  });
}

// Waits of 36 s, and of 18 s below 18 s.
const std::string waits_of_tests = ",wait_h=0.01,short_wait_h=0.005,short_h=0.005,estimate=exact}";

TEST(CarbonScalerDifferential, ForeseesAndWaitsByLength) {
  expect_ends_of("carbonscaler{forecast=perfect,slot_s=4" + waits_of_tests, {}, {});
}

TEST(CarbonScalerDifferential, ForeseesUntilDeadlines) {
  ReferenceCarbonScaler rule;
  rule.slot_s = 5;
  expect_ends_of("carbonscaler{forecast=perfect,slot_s=5,deadline=trace,estimate=exact}", rule, {.by_trace = true});
}

TEST(CarbonScalerDifferential, FollowsThePrice) {
  ReferenceCarbonScaler rule;
  rule.values = changing_price;
  rule.slot_s = 3;
  expect_ends_of("carbonscaler{figure=price,forecast=perfect,slot_s=3" + waits_of_tests, rule, {});
}

TEST(CarbonScalerDifferential, ExpectsTheDayBefore) {
  ReferenceCarbonScaler rule;
  rule.perfect = false;
  rule.slot_s = 6;
  expect_ends_of("carbonscaler{slot_s=6" + waits_of_tests, rule, {});
}

}  // namespace
}  // namespace gpusched::test
