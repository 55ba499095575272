// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/profile/job_family.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "src/base/field_parser.hpp"

namespace gpusched {
namespace {

std::vector<JobFamily> make_families() {
  const std::string layers = "layer sizes of the published architecture";
  std::vector<JobFamily> families;
  families.push_back({.name = "resnet18",
                      .words = {"resnet18"},
                      .batch = 64,
                      .layers = {{1024, 64, 576, 4}, {256, 128, 1152, 4}, {64, 256, 2304, 4}, {16, 512, 4608, 4}},
                      .elementwise_per_sample = 1'600'000,
                      .input_bytes_per_sample = std::int64_t{3} * 32 * 32 * 4,
                      .host_us_per_sample = 20,
                      .ref = layers + ", 32 x 32 images"});
  families.push_back({.name = "resnet50",
                      .words = {"resnet", "imagenet", "cyclegan", "yolo", "cnn", "vision"},
                      .batch = 64,
                      .layers = {{3136, 64, 576, 3},
                                 {784, 128, 1152, 4},
                                 {196, 256, 2304, 6},
                                 {49, 512, 4608, 3},
                                 {3136, 256, 64, 6},
                                 {784, 512, 128, 8},
                                 {196, 1024, 256, 12},
                                 {49, 2048, 512, 6}},
                      .elementwise_per_sample = 22'000'000,
                      .input_bytes_per_sample = std::int64_t{3} * 224 * 224 * 4,
                      .host_us_per_sample = 150,
                      .ref = layers + ", 224 x 224 images"});
  families.push_back({.name = "vgg16",
                      .words = {"vgg"},
                      .batch = 32,
                      .layers = {{50176, 64, 576, 1},
                                 {12544, 128, 576, 1},
                                 {12544, 128, 1152, 1},
                                 {3136, 256, 1152, 1},
                                 {3136, 256, 2304, 2},
                                 {784, 512, 2304, 1},
                                 {784, 512, 4608, 2},
                                 {196, 512, 4608, 3},
                                 {1, 4096, 25088, 1},
                                 {1, 4096, 4096, 1},
                                 {1, 1000, 4096, 1}},
                      .elementwise_per_sample = 27'000'000,
                      .input_bytes_per_sample = std::int64_t{3} * 224 * 224 * 4,
                      .host_us_per_sample = 150,
                      .ref = layers + ", 224 x 224 images"});
  families.push_back({.name = "inception3",
                      .words = {"inception", "googlenet", "alexnet"},
                      .batch = 32,
                      .layers = {{1225, 192, 640, 10}, {289, 192, 1344, 24}, {64, 320, 2048, 12}},
                      .elementwise_per_sample = 20'000'000,
                      .input_bytes_per_sample = std::int64_t{3} * 299 * 299 * 4,
                      .host_us_per_sample = 150,
                      .ref = "layers grouped by stage, within a third of the published operations"});
  families.push_back({.name = "bert",
                      .words = {"bert", "transformer", "nlp", "translation", "language"},
                      .batch = 32,
                      .layers = {{128, 768, 768, 48}, {128, 3072, 768, 12}, {128, 768, 3072, 12}},
                      .elementwise_per_sample = std::int64_t{12} * 128 * 768 * 8,
                      .gathered_per_sample = std::int64_t{128} * 768,
                      .input_bytes_per_sample = std::int64_t{128} * 4,
                      .host_us_per_sample = 20,
                      .ref = layers + ", base size, 128 tokens"});
  families.push_back({.name = "gpt2",
                      .words = {"gpt", "llm", "llama", "opt"},
                      .batch = 8,
                      .layers = {{1024, 768, 768, 48}, {1024, 3072, 768, 12}, {1024, 768, 3072, 12}},
                      .elementwise_per_sample = std::int64_t{12} * 1024 * 768 * 10,
                      .gathered_per_sample = std::int64_t{1024} * 768,
                      .input_bytes_per_sample = std::int64_t{1024} * 4,
                      .host_us_per_sample = 50,
                      .ref = layers + ", small size, 1024 tokens"});
  families.push_back({.name = "lstm",
                      .words = {"lstm", "rnn", "lm", "deepspeech", "speech"},
                      .batch = 20,
                      .layers = {{1, 2600, 1300, 70}, {35, 10000, 650, 1}},
                      .elementwise_per_sample = std::int64_t{35} * 650 * 20,
                      .gathered_per_sample = std::int64_t{35} * 650,
                      .input_bytes_per_sample = std::int64_t{35} * 4,
                      .host_us_per_sample = 30,
                      .ref = layers + ", two layers of 650, 35 steps one after another"});
  families.push_back({.name = "recommendation",
                      .words = {"recommendation", "recsys", "ncf", "dlrm", "ctr"},
                      .batch = 1024,
                      .layers = {{1, 256, 512, 2}, {1, 64, 256, 1}},
                      .elementwise_per_sample = 4'000,
                      .gathered_per_sample = std::int64_t{26} * 64,
                      .input_bytes_per_sample = 256,
                      .host_us_per_sample = 8,
                      .ref = "two-tower network with 26 embeddings of 64"});
  families.push_back({.name = "gnn",
                      .words = {"gnn", "graph", "gcn"},
                      .batch = 1024,
                      .layers = {{1, 256, 256, 2}},
                      .elementwise_per_sample = 2'000,
                      .gathered_per_sample = std::int64_t{10} * 256,
                      .input_bytes_per_sample = 64,
                      .host_us_per_sample = 5,
                      .ref = "two graph convolutions of 256 with ten neighbours"});
  families.push_back({.name = "rl",
                      .words = {"a3c", "reinforcement", "ppo", "dqn"},
                      .batch = 64,
                      .layers = {{400, 32, 288, 4}, {1, 512, 2592, 1}},
                      .elementwise_per_sample = 200'000,
                      .input_bytes_per_sample = std::int64_t{4} * 84 * 84,
                      .host_us_per_sample = 400,
                      .ref = "small convolutional policy; the environment runs on the host"});
  families.push_back(
      {.name = "mixed",
       .words = {},
       .batch = 32,
       .layers =
           {{784, 128, 1152, 4}, {196, 256, 2304, 6}, {128, 768, 768, 24}, {128, 3072, 768, 6}, {128, 768, 3072, 6}},
       .elementwise_per_sample = 12'000'000,
       .gathered_per_sample = std::int64_t{64} * 768,
       .input_bytes_per_sample = 300'000,
       .host_us_per_sample = 80,
       .ref = "half a residual network, half a transformer: for jobs of unknown family"});
  return families;
}

std::string letters_and_digits(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) plain += static_cast<char>(std::tolower(byte));
  }
  return plain;
}

/// The number after "batch size", "bs" or a colon; 0 when there is none.
std::int64_t stated_batch(std::string_view name) {
  const std::string plain = letters_and_digits(name);
  std::size_t at = std::string::npos;
  std::string text = plain;
  if (const auto words = plain.find("batchsize"); words != std::string::npos) at = words + 9;
  if (const auto colon = name.rfind(':'); at == std::string::npos && colon != std::string_view::npos) {
    text = name;
    at = colon + 1;
  }
  std::int64_t batch = 0;
  if (at != std::string::npos) std::from_chars(text.data() + at, text.data() + text.size(), batch);
  return batch;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

/// "CALL [* COUNT] + ..."; nothing when the name is anything else.
std::vector<KernelCall> kernel_mix(std::string_view name) {
  constexpr std::int64_t most_calls = 10'000;
  std::vector<KernelCall> kernels;
  for (;;) {
    const std::size_t plus = name.find('+');
    const std::string_view term = name.substr(0, plus);
    const std::size_t star = term.find('*');
    const auto call = parse_call(trimmed(term.substr(0, star)));
    const auto count = star == std::string_view::npos ? std::optional<std::int64_t>(1)
                                                      : parse_exact<std::int64_t>(trimmed(term.substr(star + 1)));
    if (!call || !count || *count < 1 || *count > most_calls - std::ssize(kernels)) return {};
    kernels.insert(kernels.end(), static_cast<std::size_t>(*count), *call);
    if (plus == std::string_view::npos) return kernels;
    name.remove_prefix(plus + 1);
  }
}

}  // namespace

const std::vector<JobFamily>& job_families() {
  static const std::vector<JobFamily> families = make_families();
  return families;
}

DeclaredWork declared_work(std::string_view name) {
  const std::string plain = letters_and_digits(name);
  DeclaredWork work{.family = &job_families().back()};
  work.kernels = kernel_mix(name);
  if (!work.kernels.empty()) {
    work.batch = 1;
    work.recognised = true;
    return work;
  }
  for (const JobFamily& family : job_families()) {
    const auto said = [&](const std::string& word) { return plain.find(word) != std::string::npos; };
    if (std::none_of(family.words.begin(), family.words.end(), said)) continue;
    work = {.family = &family, .recognised = true};
    break;
  }
  const std::int64_t batch = stated_batch(name);
  work.batch = batch > 0 ? batch : work.family->batch;
  return work;
}

std::vector<KernelCall> training_step(const DeclaredWork& work, Kernel gemm) {
  if (!work.kernels.empty()) return work.kernels;
  const JobFamily& family = *work.family;
  std::vector<KernelCall> step = {
      {Kernel::h2d_pageable, std::max<std::int64_t>(1, family.input_bytes_per_sample * work.batch)}};
  for (const LayerMix& layer : family.layers) {
    const std::int64_t rows = layer.rows_per_sample * work.batch;
    for (std::uint32_t i = 0; i < layer.count; ++i) {
      step.push_back({gemm, rows, layer.n, layer.k});
      step.push_back({gemm, rows, layer.k, layer.n});
      step.push_back({gemm, layer.k, layer.n, rows});
    }
  }
  if (family.gathered_per_sample > 0) {
    const std::int64_t count = family.gathered_per_sample * work.batch;
    step.push_back({Kernel::gather, count, count});
  }
  if (family.elementwise_per_sample > 0) step.push_back({Kernel::copy, family.elementwise_per_sample * work.batch});
  return step;
}

}  // namespace gpusched
