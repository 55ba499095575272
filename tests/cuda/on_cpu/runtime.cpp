// SPDX-License-Identifier: Apache-2.0
// The runtime. Where NVIDIA leaves it open, a call does what shows most mistakes of its caller:
//
//  - a stream is a thread that works through a queue: nothing is done when a call returns, but for those that wait;
//  - allocating, freeing, and the first launch of a kernel, whose code is loaded then, wait for the whole device:
//  behind
//    a closed gate that is for ever;
//  - a copy of ordinary memory waits for its stream, where NVIDIA says that it may;
//  - device memory begins as all ones (not a number), ends at a page that nobody may touch, and lies beside bytes that
//    are looked at when it is freed;
//  - a process forked from one that has opened the device cannot use it;
//  - a device that is lost stays lost: every later call answers with the same error.
#include <cuda_runtime.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "tests/cuda/on_cpu/emulation.hpp"

namespace cuda_on_cpu {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t alignment = 32;  // the most that a kernel may ask of an operand; the device gives 256
constexpr unsigned char beside = 0xC3;
constexpr std::uint64_t context_bytes = 2U << 20U;

std::uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

// ---- memory of all processes ----

/// What each process that has the device open takes of its memory: a page that all processes forked from this one see.
class SharedUse {
 public:
  SharedUse() {
    void* memory = ::mmap(nullptr, sizeof(Table), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    table_ = new (memory) Table;
  }

  /// A place for this process. One that has ended leaves its own.
  std::atomic<std::uint64_t>* claim() {
    for (Place& place : table_->places) {
      pid_t owner = place.owner.load();
      if (owner != 0 && runs(owner)) continue;
      if (!place.owner.compare_exchange_strong(owner, ::getpid())) continue;
      place.bytes = 0;
      return &place.bytes;
    }
    std::abort();
  }

  std::uint64_t bytes() {
    std::uint64_t sum = 0;
    for (const Place& place : table_->places) {
      if (place.owner != 0 && runs(place.owner)) sum += place.bytes;
    }
    return sum;
  }

 private:
  struct Place {
    std::atomic<pid_t> owner = 0;
    std::atomic<std::uint64_t> bytes = 0;
  };
  struct Table {
    std::array<Place, 64> places;
  };
  static bool runs(pid_t pid) { return ::kill(pid, 0) == 0; }
  Table* table_;
};

SharedUse shared_use;  // made before main(), so that every fork has it

// ---- the device of this process ----

struct Allocation {
  std::size_t bytes = 0;
  char* map = nullptr;
  std::size_t map_bytes = 0;
  int device = -1;  // -1: pinned memory of the host
};

class State {
 public:
  std::mutex mutex;
  pid_t owner = 0;
  std::atomic<std::uint64_t>* used = nullptr;
  std::map<const char*, Allocation, std::greater<>> allocations;  // the last that begins at or before a place is first
  std::set<cudaStream_t> streams;
  std::array<cudaStream_t, 2> default_streams{};
  std::set<const void*> loaded;
  std::set<int> peers;
  std::size_t events = 0;
  std::atomic<int> lost = cudaSuccess;
  std::atomic<std::int64_t> pieces = 0;
  std::atomic<std::uint64_t> busy_ns = 0;
  std::string fault;
};

// Never destroyed: streams work until the process ends.
State& state() {
  static auto* const only = new State;
  return *only;
}

thread_local cudaError_t last_error = cudaSuccess;
thread_local int current_device = 0;

void lose(cudaError_t code, const std::string& reason) {
  State& device = state();
  const std::lock_guard lock(device.mutex);
  if (device.fault.empty()) device.fault = reason;
  int none = cudaSuccess;
  device.lost.compare_exchange_strong(none, code);
}

/// Keeps the error for cudaGetLastError().
cudaError_t answer(cudaError_t code) {
  if (code != cudaSuccess) last_error = code;
  return code;
}

/// What every call asks first. Opens the device for this process.
cudaError_t enter() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (settings().devices == 0 || (visible != nullptr && visible[0] == '-')) return cudaErrorNoDevice;
  State& device = state();
  const std::lock_guard lock(device.mutex);
  if (device.owner == 0) {
    device.owner = ::getpid();
    device.used = shared_use.claim();
    *device.used += context_bytes;
  }
  if (device.owner != ::getpid()) return cudaErrorInitializationError;
  return static_cast<cudaError_t>(device.lost.load());
}

}  // namespace

Settings& settings() {
  static Settings only = [] {
    Settings set;
    // For programs, which no test can ask.
    if (const char* after = std::getenv("CUDA_ON_CPU_LOSE_AFTER")) set.lose_after = std::atoll(after);
    return set;
  }();
  return only;
}

std::string last_fault() {
  const std::lock_guard lock(state().mutex);
  return state().fault;
}

void start_anew() {
  settings() = {};
  const std::lock_guard lock(state().mutex);
  state().fault.clear();
  state().lost = cudaSuccess;
  state().pieces = 0;
  state().loaded.clear();
  state().peers.clear();
  last_error = cudaSuccess;
  current_device = 0;
}

std::int64_t pieces_of_work() { return state().pieces; }

std::size_t live_objects() {
  const std::lock_guard lock(state().mutex);
  return state().allocations.size() + state().streams.size() + state().events;
}

double busy_s() { return 1e-9 * static_cast<double>(state().busy_ns.load()); }

}  // namespace cuda_on_cpu

// ---- streams and events ----

struct CUstream_st {
  explicit CUstream_st(int of_device) : device(of_device), worker_([this] { work(); }) {}
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  /// `always`: also on a lost device, so that nobody waits in vain.
  void push(std::function<void()> work, bool always = false) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back({std::move(work), cuda_on_cpu::settings().delay_us, always});
      ++pushed_;
    }
    changed_.notify_all();
  }

  /// Returns when all that was pushed before is done.
  void wait() {
    std::unique_lock lock(mutex_);
    const std::uint64_t target = pushed_;
    changed_.wait(lock, [&] { return finished_ >= target; });
  }

  const int device;

 private:
  struct Piece {
    std::function<void()> work;
    unsigned delay_us = 0;
    bool always = false;
  };

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !queue_.empty() || ending_; });
      if (queue_.empty()) return;
      Piece piece = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      if (piece.always) {
        piece.work();
      } else {
        run(piece);
      }
      piece = {};
      lock.lock();
      ++finished_;
      changed_.notify_all();
    }
  }

  static void run(const Piece& piece) {
    using namespace cuda_on_cpu;
    const Settings& set = settings();
    const std::int64_t before = state().pieces++;
    if (set.lose_after >= 0 && before >= set.lose_after) {
      if (set.dies) ::_exit(9);
      lose(set.lost_code, "lost, as the test asked");
    }
    if (state().lost != cudaSuccess) return;
    if (piece.delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(piece.delay_us));
    const std::uint64_t begin = now_ns();
    piece.work();
    state().busy_ns += now_ns() - begin;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Piece> queue_;
  std::uint64_t pushed_ = 0;
  std::uint64_t finished_ = 0;
  bool ending_ = false;
  std::thread worker_;  // last: it uses the others
};

/// One recording; an event shows the last.
struct Mark {
  std::atomic<int> reached = 0;
  std::uint64_t ns = 0;
};

struct CUevent_st {
  std::shared_ptr<Mark> mark;
};

namespace cuda_on_cpu {
namespace {

/// The stream's own handle, or that of the current device's default stream; null when there is no such stream.
cudaStream_t stream_of(cudaStream_t stream) {
  State& device = state();
  const std::lock_guard lock(device.mutex);
  if (stream != nullptr) return device.streams.contains(stream) ? stream : nullptr;
  cudaStream_t& own = device.default_streams[static_cast<std::size_t>(current_device)];
  if (own == nullptr) own = new CUstream_st(current_device);
  return own;
}

void wait_for_device(int index) {
  std::vector<cudaStream_t> streams;
  {
    const std::lock_guard lock(state().mutex);
    for (cudaStream_t stream : state().streams) streams.push_back(stream);
    for (cudaStream_t stream : state().default_streams) streams.push_back(stream);
  }
  for (cudaStream_t stream : streams) {
    if (stream != nullptr && stream->device == index) stream->wait();
  }
}

// ---- memory ----

cudaError_t allocate(void** memory, std::size_t bytes, int device) {
  if (bytes == 0 || memory == nullptr) return cudaErrorInvalidValue;
  const std::size_t body = (bytes + alignment - 1) / alignment * alignment;
  const std::size_t map_bytes = (body + page_bytes - 1) / page_bytes * page_bytes + 2 * page_bytes;
  wait_for_device(current_device);
  if (device >= 0 && bytes + shared_use.bytes() > settings().memory_bytes) return cudaErrorMemoryAllocation;
  void* map = ::mmap(nullptr, map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (map == MAP_FAILED) return cudaErrorMemoryAllocation;
  auto* begin = static_cast<char*>(map);
  char* end = begin + map_bytes - page_bytes;
  std::memset(begin + page_bytes, beside, map_bytes - 2 * page_bytes);
  ::mprotect(begin, page_bytes, PROT_NONE);
  ::mprotect(end, page_bytes, PROT_NONE);
  std::memset(end - body, 0xFF, bytes);
  *memory = end - body;
  const std::lock_guard lock(state().mutex);
  state().allocations[end - body] = {.bytes = bytes, .map = begin, .map_bytes = map_bytes, .device = device};
  if (device >= 0) *state().used += bytes;
  return cudaSuccess;
}

cudaError_t release(void* memory, bool of_device) {
  if (memory == nullptr) return cudaSuccess;
  wait_for_device(current_device);
  Allocation allocation;
  {
    const std::lock_guard lock(state().mutex);
    const auto place = state().allocations.find(static_cast<const char*>(memory));
    if (place == state().allocations.end() || (place->second.device >= 0) != of_device) return cudaErrorInvalidValue;
    allocation = place->second;
    state().allocations.erase(place);
    if (of_device) *state().used -= allocation.bytes;
  }
  const char* first = static_cast<const char*>(memory);
  const char* front = allocation.map + page_bytes;
  const char* back = allocation.map + allocation.map_bytes - page_bytes;
  const auto touched = [](char byte) { return static_cast<unsigned char>(byte) != beside; };
  if (std::any_of(front, first, touched) || std::any_of(first + allocation.bytes, back, touched)) {
    lose(cudaErrorIllegalAddress, "something was written beside device or pinned memory");
  }
  ::munmap(allocation.map, allocation.map_bytes);
  return cudaSuccess;
}

enum class Place { ordinary, pinned, device, beyond };

/// Where `bytes` from `memory` on lie; `beyond`: they begin in an allocation and do not end in it.
Place place_of(const void* memory, std::size_t bytes, int* device = nullptr) {
  const std::lock_guard lock(state().mutex);
  const auto* first = static_cast<const char*>(memory);
  const auto place = state().allocations.lower_bound(first);
  if (place == state().allocations.end() || first >= place->first + place->second.bytes) return Place::ordinary;
  if (first + bytes > place->first + place->second.bytes) return Place::beyond;
  if (device != nullptr) *device = place->second.device;
  return place->second.device >= 0 ? Place::device : Place::pinned;
}

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                 bool host_waits) {
  cudaStream_t own = stream_of(stream);
  if (own == nullptr) return cudaErrorInvalidResourceHandle;
  const Place target = place_of(to, bytes);
  const Place source = place_of(from, bytes);
  if (target == Place::beyond || source == Place::beyond) return cudaErrorInvalidValue;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (kind != cudaMemcpyDefault &&
      (to_device != (target == Place::device) || from_device != (source == Place::device))) {
    return cudaErrorInvalidValue;
  }
  if (host_waits && source == Place::ordinary && target == Place::device) {
    // From the host's memory it is taken at once; when it reaches the device is another matter.
    own->wait();
    const auto* bytes_from = static_cast<const char*>(from);
    own->push([to, taken = std::vector<char>(bytes_from, bytes_from + bytes)] {
      std::memcpy(to, taken.data(), taken.size());
    });
    return cudaSuccess;
  }
  own->push([=] { std::memcpy(to, from, bytes); });
  const bool between_devices = source == Place::device && target == Place::device;
  if ((host_waits && !between_devices) || source == Place::ordinary || target == Place::ordinary) own->wait();
  return static_cast<cudaError_t>(state().lost.load());
}

void load(const void* kernel) {
  {
    const std::lock_guard lock(state().mutex);
    if (!state().loaded.insert(kernel).second) return;
  }
  wait_for_device(current_device);
}

}  // namespace

bool reaches(const void* memory, std::size_t bytes) {
  const Place place = place_of(memory, bytes);
  return place == Place::device || place == Place::pinned;
}

cudaError_t queue_work(const void* kernel, cudaStream_t stream, std::function<void()> work) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  cudaStream_t own = stream_of(stream);
  if (own == nullptr || own->device != current_device) return answer(cudaErrorInvalidResourceHandle);
  load(kernel);
  own->push(std::move(work));
  return cudaSuccess;
}

// Limits of every device since compute capability 3.0 (CUDA C++ Programming Guide, technical specifications).
cudaError_t queue_grid(const void* kernel, const dim3& grid, const dim3& block, std::size_t shared_bytes,
                       cudaStream_t stream, Body body) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.x > 0x7FFFFFFFU || grid.y > 65535 || grid.z > 65535 ||
      block.x * block.y * block.z == 0 || block.x * block.y * block.z > 1024 || block.z > 64) {
    return answer(cudaErrorInvalidConfiguration);
  }
  if (shared_bytes > most_shared_floats * sizeof(float)) return answer(cudaErrorInvalidValue);
  return queue_work(kernel, stream, [=, body = std::move(body)] {
    const auto run = [&] {
      if (const auto reason = run_grid(grid, block, shared_bytes, settings().order, body)) {
        lose(cudaErrorLaunchFailure, *reason);
      }
    };
    // What a block shares is local to the thread that runs it.
    if (settings().fresh_shared) {
      std::thread(run).join();
    } else {
      run();
    }
  });
}

}  // namespace cuda_on_cpu

using namespace cuda_on_cpu;

// ---- what the device tells ----

const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInitializationError: return "cudaErrorInitializationError";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection: return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice: return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorECCUncorrectable: return "cudaErrorECCUncorrectable";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    case cudaErrorPeerAccessAlreadyEnabled: return "cudaErrorPeerAccessAlreadyEnabled";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorNoDevice: return "no CUDA-capable device is detected";
    case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
    default: return cudaGetErrorName(code);
  }
}

cudaError_t cudaGetLastError() {
  const cudaError_t code = last_error;
  last_error = static_cast<cudaError_t>(state().lost.load());
  return code;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  *count = settings().devices;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  if (device < 0 || device >= settings().devices) return answer(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned) { return answer(enter()); }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  if (device >= settings().devices) return answer(cudaErrorInvalidDevice);
  const Settings& set = settings();
  *properties = {.name = "NVIDIA Processor as GPU",
                 .totalGlobalMem = set.memory_bytes,
                 .major = set.major,
                 .minor = set.minor,
                 .multiProcessorCount = set.sm_count,
                 .l2CacheSize = set.cache_bytes};
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  if (attribute != cudaDevAttrClockRate) return answer(cudaErrorInvalidValue);
  *value = settings().top_mhz * 1000;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int device) {
  std::snprintf(text, static_cast<std::size_t>(size), "0000:%02X:00.0", device + 1);
  return answer(enter());
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 1;
  return answer(enter());
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  const std::lock_guard lock(state().mutex);
  return answer(state().peers.insert(peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

cudaError_t cudaDeviceSynchronize() {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  wait_for_device(current_device);
  return answer(enter());
}

// ---- memory ----

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  *total = settings().memory_bytes;
  *free = *total - std::min<std::size_t>(*total, shared_use.bytes());
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  return answer(allocate(memory, bytes, current_device));
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  return answer(allocate(memory, bytes, -1));
}
cudaError_t cudaFree(void* memory) { return answer(release(memory, true)); }
cudaError_t cudaFreeHost(void* memory) { return answer(release(memory, false)); }

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  return answer(copy(to, from, bytes, kind, nullptr, true));
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  return answer(copy(to, from, bytes, kind, stream, false));
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  int target = -1;
  int source = -1;
  if (place_of(to, bytes, &target) != Place::device || place_of(from, bytes, &source) != Place::device ||
      target != to_device || source != from_device) {
    return answer(cudaErrorInvalidValue);
  }
  return answer(copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream, false));
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  if (bytes > 0 && !reaches(memory, bytes)) return answer(cudaErrorInvalidValue);
  stream_of(nullptr)->push([=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}

// ---- streams and events ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  // Streams that wait for the default one are not played.
  if (flags != cudaStreamNonBlocking) return answer(cudaErrorInvalidValue);
  *stream = new CUstream_st(current_device);
  const std::lock_guard lock(state().mutex);
  state().streams.insert(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  {
    const std::lock_guard lock(state().mutex);
    if (state().streams.erase(stream) == 0) return answer(cudaErrorInvalidResourceHandle);
  }
  delete stream;  // when it has done what it had to
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  cudaStream_t own = stream_of(stream);
  if (own == nullptr) return answer(cudaErrorInvalidResourceHandle);
  own->wait();
  return answer(enter());
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  *event = new CUevent_st;
  const std::lock_guard lock(state().mutex);
  ++state().events;
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (event == nullptr) return answer(cudaErrorInvalidResourceHandle);
  delete event;
  const std::lock_guard lock(state().mutex);
  --state().events;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  cudaStream_t own = stream_of(stream);
  if (event == nullptr || own == nullptr) return answer(cudaErrorInvalidResourceHandle);
  event->mark = std::make_shared<Mark>();
  own->push(
      [mark = event->mark] {
        mark->ns = now_ns();
        mark->reached = 1;
        mark->reached.notify_all();
      },
      true);
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  if (event == nullptr) return answer(cudaErrorInvalidResourceHandle);
  if (event->mark) event->mark->reached.wait(0);
  return answer(enter());
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  if (const cudaError_t code = enter(); code != cudaSuccess) return answer(code);
  if (begin == nullptr || end == nullptr || !begin->mark || !end->mark) return answer(cudaErrorInvalidResourceHandle);
  if (begin->mark->reached == 0 || end->mark->reached == 0) return answer(cudaErrorNotReady);
  *ms = 1e-6F * static_cast<float>(static_cast<std::int64_t>(end->mark->ns - begin->mark->ns));
  return cudaSuccess;
}

// ---- clocks, as kernels see them ----

// The multiprocessor's clock stands still between two looks at the other one, so that their ratio is exact however
// often this thread is interrupted.
namespace {
thread_local std::uint64_t seen_ns = 0;
}
std::uint64_t globaltimer_ns() { return seen_ns = now_ns(); }
long long clock64() { return static_cast<long long>(seen_ns) * settings().actual_mhz / 1000; }
void __nanosleep(unsigned ns) { std::this_thread::sleep_for(std::chrono::nanoseconds(ns)); }
