// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/step_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "src/base/field_parser.hpp"
#include "src/base/strict_json.hpp"
#include "src/calibration/profile/measured_csv.hpp"
#include "tests/support/files.hpp"

namespace gpusched::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

NameTable names(std::initializer_list<const char*> all) {
  NameTable table;
  for (const char* name : all) table.intern(name);
  return table;
}

class StepTimes : public ::testing::Test {
 protected:
  void write(const std::string& application, const std::string& file, const std::string& text) {
    folder_.write(application + "/" + file, text);
  }
  [[nodiscard]] Result<ThroughputTable> read(const NameTable* families = nullptr) const {
    return table_of_step_times(folder_.path(), families);
  }
  [[nodiscard]] std::string path() const { return folder_.path(); }
  [[nodiscard]] std::string error() const {
    const auto table = read();
    return table ? "" : table.error().to_string();
  }

 private:
  TempFolder folder_;
};

TEST_F(StepTimes, AnApplicationRunsAtItsBestBatchSize) {
  write("bert", "placements.csv", "placement,local_bsz,step_time,sync_time\n1,4,0.5,0\n1,8,0.8,0\n2,4,1,0\n");
  const auto table = read();
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_THAT(table->gpu_types, ElementsAre("T4"));
  EXPECT_DOUBLE_EQ(table->row("bert", 1)->at("T4"), 10);
  EXPECT_DOUBLE_EQ(table->row("bert", 2)->at("T4"), 8);
  EXPECT_EQ(table->row("bert", 3), nullptr);
}

TEST_F(StepTimes, ABatchSizeIsInterpolatedBetweenWhatWasMeasured) {
  write("bert", "placements.csv", "step_time,placement,local_bsz\n0.5,2,4\n0.9,2,8\n");
  const NameTable families = names({"", "bert (batch size 12)", "bert (batch size 16)", "bert (batch size 17)",
                                    "bert (batch size 7)", "bert (batch size x)", "gpt (batch size 12)"});
  const auto table = read(&families);
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_DOUBLE_EQ(table->row("bert (batch size 12)", 2)->at("T4"), 12 / 0.7);
  EXPECT_DOUBLE_EQ(table->row("bert (batch size 16)", 2)->at("T4"), 16 / 0.9);
  for (const char* unknown :
       {"bert (batch size 17)", "bert (batch size 7)", "bert (batch size x)", "gpt (batch size 12)"}) {
    EXPECT_EQ(table->row(unknown, 2), nullptr) << unknown;
  }
}

TEST_F(StepTimes, PlacementsOnSeveralNodesAreAveraged) {
  write("bert", "placements.csv", "placement,local_bsz,step_time\n3,4,1\n12,4,2\n111,4,4\n22,4,2\n");
  const auto table = read();
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_DOUBLE_EQ(table->row("bert", 3)->at("T4"), 12);
  const std::size_t nodes = static_cast<std::size_t>(Span::nodes);
  EXPECT_DOUBLE_EQ(table->apart.at({"bert", 3}).at("T4")[nodes], 4);
  EXPECT_DOUBLE_EQ(table->apart.at({"bert", 4}).at("T4")[nodes], 8);
  EXPECT_DOUBLE_EQ(table->row("bert", 4)->at("T4"), 8) << "nothing was measured on one node";
}

TEST_F(StepTimes, FilesOfSiaNameTheirGpuType) {
  write("bert", "placements-rtx.csv", "local_bsz,step_time,sync_time,placement\n4,0.25,0.01,1\n");
  write("bert", "placements-dgx-ext.csv", "local_bsz,step_time,sync_time,placement\n4,0.125,0.01,1\n");
  write("bert", "scalability-rtx.csv", "not read");
  EXPECT_THAT(step_time_files(path()),
              ElementsAre(path() + "/bert/placements-dgx-ext.csv", path() + "/bert/placements-rtx.csv"));
  const auto table = read();
  ASSERT_TRUE(table) << table.error().to_string();
  EXPECT_THAT(table->gpu_types, ElementsAre("dgx-ext", "rtx"));
  EXPECT_DOUBLE_EQ(table->row("bert", 1)->at("rtx"), 16);
  EXPECT_DOUBLE_EQ(table->row("bert", 1)->at("dgx-ext"), 32);
}

TEST_F(StepTimes, BadFilesAreRefusedInOneLine) {
  EXPECT_THAT(error(), HasSubstr("holds no step times: expected APPLICATION/placements.csv"));
  const auto refused = [&](const std::string& text) {
    write("a", "placements.csv", text);
    return error();
  };
  EXPECT_THAT(refused("placement,local_bsz\n1,2\n"), HasSubstr("placements.csv:1: step_time: the header lacks"));
  EXPECT_THAT(refused("placement,local_bsz,step_time\n"), HasSubstr("expected step times below a header"));
  EXPECT_THAT(refused("placement,local_bsz,step_time\n10,2,1\n"),
              HasSubstr(":2: placement: expected the GPUs on each"));
  EXPECT_THAT(refused("placement,local_bsz,step_time\n1,0,1\n"), HasSubstr(":2: local_bsz: expected a number"));
  EXPECT_THAT(refused("placement,local_bsz,step_time\n1,2,1\n\n1,2,nan\n"), HasSubstr(":4: step_time: expected"));
  EXPECT_THAT(refused("placement,local_bsz,step_time\n1,2\n"), HasSubstr(":2: step_time: expected"));
}

// The artifact's own interpolation of its measurements is in step_times.csv. Each placement stands alone here, as an
// application of its own, because gangs on several nodes are averaged over placements.
TEST(StepTimesOfPollux, AreInterpolatedAsTheArtifactDoes) {
  const std::string exported = real_trace("profiles/pollux/step_times.csv");
  GPUSCHED_NEEDS_TRACE(exported, "profiles/pollux");
  const std::filesystem::path measured = std::filesystem::path(exported).parent_path();
  std::map<std::string, std::string> files;  // by application and placement
  constexpr std::array<MeasuredColumn, 3> columns{{{"placement"}, {"local_bsz"}, {"step_time"}}};
  for (const char* application : {"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"}) {
    const std::string path = (measured / application / "placements.csv").string();
    ASSERT_TRUE(
        for_each_measured_row(*read_text_file(path), path, columns, [&](const MeasuredRow& row) -> Result<void> {
          std::string& text = files[std::string(application) + "-" + row.cells[0]];
          if (text.empty()) text = "placement,local_bsz,step_time\n";
          text += row.cells[0] + "," + row.cells[1] + "," + row.cells[2] + "\n";
          return {};
        }));
  }
  const TempFolder folder;
  for (const auto& [placement, text] : files) folder.write(placement + "/placements.csv", text);

  struct Exported {
    std::string family;
    std::uint32_t gpus = 0;
    double throughput = 0;
  };
  std::vector<Exported> rows;
  NameTable families;
  constexpr std::array<MeasuredColumn, 4> own{{{"application"}, {"placement"}, {"local_bsz"}, {"step_time_s"}}};
  ASSERT_TRUE(
      for_each_measured_row(*read_text_file(exported), exported, own, [&](const MeasuredRow& row) -> Result<void> {
        std::uint32_t gpus = 0;
        for (const char c : row.cells[1]) gpus += static_cast<std::uint32_t>(c - '0');
        const double batch = gpus * *parse_number(row.cells[2]);
        rows.push_back({row.cells[0] + "-" + row.cells[1] + " (batch size " + std::to_string(std::lround(batch)) + ")",
                        gpus, batch / *parse_number(row.cells[3])});
        families.intern(rows.back().family);
        return {};
      }));
  const auto table = table_of_step_times(folder.path(), &families);
  ASSERT_TRUE(table) << table.error().to_string();
  int found = 0;
  for (const auto& [family, gpus, throughput] : rows) {
    const auto* const row = table->row(family, gpus);
    if (row == nullptr) continue;  // on more than four nodes: not in placements.csv
    EXPECT_NEAR(row->at("T4") / throughput, 1, 1e-9) << family;
    ++found;
  }
  EXPECT_EQ(found, 282);
}

}  // namespace
}  // namespace gpusched::test
