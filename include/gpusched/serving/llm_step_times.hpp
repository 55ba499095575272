// SPDX-License-Identifier: Apache-2.0
/// How long a step of an LLM engine takes: from tables of kernels, or from times by batch tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "gpusched/serving/kernel_grid.hpp"

namespace gpusched {

/// What a step computes.
struct LlmStep {
  std::int64_t prefill_tokens = 0;   ///< of prompts, recomputed ones included
  std::int64_t prefill_pairs_2 = 0;  ///< twice the pairs of a prompt's token and an earlier one: sum of c (2 h + c)
                                     ///< over chunks of c tokens that follow h
  std::int64_t decodes = 0;          ///< sequences that compute one token
  std::int64_t decode_kv = 0;        ///< sum of the tokens that these look back at
  std::int64_t sequences = 0;        ///< of which the step computes something

  /// Tokens that go through the layers.
  [[nodiscard]] std::int64_t tokens() const { return prefill_tokens + decodes; }
  /// Adds `count` tokens of a sequence of which `computed` are in the cache; `decode`: one token that follows all
  /// others.
  void add(std::int64_t count, std::int64_t computed, bool decode) {
    ++sequences;
    if (decode) {
      ++decodes;
      decode_kv += computed + 1;
    } else {
      prefill_tokens += count;
      prefill_pairs_2 += count * (2 * computed + count);
    }
  }
};

/// The all-reduces of tensor parallelism: two a layer, each of the hidden states of all tokens.
struct TensorParallel {
  std::int32_t ranks = 1;            ///< 1: none
  double link_gb_s = 0;              ///< 10^9 bytes a second between ranks; above 0 where there are several
  double link_us = 0;                ///< of one all-reduce, whatever its size
  std::int64_t hidden = 0;           ///< values of a hidden state
  std::int64_t bytes_per_value = 2;  ///< of a value

  /// Of one all-reduce (us).
  [[nodiscard]] double all_reduce_us(std::int64_t tokens) const {
    if (ranks <= 1) return 0;
    return static_cast<double>(tokens * hidden * bytes_per_value) / (link_gb_s * 1e3) + link_us;
  }
};

/// Rows of measured kernels of one layer of a model, of one rank.
struct KernelTables {
  /// A time by tokens or by sequences.
  struct Row {
    std::string layer;       ///< of the kernel
    std::int64_t count = 0;  ///< tokens or sequences
    double time_us = 0;      ///< microseconds
  };
  std::vector<Row> dense;         ///< by tokens
  std::vector<Row> per_sequence;  ///< by sequences
  std::vector<KernelGrid<4>::Point>
      attention;                              ///< by tokens of the chunk, those before it, decodes, tokens before each
  std::vector<KernelGrid<2>::Point> experts;  ///< by tokens and experts in use; empty: the model has none
};

/// A step's time from measured kernels (those of LLMServingSim, github.com/casys-kaist/LLMServingSim, one layer of a
/// model):
///
///     layers x (dense(tokens), norms twice + attention(chunk, kv; decodes, kv) + experts + two all-reduces)
///     + embedding(tokens) + final norm(tokens) + head(sequences) + sampler(sequences) + host
///
/// Dense and per-sequence times are linear between measured counts. Several prompts' chunks count as the one chunk of
/// their tokens that looks back at as many pairs, or a shorter one from the beginning; decodes look back at their mean.
/// Experts in use are those expected when each token draws its own uniformly.
class KernelStepTimes {
 public:
  /// Precondition: no table is empty but that of experts; `layers` from 1.
  KernelStepTimes(const KernelTables& tables, std::int32_t layers, const TensorParallel& parallel = {},
                  double host_us = 0)
      : layers_(layers), parallel_(parallel), host_us_(host_us) {
    for (const KernelTables::Row& row : tables.dense) {
      if (is_once(row.layer)) {
        once_names_.push_back(row.layer);
      } else {
        layer_names_.push_back(row.layer);
      }
    }
    keep_once(once_names_), keep_once(layer_names_);
    for (const std::string& name : layer_names_) {
      add_curve(layer_us_, tables.dense, name, name == "layernorm" ? 2 : 1);
    }
    for (const std::string& name : once_names_) add_curve(once_us_, tables.dense, name, 1);
    std::vector<std::string> heads;
    for (const KernelTables::Row& row : tables.per_sequence) heads.push_back(row.layer);
    keep_once(heads);
    for (const std::string& name : heads) add_curve(sequence_us_, tables.per_sequence, name, 1);
    split_attention(tables.attention);
    experts_ = KernelGrid<2>(tables.experts);
    for (const auto& point : tables.experts) {
      expert_count_ = std::max(expert_count_, point.at[1]);
      if (point.at[0] == 1) experts_a_token_ = std::max(experts_a_token_, point.at[1]);
    }
  }

  /// Microseconds.
  [[nodiscard]] double step_us(const LlmStep& step) const {
    const std::int64_t tokens = step.tokens();
    const double layer =
        at(layer_us_, tokens) + attention_us(step) + experts_us(tokens) + 2 * parallel_.all_reduce_us(tokens);
    return layers_ * layer + at(once_us_, tokens) + at(sequence_us_, step.sequences) + host_us_;
  }
  /// Of the attention of one layer (us).
  [[nodiscard]] double attention_us(const LlmStep& step) const {
    const double kv = step.decodes == 0 ? 0 : static_cast<double>(step.decode_kv) / static_cast<double>(step.decodes);
    const auto decodes = static_cast<double>(step.decodes);
    if (step.prefill_tokens == 0) return step.decodes == 0 ? 0 : decode_.at({decodes, kv});
    auto chunk = static_cast<double>(step.prefill_tokens);
    double before = (static_cast<double>(step.prefill_pairs_2) / chunk - chunk) / 2;
    if (before < 0) {
      chunk = std::sqrt(static_cast<double>(step.prefill_pairs_2));
      before = 0;
    }
    if (step.decodes == 0) return prefill_.at({chunk, before});
    if (!mixed_.empty()) return mixed_.at({chunk, before, decodes, kv});
    return prefill_.at({chunk, before}) + decode_.at({decodes, kv});
  }

 private:
  using Curve = std::vector<double>;  // by count, from 0

  static bool is_once(const std::string& layer) { return layer == "embedding" || layer == "final_layernorm"; }
  static void keep_once(std::vector<std::string>& layers) {
    std::sort(layers.begin(), layers.end());
    layers.erase(std::unique(layers.begin(), layers.end()), layers.end());
  }
  static void add_curve(Curve& sum, const std::vector<KernelTables::Row>& rows, const std::string& name, double times) {
    std::vector<KernelGrid<1>::Point> points;
    for (const KernelTables::Row& row : rows) {
      if (row.layer == name) points.push_back({{row.count}, row.time_us});
    }
    const KernelGrid<1> grid(std::move(points));
    const auto size = static_cast<std::size_t>(grid.last()) + 1;
    // Kernels measured to different counts: the shorter ones go on as lines.
    const std::size_t all = std::max(size, sum.size());
    if (sum.size() < all && !sum.empty()) {
      const double slope = sum.size() > 1 ? sum[sum.size() - 1] - sum[sum.size() - 2] : 0;
      while (sum.size() < all) sum.push_back(sum.back() + slope);
    }
    sum.resize(all, 0);
    for (std::size_t count = 1; count < all; ++count) {
      sum[count] += times * grid.at({std::max(static_cast<double>(count), static_cast<double>(grid.keys().front()))});
    }
  }
  // Beyond the table as a line.
  static double at(const Curve& curve, std::int64_t count) {
    const auto size = static_cast<std::int64_t>(curve.size());
    if (size == 0) return 0;  // the table has no such layers
    if (count < size) return curve[static_cast<std::size_t>(count)];
    const double last = curve[size - 1], slope = size > 16 ? (last - curve[size - 16]) / 15 : 0;
    return last + slope * static_cast<double>(count - size + 1);
  }
  void split_attention(const std::vector<KernelGrid<4>::Point>& points) {
    std::vector<KernelGrid<2>::Point> decode, prefill;
    std::vector<KernelGrid<4>::Point> mixed;
    for (const auto& [at, time_us] : points) {
      if (at[0] == 0 && at[2] > 0) decode.push_back({{at[2], at[3]}, time_us});
      if (at[0] > 0 && at[2] == 0) prefill.push_back({{at[0], at[1]}, time_us});
      if (at[0] > 0 && at[2] > 0) mixed.push_back({at, time_us});
    }
    decode_ = KernelGrid<2>(std::move(decode));
    prefill_ = KernelGrid<2>(std::move(prefill));
    mixed_ = KernelGrid<4>(std::move(mixed));
  }
  [[nodiscard]] double experts_us(std::int64_t tokens) const {
    if (experts_.empty()) return 0;
    const auto all = static_cast<double>(expert_count_);
    const double unused = std::pow(1 - static_cast<double>(experts_a_token_) / all, static_cast<double>(tokens));
    return experts_.at({static_cast<double>(tokens), all * (1 - unused)});
  }

  std::int32_t layers_;
  TensorParallel parallel_;
  double host_us_;
  std::vector<std::string> layer_names_, once_names_;
  Curve layer_us_, once_us_, sequence_us_;
  KernelGrid<2> decode_, prefill_, experts_;
  KernelGrid<4> mixed_;
  std::int64_t expert_count_ = 0, experts_a_token_ = 0;
};

/// A step's time by the tokens of its batch, as Splitwise models it (Patel et al., ISCA 2024; DatabasePerformanceModel
/// of github.com/Mutinifni/splitwise-sim): linear between measured medians and beyond them; a step of decodes alone by
/// its own curve, one of prompts and decodes as a prompt of all its tokens, times 1.1.
class BatchStepTimes {
 public:
  /// A measured run: a batch of prompts, then tokens one by one.
  struct Run {
    std::int64_t batch_tokens = 0;  ///< tokens of the batch's prompts
    double prompt_us = 0;           ///< of the step of the prompts
    double token_us = 0;            ///< of a step of tokens
  };

  /// By any order of runs; of equal batches the medians. Precondition: two different batches or more.
  explicit BatchStepTimes(const std::vector<Run>& runs) {
    std::vector<KernelGrid<1>::Point> prompts, tokens;
    std::vector<Run> sorted = runs;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Run& a, const Run& b) { return a.batch_tokens < b.batch_tokens; });
    for (std::size_t i = 0; i < sorted.size();) {
      std::vector<double> prompt_us, token_us;
      const std::int64_t batch = sorted[i].batch_tokens;
      for (; i < sorted.size() && sorted[i].batch_tokens == batch; ++i) {
        prompt_us.push_back(sorted[i].prompt_us);
        token_us.push_back(sorted[i].token_us);
      }
      prompts.push_back({{batch}, median(prompt_us)});
      tokens.push_back({{batch}, median(token_us)});
    }
    prompt_us_ = KernelGrid<1>(std::move(prompts));
    token_us_ = KernelGrid<1>(std::move(tokens));
  }

  /// Microseconds.
  [[nodiscard]] double step_us(const LlmStep& step) const {
    const auto tokens = static_cast<double>(step.tokens());
    if (step.prefill_tokens == 0) return token_us_.at({tokens});
    return prompt_us_.at({tokens}) * (step.decodes > 0 ? 1.1 : 1);
  }

 private:
  static double median(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  }

  KernelGrid<1> prompt_us_, token_us_;
};

/// One of the models, as a value. Many replicas borrow one.
class LlmStepTimes {
 public:
  /// All models.
  using Model = std::variant<KernelStepTimes, BatchStepTimes>;

  /// By `model`.
  explicit LlmStepTimes(Model model) : model_(std::move(model)) {}

  /// Microseconds, above 0: at least a nanosecond.
  [[nodiscard]] double step_us(const LlmStep& step) const {
    return std::max(1e-3, std::visit([&step](const auto& model) { return model.step_us(step); }, model_));
  }

 private:
  Model model_;
};

}  // namespace gpusched
