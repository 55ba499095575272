// SPDX-License-Identifier: Apache-2.0
// What is in cuda/, within one process, on a device that the processor plays (tests/cuda/on_cpu): first that the device
// shows mistakes, then the kernels against their references, then the code that drives them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cuda/device.hpp"
#include "cuda/kernels.hpp"
#include "src/calibration/measure/child_process.hpp"
#include "src/calibration/measure/suite.hpp"
#include "tests/cuda/cuda_sizes.hpp"
#include "tests/cuda/on_cpu/emulation.hpp"

namespace gpusched::cuda {
namespace {

using cuda_on_cpu::Order;
using cuda_on_cpu::settings;
using testing::HasSubstr;

constexpr std::array orders = {Order::forward, Order::reverse, Order::shuffled};

class CudaOnCpu : public testing::Test {
 protected:
  void SetUp() override { cuda_on_cpu::start_anew(); }
  // Whatever a test did, nothing is left behind and no kernel went astray, unless it wanted that.
  void TearDown() override {
    EXPECT_EQ(cuda_on_cpu::live_objects(), 0u);
    EXPECT_EQ(cuda_on_cpu::last_fault(), expected_fault_);
  }
  std::string expected_fault_;
};

// ---- the played device shows mistakes ----

constexpr int block = 64;

void reversed(const float* in, float* out, bool with_barrier) {
  __shared__ float kept[block];
  kept[threadIdx.x] = in[threadIdx.x];
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = kept[block - 1 - threadIdx.x];
}

void barrier_for_some() {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __shfl_xor_sync(0xffffffffU, 1.0F, 1);
  }
}

void beyond_the_end(float* out, int count) { out[threadIdx.x + static_cast<unsigned>(count)] = 1; }

void sum_of_warp(float* out) {
  float value = static_cast<float>(threadIdx.x);
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  out[threadIdx.x] = value;
}

template <class... Parameters>
cudaError_t start(void (*kernel)(Parameters...), unsigned threads, cudaStream_t stream,
                  std::common_type_t<Parameters>... arguments) {
  std::array<void*, sizeof...(Parameters)> pointers = {static_cast<void*>(&arguments)...};
  return cudaLaunchKernel(kernel, 1, threads, pointers.data(), 0, stream);
}

std::vector<float> run_reversed(Order order, bool with_barrier) {
  settings().order = order;
  settings().fresh_shared = true;
  Status status;
  const DeviceMemory in = device_memory(block * sizeof(float), status);
  const DeviceMemory out = device_memory(block * sizeof(float), status);
  std::vector<float> values(block);
  for (int i = 0; i < block; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i);
  cudaMemcpy(in.get(), values.data(), block * sizeof(float), cudaMemcpyHostToDevice);
  start(reversed, block, nullptr, static_cast<const float*>(in.get()), static_cast<float*>(out.get()), with_barrier);
  cudaMemcpy(values.data(), out.get(), block * sizeof(float), cudaMemcpyDeviceToHost);
  return values;
}

TEST_F(CudaOnCpu, AMissingBarrierShowsInTheOrderOfThreads) {
  std::set<std::vector<float>> with;
  std::set<std::vector<float>> without;
  for (const Order order : orders) {
    with.insert(run_reversed(order, true));
    without.insert(run_reversed(order, false));
  }
  EXPECT_EQ(with.size(), 1u);
  EXPECT_EQ(with.begin()->front(), block - 1);
  EXPECT_GT(without.size(), 1u);
}

TEST_F(CudaOnCpu, ABarrierThatNotAllReachIsAnErrorAndNoDeadlock) {
  ASSERT_EQ(start(barrier_for_some, 64, nullptr), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorLaunchFailure) << "an error that does not pass";
  expected_fault_ = "threads of a block wait for each other at different places";
}

TEST_F(CudaOnCpu, AWarpAddsUpItsLanes) {
  for (const Order order : orders) {
    settings().order = order;
    Status status;
    const DeviceMemory out = device_memory(64 * sizeof(float), status);
    ASSERT_EQ(start(sum_of_warp, 64, nullptr, static_cast<float*>(out.get())), cudaSuccess);
    std::vector<float> values(64);
    cudaMemcpy(values.data(), out.get(), 64 * sizeof(float), cudaMemcpyDefault);
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(values[i], i < 32 ? 496 : 1520);
  }
}

TEST_F(CudaOnCpu, AKernelThatWritesBesideItsOutputIsFound) {
  Status status;
  // Three floats of a whole vector of bytes: the next is not in use by anyone, but looked at.
  DeviceMemory out = device_memory(3 * sizeof(float), status);
  ASSERT_EQ(start(beyond_the_end, 1, nullptr, static_cast<float*>(out.get()), 3), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  out.reset();
  EXPECT_EQ(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  expected_fault_ = "something was written beside device or pinned memory";
}

// The library promises nothing of a copy from ordinary memory but that it has read it.
TEST_F(CudaOnCpu, WorkOnAnotherStreamDoesNotWaitForTheDefaultOne) {
  Status status;
  const DeviceMemory in = device_memory(block * sizeof(float), status);
  const DeviceMemory out = device_memory(block * sizeof(float), status);
  const Stream stream = make_stream(status);
  const std::vector<float> values(block, 1.0F);
  const auto run = [&] {
    std::vector<float> found(block);
    start(reversed, block, stream.get(), static_cast<const float*>(in.get()), static_cast<float*>(out.get()), true);
    cudaStreamSynchronize(stream.get());
    cudaMemcpy(found.data(), out.get(), block * sizeof(float), cudaMemcpyDeviceToHost);
    return found;
  };
  run();                          // loads the kernel, which waits for everything
  settings().delay_us = 500'000;  // far longer than this thread is kept from running
  cudaMemcpy(in.get(), values.data(), block * sizeof(float), cudaMemcpyHostToDevice);
  settings().delay_us = 0;
  EXPECT_NE(run(), values);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(run(), values);
}

TEST_F(CudaOnCpu, AKernelNotYetLoadedWaitsForAClosedGate) {
  Status status;
  const PinnedMemory memory = pinned_memory(2 * sizeof(int), status);
  const Stream stream = make_stream(status);
  auto* gate = static_cast<volatile int*>(memory.get());
  for (const bool loaded : {false, true}) {
    gate[0] = 0;
    gate[1] = 0;
    ASSERT_EQ(queue_gate(gate, loaded ? 10'000'000'000 : 50'000'000, stream.get()), cudaSuccess);
    ASSERT_EQ(queue_kernel({Kernel::launch}, {}, stream.get()), cudaSuccess);
    gate[0] = 1;
    ASSERT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
    EXPECT_EQ(gate[1] == 0, loaded);
  }
}

TEST_F(CudaOnCpu, LaunchesThatNoDeviceTakesAreRefused) {
  Status status;
  const DeviceMemory out = device_memory(4, status);
  const DeviceOperands operands{.a = out.get(), .out = out.get()};
  EXPECT_EQ(queue_kernel({Kernel::copy, 0}, operands, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(queue_kernel({Kernel::gemm_fp32, 1, 1, 1}, operands, nullptr), cudaErrorInvalidValue);
  EXPECT_EQ(start(barrier_for_some, 1025, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidConfiguration);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(out.get(), nullptr, 8, cudaMemcpyDefault), cudaErrorInvalidValue) << "more than there is";
  EXPECT_EQ(cudaMemcpy(out.get(), out.get(), 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue) << "the wrong way";
}

TEST_F(CudaOnCpu, SmallFormatsRoundAsTheDeviceDoes) {
  const auto half = [](double x) { return cuda_on_cpu::rounded_to_half(x); };
  EXPECT_EQ(half(1 + 0x1p-11), 1) << "ties go to even";
  EXPECT_EQ(half(1 + 0x1.8p-10), 1 + 0x1p-9);
  EXPECT_EQ(half(1 + 0x1.1p-11), 1 + 0x1p-10);
  EXPECT_EQ(half(65519), 65504);
  EXPECT_EQ(half(-65520), -HUGE_VAL);
  EXPECT_EQ(half(0x1p-25), 0);
  EXPECT_EQ(half(-0x1.8p-25), -0x1p-24);
  EXPECT_EQ(half(0x1.ff8p-15), 0x1.ff8p-15) << "below the normal ones 2^-24 is the step";
  EXPECT_EQ(half(0x1.ffcp-15), 0x1p-14);
  const auto bf16 = [](float x) { return __bfloat162float(__float2bfloat16(x)); };
  EXPECT_EQ(bf16(1 + 0x1p-8F), 1);
  EXPECT_EQ(bf16(1 + 0x1.8p-7F), 1 + 0x1p-6F);
  EXPECT_EQ(bf16(-3.0F), -3);
  EXPECT_TRUE(std::isinf(bf16(3.4e38F)));
}

// ---- the kernels ----

class CudaOnCpuKernels : public CudaOnCpu {
 protected:
  void SetUp() override {
    CudaOnCpu::SetUp();
    settings().devices = 2;
    settings().fresh_shared = true;
    const auto table = load_blas();
    ASSERT_TRUE(table);
    blas_ = Blas::open(*table, status_);
    stream_ = make_stream(status_);
    ASSERT_TRUE(status_.good());
  }
  void TearDown() override {
    blas_.reset();
    stream_.reset();
    CudaOnCpu::TearDown();
  }

  std::vector<double> result_of(const KernelCall& call, const KernelData& data) {
    CudaKernel kernel(call, &data, 0, blas_.get(), status_);
    kernel.queue(stream_.get(), status_);
    status_.note(cudaStreamSynchronize(stream_.get()), "the kernel");
    std::vector<double> result = kernel.result(status_);
    EXPECT_TRUE(status_.good()) << describe(call) << ": " << status_.error().error.message;
    return result;
  }

  /// Right, and the same in whatever order threads run.
  void expect_sound(const KernelCall& call) {
    const KernelData data = random_data(call, 7);
    const std::vector<double> reference = reference_result(call, data);
    std::vector<double> first;
    for (const Order order : orders) {
      settings().order = order;
      const std::vector<double> result = result_of(call, data);
      if (order == Order::forward) {
        EXPECT_LE(largest_error(result, reference), error_limit(call)) << describe(call);
        first = result;
      }
      EXPECT_EQ(result, first) << describe(call) << " depends on the order of threads";
    }
  }

  Status status_;
  std::unique_ptr<Blas> blas_;
  Stream stream_;
};

TEST_F(CudaOnCpuKernels, ComputeWhatTheirReferencesDoOnEveryEdge) {
  for (const KernelCall& call : calls_on_edges()) expect_sound(call);
}

TEST_F(CudaOnCpuKernels, ComputeWhatTheirReferencesDoAtLargerSizes) {
  for (const KernelCall& call : {KernelCall{Kernel::gemm_naive16, 200, 300, 250},
                                 {Kernel::gemm_tiled, 257, 300, 131},
                                 {Kernel::softmax, 65, 9001},
                                 {Kernel::layernorm, 3, 30011},
                                 {Kernel::reduce, 7, 100003},
                                 {Kernel::conv2d, 2, 67, 33},
                                 {Kernel::stencil7, 101},
                                 {Kernel::gather, 300007, 70001},
                                 {Kernel::histogram, 3000017},
                                 {Kernel::fma_fp32, 100003, 33},
                                 {Kernel::fma_fp16, 100001, 33}}) {
    expect_sound(call);
  }
}

TEST_F(CudaOnCpuKernels, TheSeedProgramsProductIsExact) {
  const KernelCall call{Kernel::gemm_naive16, 64, 64, 1024};
  const KernelData data{.a = std::vector<float>(65536, 1.0F), .b = std::vector<float>(65536, 2.0F)};
  EXPECT_EQ(result_of(call, data), std::vector<double>(4096, 2048.0));
}

TEST_F(CudaOnCpuKernels, RandomDataIsUniformExactAndTheSameForASeed) {
  constexpr std::size_t count = 100003;
  const DeviceMemory memory = device_memory(count * sizeof(float), status_);
  const auto draw = [&](std::uint64_t seed) {
    std::vector<float> values(count);
    EXPECT_EQ(queue_random_floats(static_cast<float*>(memory.get()), count, seed, nullptr), cudaSuccess);
    cudaMemcpy(values.data(), memory.get(), count * sizeof(float), cudaMemcpyDeviceToHost);
    return values;
  };
  const std::vector<float> values = draw(3);
  EXPECT_EQ(values, draw(3));
  EXPECT_NE(values, draw(4));
  double sum = 0;
  double square = 0;
  for (const float value : values) {
    ASSERT_GE(value, -1);
    ASSERT_LT(value, 1);
    sum += value;
    square += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(square / count, 1.0 / 3, 0.01);
  std::vector<std::uint32_t> positions(count);
  ASSERT_EQ(queue_random_below(static_cast<std::uint32_t*>(memory.get()), count, 1000, 5, nullptr), cudaSuccess);
  cudaMemcpy(positions.data(), memory.get(), count * sizeof(float), cudaMemcpyDeviceToHost);
  std::vector<int> often(1000);
  for (const std::uint32_t position : positions) ++often.at(position);
  EXPECT_GT(*std::min_element(often.begin(), often.end()), 50);
  EXPECT_LT(*std::max_element(often.begin(), often.end()), 160);
}

// ---- the device ----

class CudaOnCpuDevice : public CudaOnCpu {
 protected:
  void open() {
    auto opened = Device::open();
    ASSERT_TRUE(opened) << opened.error().to_string();
    device_ = *std::move(opened);
  }
  void TearDown() override {
    device_.reset();
    CudaOnCpu::TearDown();
  }
  std::unique_ptr<Device> device_;
};

TEST_F(CudaOnCpuDevice, ChecksPassForEveryKernelWhileTheDeviceIsFarBehindItsHost) {
  settings().devices = 2;
  settings().delay_us = 300;
  open();
  for (std::size_t i = 0; i < kernel_count; ++i) EXPECT_TRUE(device_->supports(static_cast<Kernel>(i)));
  for (std::size_t i = 0; i < kernel_count; ++i) {
    const auto kernel = static_cast<Kernel>(i);
    if (kernel == Kernel::launch || kernel == Kernel::gemm_naive16) continue;
    const KernelCall call{kernel, 33, 17, 5};
    const auto error = device_->check(call);
    ASSERT_TRUE(error) << describe(call) << ": " << error.error().to_string();
    EXPECT_LE(*error, error_limit(call)) << describe(call);
  }
}

// No kernel of a step is first met behind a closed gate, where it would wait for two seconds and fail.
TEST_F(CudaOnCpuDevice, TimesEveryKernelAlone) {
  settings().devices = 2;
  open();
  for (std::size_t i = 0; i < kernel_count; ++i) {
    const KernelCall call{static_cast<Kernel>(i), 5, 17, 9};
    const auto times = device_->time_us({&call, 1}, 3);
    ASSERT_TRUE(times) << describe(call) << ": " << times.error().to_string();
    ASSERT_EQ(times->size(), 3u);
    for (const double us : *times) EXPECT_GT(us, 0) << describe(call);
  }
}

TEST_F(CudaOnCpuDevice, TimesWholeStepsWithCopiesThatBlockTheHost) {
  open();
  const std::vector<std::vector<KernelCall>> steps = {{{Kernel::h2d_pageable, 4096},
                                                       {Kernel::copy, 5000},
                                                       {Kernel::gemm_fp32, 20, 30, 40},
                                                       {Kernel::d2h_pageable, 100},
                                                       {Kernel::softmax, 4, 50}},
                                                      {{Kernel::copy, 100}, {Kernel::h2d_pageable, 64}}};
  for (const std::vector<KernelCall>& step : steps) {
    const auto times = device_->time_us(step, 4);
    ASSERT_TRUE(times) << times.error().to_string();
    ASSERT_EQ(times->size(), 4u);
    for (const double us : *times) EXPECT_GT(us, 0);
  }
}

// A step that began with a copy of ordinary memory, as every training step does, ran from a warm cache.
TEST_F(CudaOnCpuDevice, EveryStepStartsFromAColdCache) {
  const std::vector<std::vector<KernelCall>> steps = {
      {{Kernel::h2d_pageable, 4096}, {Kernel::copy, 5000}, {Kernel::d2h_pageable, 100}, {Kernel::softmax, 4, 50}},
      {{Kernel::copy, 5000}, {Kernel::softmax, 4, 50}}};
  constexpr std::uint32_t samples = 4;
  for (const std::vector<KernelCall>& step : steps) {
    std::array<std::int64_t, 2> pieces{};
    for (const bool has_cache : {false, true}) {
      device_.reset();
      cuda_on_cpu::start_anew();
      if (!has_cache) settings().cache_bytes = 0;
      open();
      ASSERT_TRUE(device_->time_us(step, 1));
      const std::int64_t before = cuda_on_cpu::pieces_of_work();
      ASSERT_TRUE(device_->time_us(step, samples));
      pieces[has_cache ? 1 : 0] = cuda_on_cpu::pieces_of_work() - before;
    }
    EXPECT_EQ(pieces[1] - pieces[0], samples) << "one flush a sample";
  }
}

TEST_F(CudaOnCpuDevice, KernelsOfTheSuiteFitTheDeviceTheyAreMeantFor) {
  settings() = {.sm_count = 132, .top_mhz = 1980, .actual_mhz = 1980};
  settings().cache_bytes = 1 << 20;
  open();
  EXPECT_EQ(device_->facts().limits.flops, 1.1e12);
  EXPECT_EQ(device_->facts().model, "Processor as GPU");
  device_.reset();
  settings().sm_count = 40;  // a T4's
  settings().top_mhz = 1590;
  open();
  EXPECT_NEAR(device_->facts().limits.flops, 3.3e11, 0.1e11);
}

TEST_F(CudaOnCpuDevice, HeldStepsRunSideBySide) {
  open();
  const KernelCall small{Kernel::copy, 100};
  const KernelCall other{Kernel::gemm_bf16, 10, 20, 30};
  const auto first = device_->hold({&small, 1});
  const auto second = device_->hold({&other, 1});
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(device_->run_held(*second, 3));
  EXPECT_TRUE(device_->run_held(*first, 3));
  device_->release(*first);
  EXPECT_FALSE(device_->run_held(*first, 1));
  EXPECT_TRUE(device_->run_held(*second, 1));
}

TEST_F(CudaOnCpuDevice, TwoStreamsRunBesideEachOther) {
  open();
  for (const auto& [a, b] : {std::pair<KernelCall, KernelCall>{{Kernel::copy, 4096}, {Kernel::gemm_fp32, 16, 16, 16}},
                             {{Kernel::gemm_bf16, 9, 9, 9}, {Kernel::gemm_bf16, 9, 9, 9}}}) {
    const auto both = device_->co_locate(a, b, 0.06);
    ASSERT_TRUE(both) << both.error().to_string();
    for (const double slowdown : *both) EXPECT_TRUE(slowdown > 0 && std::isfinite(slowdown)) << slowdown;
  }
}

TEST_F(CudaOnCpuDevice, OutOfMemoryIsAnErrorThatPasses) {
  open();
  const KernelCall huge{Kernel::copy, std::int64_t{1} << 42};
  const auto failed = device_->time_us({&huge, 1}, 3);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("out of memory"));
  const KernelCall small{Kernel::copy, 1000};
  EXPECT_TRUE(device_->time_us({&small, 1}, 3));
  EXPECT_TRUE(device_->check(small));
}

// Wherever the device is lost: one line that names the call, never a number, never a wait without end.
TEST_F(CudaOnCpuDevice, ALostDeviceIsAnErrorWhereverItHappens) {
  const KernelCall copy{Kernel::copy, 1000};
  const KernelCall product{Kernel::gemm_fp32, 5, 6, 7};
  for (const int after : {0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144}) {
    device_.reset();
    cuda_on_cpu::start_anew();
    settings().lose_after = after;
    auto opened = Device::open();
    std::string message;
    if (opened) {
      device_ = *std::move(opened);
      const auto checked = device_->check(copy);
      const auto timed = device_->time_us({&copy, 1}, 50);
      const auto beside = device_->co_locate(copy, product, 0.03);
      ASSERT_FALSE(checked && timed && beside) << after;
      message = !checked ? checked.error().message : !timed ? timed.error().message : beside.error().message;
      EXPECT_FALSE(device_->time_us({&product, 1}, 3)) << "it does not come back";
    } else {
      message = opened.error().message;
    }
    EXPECT_THAT(message, testing::AnyOf(HasSubstr("uncorrectable ECC error"), HasSubstr("cuBLAS: "))) << after;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  expected_fault_ = "lost, as the test asked";
}

TEST_F(CudaOnCpuDevice, ASlowClockIsToldAndItsSamplesTakenAgain) {
  open();
  const KernelCall call{Kernel::copy, 1000};
  ASSERT_TRUE(device_->time_us({&call, 1}, 2));
  EXPECT_EQ(device_->facts().environment.at("sm_clock_mhz"), "20 to 20 after the samples, at most 20");
  settings().actual_mhz = 5;
  const double begin = monotonic_s();
  ASSERT_TRUE(device_->time_us({&call, 1}, 2));
  EXPECT_GT(monotonic_s() - begin, 0.2) << "four waits for the clock to rise";
  EXPECT_EQ(device_->facts().environment.at("sm_clock_mhz"), "5 to 20 after the samples, at most 20");
}

TEST_F(CudaOnCpuDevice, PowerIsAboveIdleUnderLoad) {
  open();
  const KernelCall call{Kernel::fma_fp32, 4096, 256};
  const auto full = device_->power({&call, 1}, 1, 0.4);
  ASSERT_TRUE(full && *full);
  EXPECT_NEAR((*full)->idle_watts, 20, 5);
  EXPECT_GT((*full)->watts, 40);
  EXPECT_LT((*full)->watts, 85);
  const auto half = device_->power({&call, 1}, 0.5, 0.4);
  ASSERT_TRUE(half && *half);
  EXPECT_LT((*half)->watts, (*full)->watts);
  settings().has_energy_counter = false;
  const auto none = device_->power({&call, 1}, 1, 0.1);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none) << "unavailable, not 0";
}

TEST_F(CudaOnCpuDevice, OldDevicesAreNotAskedForWhatTheyCannot) {
  settings().major = 7;
  settings().minor = 5;
  open();
  for (const Kernel kernel : {Kernel::mma_bf16, Kernel::gemm_bf16, Kernel::peer_copy}) {
    EXPECT_FALSE(device_->supports(kernel)) << to_string(kernel);
  }
  EXPECT_TRUE(device_->supports(Kernel::gemm_fp32));
  EXPECT_EQ(device_->facts().environment.at("compute_capability"), "7.5");
  EXPECT_EQ(device_->facts().environment.at("cublas"), "13.0.2");
  EXPECT_EQ(device_->facts().environment.at("driver"), "580.1");
}

TEST_F(CudaOnCpuDevice, NoDeviceIsOneLine) {
  settings().devices = 0;
  const auto opened = Device::open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().message, "no CUDA device; --backend cpu measures the processor");
}

}  // namespace
}  // namespace gpusched::cuda
