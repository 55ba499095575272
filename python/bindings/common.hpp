// SPDX-License-Identifier: Apache-2.0
/// What all parts of the extension module share: arrays, errors, and waiting for work without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/core/types.hpp"

namespace gpusched::python {

namespace nb = nanobind;

/// Bad input or usage, a subclass of ValueError in Python: one line.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The value, or an InputError.
template <class T>
T value_or_raise(Result<T> result) {
  if (!result) throw InputError(result.error().to_string());
  return *std::move(result);
}
inline void check(const Result<void>& result) {
  if (!result) throw InputError(result.error().to_string());
}

template <class T>
using Column = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

/// A numpy array over `values`, which it owns: no copy.
template <class T>
nb::object column(std::vector<T> values) {
  auto* const held = new std::vector<T>(std::move(values));
  const nb::capsule owner(held, [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
  return nb::cast(Column<T>(held->data(), {held->size()}, owner));
}

/// Names as a list of Python.
template <std::size_t size>
nb::list words_of_names(const std::array<std::string_view, size>& names) {
  nb::list list;
  for (const std::string_view name : names) list.append(nb::str(name.data(), name.size()));
  return list;
}

/// Seconds, NaN for "never" and "unknown".
double seconds_or_nan(Time time);

/// A call that works without the interpreter's lock. The end of the interpreter sets the `stop` of each that has one
/// and waits for all: a thread that asked for the lock afterwards would end the process. Throws when it waits already.
class OpenCall {
 public:
  explicit OpenCall(std::atomic<bool>* stop = nullptr);
  OpenCall(const OpenCall&) = delete;
  OpenCall& operator=(const OpenCall&) = delete;
  ~OpenCall();

 private:
  std::atomic<bool>* stop_;
};

/// What the interpreter calls when it ends.
void end_open_calls();

/// How much of a call's work is done, which a callable of Python is told of now and then, and at its end.
class ToldProgress {
 public:
  /// `callable` takes (done, total); None: nobody is told.
  explicit ToldProgress(nb::object callable) : callable_(std::move(callable)) {}

  /// From the thread that works: `done` counts up to `total`, and outlives the calls of tell().
  void follow(const std::atomic<std::uint64_t>& done, std::uint64_t total) {
    total_ = total;
    done_ = &done;
  }
  /// From the interpreter's thread.
  void tell() {
    const std::atomic<std::uint64_t>* const done = done_;
    if (done == nullptr || callable_.is_none()) return;
    const std::pair<std::uint64_t, std::uint64_t> now{*done, total_};
    if (std::exchange(told_, now) != now) callable_(now.first, now.second);
  }

 private:
  nb::object callable_;
  std::atomic<const std::atomic<std::uint64_t>*> done_ = nullptr;
  std::atomic<std::uint64_t> total_ = 0;
  std::pair<std::uint64_t, std::uint64_t> told_ = {};
};

/// Runs `work` on another thread without the interpreter's lock and looks for signals meanwhile: an interrupt sets
/// `stop`, waits for the work to end and raises KeyboardInterrupt. What `work` or `told`, which is called with the
/// lock, throws is thrown here; the latter sets `stop` too.
template <class Work>
void run_unlocked(std::atomic<bool>& stop, Work work, ToldProgress* told = nullptr) {
  const OpenCall open(&stop);
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr failure;
  std::thread worker([&] {
    try {
      // Keeps the thread's state in the interpreter: a policy that takes the lock again and again does not make one
      // each time.
      const nb::gil_scoped_acquire known;
      const nb::gil_scoped_release unlocked;
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    done = true;
    ended.notify_one();
  });
  bool interrupted = false;
  std::exception_ptr failure_of_told;
  const auto tell = [&] {
    try {
      if (told != nullptr && !failure_of_told) told->tell();
    } catch (...) {
      failure_of_told = std::current_exception();
      stop = true;
    }
  };
  for (bool is_done = false; !is_done;) {
    {
      const nb::gil_scoped_release unlocked;
      std::unique_lock lock(mutex);
      ended.wait_for(lock, std::chrono::milliseconds(50), [&] { return done; });
      is_done = done;
    }
    if (!interrupted && PyErr_CheckSignals() != 0) interrupted = stop = true;
    if (!interrupted) tell();
    if (interrupted && !is_done) {  // what waits for the worker must not run with an error set
      nb::error_scope keep;
      const nb::gil_scoped_release unlocked;
      worker.join();
      is_done = true;
    }
  }
  if (worker.joinable()) {
    const nb::gil_scoped_release unlocked;
    worker.join();
  }
  if (interrupted) throw nb::python_error();
  if (failure_of_told) std::rethrow_exception(failure_of_told);
  if (failure) std::rethrow_exception(failure);
}

void bind_trace(nb::module_& module);
void bind_policy(nb::module_& module);
void bind_runs(nb::module_& module);
void bind_sweeps(nb::module_& module);
void bind_vector_env(nb::module_& module);
void bind_service_env(nb::module_& module);

}  // namespace gpusched::python
