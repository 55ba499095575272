// SPDX-License-Identifier: Apache-2.0
// The SC'20 protocol against its loop as written down, on random small windows.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>
#include <string>
#include <vector>

#include "src/sim/protocols/sc20_protocol.hpp"
#include "tests/differential/check_many.hpp"
#include "tests/differential/reference_sc20.hpp"

namespace gpusched::test {
namespace {

constexpr std::int64_t processors = 8;

/// Jobs by submission, as a log has them; requests too short and too long.
std::vector<ReferenceSc20Job> random_window() {
  using rc::gen::inRange;
  std::vector<ReferenceSc20Job> jobs(*inRange<std::size_t>(1, 30));
  std::int64_t submit = 0;
  for (ReferenceSc20Job& job : jobs) {
    submit += *inRange<std::int64_t>(0, 6);
    job = {.id = &job - jobs.data(),
           .submit = submit,
           .requested = *inRange<std::int64_t>(1, 40),
           .run = *inRange<std::int64_t>(1, 40),
           .processors = *inRange<std::int64_t>(1, processors + 1)};
    if (*rc::gen::arbitrary<bool>()) job.requested = job.run;
  }
  return jobs;
}

struct Scored {
  std::string policy;
  ReferenceSc20Window::Score score;
};

class Sc20Differential : public testing::TestWithParam<Scored> {};

double wfp3(double wait, const ReferenceSc20Job& job) {
  const double ratio = wait / static_cast<double>(job.requested);
  return -(ratio * ratio * ratio) * static_cast<double>(job.processors);
}
double unicep(double wait, const ReferenceSc20Job& job) {
  constexpr double e = 1e-15;
  return -(wait + e) / (std::log2(static_cast<double>(job.processors) + e) * static_cast<double>(job.requested));
}
double log10_from_tenth(double x) { return std::log10(x > 0 ? x : 0.1); }

std::vector<Scored> scores() {
  using Job = ReferenceSc20Job;
  const auto waited = [](const Job& job, std::int64_t clock) { return static_cast<double>(clock - job.submit); };
  const auto quirk = [](const Job& job) { return static_cast<double>(-1 - job.submit); };
  return {
      {"fifo", [](const Job& job, std::int64_t) { return static_cast<double>(job.submit); }},
      {"sjf", [](const Job& job, std::int64_t) { return static_cast<double>(job.requested); }},
      {"saf", [](const Job& job, std::int64_t) { return static_cast<double>(job.requested * job.processors); }},
      {"f1",
       [](const Job& job, std::int64_t) {
         return log10_from_tenth(static_cast<double>(job.requested)) * static_cast<double>(job.processors) +
                870 * log10_from_tenth(static_cast<double>(job.submit));
       }},
      {"wfp3", [=](const Job& job, std::int64_t clock) { return wfp3(waited(job, clock), job); }},
      {"unicep", [=](const Job& job, std::int64_t clock) { return unicep(waited(job, clock), job); }},
      {"wfp3@sc20", [=](const Job& job, std::int64_t) { return wfp3(quirk(job), job); }},
      {"unicep@sc20", [=](const Job& job, std::int64_t) { return unicep(quirk(job), job); }},
  };
}

INSTANTIATE_TEST_SUITE_P(Orders, Sc20Differential, testing::ValuesIn(scores()),
                         [](const auto& instance) { return readable(instance.param.policy); });

// A window's two figures say where every start lies: they are sums over all jobs.
TEST_P(Sc20Differential, FiguresAgreeWithTheReference) {
  const auto specs = parse_policy_list(GetParam().policy);
  const auto choose = make_sc20_chooser(PolicyRegistry::standard(), specs->front());
  ASSERT_TRUE(choose.has_value()) << choose.error().to_string();
  check_many(1500, [&] {
    const auto window = random_window();
    const bool backfill = *rc::gen::arbitrary<bool>();
    Sc20Log log{.jobs = {}, .processors = processors, .nodes = processors};
    for (const ReferenceSc20Job& job : window) {
      log.jobs.push_back({.id = job.id,
                          .submit = whole_seconds(job.submit),
                          .requested = whole_seconds(job.requested),
                          .run = whole_seconds(job.run),
                          .processors = job.processors,
                          .nodes = job.processors});
    }
    const Sc20Result ours = run_sc20_window(log, log.jobs, backfill, *choose);
    double slowdown = 0;
    std::int64_t work = 0, last_start = 0;
    ReferenceSc20Window reference(window, processors, backfill, GetParam().score);
    for (const ReferenceSc20Job& job : reference.run()) {
      const auto run = static_cast<double>(job.run);
      slowdown += std::max(1.0, (static_cast<double>(job.start - job.submit) + run) / std::max(run, 10.0));
      work += job.run * job.processors;
      last_start = std::max(last_start, job.start);
    }
    slowdown /= static_cast<double>(window.size());
    RC_ASSERT(std::fabs(ours.avg_bounded_slowdown - slowdown) <= 1e-12 * slowdown);
    const std::int64_t span = (last_start - window.front().submit) * processors;
    const double utilization = span > 0 ? static_cast<double>(work) / static_cast<double>(span) : 0;
    RC_ASSERT(std::fabs(ours.utilization - utilization) <= 1e-12 * utilization);
  });
}

}  // namespace
}  // namespace gpusched::test
