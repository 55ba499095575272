// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/pai_protocol.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "src/base/python_random.hpp"
#include "tests/support/files.hpp"

namespace gpusched {
namespace {

// ---- Python's random: figures printed by CPython 3.11 ----

std::vector<std::uint32_t> words_of(std::uint64_t seed, int count) {
  PythonRandom random(seed);
  std::vector<std::uint32_t> words;
  for (int i = 0; i < count; ++i) words.push_back(random.bits(32));
  return words;
}

TEST(PythonRandom, GivesPythonsWords) {
  using Words = std::vector<std::uint32_t>;
  EXPECT_EQ(words_of(42, 5), (Words{2746317213u, 478163327u, 107420369u, 3184935163u, 1181241943u}));
  EXPECT_EQ(words_of(0, 3), (Words{3626764237u, 1654615998u, 3255389356u}));
  EXPECT_EQ(words_of((1ull << 40) + 7, 3), (Words{2635837658u, 3209733218u, 3500038837u}));
}

TEST(PythonRandom, GivesPythonsFractions) {
  PythonRandom random(42);
  EXPECT_EQ(random.real(), 0.6394267984578837);
  EXPECT_EQ(random.real(), 0.025010755222666936);
}

TEST(PythonRandom, ShufflesAsPythonDoes) {
  PythonRandom random(42);
  std::vector<int> ten(10);
  std::iota(ten.begin(), ten.end(), 0);
  random.shuffle(ten);
  EXPECT_EQ(ten, (std::vector<int>{7, 3, 2, 8, 5, 6, 9, 4, 0, 1}));
  EXPECT_EQ(random.bits(32), 2536146025u);  // as many words were drawn

  PythonRandom again(42);
  std::vector<int> many(20001);
  std::iota(many.begin(), many.end(), 0);
  again.shuffle(many);
  EXPECT_EQ(std::vector<int>(many.begin(), many.begin() + 6),
            (std::vector<int>{3001, 6334, 12095, 16564, 19830, 19166}));
  EXPECT_EQ(std::vector<int>(many.end() - 3, many.end()), (std::vector<int>{9012, 819, 3648}));
}

// ---- the simulator ----

// 2 GPUs, 46 cores. Job ids are out of order in the file; 9 comes before 10 as a number.
constexpr const char* example =
    "job_id,user,submit_time,duration,num_inst,num_gpu,num_cpu,user_dur,group_dur,group_gpu_dur,gpu_type\n"
    "10,a,5,10,1,1.5,4,1,2,1,V100\n"
    "9,a,5,10,1,1,4,3,1,2,V100\n"
    "2,b,7,20.9,2,0.5,4,2,3,3,V100\n"
    "3,b,9,0,1,8,400,4,4,4,V100\n";

TEST(PaiProtocol, FollowsTheRulesOfTheSimulator) {
  test::TempFolder folder;
  const PaiOptions options{.gpus = 2, .jobs = 10, .arrivals = 2};
  EXPECT_EQ(options.cpus(), 46);
  const auto jobs = read_pai_jobs(folder.write("pai.csv", example), options);
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const auto sample = draw_pai_jobs(*jobs, options);  // fewer than 10: not shuffled
  ASSERT_EQ(sample.size(), 4u);
  EXPECT_EQ(sample[0].gpu_percent, 100);  // job 9
  EXPECT_EQ(sample[3].gpu_percent, 200);  // shrunk from 800 and 40,000
  EXPECT_EQ(sample[3].cpu_percent, 4600);
  EXPECT_EQ(sample[3].duration_s, 1);
  EXPECT_EQ(sample[2].duration_s, 20);
  EXPECT_EQ(sample[2].submit_s, 60);
  // FIFO: job 9 from 0 to 10, job 10 (1.5 GPUs) from 10 to 20; at 60 job 2 (id 2, 1 GPU in all) to 80, job 3 after it.
  // The two instances of job 2 count twice: JCT 10, 20, 20, 20, 21; waits 0, 10, 0, 0, 20.
  const auto fifo = run_pai(sample, PaiOrder::fifo, options);
  EXPECT_DOUBLE_EQ(fifo->avg_jct_s, 91.0 / 5);
  EXPECT_DOUBLE_EQ(fifo->avg_wait_s, 30.0 / 5);
  EXPECT_EQ(fifo->makespan_s, 82);
  // SJF: at 60 job 3 (1 s) first, then job 2 from 61.
  const auto sjf = run_pai(sample, PaiOrder::sjf, options);
  EXPECT_DOUBLE_EQ(sjf->avg_jct_s, (10 + 20 + 1 + 21 + 21) / 5.0);
  EXPECT_EQ(sjf->makespan_s, 82);
  // By group_gpu_dur job 10 comes first: job 9 waits for it, as 0.5 GPUs are left.
  const auto sjgg = run_pai(sample, PaiOrder::sjgg, options);
  EXPECT_DOUBLE_EQ(sjgg->avg_wait_s, (0 + 10 + 0 + 0 + 20) / 5.0);
  EXPECT_DOUBLE_EQ(run_pai(sample, PaiOrder::sju, options)->avg_jct_s, sjgg->avg_jct_s);
  EXPECT_DOUBLE_EQ(run_pai(sample, PaiOrder::sjg, options)->avg_jct_s, fifo->avg_jct_s);
}

// Figures of a program of forty lines of Python, which draws the sample with Python's own random: 5,000 of the 20,000
// jobs, 20 a minute, on 600 GPUs.
TEST(PaiProtocol, GivesWhatPythonGivesOnPhilly) {
  const std::string name = "alibaba/pai2020/philly_in_pai_columns_20k.csv";
  const std::string path = test::real_trace(name);
  GPUSCHED_NEEDS_TRACE(path, name);
  const PaiOptions options{.gpus = 600, .jobs = 5000, .arrivals = 20};
  const auto jobs = read_pai_jobs(path, options);
  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const auto sample = draw_pai_jobs(*jobs, options);
  const PaiResult expected[] = {{16508.28, 7563.04, 626033},
                                {21560.57, 12615.33, 621917},
                                {19130.38, 10185.14, 607218},
                                {19557.23, 10612.00, 551878},
                                {32615.38, 23670.15, 557739}};
  for (const PaiOrderName& row : pai_orders) {
    const auto result = run_pai(sample, row.order, options);
    ASSERT_TRUE(result);
    const PaiResult& theirs = expected[&row - pai_orders];
    EXPECT_NEAR(result->avg_jct_s, theirs.avg_jct_s, 0.005) << row.name;
    EXPECT_NEAR(result->avg_wait_s, theirs.avg_wait_s, 0.005) << row.name;
    EXPECT_EQ(result->makespan_s, theirs.makespan_s) << row.name;
  }
}

TEST(PaiProtocol, NamesWhatIsWrong) {
  test::TempFolder folder;
  const auto error = [&](const char* text) {
    return read_pai_jobs(folder.write("pai.csv", text), {}).error().to_string();
  };
  EXPECT_NE(error("job_id,duration,user_dur,group_dur\n1,2,3,4\n").find("group_gpu_dur"), std::string::npos);
  EXPECT_NE(error("job_id,duration,user_dur,group_dur,group_gpu_dur\n1,x,3,4,5\n").find(":2"), std::string::npos);
  const PaiJob twins{.instances = 2, .gpu_percent = 80};
  EXPECT_FALSE(run_pai({twins}, PaiOrder::sjf, {.gpus = 1}));
}

// The program's loop over every second.
PaiResult second_by_second(const std::vector<PaiJob>& sample, PaiOrder order, const PaiOptions& options) {
  struct State {
    PaiJob job;
    std::int64_t start = -1;
  };
  std::vector<State> states;
  for (const PaiJob& job : sample) states.push_back({job});
  const auto key = [&](const PaiJob& job) {
    return std::pair(order == PaiOrder::fifo ? job.submit_s : job.duration_s, job.rank);
  };
  std::stable_sort(states.begin(), states.end(),
                   [&](const State& a, const State& b) { return key(a.job) < key(b.job); });
  std::int64_t gpu = options.gpus * 100, cpu = options.cpus() * 100, sum = 0, wait = 0, count = 0, last = 0;
  for (std::int64_t now = 0;
       std::any_of(states.begin(), states.end(),
                   [&](const State& s) { return s.start < 0 || s.start + s.job.duration_s > now; });
       ++now) {
    for (const State& s : states) {
      if (s.start < 0 || s.start + s.job.duration_s != now) continue;
      gpu += s.job.instances * s.job.gpu_percent;
      cpu += s.job.instances * s.job.cpu_percent;
    }
    for (State& s : states) {
      if (gpu <= 0 && cpu <= 0) break;
      const std::int64_t g = s.job.instances * s.job.gpu_percent, c = s.job.instances * s.job.cpu_percent;
      if (s.start >= 0 || s.job.submit_s > now || g > gpu || c > cpu) continue;
      s.start = now;
      gpu -= g;
      cpu -= c;
    }
  }
  for (const State& s : states) {
    count += s.job.instances;
    wait += s.job.instances * (s.start - s.job.submit_s);
    sum += s.job.instances * (s.start + s.job.duration_s - s.job.submit_s);
    last = std::max(last, s.start + s.job.duration_s);
  }
  return {static_cast<double>(sum) / static_cast<double>(count), static_cast<double>(wait) / static_cast<double>(count),
          last + 1};
}

RC_GTEST_PROP(PaiProtocol, EventsAreEnough, ()) {
  const PaiOptions options{.gpus = *rc::gen::inRange(1, 5), .arrivals = *rc::gen::inRange(0, 4), .interval_s = 7};
  std::vector<PaiJob> jobs;
  const auto count = *rc::gen::inRange(1, 25);
  for (int i = 0; i < count; ++i) {
    jobs.push_back({.rank = i,
                    .submit_s = *rc::gen::inRange(0, 30),
                    .duration_s = *rc::gen::inRange(1, 12),
                    .instances = *rc::gen::inRange(1, 3),
                    .gpu_percent = *rc::gen::element(0, 25, 50, 100, 150, 300),
                    .cpu_percent = *rc::gen::element(0, 100, 600, 2400)});
  }
  auto sample = draw_pai_jobs(jobs, options);
  for (PaiJob& job : sample) {
    const bool fits = 2 * job.gpu_percent <= options.gpus * 100 && 2 * job.cpu_percent <= options.cpus() * 100;
    if (!fits) job.instances = 1;
  }
  for (const PaiOrder order : {PaiOrder::sjf, PaiOrder::fifo}) {
    const PaiResult ours = *run_pai(sample, order, options), theirs = second_by_second(sample, order, options);
    RC_ASSERT(ours.avg_jct_s == theirs.avg_jct_s);
    RC_ASSERT(ours.avg_wait_s == theirs.avg_wait_s);
    RC_ASSERT(ours.makespan_s == theirs.makespan_s);
  }
}

}  // namespace
}  // namespace gpusched
