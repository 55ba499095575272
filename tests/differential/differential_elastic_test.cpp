// SPDX-License-Identifier: Apache-2.0
// Optimus, Pollux and ElasticFlow against reference rules: the same ends of all jobs on random small cases, where
// changes of size cost nothing.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpusched/policy/simulate.hpp"
#include "src/policies/seam/registry.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/reference_elastic.hpp"
#include "tests/program/run_support.hpp"

namespace gpusched::test {
namespace {

/// Jobs, and their curves by family.
struct ElasticCase {
  std::vector<Row> rows;
  std::vector<ElasticCurve> curves;
  std::uint32_t gpus = 1;
};

// One for each job: two jobs with the same curve and as much work left would tie, and microseconds decide then.
const std::vector<std::string> families{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"};

std::ostream& operator<<(std::ostream& out, const ElasticCase& drawn) {
  out << drawn.gpus << " GPUs\n";
  for (const Row& row : drawn.rows) {
    out << row.submit << ' ' << row.work << ' ' << row.gpus << ' ' << row.family << ' ' << row.deadline << '\n';
  }
  for (const ElasticCurve& curve : drawn.curves) {
    for (const RatePpm rate : curve.phases[0].rates) out << rate << ' ';
    out << '\n';
  }
  return out;
}

// Some speeds fall.
ElasticCase random_case() {
  ElasticCase drawn;
  drawn.gpus = *rc::gen::inRange<std::uint32_t>(3, 13);
  for (std::size_t i = 0; i < families.size(); ++i) {
    ElasticCurve curve{.min_tasks = 1, .max_tasks = *rc::gen::inRange<std::uint32_t>(1, 10), .phases = {{}}};
    std::int64_t rate = reference_rate;
    for (std::uint32_t tasks = 1; tasks <= curve.max_tasks; ++tasks) {
      curve.phases[0].rates.push_back(static_cast<RatePpm>(rate));
      rate = std::max<std::int64_t>(rate + *rc::gen::inRange(-200'003, 900'001), 100'000 + tasks);
      rate += 1009 * static_cast<std::int64_t>(i);  // unlike those of other families
    }
    drawn.curves.push_back(std::move(curve));
  }
  const auto count = *rc::gen::inRange<std::size_t>(1, families.size() + 1);
  std::int64_t now = 0;
  for (std::size_t i = 0; i < count; ++i) {
    now += *rc::gen::inRange(0, 40);
    const std::int64_t work = *rc::gen::inRange(1, 400);
    Row row{.submit = now, .work = work, .gpus = 1, .family = families[i]};
    if (*rc::gen::inRange(0, 5) == 0)
      row.gpus = *rc::gen::inRange<std::uint32_t>(2, 4);  // rigid: no curve for its shape
    if (*rc::gen::inRange(0, 3) > 0) row.deadline = now + work / 2 + *rc::gen::inRange(0, 500);
    drawn.rows.push_back(row);
  }
  return drawn;
}

std::vector<double> reference_ends(const ElasticCase& drawn, double round_s, const ReferenceSizing& sizing) {
  std::vector<ReferenceElasticJob> jobs;
  for (const Row& row : drawn.rows) {
    ReferenceElasticJob job;
    job.submit = static_cast<double>(row.submit);
    job.work = static_cast<double>(row.work);
    if (row.deadline >= 0) job.deadline = static_cast<double>(row.deadline);
    job.rates.assign(row.gpus, 0);
    job.rates.back() = 1;
    for (std::size_t family = 0; row.gpus == 1 && family < families.size(); ++family) {
      if (row.family != families[family]) continue;
      job.rates.clear();
      for (const RatePpm rate : drawn.curves[family].phases[0].rates) job.rates.push_back(rate / 1e6);
    }
    jobs.push_back(job);
  }
  play_elastic(jobs, static_cast<int>(drawn.gpus), round_s, sizing);
  std::vector<double> ends;
  for (const ReferenceElasticJob& job : jobs) ends.push_back(job.end);
  return ends;
}

std::vector<double> ends_by(const std::string& text, const ElasticCase& drawn) {
  const JobTable jobs = table_of(drawn.rows);
  ElasticModel model(jobs.shapes().size());
  for (std::uint32_t shape = 0; shape < jobs.shapes().size(); ++shape) {
    for (std::size_t family = 0; jobs.shapes()[shape].tasks == 1 && family < families.size(); ++family) {
      const std::uint32_t number = jobs.families().find(families[family]);
      if (number != no_index) model.add(number, shape, drawn.curves[family]);
    }
  }
  const Cluster cluster = Cluster::pool(drawn.gpus);
  static const PolicyRegistry registry = PolicyRegistry::standard();
  AnyPolicy policy = *registry.make(parse_policy_list(text)->front(), {.jobs = &jobs, .cluster = &cluster});
  Engine engine(jobs, cluster, {}, {.elastic = &model});
  RC_ASSERT(simulate(engine, policy));
  std::vector<double> ends;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) ends.push_back(to_seconds(engine.end(JobId{i})));
  return ends;
}

void expect_same_ends(const std::string& policy, double round_s, const std::function<ReferenceSizing()>& make) {
  check_many(2000, [&] {
    const ElasticCase drawn = random_case();
    RC_LOG() << drawn;
    const std::vector<double> theirs = reference_ends(drawn, round_s, make()), ours = ends_by(policy, drawn);
    RC_ASSERT(theirs.size() == ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) {
      RC_LOG() << "job " << i << ": " << ours[i] << ", reference " << theirs[i] << '\n';
      RC_ASSERT(std::abs(ours[i] - theirs[i]) < 1e-3);
    }
  });
}

TEST(ElasticDifferential, OptimusGivesGpusOneByOne) {
  expect_same_ends("optimus{round_s=17}", 17, [] { return ReferenceSizing(reference_optimus); });
}

TEST(ElasticDifferential, PolluxTakesTheSteepestStep) {
  for (const double delay_s : {0.0, 30.0}) {
    expect_same_ends("pollux{round_s=23,realloc_s=" + std::to_string(delay_s) + "}", 23, [=] {
      return ReferenceSizing([=](const ReferenceElasticJobs& jobs, int gpus, double now) {
        return reference_pollux(jobs, gpus, now, delay_s);
      });
    });
  }
}

TEST(ElasticDifferential, ElasticflowKeepsPromisesByDeadline) {
  expect_same_ends("elasticflow", 0, [] { return ReferenceSizing(ReferenceElasticFlow()); });
}

}  // namespace
}  // namespace gpusched::test
