// SPDX-License-Identifier: Apache-2.0
#include "src/world/stage_reader.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/program/run_support.hpp"

namespace gpusched {
namespace {

constexpr auto gib = static_cast<std::int64_t>(bytes_per_gib);

JobTable jobs_of_users() {
  return test::table_of({{.work = 1, .user = "alice", .family = "bert"},
                         {.work = 1, .user = "bob", .family = "bert"},
                         {.work = 1, .user = "alice", .family = "gpt"}});
}

std::string error_of_stages(const std::string& text, const JobTable& jobs = jobs_of_users()) {
  const auto stages = stages_from_json(text, "f", jobs);
  return stages ? "none" : stages.error().to_string();
}

TEST(StageReader, ReadsItemsByColumn) {
  const JobTable jobs = jobs_of_users();
  const auto stages = stages_from_json(
      R"({"provision_s": 20, "keep_alive_s": 600, "cache_gib": 500, "transfer_gib_per_s": 1, "storage_gib_per_s": 10,
          "uplink_gib_per_s": 2.5, "images": {"by": "user", "gib": 12, "unpack_s": 30, "load_s": 2, "of": {"bob": {"gib": 0.5}}},
          "weights": {"gib": 5, "load_s": 10}, "checkpoint_gib_per_gpu": 2})",
      "f", jobs);
  ASSERT_TRUE(stages) << stages.error().to_string();
  const StageModel& model = stages->model;
  EXPECT_EQ(model.provision, whole_seconds(20));
  EXPECT_EQ(model.keep_alive, whole_seconds(600));
  EXPECT_EQ(model.cache_bytes, 500 * gib);
  EXPECT_DOUBLE_EQ(model.transfer_bytes_per_s, bytes_per_gib);
  EXPECT_DOUBLE_EQ(model.storage_bytes_per_s, 10 * bytes_per_gib);
  EXPECT_DOUBLE_EQ(model.uplink_bytes_per_s, 2.5 * bytes_per_gib);
  EXPECT_TRUE(model.has_uplinks());
  EXPECT_DOUBLE_EQ(model.checkpoint_bytes_per_gpu, 2 * bytes_per_gib);
  const auto image = [&](std::uint32_t job) { return model.items[model.image_of(jobs, JobId{job})]; };
  EXPECT_EQ(image(0).bytes, 12 * gib);
  EXPECT_EQ(image(1).bytes, gib / 2);
  EXPECT_EQ(image(1).unpack, whole_seconds(30));
  EXPECT_EQ(model.image_of(jobs, JobId{0}), model.image_of(jobs, JobId{2}));
  EXPECT_NE(model.image_of(jobs, JobId{0}), model.image_of(jobs, JobId{1}));
  EXPECT_EQ(model.weights_of(jobs, JobId{0}), model.weights_of(jobs, JobId{1}));
  EXPECT_EQ(model.items[model.weights_of(jobs, JobId{0})].load, whole_seconds(10));
}

TEST(StageReader, WithoutBandwidthsNothingIsShared) {
  const auto stages = stages_from_json(R"({"transfer_gib_per_s": 1, "images": {"gib": 1}})", "f", jobs_of_users());
  ASSERT_TRUE(stages) << stages.error().to_string();
  const StageModel& model = stages->model;
  EXPECT_FALSE(model.has_uplinks());
  EXPECT_TRUE(std::isinf(model.storage_bytes_per_s));
}

// One file may serve many traces and parts of them.
TEST(StageReader, NotesNamesThatNoJobHas) {
  const auto stages = stages_from_json(
      R"({"transfer_gib_per_s": 1, "images": {"by": "user", "gib": 1, "of": {"bib": {}, "bob": {"gib": 2}, "eve": {"gib": 3}}}})",
      "f", jobs_of_users());
  ASSERT_TRUE(stages) << stages.error().to_string();
  EXPECT_EQ(stages->notes, std::vector<std::string>{"f: /images/of: no job has 'bib' (did you mean 'bob'?), 'eve'"});
  EXPECT_EQ(stages->model.items[stages->model.image_of(jobs_of_users(), JobId{1})].bytes, 2 * gib);
}

// Also where the trace has no such names at all: all its jobs share what has no name.
TEST(StageReader, NotesThatTheTraceHasNoneOfTheColumn) {
  const auto stages =
      stages_from_json(R"({"transfer_gib_per_s": 1, "images": {"by": "group", "gib": 1, "of": {"eve": {"gib": 3}}}})",
                       "f", jobs_of_users());
  ASSERT_TRUE(stages) << stages.error().to_string();
  EXPECT_EQ(stages->notes, std::vector<std::string>{"f: /images/by: no job of the trace has one"});
  EXPECT_EQ(stages->model.items[stages->model.image_of(jobs_of_users(), JobId{0})].bytes, gib);
}

TEST(StageReader, SaysWhereItIsWrong) {
  EXPECT_EQ(error_of_stages("{}"),
            "f: nothing takes time in it: expected provision_s, images, weights or checkpoint_gib_per_gpu");
  EXPECT_EQ(error_of_stages(R"({"provision_s": -1})"),
            "f: /provision_s: expected a number from 0 to 1000000000, not -1");
  EXPECT_EQ(error_of_stages(R"({"provisions_s": 1})"), "f: /provisions_s: unknown key (did you mean 'provision_s'?)");
  EXPECT_EQ(error_of_stages(R"({"provision_s": 1, "uplink_gib_per_s": 0})"),
            "f: /uplink_gib_per_s: expected a number from 1e-06 to 1000000, not 0");
  EXPECT_EQ(error_of_stages(R"({"provision_s": 1, "uplink_gib_per_s": "fast"})"),
            "f: /uplink_gib_per_s: expected a number from 1e-06 to 1000000, not \"fast\"");
  EXPECT_EQ(error_of_stages(R"({"provision_s": 1, "uplinks_gib_per_s": 1})"),
            "f: /uplinks_gib_per_s: unknown key (did you mean 'uplink_gib_per_s'?)");
  EXPECT_EQ(error_of_stages(R"({"images": {"gib": 1}, "uplink_gib_per_s": 1})"),
            "f: /transfer_gib_per_s: is missing, and something is to be moved");
  EXPECT_EQ(error_of_stages(R"({"images": {"gib": 1}})"),
            "f: /transfer_gib_per_s: is missing, and something is to be moved");
  EXPECT_EQ(error_of_stages(R"({"images": {"by": "owner", "gib": 1}})"),
            "f: /images/by: expected one of user|group|vc|name|family, not \"owner\"");
  EXPECT_EQ(error_of_stages(R"({"images": {"by": "user", "of": {"bib": {"gb": 1}}}})"),
            "f: /images/of/bib/gb: unknown key (did you mean 'gib'?)");
  EXPECT_EQ(error_of_stages(R"({"images": {"by": "user", "of": {"bob": {"gb": 1}}}})"),
            "f: /images/of/bob/gb: unknown key (did you mean 'gib'?)");
  EXPECT_EQ(error_of_stages(R"({"images": {"of": {"bob": {}}}})"), "f: /images/of: expected by with it");
  EXPECT_EQ(error_of_stages(R"({"images": 3})"), "f: /images: expected an object, not 3");
  EXPECT_EQ(error_of_stages("[]"), "f: expected an object, not []");
}

}  // namespace
}  // namespace gpusched
