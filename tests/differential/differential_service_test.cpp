// SPDX-License-Identifier: Apache-2.0
// Policies by attained service, and the published programs that run under the name Tiresias, against the reference
// simulator.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/differential/differential.hpp"
#include "tests/differential/reference_muri.hpp"
#include "tests/differential/reference_service.hpp"

namespace gpusched::test {
namespace {

std::string list_text(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (const std::int64_t number : numbers) text += (text.size() > 1 ? "," : "") + std::to_string(number);
  return text + "]";
}

/// A few jobs of `gpus` GPUs each that run for up to `longest` seconds.
std::vector<Row> service_rows(const std::vector<std::uint32_t>& gpus, std::int64_t longest, bool with_attempts) {
  auto rows = *few_rows(12, with_attempts);
  for (Row& row : rows) {
    row.gpus = *rc::gen::elementOf(gpus);
    if (row.attempts.empty()) row.work = *rc::gen::inRange<std::int64_t>(0, longest);
    const auto stretch = *rc::gen::element<std::int64_t>(1, 1, 3);
    for (std::int64_t& attempt : row.attempts) attempt *= stretch;
  }
  return rows;
}

// Limits of service that every size divides.
std::vector<Row> level_rows() { return service_rows({1, 2, 4, 8}, 60, true); }

// Jobs that take turns must not spend them on starting.
rc::Gen<ReferenceCosts> restart_costs() {
  return rc::gen::build<ReferenceCosts>(rc::gen::set(&ReferenceCosts::restart, rc::gen::inRange<std::int64_t>(0, 4)));
}

TEST(ServiceDifferential, Las) {
  check_many(2000, [] {
    const auto quantum = *rc::gen::element<std::int64_t>(8, 16, 80, 1000);
    expect_agreement({.policy = "las{quantum_gpu_s=" + std::to_string(quantum) + "}",
                      .rule = ReferenceService({.quantum = quantum})},
                     level_rows(), Cluster::pool(case_gpus), quantum >= 80 ? *restart_costs() : ReferenceCosts{});
  });
}

TEST(ServiceDifferential, LasOnNodes) {
  check_many(1000, [] {
    expect_agreement({.policy = "las{quantum_gpu_s=16}", .rule = ReferenceService({.quantum = 16})}, level_rows(),
                     *alike_clusters());
  });
}

struct Levels {
  std::vector<std::int64_t> limits;
  std::int64_t knob = 0;
  [[nodiscard]] std::string text() const {
    return "queue_limits_gpu_s=" + list_text(limits) + ",promote_knob=" + std::to_string(knob);
  }
};

Levels random_levels() {
  return {*rc::gen::element(std::vector<std::int64_t>{16, 80}, std::vector<std::int64_t>{8},
                            std::vector<std::int64_t>{8, 16, 24, 120}),
          *rc::gen::element<std::int64_t>(0, 1, 1, 2)};
}

TEST(ServiceDifferential, Tiresias) {
  check_many(2000, [] {
    const Levels levels = random_levels();
    expect_agreement(
        {.policy = "tiresias{" + levels.text() + "}",
         .rule = ReferenceService({.limits = levels.limits, .by_first_start = true, .promote_knob = levels.knob})},
        level_rows(), Cluster::pool(case_gpus), levels.knob == 0 ? *restart_costs() : ReferenceCosts{});
  });
}

TEST(ServiceDifferential, TiresiasGittins) {
  check_many(2000, [] {
    const Levels levels = random_levels();
    auto history = *rc::gen::resize(6, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange(1, 200)));
    const auto look_ahead = *rc::gen::element<std::int64_t>(8, 40, 3250);
    const bool of_trace = *rc::gen::arbitrary<bool>();
    const auto rows = level_rows();
    const std::string text = "tiresias-gittins{" + levels.text() + ",history_gpu_s=" + list_text(history) +
                             ",look_ahead_gpu_s=" + std::to_string(look_ahead) +
                             ",distribution=" + (of_trace ? "trace}" : "finished}");
    if (of_trace) {
      const JobTable jobs = table_of(rows);
      for (std::uint32_t i = 0; i < jobs.size(); ++i) {
        history.push_back(jobs.work(JobId{i}).us / 1'000'000 * jobs.shape(JobId{i}).tasks);
      }
    }
    expect_agreement({.policy = text,
                      .rule = ReferenceService({.limits = levels.limits,
                                                .promote_knob = levels.knob,
                                                .gittins = true,
                                                .look_ahead = look_ahead,
                                                .samples = history,
                                                .learns = !of_trace})},
                     rows, Cluster::pool(case_gpus), levels.knob == 0 ? *restart_costs() : ReferenceCosts{});
  });
}

// ---- published programs ----

TEST(ServiceDifferential, TiresiasCode) {
  check_many(2000, [] {
    const auto knob = *rc::gen::element<std::int64_t>(0, 0, 1, 2);
    expect_agreement(
        {.policy = "tiresias@code{promote_knob=" + std::to_string(knob) + "}", .rule = ReferenceTiresiasCode(knob)},
        service_rows({1, 2, 3, 4, 5, 8}, 3000, true), Cluster::pool(case_gpus));
  });
}

// 64 GPUs, so that the limits are reached in minutes.
std::vector<Row> round_rows() {
  auto rows = service_rows({1, 4, 8, 9, 16, 32, 60, 64}, 1500, true);
  for (Row& row : rows) {
    row.submit *= *rc::gen::element<std::int64_t>(1, 7, 20);
    // What ends where it starts, at a round, frees its GPUs within that round.
    row.work = std::max<std::int64_t>(row.work, 1);
    for (std::int64_t& work : row.attempts) work = 1 + work * 40;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.submit < b.submit; });
  return rows;
}

TEST(ServiceDifferential, TiresiasPollux) {
  check_many(1000, [] {
    expect_agreement({.policy = "tiresias@pollux", .rule = ReferenceRounds{.pollux = true}}, round_rows(),
                     Cluster::pool(64));
  });
}

TEST(ServiceDifferential, TiresiasLucid) {
  check_many(1000, [] {
    expect_agreement({.policy = "tiresias@lucid", .rule = ReferenceRounds{.pollux = false}}, round_rows(),
                     Cluster::pool(64));
  });
}

/// On nodes of 4 GPUs. Beyond 1e9 s, ends within a second or two are "nearly equal".
void expect_muri_agreement(const std::string& policy, MuriSchedule schedule, std::int64_t longest) {
  const auto models = std::vector<std::string_view>{"vgg16", "resnet18", "a2c", "dqn", "bert", "unheard-of"};
  const auto origin = *rc::gen::element<std::int64_t>(0, 0, 1'500'000'000, 3'300'000'000);
  auto rows = service_rows({1, 2, 3, 4, 5, 8, 12, 16}, longest, false);
  std::vector<ReferenceMuri::Job> theirs;
  theirs.reserve(rows.size());
  for (Row& row : rows) {
    row.submit = origin + row.submit * *rc::gen::element<std::int64_t>(1, 10);
    row.family = *rc::gen::elementOf(models);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.submit < b.submit; });
  for (const Row& row : rows) {
    theirs.push_back({.submit = row.submit,
                      .work = row.work,
                      .gpus = row.gpus,
                      .overhead = reference_muri_overhead(row.family, row.gpus)});
  }
  RC_PRE(!rows.empty());
  const JobTable jobs = table_of(rows);
  const Cluster cluster = Cluster::homogeneous(4, 4);
  RC_LOG() << policy << ", models";
  for (const Row& row : rows) RC_LOG() << row << ' ' << row.family;
  std::vector<Span> spans;
  ReferenceMuri reference(std::move(theirs), 4, 4, schedule);
  for (const ReferenceMuri::Job& job : reference.run()) {
    spans.push_back({static_cast<double>(job.start), static_cast<double>(job.end)});
  }
  RC_ASSERT(run(jobs, cluster, make_policy(policy, "", jobs, cluster)) == spans);
}

TEST(ServiceDifferential, SrtfMuri) {
  check_many(2000, [] { expect_muri_agreement("srtf@muri", MuriSchedule::srtf, 200); });
}

TEST(ServiceDifferential, SrsfMuri) {
  check_many(2000, [] { expect_muri_agreement("srsf@muri", MuriSchedule::srsf, 200); });
}

TEST(ServiceDifferential, TiresiasMuri) {
  check_many(2000, [] { expect_muri_agreement("tiresias@muri", MuriSchedule::tiresias, 3000); });
}

}  // namespace
}  // namespace gpusched::test
