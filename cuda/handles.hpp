// SPDX-License-Identifier: Apache-2.0
/// CUDA handles that free themselves, and the first error of a series of calls.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

#include "gpusched/core/result.hpp"

namespace gpusched::cuda {

/// Remembers the first failure of a series of calls, so that they can be written one after another and judged once.
/// Calls after a failure still run; CUDA answers them with an error of their own and changes nothing.
class Status {
 public:
  /// `what` names the call for the error.
  void note(cudaError_t code, const char* what) {
    if (code == cudaSuccess) return;
    // CUDA keeps an error until it is read; unread, it would be attributed to the next launch.
    cudaGetLastError();
    if (message_.empty()) {
      message_ = std::string("CUDA: ") + what + ": " + cudaGetErrorString(code) + " (" + cudaGetErrorName(code) + ")";
    }
  }
  void fail(std::string message) {
    if (message_.empty()) message_ = std::move(message);
  }
  [[nodiscard]] bool good() const { return message_.empty(); }
  [[nodiscard]] Unexpected error() const { return unexpected(message_); }

 private:
  std::string message_;
};

struct FreeDevice {
  void operator()(void* memory) const { cudaFree(memory); }
};
struct FreePinned {
  void operator()(void* memory) const { cudaFreeHost(memory); }
};
struct FreeStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct FreeEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};

using DeviceMemory = std::unique_ptr<void, FreeDevice>;
using PinnedMemory = std::unique_ptr<void, FreePinned>;
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, FreeStream>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, FreeEvent>;

// Each is null, with the reason in `status`, when it cannot be created.

/// At least one byte, so that an empty operand has an address.
inline DeviceMemory device_memory(std::size_t bytes, Status& status) {
  void* memory = nullptr;
  status.note(cudaMalloc(&memory, bytes > 0 ? bytes : 1), "cudaMalloc");
  return DeviceMemory(memory);
}
/// Host memory that copies need not stage, seen by the device at the same address.
inline PinnedMemory pinned_memory(std::size_t bytes, Status& status) {
  void* memory = nullptr;
  status.note(cudaHostAlloc(&memory, bytes > 0 ? bytes : 1, cudaHostAllocMapped | cudaHostAllocPortable),
              "cudaHostAlloc");
  return PinnedMemory(memory);
}
/// A stream that does not wait for the default one.
inline Stream make_stream(Status& status) {
  cudaStream_t stream = nullptr;
  status.note(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return Stream(stream);
}
/// Who waits for it sleeps: events do not follow the device's flag.
inline Event make_event(Status& status) {
  cudaEvent_t event = nullptr;
  status.note(cudaEventCreateWithFlags(&event, cudaEventBlockingSync), "cudaEventCreate");
  return Event(event);
}

}  // namespace gpusched::cuda
