// SPDX-License-Identifier: Apache-2.0
// Figures of a report against values counted by hand, names that hold markup, and folders that are no run.
#include "src/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "src/base/level_series.hpp"
#include "src/report/comparison.hpp"
#include "src/report/figures.hpp"
#include "src/report/gantt.hpp"
#include "src/report/page.hpp"
#include "tests/program/program.hpp"

namespace gpusched::test {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::Not;

// ---- values reduced to what a chart shows ----

TEST(Distribution, HoldsEveryShareOfFewValuesAndTheEndsOfMany) {
  const auto all = distribution({3, 1, 2, 2}, 10);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].x, 1);
  EXPECT_EQ(all[0].share, 0.25);
  EXPECT_EQ(all[1].x, 2);
  EXPECT_EQ(all[1].share, 0.75);
  EXPECT_EQ(all[2].share, 1);
  std::vector<double> many;
  for (int i = 1; i <= 10'000; ++i) many.push_back(i);
  const auto few = distribution(many, 500);
  ASSERT_EQ(few.size(), 500u);
  EXPECT_EQ(few.front().x, 1);
  EXPECT_EQ(few.back().x, 10'000);
  for (const SharePoint& point : few) EXPECT_EQ(point.share, point.x / 10'000);
  EXPECT_TRUE(distribution({}, 500).empty());
}

TEST(LevelSeries, MeansOfPartsThatSpansCoverWholeOrInPart) {
  LevelSeries series(whole_seconds(0), whole_seconds(40), 4);
  series.add(whole_seconds(5), whole_seconds(35), 2);    // half of the first and of the last part
  series.add(whole_seconds(12), whole_seconds(14), 10);  // a fifth of the second
  series.add(whole_seconds(-50), whole_seconds(10), 1);  // counts from the begin on
  series.add(whole_seconds(30), whole_seconds(30), 7);   // nothing
  EXPECT_THAT(series.means(), ElementsAre(DoubleEq(2), DoubleEq(4), DoubleEq(2), DoubleEq(1)));
  EXPECT_EQ(series.begin_of(1), whole_seconds(10));
}

// ---- runs made by hand ----

ReplayRun one_node_run(std::vector<IntervalRow> intervals) {
  ReplayRun run;
  run.nodes = {"n0"};
  run.intervals = std::move(intervals);
  return run;
}

TEST(Gantt, BoxesOfANodeDoNotOverlapAndReuseWhatIsFree) {
  const auto at = [](std::uint32_t job, MilliGpu milli, std::int64_t start, std::int64_t end) {
    return IntervalRow{job, 0, milli, whole_seconds(start), whole_seconds(end)};
  };
  // Job 2 finds GPU 0, left by job 0, and the two behind job 1.
  const Gantt gantt = gantt_of(one_node_run({at(0, 1000, 0, 10), at(1, 500, 0, 30), at(2, 3000, 10, 20)}), 100);
  std::vector<std::vector<int>> boxes;
  for (const GanttBox& box : gantt.boxes) boxes.push_back({int(box.interval), int(box.low), int(box.high)});
  EXPECT_THAT(boxes, ElementsAre(ElementsAre(0, 0, 1000), ElementsAre(1, 1000, 1500), ElementsAre(2, 0, 1000),
                                 ElementsAre(2, 1500, 3500)));
  EXPECT_EQ(gantt.node_milli, 3500);
  EXPECT_FALSE(gantt.cut);
}

TEST(Gantt, ShowsFewerNodesOfALargeRunAndSaysWhenOneNodeIsTooMuch) {
  ReplayRun run;
  for (std::uint32_t node = 0; node < 200; ++node) run.nodes.push_back("n" + std::to_string(node));
  for (std::uint32_t i = 0; i < 20'000; ++i) {
    run.intervals.push_back({i, i % 200, 1000, whole_seconds(i), whole_seconds(i + 50)});
  }
  const Gantt some = gantt_of(run, 1000);
  EXPECT_LE(some.boxes.size(), 1000u);
  EXPECT_GE(some.nodes.size(), 6u);  // of 100 boxes each
  EXPECT_FALSE(some.cut);
  EXPECT_TRUE(std::is_sorted(some.nodes.begin(), some.nodes.end()));
  run.intervals[19'900].end = whole_seconds(30'000);  // on node 100, the one in the middle
  const Gantt one = gantt_of(run, 50);
  EXPECT_EQ(one.nodes.size(), 1u);
  ASSERT_EQ(one.boxes.size(), 50u);
  EXPECT_EQ(one.boxes.back().interval, 19'900u) << "the most GPU time";
  EXPECT_TRUE(one.cut);
}

ReplayRun run_of_jobs(const std::string& folder, double factor) {
  ReplayRun run;
  run.folder = folder;
  run.label = folder + std::to_string(factor);
  std::minstd_rand draw;  // the same jobs for every run
  for (int i = 0; i < 4000; ++i) {
    // Runs of 1 to 8 s without order in time; those of a run are longer by `factor`, give or take 5 %.
    const double work_s = 1 + static_cast<double>(draw() % 7000) / 1000;
    const double luck = factor == 1 ? 1 : 0.95 + static_cast<double>(draw() % 100) / 1000;
    if (factor == 1) draw();
    const double seconds = work_s * factor * luck;
    run.jobs.push_back({.name = std::to_string(i), .submit = whole_seconds(i), .completion = from_seconds(seconds)});
  }
  return run;
}

ReplayRun others_of(const std::string& folder, ReplayRun run) {
  run.folder = folder;
  return run;
}

TEST(Comparison, IntervalHoldsTheDifferenceOfRunsOfTheSameJobsOnly) {
  const ReplayRun one = run_of_jobs("a", 1), longer = run_of_jobs("a", 1.5);
  const RunDifference found = completion_difference(longer, one);
  EXPECT_NEAR(found.relative, 0.5, 0.01);
  ASSERT_TRUE(found.intervals) << found.intervals.error().message;
  EXPECT_LE(found.intervals->relative.low, found.relative);
  EXPECT_GE(found.intervals->relative.high, found.relative);
  EXPECT_LT(found.intervals->relative.high - found.intervals->relative.low, 0.05);

  ReplayRun others = one;
  others.jobs.pop_back();
  EXPECT_EQ(completion_difference(others, one).intervals.error().message, "not the same jobs");
  ReplayRun refused = longer;  // jobs that no average counts have no completion time
  for (std::size_t i = 0; i < refused.jobs.size(); i += 2) {
    refused.jobs[i].averaged = false;
    refused.jobs[i].completion = Time{};
  }
  EXPECT_NEAR(completion_difference(refused, one).relative, 0.5, 0.02);
  EXPECT_EQ(completion_difference(refused, one).intervals.error().message, "not the same jobs");
  const Differences all = differences_of({one, longer, run_of_jobs("b", 1), run_of_jobs("b", 2)});
  EXPECT_FALSE(all[0]);
  EXPECT_TRUE(all[1]);
  ASSERT_TRUE(all[2]) << "of the same jobs as the first folder";
  EXPECT_EQ(all[2]->relative, 0);
  EXPECT_FALSE(differences_of({one, others_of("b", others)})[1]) << "of other jobs";
  EXPECT_NEAR(all[3]->relative, 1, 0.02);
}

// ---- text ----

TEST(HtmlText, ShowsMarkupControlCharactersAndBadBytes) {
  EXPECT_EQ(html_text("<b a=\"1\" c='2'>&amp;</b>"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
  EXPECT_EQ(html_text("a\nb\x1b\xff"), "a\\x0ab\\x1b\\xff");
  EXPECT_EQ(html_text("\xc3\xa4"), "\xc3\xa4");
  EXPECT_THAT(json_for_script(Json("</script><!--")), Not(HasSubstr("<")));
  EXPECT_EQ(Json::parse(json_for_script(Json("</script><!--"))), Json("</script><!--"));
}

// ---- folders that the program wrote ----

// The rows of a csv text without quotes.
std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) rows.back().push_back(cell);
  }
  return rows;
}

class ReportProgram : public Program {
 protected:
  void SetUp() override {
    if (!can_report()) GTEST_SKIP() << "built without Vega";
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  // Two jobs of 2 GPUs on a node of 2: a runs from 0 to 10, b waits from 2 to 10 and ends at 14; c runs beside nothing.
  void replay(const std::string& out, const std::string& cluster = "1x2", const std::string& more = "",
              const std::string& policies = "fifo,srtf") const {
    const std::string trace = folder_.write("hand.csv",
                                            "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,user\na,0,10,2,1000,x,"
                                            "u\nb,2,4,2,1000,y,v\nc,20,20,1,1000,x,u\n");
    const Outcome outcome =
        run("replay " + trace + " --cluster " + cluster + " --policy '" + policies + "' --out " + path(out) + more);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  std::map<std::string, std::vector<std::vector<std::string>>> figures(const std::string& folders) const {
    const Outcome outcome = run("report " + folders + " --out " + path("page.html") + " --csv " + path("csv"));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::map<std::string, std::vector<std::vector<std::string>>> all;
    for (const auto& entry : std::filesystem::directory_iterator(path("csv"))) {
      all[entry.path().stem().string()] = rows_of(bytes_of(entry.path().string()));
    }
    return all;
  }
};

TEST_F(ReportProgram, FiguresOfThreeJobsCountedByHand) {
  replay("run");
  const auto all = figures(path("run"));
  const auto of = [&](const char* figure, const std::string& run) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& row : all.at(figure)) {
      if (row[0] == run) rows.push_back({row.begin() + 1, row.end()});
    }
    return rows;
  };
  using Rows = std::vector<std::vector<std::string>>;
  const std::string third = "0.33333333", two_thirds = "0.66666667";
  EXPECT_EQ(of("jct", "fifo"), (Rows{{"10", third}, {"12", two_thirds}, {"20", "1"}}));
  // srtf preempts a (8 s left) for b (4 s) at 2: b takes 4 s, a ends at 14.
  EXPECT_EQ(of("jct", "srtf"), (Rows{{"4", third}, {"14", two_thirds}, {"20", "1"}}));
  EXPECT_EQ(of("wait", "fifo"), (Rows{{"1", two_thirds}, {"8", "1"}}));  // 0 s stands at 1 s

  // 300 parts of 40 s: a and b hold both GPUs until 14, nothing until 20, then c one of two.
  const auto used = of("utilization", "fifo");
  ASSERT_EQ(used.size(), 301u);
  for (std::size_t i = 0; i < used.size(); ++i) {
    const double at = std::stod(used[i][0]);
    EXPECT_NEAR(at, 40.0 * static_cast<double>(i) / 300, 1e-5);
    const bool between = (at > 13.8 && at <= 14) || (at > 19.8 && at <= 20);  // parts with a step in them
    if (between) continue;
    EXPECT_EQ(used[i][1], at < 14 ? "1" : at < 20 ? "0" : "0.5") << at;
  }
  for (const auto& row : of("queue", "fifo")) {
    const double at = std::stod(row[0]);
    const bool between = (at > 1.8 && at <= 2) || (at > 9.8 && at <= 10);
    if (between) continue;
    EXPECT_NEAR(std::stod(row[1]), at > 2 && at < 10 ? 1 : 0, 1e-6) << at;
  }
  EXPECT_EQ(of("nodes", "fifo"), (Rows{{"0", "0", "a", "2", "0", "10", "0", "1", "0"},
                                       {"0", "0", "b", "2", "10", "14", "0", "1", "1"},
                                       {"0", "0", "c", "1", "20", "40", "0", "0.5", "2"}}));
  EXPECT_EQ(of("size", "fifo"), (Rows{{"1", "1", "1", "0"}, {"2", "2", "1.1", "4"}}));  // b: 12 s over the bound of 10
  EXPECT_EQ(all.count("vc"), 1u);
  EXPECT_EQ(all.count("load"), 0u) << "one load is no curve";
  EXPECT_THAT(bytes_of(path("page.html")), HasSubstr("batches"));
}

// Job b, of y, cancels a, of x; then limits refuse both, which need two GPUs.
TEST_F(ReportProgram, TellsOfJobsThatNoAverageCounts) {
  replay("cancel", "1x2", "", "slurm{preempts_by=partition,preempts=[y>x],cancels=[x]}");
  ASSERT_EQ(run("report " + path("cancel") + " --out " + path("a.html")).code, 0);
  EXPECT_THAT(bytes_of(path("a.html")), HasSubstr("the policy cancels 1 job, which no average or distribution counts"));
  replay("refuse", "1x2", " --limits 'job{gpus=1}'", "fifo");
  ASSERT_EQ(run("report " + path("refuse") + " --out " + path("b.html")).code, 0);
  EXPECT_THAT(bytes_of(path("b.html")), HasSubstr("limits refuse 2 jobs, which no average or distribution counts"));
  EXPECT_THAT(bytes_of(path("b.html")), Not(HasSubstr("cancels")));
}

TEST_F(ReportProgram, SameInputSameBytesAndTheFrontIsWithinAFolder) {
  replay("run");
  ASSERT_EQ(run("report " + path("run") + " --out " + path("a.html")).code, 0);
  replay("run", "1x2", " --threads 2");
  ASSERT_EQ(run("report " + path("run") + " --out " + path("b.html")).code, 0);
  EXPECT_EQ(bytes_of(path("a.html")), bytes_of(path("b.html")));
  EXPECT_THAT(bytes_of(path("a.html")), HasSubstr("<!DOCTYPE html>"));
}

TEST_F(ReportProgram, SeveralFoldersGiveLoadCurves) {
  replay("one");
  replay("two", "2x2");
  const auto all = figures(path("one") + " " + path("two"));
  ASSERT_EQ(all.count("load"), 1u);
  EXPECT_EQ(all.at("load").size(), 5u);  // a header, two policies on two clusters
  EXPECT_THAT(bytes_of(path("page.html")), HasSubstr("fifo (" + path("one") + ")"));
}

TEST_F(ReportProgram, NamesWithMarkupAreShownEverywhere) {
  const std::string bad = "</script><img src=x onerror=alert(1)>";
  const std::string trace =
      folder_.write("bad.csv", "job_id,submit_s,work_s,tasks,gpu_milli_per_task,vc,user\n" + bad + ",0,10,1,1000," +
                                   bad + "," + bad + "\nb,0,10,1,1000,</title><script>alert(2)</script>,v\n");
  const std::string out = path("<b>'&amp;");
  ASSERT_EQ(run("replay " + trace + " --cluster 1x2 --policy fifo,sjf --out \"" + out + "\"").code, 0);
  const Outcome outcome = run("report \"" + out + "\" --out " + path("page.html"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string html = bytes_of(path("page.html"));
  EXPECT_THAT(html, Not(HasSubstr("<img")));
  EXPECT_THAT(html, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(html, Not(HasSubstr("<b>'")));
  EXPECT_THAT(html, HasSubstr("\\u003c/script>\\u003cimg src=x"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;&#39;&amp;amp;"));
}

TEST_F(ReportProgram, DataBesideARunLeaveTheRunAlone) {
  replay("run");
  const std::string manifest = bytes_of(path("run/manifest.json"));
  ASSERT_EQ(run("report " + path("run") + " --out " + path("a.html") + " --csv " + path("run")).code, 0);
  EXPECT_EQ(bytes_of(path("run/manifest.json")), manifest);
  EXPECT_TRUE(std::filesystem::exists(path("run/jct.csv")));
  EXPECT_EQ(run("report " + path("run") + " --out " + path("b.html")).code, 0);
  // A folder that cannot be made: nothing is written.
  const Outcome outcome = run("report " + path("run") + " --out " + path("c.html") + " --csv " + path("a.html/x"));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("--csv"));
  EXPECT_FALSE(std::filesystem::exists(path("c.html")));
}

TEST_F(ReportProgram, WhatIsNoRunIsOneLine) {
  replay("run");
  const std::string at = path("run");
  const auto refused = [&](const std::string& folders, const std::string& reason) {
    expect_refused("report " + folders + " --out " + path("none.html"), reason);
    EXPECT_FALSE(std::filesystem::exists(path("none.html")));
  };
  refused(path("missing"), "no such folder");
  refused(path("hand.csv"), "not a file");
  std::filesystem::create_directory(path("empty"));
  std::filesystem::create_directory(path("searched"));
  folder_.write("searched/manifest.json", R"({"windows": {}, "hypervolume": {}})");
  refused(path("searched"), "names fewer than two objectives");
  refused(path("empty"), "no run is here");
  refused(at + " " + at + "/", "named twice");
  const std::string jobs = bytes_of(at + "/fifo/jobs.csv");
  folder_.write("run/fifo/jobs.csv", jobs.substr(0, jobs.rfind('c')));
  refused(at, "holds 2 measured jobs, summary.json beside it says 3");
  folder_.write("run/fifo/jobs.csv", jobs);
  const std::string intervals = bytes_of(at + "/fifo/intervals.csv");
  folder_.write("run/fifo/intervals.csv", intervals.substr(0, intervals.rfind('\n', intervals.size() - 2) + 1));
  refused(at, "do not add up to the GPU time in jobs.csv beside it; is the file whole?");
  folder_.write("run/fifo/intervals.csv", intervals);
  folder_.write("run/fifo/jobs.csv", jobs.substr(0, jobs.size() - 20));
  refused(at, "jobs.csv:4");
  folder_.write("run/fifo/jobs.csv", jobs);
  std::filesystem::remove(at + "/srtf/intervals.csv");
  refused(at, "srtf/intervals.csv");
  std::filesystem::remove(at + "/manifest.json");
  refused(at, "a run that was stopped before its end has none");
  folder_.write("run/manifest.json", "{\"policies\": [{\"policy\": \"fifo\", \"folder\": \"..\"}]}");
  refused(at, "expected the folder of each policy");
  folder_.write("run/manifest.json", "{}");
  refused(at, "no manifest of replay, evaluate, compare, sweep or search");
}

// Three objectives, of which more is better in the last; counted by hand which points of two stand on a front.
TEST_F(ReportProgram, ASearchShowsItsFrontBesideThePoliciesCompared) {
  const std::string header =
      "kind,policy,candidate,clairvoyant,train_avg_jct_s,train_p99_wait_s,train_jain_fairness,held_out_avg_jct_s,"
      "held_out_p99_wait_s,held_out_jain_fairness,on_front,dominated_by,message\n";
  folder_.write("found/front.csv", header +
                                       "found,w1,w1,false,1,1,1,10,0,0.5,true,,\n"
                                       "found,w2,w2,false,1,1,1,30,0,0.4,false,fifo,\n"
                                       "compared,fifo+easy,fifo+easy,false,1,1,1,20,5,0.9,true,,\n"
                                       "compared,srtf,srtf,true,1,1,1,10,7,0.7,true,,\n"
                                       "compared,sjf,sjf,false,1,1,1,20,5,0.9,true,,\n"
                                       "compared,<b>las,<b>las,false,1,1,1,,,,false,,takes turns\n");
  folder_.write("found/generations.csv",
                "generation,candidates,failed,front,hypervolume,population_hypervolume\n0,8,0,3,0.25,0.2\n1,12,0,4,0.5,"
                "0.5\n");
  folder_.write("found/manifest.json",
                R"({"config": {"objectives": ["avg_jct_s", "p99_wait_s", "jain_fairness"]}, "windows": {},
                    "hypervolume": {"train": {"compared": 0.125}}, "repeatable": true})");
  const Outcome outcome =
      run("report " + path("found") + " --out " + path("found.html") + " --csv " + path("found-data"));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(bytes_of(path("found-data/search-front-p99_wait_s.csv")),
            "run,policy,label,x,y,front,on_front\n"
            "found,w1,,10,0,1,1\n"
            "\"compared, knows true run times\",srtf,srtf,10,7,0,1\n"
            "compared,fifo+easy,\"fifo, sjf\",20,5,0,1\n"
            "compared,sjf,,20,5,0,1\n"
            "found,w2,,30,0,0,0\n");
  EXPECT_EQ(bytes_of(path("found-data/search-front-jain_fairness.csv")),
            "run,policy,label,x,y,front,on_front\n"
            "found,w1,,10,0.5,0,1\n"
            "\"compared, knows true run times\",srtf,srtf,10,0.7,1,1\n"
            "compared,fifo+easy,\"fifo, sjf\",20,0.9,1,1\n"
            "compared,sjf,,20,0.9,1,1\n"
            "found,w2,,30,0.4,0,0\n");
  EXPECT_EQ(bytes_of(path("found-data/search-hypervolume.csv")),
            "run,generation,hypervolume\nall candidates so far,0,0.25\nthose who live in the generation,0,0.2\n"
            "policies compared,0,0.125\nall candidates so far,1,0.5\nthose who live in the generation,1,0.5\n"
            "policies compared,1,0.125\n");
  const std::string html = bytes_of(path("found.html"));
  EXPECT_THAT(html, HasSubstr("1 of 6 policies failed in a held-out window"));
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;las"));
  EXPECT_THAT(html, Not(HasSubstr("<b>las")));
  folder_.write("found/front.csv", "kind,policy\n");
  expect_refused("report " + path("found") + " --out " + path("none.html"), "front.csv:1: has no column 'candidate'");
  std::filesystem::remove(path("found/manifest.json"));
  folder_.write("found/search.sqlite", "");
  expect_refused("report " + path("found") + " --out " + path("none.html"), "holds a search without manifest.json");
}

// Three seeds of two policies at two loads and, of fifo alone, a third that has not been run whole.
TEST_F(ReportProgram, ASweepIsNamedByWhatVaries) {
  std::string runs =
      "run,id,policy,load,seed,status,jobs,avg_jct_s,p99_wait_s,avg_bounded_slowdown,worst_decile_slowdown,saturated,"
      "clairvoyant,message\n";
  int number = 0;
  const auto add = [&](const std::string& policy, const std::string& load, int seed, double jct, bool saturated) {
    runs += std::to_string(++number) + ",0123," + policy + "," + load + "," + std::to_string(seed) + ",done,10," +
            std::to_string(jct) + ",5,1.5,3," + (saturated ? "1" : "0") + (policy == "fifo" ? ",0,\n" : ",1,\n");
  };
  for (int seed = 1; seed <= 3; ++seed) {
    add("fifo", "0.5", seed, 10 + seed, false);
    add("\"<b>,\"", "0.5", seed, 10 + seed - 6, false);
    add("fifo", "1", seed, 100, true);
    add("\"<b>,\"", "1", seed, 50, true);
  }
  runs += "13,0123,fifo,2,1,timeout,,,,,,,,\"too\n\"\"long\"\"\"\n";
  folder_.write("sweep/runs.csv", runs);
  folder_.write("sweep/manifest.json",
                R"({"config": {}, "columns": ["policy", "load", "seed"],
                    "runs": {"done": 12, "failed": 0, "timeout": 1, "missing": 7}})");
  const auto all = figures(path("sweep"));
  using Rows = std::vector<std::vector<std::string>>;
  // Means of three seeds; t of two degrees of freedom times 1 / sqrt(3). Three equal values are one run.
  EXPECT_EQ(all.at("sweep-load"),
            (Rows{{"policy", "run", "load", "jct_s", "wait_s", "low", "high", "saturated"},
                  {"fifo", "fifo (3 runs)", "0.5", "12", "", "9.5156618", "14.484338", "0"},
                  {"\"<b>", "\"", "\"<b>", " (3 runs)\"", "0.5", "6", "", "3.5156618", "8.4843382", "0"},
                  {"fifo", "fifo (3 runs)", "1", "100", "", "", "", "1"},
                  {"\"<b>", "\"", "\"<b>", " (3 runs)\"", "1", "50", "", "", "", "1"}}));
  EXPECT_EQ(all.at("sweep-difference")[1],
            (std::vector<std::string>{"load 0.5", "\"<b>", "\"", "-0.5", ""}));  // three seeds give no verdict
  EXPECT_EQ(all.at("sweep-front").size(), 5u);
  const std::string html = bytes_of(path("page.html"));
  EXPECT_THAT(html, HasSubstr("7 of 20 runs were missing when it wrote runs.csv"));
  EXPECT_THAT(html, HasSubstr("1 of 20 runs failed or took too long"));
  EXPECT_THAT(html, HasSubstr("6 of 12 runs with figures were saturated"));
  EXPECT_THAT(html, HasSubstr(">&lt;b&gt;,*</"));  // knows true run times
  EXPECT_THAT(html, HasSubstr("each policy against fifo in pairs"));
  EXPECT_THAT(html, Not(HasSubstr("<b>,")));
  EXPECT_THAT(html, HasSubstr("too few seeds"));

  const auto refused = [&](const std::string& reason) {
    expect_refused("report " + path("sweep") + " --out " + path("none.html"), reason);
  };
  folder_.write("sweep/runs.csv", runs.substr(0, runs.size() - 30));
  refused("runs.csv:14: expected 14 fields; is the file whole?");
  folder_.write("sweep/runs.csv", runs.substr(0, runs.find('\n') + 1));
  refused("holds 0 runs, manifest.json beside it says 13; is the file whole?");
  folder_.write("sweep/runs.csv", "run,id,status\n");
  refused("has no column");
  std::filesystem::remove(path("sweep/manifest.json"));
  folder_.write("sweep/sweep.sqlite", "");
  refused("holds a sweep without manifest.json");
}

TEST_F(ReportProgram, TheKeptRunsOfASweepAreNamedByTheirKeys) {
  const std::string trace = folder_.write("hand.csv",
                                          "job_id,submit_s,work_s,tasks,gpu_milli_per_task\na,0,10,2,1000\n"
                                          "b,2,4,2,1000\n");
  const std::string file = folder_.write(
      "sweep.json", R"({"base": {"trace": ")" + trace +
                        R"(", "cluster": "1x2"}, "grid": {"policy": ["fifo", "srtf"], "load": [0.5, 1]}})");
  ASSERT_EQ(run("sweep " + file + " --files --out " + path("sweep")).code, 0);
  const auto all = figures(path("sweep"));
  std::set<std::string> names;
  for (const auto& row : all.at("jct")) names.insert(row[0] + "," + row[1]);
  EXPECT_EQ(names.count("\"fifo, load 0.5\""), 1u) << bytes_of(path("csv/jct.csv"));
  EXPECT_EQ(all.count("load"), 0u) << "sweep-load has all runs";
  EXPECT_EQ(all.count("sweep-load"), 1u);
  EXPECT_THAT(bytes_of(path("page.html")), Not(HasSubstr("runs/")));
}

TEST_F(ReportProgram, TrainingAndEvaluation) {
  folder_.write("train/config.json", "{}");
  folder_.write("train/metrics.csv",
                "generation,episodes,loss,heuristic_loss,validation_loss,validation_heuristic_loss,step,seconds\n"
                "1,156,90,100,,,0.28,0.0\n2,312,50,100,30,40,0.27,0.1\n");
  folder_.write("compared/manifest.json", "{\"config\": {}, \"windows\": []}");
  folder_.write(
      "compared/comparison.csv",
      "trace,cluster,name,clairvoyant,run_times,policies,windows,figure,mean,against,difference,low_95,high_95,"
      "relative_low_95,relative_high_95,win_rate,verdict\n"
      "t,8x8,fifo,false,-,1,77,avg_jct_s,200,,,,,,,,\n"
      "t,8x8,sjf,true,exact,1,77,avg_jct_s,150,fifo,-50,-60,-40,-0.3,-0.2,0.9,better\n");
  const auto all = figures(path("train") + " " + path("compared"));
  using Rows = std::vector<std::vector<std::string>>;
  const std::string label = path("train");
  EXPECT_EQ(all.at("learning"), (Rows{{"folder", "run", "part", "iteration", "ratio"},
                                      {label, label, "training", "1", "0.9"},
                                      {label, label, "training", "2", "0.5"},
                                      {label, label, "validation", "2", "0.75"}}));
  EXPECT_EQ(all.at("windows"),
            (Rows{{"panel", "run", "difference", "low", "high"}, {"", "sjf", "-0.25", "-0.3", "-0.2"}}));
  EXPECT_THAT(bytes_of(path("page.html")), HasSubstr("avg_jct_s compared with fifo"));
}

}  // namespace
}  // namespace gpusched::test
