// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/llm_tables.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "src/calibration/profile/measured_csv.hpp"

namespace gpusched {
namespace {

Result<std::vector<KernelTables::Row>> read_rows(const std::string& file, const char* count) {
  const std::array<MeasuredColumn, 3> columns{{{"layer"}, {count}, {"time_us"}}};
  std::vector<KernelTables::Row> rows;
  const auto read = for_each_measured_cells(file, columns, [&](MeasuredCells& cells) {
    rows.push_back({cells.text(0), cells.count(1, 1), cells.number(2, 0)});
    if (rows.back().layer.empty()) cells.fail(0, "the name of a layer");
  });
  if (!read) return Unexpected{read.error()};
  return rows;
}

Result<std::vector<KernelGrid<4>::Point>> read_attention(const std::string& file) {
  const std::array<MeasuredColumn, 7> columns{{{"prefill_chunk"},
                                               {"kv_prefill"},
                                               {"n_decode"},
                                               {"kv_decode"},
                                               {"time_us"},
                                               {"layer", "attention"},
                                               {"decode_q_len", "1"}}};
  std::vector<KernelGrid<4>::Point> points;
  bool has_decodes = false, has_prompts = false;
  const auto read = for_each_measured_cells(file, columns, [&](MeasuredCells& cells) {
    const KernelGrid<4>::Point point{{cells.count(0, 0), cells.count(1, 0), cells.count(2, 0), cells.count(3, 0)},
                                     cells.number(4, 0)};
    const std::int64_t decode_length = cells.count(6, 1);
    if (!cells.good() || cells.text(5) != "attention" || decode_length != 1) return;
    has_decodes |= point.at[0] == 0 && point.at[2] > 0;
    has_prompts |= point.at[0] > 0 && point.at[2] == 0;
    points.push_back(point);
  });
  if (!read) return Unexpected{read.error()};
  if (!has_decodes || !has_prompts) {
    return Unexpected{
        Error{.message = std::string("expected rows of ") + (has_decodes ? "prompts" : "decodes") + " alone",
              .file = file,
              .field = has_decodes ? "n_decode" : "prefill_chunk"}};
  }
  return points;
}

Result<std::vector<KernelGrid<2>::Point>> read_experts(const std::string& file) {
  std::vector<KernelGrid<2>::Point> points;
  if (std::error_code ignored; !std::filesystem::exists(file, ignored)) return points;
  const std::array<MeasuredColumn, 4> columns{{{"tokens"}, {"activated_experts"}, {"time_us"}, {"ep", "1"}}};
  bool has_one_token = false;
  const auto read = for_each_measured_cells(file, columns, [&](MeasuredCells& cells) {
    const KernelGrid<2>::Point point{{cells.count(0, 1), cells.count(1, 1)}, cells.number(2, 0)};
    if (!cells.good() || cells.text(3) != "1") return;
    has_one_token |= point.at[0] == 1;
    points.push_back(point);
  });
  if (!read) return Unexpected{read.error()};
  if (!has_one_token) {
    return Unexpected{Error{.message = "expected a row of one token, which tells how many experts a token uses",
                            .file = file,
                            .field = "tokens"}};
  }
  return points;
}

}  // namespace

Result<KernelTables> read_kernel_tables(const std::string& folder) {
  KernelTables tables;
  auto dense = read_rows(folder + "/dense.csv", "tokens");
  if (!dense) return Unexpected{dense.error()};
  auto per_sequence = read_rows(folder + "/per_sequence.csv", "sequences");
  if (!per_sequence) return Unexpected{per_sequence.error()};
  auto attention = read_attention(folder + "/attention.csv");
  if (!attention) return Unexpected{attention.error()};
  auto experts = read_experts(folder + "/moe.csv");
  if (!experts) return Unexpected{experts.error()};
  return KernelTables{*std::move(dense), *std::move(per_sequence), *std::move(attention), *std::move(experts)};
}

Result<std::vector<BatchStepTimes::Run>> read_batch_times(const std::string& file, const BatchTimesOf& of) {
  const std::array<MeasuredColumn, 7> columns{
      {{"model"}, {"hardware"}, {"tensor_parallel"}, {"prompt_size"}, {"batch_size"}, {"prompt_time"}, {"token_time"}}};
  std::vector<BatchStepTimes::Run> runs;
  std::set<std::string> models;
  std::set<std::int64_t> sizes;
  const auto read = for_each_measured_cells(file, columns, [&](MeasuredCells& cells) {
    const std::int64_t parallel = cells.count(2, 1);
    const BatchStepTimes::Run run{cells.count(3, 1) * cells.count(4, 1), 1e3 * cells.positive(5),
                                  1e3 * cells.positive(6)};
    models.insert(cells.text(0) + " on " + cells.text(1) + " x " + std::to_string(parallel));
    if (cells.text(0) != of.model || cells.text(1) != of.hardware || parallel != of.tensor_parallel) return;
    runs.push_back(run);
    sizes.insert(run.batch_tokens);
  });
  if (!read) return Unexpected{read.error()};
  if (sizes.size() >= 2) return runs;
  std::string known;
  for (const std::string& model : models) known += (known.empty() ? "" : ", ") + model;
  return Unexpected{Error{.message = "expected batches of two sizes of " + of.model + " on " + of.hardware + " x " +
                                     std::to_string(of.tensor_parallel) + "; there are " + known,
                          .file = file}};
}

}  // namespace gpusched
