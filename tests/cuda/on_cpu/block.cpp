// SPDX-License-Identifier: Apache-2.0
// The threads of a block as fibers: each runs until it waits for others, so that barriers and exchanges within a warp
// work with one thread of the operating system, the same every time. A fiber runs thread after thread; only one whose
// thread has to wait is put aside for it, so that kernels without barriers never switch.
#include <cuda_runtime.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "tests/cuda/on_cpu/emulation.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define CUDA_ON_CPU_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CUDA_ON_CPU_ASAN 1
#endif
#endif
#ifdef CUDA_ON_CPU_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

constinit thread_local uint3 threadIdx{};
constinit thread_local uint3 blockIdx{};
constinit thread_local dim3 blockDim{};
constinit thread_local dim3 gridDim{};
constinit thread_local float gpusched_shared_row[cuda_on_cpu::most_shared_floats]{};

namespace cuda_on_cpu {
namespace {

constexpr unsigned warp_size = 32;
constexpr std::size_t stack_bytes = std::size_t{128} * 1024;

// ---- switching ----

/// A place to switch to: the worker's own stack, or a fiber's.
struct Context {
  ucontext_t where{};
  jmp_buf resume{};
  bool started = false;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake_stack = nullptr;
};

#ifdef CUDA_ON_CPU_ASAN
// The checker must know which stack is in use; jumps between stacks would confuse it.
void arrive(Context& here, Context* from) {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(here.fake_stack, &bottom, &bytes);
  if (from != nullptr && from->bottom == nullptr) {
    from->bottom = bottom;
    from->bytes = bytes;
  }
}
void switch_context(Context& from, Context& to) {
  __sanitizer_start_switch_fiber(&from.fake_stack, to.bottom, to.bytes);
  ::swapcontext(&from.where, &to.where);
  arrive(from, nullptr);
}
#else
void arrive(Context&, Context*) {}
// swapcontext() asks the kernel for the signal mask each time, a jump does not: ten times faster.
[[gnu::noinline]] void switch_context(Context& from, Context& to) {
  if (_setjmp(from.resume) != 0) return;
  if (to.started) _longjmp(to.resume, 1);
  to.started = true;
  ::setcontext(&to.where);
}
#endif

struct Fiber {
  Context context;
  void* stack = nullptr;

  Fiber() {
    stack = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    context.bottom = stack;
    context.bytes = stack_bytes;
#ifdef CUDA_ON_CPU_ASAN
    ASAN_UNPOISON_MEMORY_REGION(stack, stack_bytes);
#endif
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() { ::munmap(stack, stack_bytes); }
};

// ---- the block ----

enum class Wait { none, block, warp };

struct Thread {
  Fiber* fiber = nullptr;
  Wait wait = Wait::none;
  bool done = false;
  unsigned mask = 0;       // of the warp exchange that it waits at
  unsigned exchanges = 0;  // so far
};

struct Warp {
  // Two of them by turns: who is fast may give the next value while others still read the last.
  std::array<std::array<std::uint64_t, warp_size>, 2> given{};
};

/// What a worker keeps from launch to launch.
struct Fibers {
  Context main{.started = true};
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<Fiber*> idle;
};
thread_local Fibers fibers;

class BlockRunner;
thread_local BlockRunner* runner = nullptr;

class BlockRunner {
 public:
  BlockRunner(const dim3& block, Order order, const Body& body) : block_(block), order_(order), body_(body) {}

  /// False when it went wrong; fault_ tells why.
  bool run(unsigned seed) {
    const unsigned count = block_.x * block_.y * block_.z;
    threads_.assign(count, {});
    warps_.assign((count + warp_size - 1) / warp_size, {});
    live_ = count;
    at_barrier_ = 0;
    next_ = 0;
    queue_.resize(count);
    std::iota(queue_.begin(), queue_.end(), 0U);
    if (order_ == Order::reverse) std::reverse(queue_.begin(), queue_.end());
    if (order_ == Order::shuffled) std::shuffle(queue_.begin(), queue_.end(), std::mt19937(seed));
    runner = this;
    while (next_ < count && fault_.empty()) switch_to(*idle_fiber());
    while (live_ > 0 && fault_.empty()) {
      bool moved = false;
      // Each warp as far as it comes before the next one moves: what it does to values that others still need shows.
      for (std::size_t first = 0; first < count; first += warp_size) {
        while (fault_.empty() &&
               run_some(std::span(queue_).subspan(first, std::min<std::size_t>(warp_size, count - first)))) {
          moved = true;
        }
      }
      if (!moved) fault_ = "threads of a block wait for each other at different places";
    }
    runner = nullptr;
    if (fault_.empty()) return true;
    // Its threads stay where they are, and their fibers with them.
    fibers.idle.clear();
    fibers.all.clear();
    return false;
  }

  void wait_for_block() {
    Thread& own = threads_[current_];
    own.wait = Wait::block;
    ++at_barrier_;
    open_barrier();
    if (own.wait != Wait::none) put_aside();
  }

  std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned from) {
    Thread& own = threads_[current_];
    Warp& warp = warps_[current_ / warp_size];
    const unsigned turn = own.exchanges++ % 2;
    warp.given[turn][current_ % warp_size] = value;
    own.wait = Wait::warp;
    own.mask = mask;
    open_warp(current_ / warp_size * warp_size, mask);
    if (own.wait != Wait::none) put_aside();
    return warp.given[turn][from % warp_size];
  }

  [[noreturn]] void fail(const char* reason) {
    fault_ = reason;
    for (;;) switch_context(current_fiber_->context, fibers.main);
  }

  [[nodiscard]] unsigned current() const { return current_; }
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  /// Resumes those of `ids` that need not wait; false when there were none.
  bool run_some(std::span<const unsigned> ids) {
    bool moved = false;
    for (const unsigned id : ids) {
      if (threads_[id].done || threads_[id].wait != Wait::none || !fault_.empty()) continue;
      moved = true;
      enter(id);
      switch_to(*threads_[id].fiber);
    }
    return moved;
  }

  // Threads that have not begun, until one of them has to wait or there are no more.
  void run_threads(Fiber& own) {
    while (next_ < queue_.size()) {
      const unsigned id = queue_[next_++];
      threads_[id].fiber = &own;
      enter(id);
      body_();
      finish();
    }
  }

  // Never returns: a fiber outlives the grid that it was made for.
  static void fiber_main() {
    Fiber& own = *runner->current_fiber_;
    arrive(own.context, &fibers.main);
    for (;;) {
      runner->run_threads(own);
      fibers.idle.push_back(&own);
      switch_context(own.context, fibers.main);
    }
  }

  static Fiber* idle_fiber() {
    if (fibers.idle.empty()) {
      fibers.all.push_back(std::make_unique<Fiber>());
      Context& context = fibers.all.back()->context;
      ::getcontext(&context.where);
      context.where.uc_stack.ss_sp = fibers.all.back()->stack;
      context.where.uc_stack.ss_size = stack_bytes;
      ::makecontext(&context.where, &BlockRunner::fiber_main, 0);
      return fibers.all.back().get();
    }
    Fiber* fiber = fibers.idle.back();
    fibers.idle.pop_back();
    return fiber;
  }

  void switch_to(Fiber& fiber) {
    current_fiber_ = &fiber;
    switch_context(fibers.main, fiber.context);
  }

  void put_aside() { switch_context(threads_[current_].fiber->context, fibers.main); }

  void enter(unsigned id) {
    current_ = id;
    threadIdx = {id % block_.x, id / block_.x % block_.y, id / (block_.x * block_.y)};
  }

  void finish() {
    threads_[current_].done = true;
    --live_;
    open_barrier();
  }

  // Threads that have ended need not come (Volta and later).
  void open_barrier() {
    if (at_barrier_ == 0 || at_barrier_ < live_) return;
    at_barrier_ = 0;
    for (Thread& thread : threads_) {
      if (thread.wait == Wait::block) thread.wait = Wait::none;
    }
  }

  void open_warp(unsigned first, unsigned mask) {
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      if (((mask >> lane) & 1U) == 0) continue;
      if (first + lane >= threads_.size() || threads_[first + lane].done) {
        fail("a warp waits for a lane that has ended");
      }
      const Thread& thread = threads_[first + lane];
      if (thread.wait != Wait::warp || thread.mask != mask) return;
    }
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      if (((mask >> lane) & 1U) != 0) threads_[first + lane].wait = Wait::none;
    }
  }

  dim3 block_;
  Order order_;
  const Body& body_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> queue_;  // the threads in the order in which they run
  std::size_t next_ = 0;         // of them, the first that has not begun
  unsigned live_ = 0;
  unsigned at_barrier_ = 0;
  unsigned current_ = 0;
  Fiber* current_fiber_ = nullptr;
  std::string fault_;
};

}  // namespace

void block_barrier() { runner->wait_for_block(); }
std::uint64_t warp_exchange(unsigned mask, std::uint64_t value, unsigned from) {
  return runner->exchange(mask, value, from);
}
void fault(const char* reason) { runner->fail(reason); }
unsigned lane() { return runner->current() % warp_size; }

std::optional<std::string> run_grid(const dim3& grid, const dim3& block, std::size_t shared_bytes, Order order,
                                    const Body& body) {
  BlockRunner blocks(block, order, body);
  gridDim = grid;
  blockDim = block;
  const std::size_t floats = shared_bytes / sizeof(float);
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) {
        // Not a number: what a kernel reads before it wrote shows in its result.
        std::fill_n(gpusched_shared_row, floats, __builtin_nanf(""));
        if (!blocks.run(blockIdx.x)) return blocks.fault();
      }
    }
  }
  // Beyond what was asked for nothing may have been written, on which the next launch could rely.
  float* const end = gpusched_shared_row + most_shared_floats;
  if (std::any_of(gpusched_shared_row + floats, end, [](float value) { return value != 0; })) {
    std::fill_n(gpusched_shared_row, most_shared_floats, 0.0F);
    return "a kernel wrote beyond the shared memory that its launch asked for";
  }
  std::fill_n(gpusched_shared_row, floats, 0.0F);
  return std::nullopt;
}

}  // namespace cuda_on_cpu
