// SPDX-License-Identifier: Apache-2.0
// Accounting logs other than Slurm's text: variants of what PBS, LSF, sacct --json and kubectl write, and what is said
// of files that no reader knows.
#include <gtest/gtest.h>

#include "tests/traces/core/reading.hpp"
#include "traces/tools/trace_convert.hpp"

namespace gpusched {
namespace {

using test::Counts;
using test::error_of;
using test::has_note;
using test::left_out;
using test::Lines;
using test::short_jobs;
using test::trace_of;

// ---- PBS ----

// A run of 600 s that began 60 s after its submission, with these resources.
std::string pbs_end(const std::string& id, const std::string& resources, const std::string& more = "") {
  return "03/03/2025 08:11:00;E;" + id + ";user=ana queue=q ctime=1740988800 qtime=1740988800 etime=1740988800 " +
         "start=1740988860 end=1740989460 exec_host=n1/0 Exit_status=0 " + resources + " " + more + "\n";
}

TEST(Pbs, GpusStandInOneOfManyPlaces) {
  const auto gpus = [](const std::string& resources) {
    const auto trace = trace_of(pbs_end("1.s", resources));
    if (!trace) return error_of(trace);
    const Shape& shape = trace->jobs.shape(JobId{0});
    return std::to_string(shape.tasks) + "x" + std::to_string(shape.gpu_milli_per_task / 1000);
  };
  EXPECT_EQ(gpus("Resource_List.ngpus=4 Resource_List.nodect=1"), "1x4");
  EXPECT_EQ(gpus("Resource_List.select=2:ncpus=8:ngpus=4"), "2x4");
  EXPECT_EQ(gpus("Resource_List.select=8:ngpus=1 Resource_List.ngpus=8 Resource_List.nodect=2"), "8x1");
  EXPECT_EQ(gpus("Resource_List.select=1:ncpus=4+2:ngpus=2:ncpus=1"), "2x2");
  EXPECT_EQ(gpus("Resource_List.select=1:ngpus=4+1:ngpus=2 Resource_List.nodect=2"), "2x3");
  EXPECT_EQ(gpus("Resource_List.select=ngpus=2:ncpus=8"), "1x2");
  EXPECT_EQ(gpus("Resource_List.nodes=2:ppn=8:gpus=2"), "2x2");
  EXPECT_EQ(gpus("Resource_List.nodes=node7:ppn=8:gpus=2+node9:ppn=8:gpus=2"), "2x2");
  EXPECT_EQ(gpus("Resource_List.naccelerators=2 Resource_List.nodect=2"), "2x1");
  EXPECT_EQ(gpus("Resource_List.ncpus=4 Resource_List.nodect=3"), "3x0");
  EXPECT_EQ(gpus("Resource_List.select=2:ngpus=many").substr(0, 25), ":1: Resource_List.select:");
  EXPECT_EQ(gpus("Resource_List.ngpus=many").substr(0, 24), ":1: Resource_List.ngpus:");
}

TEST(Pbs, TimesLimitsAndNames) {
  const auto trace =
      trace_of(pbs_end("1.s", "Resource_List.ngpus=1 Resource_List.mem=2gb Resource_List.walltime=90:00:00",
                       "account=\"two words\" jobname=a=b"));
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(short_jobs(trace), (Lines{"1.s 1740988800+60 600 1"}));
  EXPECT_EQ(trace->jobs.estimate(JobId{0}), whole_seconds(324000));
  EXPECT_EQ(trace->jobs.groups()[trace->jobs.group(JobId{0})], "two words");
  EXPECT_EQ(trace->jobs.names()[trace->jobs.name(JobId{0})], "a=b");
  EXPECT_EQ(trace->jobs.shape(JobId{0}).memory_mib_per_task, 2048);
}

TEST(Pbs, OtherRecordsAreNoJobsAndBadOnesAreNamed) {
  const std::string log =
      "03/03/2025 08:00:00;L;license;floating license hour:0\n"
      "03/03/2025 08:00:00;Q;7[].s;queue=q\n" +
      pbs_end("1.s", "Resource_List.ngpus=1");
  EXPECT_EQ(short_jobs(trace_of(log)), (Lines{"1.s 1740988800+60 600 1"}));
  const std::string late =
      "03/03/2025 08:11:00;E;2.s;ctime=1740988800 qtime=1740988800 start=1740988700 end=1740989460 exec_host=n/0\n";
  EXPECT_EQ(error_of(trace_of(log + late)).substr(0, 60),
            ":4: start: expected a start not before qtime, found one 1m 4");
  EXPECT_EQ(error_of(trace_of(log + "nonsense\n")).substr(0, 43), ":4: row: expected DATE;TYPE;JOB;NAME=VALUE.");
  EXPECT_EQ(short_jobs(trace_of(log + late + "nonsense\n", {.drop_bad_rows = true})).size(), 1u);
}

// Torque says of a job that waits nothing but its queue.
TEST(Pbs, AJobThatWaitsMayHaveNoTimes) {
  const auto trace = trace_of(pbs_end("1.s", "Resource_List.ngpus=1") + "03/03/2025 09:00:00;Q;2.s;queue=gpuq\n");
  EXPECT_EQ(short_jobs(trace), (Lines{"1.s 1740988800+60 600 1"}));
  EXPECT_EQ(left_out(trace), (Counts{{"still waiting at the end of the trace", 1}}));
}

TEST(Pbs, ConditionsMayNameWhatRunsHave) {
  const std::string log =
      pbs_end("1.s", "Resource_List.ngpus=1") + pbs_end("2.s", "Resource_List.ngpus=2", "queue=other");
  EXPECT_EQ(short_jobs(trace_of(log, {.where = "Partition=other"})), (Lines{"2.s 1740988800+60 600 2"}));
  EXPECT_EQ(short_jobs(trace_of(log, {.where = "gpus=1"})), (Lines{"1.s 1740988800+60 600 1"}));
}

// ---- LSF ----

std::string lsf_end(const std::string& requirement, const std::string& hosts = "1 \"h1\"",
                    const std::string& submit = "100", const std::string& start = "160", const std::string& end = "760",
                    const std::string& status = "64") {
  return "\"JOB_FINISH\" \"10.1\" 1740988" + end + " 7 1001 33554434 4 1740988" + submit + " 0 0 " +
         (start == "0" ? "0" : "1740988" + start) + " \"ana\" \"q\" \"" + requirement +
         "\" \"\" \"\" \"login\" \"/home\" \"\" \"\" \"\" \"f\" 0 " + hosts + " " + status + " 60.0 \"n\" \"sleep\"\n";
}

TEST(Lsf, GpusAreThoseOfEachHost) {
  const auto gpus = [](const std::string& requirement, const std::string& hosts) {
    const auto trace = trace_of(lsf_end(requirement, hosts));
    if (!trace) return error_of(trace);
    const Shape& shape = trace->jobs.shape(JobId{0});
    return std::to_string(shape.tasks) + "x" + std::to_string(shape.gpu_milli_per_task / 1000);
  };
  EXPECT_EQ(gpus("rusage[ngpus_physical=2.00]", "1 \"h1\""), "1x2");
  EXPECT_EQ(gpus("select[ngpus>0] rusage[mem=4000,ngpus_physical=4:gmem=1G]", "2 \"16*h1\" \"16*h2\""), "2x4");
  EXPECT_EQ(gpus("rusage[ngpus_excl_p=1]", "4 \"h1\" \"h1\" \"h2\" \"h2\""), "2x1");
  EXPECT_EQ(gpus("select[ngpus>0] span[hosts=1]", "1 \"h1\""), "1x0");
}

TEST(Lsf, AJobWithoutAStartNeverRan) {
  const auto trace = trace_of(lsf_end("", "0", "100", "0", "760", "32") + lsf_end("", "1 \"h\"", "200", "300", "400"));
  EXPECT_EQ(short_jobs(trace), (Lines{"7 1740988200+100 100 0"}));
  EXPECT_EQ(left_out(trace), (Counts{{"never started", 1}}));
}

TEST(Lsf, IdsAreUsedAgain) {
  const auto trace =
      trace_of(lsf_end("", "1 \"h\"", "100", "160", "260") + lsf_end("", "1 \"h\"", "300", "360", "560"));
  EXPECT_EQ(short_jobs(trace), (Lines{"7 1740988100+60 100 0", "7#2 1740988300+60 200 0"}));
}

TEST(Lsf, TextsMayHoldQuotesAndLineEnds) {
  std::string log = lsf_end("rusage[ngpus=1]");
  log.replace(log.find("\"sleep\""), 7, "\"echo \"\"a\"\"\nsleep 5\"");
  EXPECT_EQ(short_jobs(trace_of(log + lsf_end("", "1 \"h\"", "300", "360", "560"))).size(), 2u);
}

TEST(Lsf, BadRecordsAreNamed) {
  const std::string good = lsf_end("rusage[ngpus=1]");
  const auto error = [&](const std::string& bad) { return error_of(trace_of(good + bad)); };
  EXPECT_EQ(error(lsf_end("", "99 \"h\"")).substr(0, 50), ":2: numExHosts: expected the number of hosts and a");
  EXPECT_EQ(error(lsf_end("", "1 \"h\"", "100", "160", "760", "99")).substr(0, 36),
            ":2: jStatus: expected 64 or 32, foun");
  EXPECT_EQ(error("\"JOB_FINISH\" \"10.1\" soon 7\n").substr(0, 40), ":2: Event Time: expected seconds since 1");
  EXPECT_EQ(error("\"JOB_FINISH\" \"10.1 \n").substr(0, 31), ":2: row: a quote is not closed;");
}

// ---- sacct --json ----

std::string json_job(const std::string& fields) {
  return R"({"job_id": 1, "user": "ana", "state": {"current": ["COMPLETED"]}, "nodes": "g1",
    "time": {"submission": 1000000, "start": 1000060, "end": 1000660, "elapsed": 600, "limit": 10},
    "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 2}, {"type": "node", "count": 1}]})" +
         (fields.empty() ? "" : ", " + fields) + "}";
}

TEST(SacctJson, ReadsAListAnObjectOrALineAJob) {
  const Lines jobs = {"1 1000000+60 600 2"};
  EXPECT_EQ(short_jobs(trace_of("{\"jobs\": [" + json_job("") + "], \"meta\": {\"a\": [1, {\"b\": 2}]}}")), jobs);
  EXPECT_EQ(short_jobs(trace_of("{\"meta\": {\"jobs\": [5]}, \"jobs\": [" + json_job("") + "]}\n")), jobs);
  EXPECT_EQ(short_jobs(trace_of("[" + json_job("") + "]", {.format = "sacct-json"})), jobs);
  EXPECT_EQ(short_jobs(trace_of(json_job("") + "\n" + json_job("\"cluster\": \"b\"") + "\n", {.format = "sacct-json"}))
                .size(),
            2u);
}

TEST(SacctJson, NumbersStatesAndNamesHaveManyForms) {
  const auto jobs = [](const std::string& fields) {
    return short_jobs(trace_of("{\"jobs\": [" + json_job(fields) + "]}"));
  };
  EXPECT_EQ(jobs(R"("array": {"job_id": 9, "task_id": 3})"), (Lines{"9_3 1000000+60 600 2"}));
  EXPECT_EQ(jobs(R"("array": {"job_id": 9, "task_id": {"set": true, "infinite": false, "number": 3}})"),
            (Lines{"9_3 1000000+60 600 2"}));
  EXPECT_EQ(jobs(R"("array": {"job_id": {"set": true, "number": 0}, "task_id": {"set": false, "number": 0}})"),
            (Lines{"1 1000000+60 600 2"}));
  EXPECT_EQ(jobs(R"("state": {"current": "COMPLETED"})"), (Lines{"1 1000000+60 600 2"}));
  EXPECT_EQ(jobs(R"("state": {"current": ["RUNNING"]})"),
            (Lines{": holds no job, 1 of 1 rows left out: still running at the end of the trace (--backlog keeps such "
                   "jobs)"}));
  EXPECT_EQ(jobs(R"("time": {"submission": {"set": true, "infinite": false, "number": 1000000},
                    "start": {"set": true, "number": 1000060}, "end": {"set": true, "number": 1000660}})"),
            (Lines{"1 1000000+60 600 2"}));
}

TEST(SacctJson, ComponentsAndRunsOfAJobAreJoined) {
  const std::string het = "{\"jobs\": [" + json_job(R"("het": {"job_id": 1, "job_offset": 0})") + "," +
                          json_job(R"("job_id": 2, "het": {"job_id": 1, "job_offset": {"set": true, "number": 1}})") +
                          "]}";
  EXPECT_EQ(short_jobs(trace_of(het)), (Lines{"1 1000000+60 600 4"}));
  const std::string runs =
      "{\"jobs\": [" + json_job(R"("state": {"current": ["COMPLETED", "REQUEUED"]})") + "," +
      json_job(R"("time": {"submission": 1000660, "start": 1000700, "end": 1001000, "elapsed": 300})") + "]}";
  EXPECT_EQ(short_jobs(trace_of(runs)), (Lines{"1 1000000+60 900 2"}));
}

TEST(SacctJson, BadJobsAreNamedByTheirLine) {
  const std::string log = "{\"jobs\": [" + json_job("") + ",\n" + json_job("\"time\": {\"start\": 5}") + "]}";
  EXPECT_EQ(error_of(trace_of(log)).substr(0, 32), ":4: time/submission: expected se");
  EXPECT_EQ(error_of(trace_of("{\"jobs\": [" + json_job("") + ",\n5]}")), ":4: expected a record here");
  EXPECT_EQ(error_of(trace_of("{\"jobs\": [" + json_job(""))).substr(0, 29), ":3: is not valid JSON here");
  std::string deep = "{\"jobs\": [{\"association\": " + std::string(300, '[');
  EXPECT_EQ(error_of(trace_of(deep)), ":1: expected at most 200 levels of lists and objects");
}

// ---- pods ----

TEST(Pods, ListsObjectsAndLinesAreRead) {
  const std::string pod = R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "n",
    "creationTimestamp": "2025-03-03T08:00:00Z"},
    "spec": {"containers": [{"resources": {"limits": {"amd.com/gpu": "4"}}}], "volumes": [{"items": [1]}]},
    "status": {"phase": "Succeeded", "startTime": "2025-03-03T08:00:30Z", "containerStatuses": [
      {"state": {"terminated": {"startedAt": "2025-03-03T08:00:31Z", "finishedAt": "2025-03-03T09:00:30Z"}}}]}})";
  const Lines jobs = {"n/a 1740988800+30 3600 4"};
  EXPECT_EQ(short_jobs(trace_of(pod)), jobs);
  EXPECT_EQ(short_jobs(trace_of("{\"apiVersion\": \"v1\", \"kind\": \"PodList\", \"items\": [" + pod + "]}")), jobs);
  EXPECT_EQ(short_jobs(trace_of("[" + pod + "]")), jobs);
  std::string other = pod;
  other.replace(other.find("\"a\""), 3, "\"b\"");
  EXPECT_EQ(short_jobs(trace_of(pod + "\n" + other + "\n")).size(), 2u);
}

TEST(Pods, OfASharedGpuAreLeftOutAndCounted) {
  const std::string pod = R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a",
    "creationTimestamp": "2025-03-03T08:00:00Z"},
    "spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu.shared": "1"}}}]}, "status": {"phase": "Failed"}})";
  EXPECT_NE(error_of(trace_of(pod)).find("asks for a shared GPU"), std::string::npos);
  std::string bad = pod;
  bad.replace(bad.find("gpu.shared\": \"1\""), 16, "gpu\": \"lots\"");
  EXPECT_EQ(error_of(trace_of(bad)).substr(0, 38), ":1: nvidia.com/gpu: expected a quantit");
}

// A pod that ran for an hour.
std::string pod_text(const std::string& uid, const std::string& spec, const std::string& created = "08") {
  return R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": ")" + uid +
         R"(", "creationTimestamp": "2025-03-03T)" + created + R"(:00:00Z"}, "spec": {)" + spec +
         R"(}, "status": {"phase": "Succeeded", "startTime": "2025-03-03T)" + created +
         R"(:00:30Z", "containerStatuses": [{"state": {"terminated": {"finishedAt": "2025-03-03T)" +
         (created == "08" ? "09" : "11") + ":00:30Z\"}}}]}}\n";
}

const std::string one_gpu = R"("containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}])";

TEST(Pods, OneThatTwoExportsTellOfCountsOnceAndNamesAreUsedAgain) {
  const std::string pod = pod_text("u1", one_gpu);
  const auto twice = trace_of(pod + pod + pod_text("u2", one_gpu, "10"));
  EXPECT_EQ(short_jobs(twice), (Lines{"a 1740988800+30 3600 1", "a#2 1740996000+30 3600 1"}));
  EXPECT_EQ(left_out(twice), (Counts{{"the same run again", 1}}));
  EXPECT_TRUE(has_note(twice, "1 id is used again by later jobs"));
  const std::string early = R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "u1",
    "creationTimestamp": "2025-03-03T08:00:00Z"}, "spec": {)" +
                            one_gpu + R"(}, "status": {"phase": "Running",
    "startTime": "2025-03-03T08:00:30Z"}})" +
                            "\n";
  for (const std::string& log : {early + pod, pod + early}) {
    EXPECT_EQ(short_jobs(trace_of(log, {.backlog = true})), (Lines{"a 1740988800+30 3600 1"})) << log;
  }
}

TEST(Pods, ThatAreOverWithoutAnEndDoNotRunOn) {
  const std::string evicted = R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e",
    "creationTimestamp": "2025-03-03T08:00:00Z"}, "spec": {)" +
                              one_gpu + R"(}, "status": {"phase": "Failed",
    "reason": "Evicted", "startTime": "2025-03-03T08:00:30Z"}})" +
                              "\n";
  const auto trace = trace_of(evicted + pod_text("u1", one_gpu), {.backlog = true});
  EXPECT_EQ(short_jobs(trace), (Lines{"a 1740988800+30 3600 1"}));
  EXPECT_EQ(left_out(trace), (Counts{{"over, and the log does not tell since when", 1}}));
  // An earlier export saw it run.
  std::string early = evicted;
  early.replace(early.find("Failed"), 6, "Running");
  for (const std::string& log : {early + evicted, evicted + early}) {
    EXPECT_EQ(short_jobs(trace_of(log + pod_text("u1", one_gpu), {.backlog = true})).size(), 1u) << log;
  }
}

TEST(Pods, SidecarsAndOverheadAddAndInitContainersCountWhereTheyAskForMore) {
  const auto shape = [](const std::string& more) {
    const auto trace = trace_of(pod_text("u", one_gpu + more));
    return trace ? trace->jobs.shape(JobId{0}) : Shape{};
  };
  const auto init = [](const std::string& gpus, const std::string& policy) {
    return R"({"resources": {"requests": {"cpu": "2", "nvidia.com/gpu": ")" + gpus + "\"}}" + policy + "}";
  };
  const std::string always = R"(, "restartPolicy": "Always")";
  EXPECT_EQ(shape(R"(, "initContainers": [)" + init("3", "") + "]").gpu_milli(), 3000);
  EXPECT_EQ(shape(R"(, "initContainers": [)" + init("1", always) + "]").gpu_milli(), 2000);
  // The second runs beside the first, before the pod's own container.
  EXPECT_EQ(shape(R"(, "initContainers": [)" + init("1", always) + "," + init("3", "") + "]").gpu_milli(), 4000);
  EXPECT_EQ(shape(R"(, "overhead": {"cpu": "250m", "memory": "1Gi"})").cpu_milli_per_task, 250);
  EXPECT_EQ(shape(R"(, "overhead": {"cpu": "250m", "memory": "1Gi"})").memory_mib_per_task, 1024);
}

TEST(Pods, RequiredProductsAreTheGpuTypeAndOtherDevicesAreNamed) {
  const auto term = [](const std::string& key) {
    return R"({"matchExpressions": [{"key": ")" + key + R"(", "operator": "In", "values": ["A100", "H100"]}]})";
  };
  const auto with_terms = [&](const std::string& terms) {
    return trace_of(pod_text("u", one_gpu + R"(, "affinity": {"nodeAffinity":
      {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [)" +
                                      terms + "]}}}"));
  };
  const auto type_of = [](const Result<Trace>& trace) {
    return trace ? trace->jobs.gpu_specs()[trace->jobs.shape(JobId{0}).gpu_spec] : error_of(trace);
  };
  EXPECT_EQ(type_of(with_terms(term("nvidia.com/gpu.product"))), "A100|H100");
  EXPECT_EQ(type_of(with_terms(term("nvidia.com/gpu.product") + "," + term("zone"))), "");
  EXPECT_EQ(type_of(trace_of(pod_text("u", one_gpu + R"(, "nodeSelector": {"nvidia.com/gpu.product": "T4-SHARED"})"))),
            "T4");
  const auto gaudi =
      trace_of(pod_text("u", R"("containers": [{"resources": {"requests": {"habana.ai/gaudi": "8"}}}])"));
  EXPECT_TRUE(has_note(gaudi, "1 pod asks for habana.ai/gaudi, which is not read"));
}

TEST(Pods, ThePriorityClassIsTheirQos) {
  const std::string pod = R"({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a",
    "creationTimestamp": "2025-03-03T08:00:00Z"}, "spec": {"priority": 5, "priorityClassName": "high"},
    "status": {"phase": "Succeeded", "startTime": "2025-03-03T08:00:30Z", "containerStatuses": [
      {"state": {"terminated": {"finishedAt": "2025-03-03T09:00:30Z"}}}]}})";
  EXPECT_EQ(trace_of(pod)->jobs.priority(JobId{0}), 5);
  EXPECT_EQ(trace_of(pod, {.qos = "high=70"})->jobs.priority(JobId{0}), 70);
}

// ---- quality of service ----

TEST(Qos, WeightsAreThePrioritiesOfJobs) {
  const std::string log =
      "JobID|QOS|Submit|ElapsedRaw|AllocTRES\n1|high|0|60|gres/gpu=1\n2|normal|1|60|gres/gpu=1\n3|other|2|60|gres/"
      "gpu=1\n";
  const auto trace = trace_of(log, {.qos = "high=1000,normal=10,absent=5"});
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(trace->jobs.priority(JobId{0}), 1000);
  EXPECT_EQ(trace->jobs.priority(JobId{1}), 10);
  EXPECT_EQ(trace->jobs.priority(JobId{2}), 0);
  EXPECT_TRUE(has_note(trace, "--qos: no job has absent"));
  EXPECT_TRUE(has_note(trace, "--qos: 1 job has another QOS (other), of weight 0"));
  EXPECT_FALSE(trace_of(log)->jobs.has_priorities());
  for (const char* bad : {"high", "high=", "high=1.5", "high=1,high=2", "high=9999999999"}) {
    EXPECT_NE(error_of(trace_of(log, {.qos = bad})).find("--qos: "), std::string::npos) << bad;
  }
  const std::string native =
      "job_id,submit_s,work_s,tasks,gpu_milli_per_task,qos,priority\na,0,9,1,1000,high,\n"
      "b,0,9,1,1000,high,3\n";
  const auto converted = trace_of(native, {.qos = "high=7"});
  EXPECT_EQ(converted->jobs.priority(JobId{0}), 7);
  EXPECT_EQ(converted->jobs.priority(JobId{1}), 3) << "its own";
  EXPECT_FALSE(has_note(converted, "--qos: no job has high"));
  EXPECT_EQ(trace_of("t,d,n,q\n0,60,1,high\n", {.columns = "submit=t,duration=d,gpus=n,qos=q", .qos = "high=7"})
                ->jobs.priority(JobId{0}),
            7);
}

// ---- SWF ----

TEST(Swf, FieldsBeyondTheEighteenthAreNotReadAndSaidSo) {
  const std::string log =
      "1 0 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1 7 8.5 extra\n2 9 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n";
  const auto trace = trace_of(log);
  EXPECT_EQ(short_jobs(trace), (Lines{"1 0+5 100 4", "2 9+5 100 4"}));
  EXPECT_TRUE(has_note(trace, "1 row has more than 18 fields; the first 18 are read"));
}

TEST(Swf, TheHeaderSaysWhatTheClockShows) {
  const std::string job = "1 10 5 60 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n";
  EXPECT_EQ(trace_of("; UnixStartTime: 1027839845\n; TimeZone: 3600\n" + job)->report.clock,
            whole_seconds(1027839845 % 86400 + 3600));
  EXPECT_EQ(trace_of("; UnixStartTime: 3600\n; TimeZone: -7200\n" + job)->report.clock, whole_seconds(82800));
  EXPECT_EQ(trace_of(job)->report.clock, Time{});
  const JobTable late = trace_of("; UnixStartTime: 82800\n" + job)->jobs;
  EXPECT_EQ(trace_of(write_swf(late).text)->report.clock, whole_seconds(82'810));  // the first job is at second 0 then
  EXPECT_NE(write_native(late).text.find("1,82810,60,"), std::string::npos);
}

TEST(Swf, AJobWaitsForThePrecedingOne) {
  const std::string log =
      "1 0 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 -1 -1\n2 120 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 1 15\n"
      "3 130 5 100 4 -1 -1 4 200 -1 1 1 1 1 1 1 77 -1\n";
  const auto trace = trace_of(log);
  ASSERT_TRUE(trace) << error_of(trace);
  ASSERT_EQ(trace->jobs.dependencies().of(JobId{1}).size(), 1u);
  EXPECT_EQ(trace->jobs.dependencies().of(JobId{1})[0], JobId{0});
  EXPECT_EQ(trace->jobs.dependencies().delay(JobId{1}), whole_seconds(15));
  EXPECT_TRUE(trace->jobs.dependencies().of(JobId{2}).empty());  // of a job that is not in the log
  EXPECT_TRUE(
      has_note(trace, "1 job waits for the end of a preceding one (field 17), 1 of them with a think time (field 18)"));
  EXPECT_TRUE(has_note(trace, "1 job names a preceding one (field 17) that the log lacks"));
}

// ---- what is not read ----

TEST(Unrecognised, TheNearestFormatsAreNamedAndWhatToExport) {
  const auto advice = [](const std::string& text) { return error_of(trace_of(text)); };
  const auto says = [&](const std::string& text, const std::string& part) {
    EXPECT_EQ(advice(text).substr(0, 27), ":1: format not recognised: ") << advice(text);
    EXPECT_NE(advice(text).find(part), std::string::npos) << advice(text);
  };
  says("31|COMPLETED|2025-03-03T08:00:00|2025-03-03T08:00:00|3600\n", "--format sacct --columns JobID,State,Submit");
  says("{\"apiVersion\": \"v1\", \"kind\": \"NodeList\", \"items\": []}", "give it to --cluster");
  says("{\"apiVersion\": \"batch/v1\", \"kind\": \"JobList\"}", "kubectl get pods -A -o json");
  says("apiVersion: v1\nkind: List\n", "kubectl get pods -A -o json");
  says("{\"jobs\": [{\"job_state\": \"RUNNING\"}]}", "sacct -a -D -S START -E END --json");
  says("{\"nb_res\": 4, \"jobs\": [], \"profiles\": {}}", "Batsim");
  says("ClusterId = 77\nProcId = 0\n", "condor_history -af:h,");
  says("JobId=5 JobName=x UserId=ana(1)\n", "sacct -a -X -D -P");
  EXPECT_NE(advice("gpu_num,submit_time,duration\n1,2,3\n")
                .find("nearest: acme (lacks node_num, type), helios (lacks state)"),
            std::string::npos)
      << advice("gpu_num,submit_time,duration\n1,2,3\n");
  EXPECT_NE(advice("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1000,1024,1,500\n")
                .find("openb-pods (has its columns: --format openb-pods)"),
            std::string::npos);
  EXPECT_NE(advice("arrival_time;length;num_gpus\n1;2;3\n")
                .find("--columns submit=arrival_time,gpus=num_gpus,duration=length"),
            std::string::npos)
      << advice("arrival_time;length;num_gpus\n1;2;3\n");
  // A column is guessed by the words of its name: "pending" is no end, and a limit no run time.
  const std::string database = "id,array_task_pending,ngpus,time_submit,timelimit,time_start,time_end\n1,0,2,3,4,5,6\n";
  EXPECT_NE(advice(database).find("--columns submit=time_submit,gpus=ngpus,end=time_end,start=time_start"),
            std::string::npos)
      << advice(database);
}

}  // namespace
}  // namespace gpusched
