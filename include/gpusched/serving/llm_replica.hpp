// SPDX-License-Identifier: Apache-2.0
/// LlmReplica: an LLM engine as vLLM V1 runs it (Kwon et al., "Efficient memory management for large language model
/// serving with PagedAttention", SOSP 2023; vllm/v1/core/sched/scheduler.py of vLLM 0.19): continuous batching, chunked
/// prefill, a paged KV cache, preemption by recomputing; without prefix cache.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/serving/llm_step_times.hpp"

namespace gpusched {

/// What an LLM engine may use.
struct LlmLimits {
  std::int64_t kv_blocks = std::numeric_limits<std::int32_t>::max();  ///< of the cache; from 1
  std::int32_t block_tokens = 16;                                     ///< tokens of a block; from 1
  std::int64_t step_tokens = 2048;  ///< most tokens of a step (max_num_batched_tokens); from 1
  std::int32_t sequences = 256;     ///< most that run (max_num_seqs); from 1
  bool chunked = true;              ///< a prompt may be split among steps; else it waits for room, alone at the latest
  bool whole_prompt_fits = true;    ///< a prompt waits until blocks for all of it are free (scheduler_reserve_full_isl)

  /// Blocks of so many tokens.
  [[nodiscard]] std::int64_t blocks(std::int64_t tokens) const { return (tokens + block_tokens - 1) / block_tokens; }
};

/// A request. The engine learns how long its answer is when it ends.
struct LlmRequest {
  std::uint64_t id = 0;            ///< the caller's
  Time arrival{};                  ///< when its user sent it
  std::int32_t prompt_tokens = 1;  ///< from 1
  std::int32_t output_tokens = 1;  ///< from 1
  std::uint64_t session = 0;       ///< the caller's, for a router
};

/// What became of a request that was answered. arrival <= queued <= scheduled <= first_token <= last_token.
struct LlmOutcome {
  LlmRequest request;            ///< as submitted
  Time queued{};                 ///< when it reached the engine
  Time scheduled{};              ///< when a step with some of its prompt began
  Time first_token{};            ///< the end of the step that yielded it
  Time last_token{};             ///< likewise
  std::int32_t preemptions = 0;  ///< times that its cache was given up
  std::int32_t replica = -1;     ///< the caller's number of the replica
};

/// The begin of a request's first step.
struct LlmBegin {
  std::uint64_t id = 0;  ///< the caller's, of the request
  Time at{};             ///< when
};

/// Sums of a replica's life: submitted = completed + returned + running + waiting.
struct LlmCounts {
  std::int64_t submitted = 0;    ///< requests taken
  std::int64_t completed = 0;    ///< answered
  std::int64_t returned = 0;     ///< given back by stop(), take_waiting() and withdraw()
  std::int64_t preemptions = 0;  ///< of running sequences
  std::int64_t steps = 0;        ///< begun
  std::int64_t tokens = 0;       ///< computed, recomputed ones included
  std::int64_t busy_us = 0;      ///< in steps that ended

  friend bool operator==(const LlmCounts&, const LlmCounts&) = default;  ///< of all sums
};

/// One engine. A value that borrows its step times: a copy goes on by itself from the same state. Inside a loop of
/// events: submit() at an instant, then advance(now) once for it, and again at next_time(). A step takes the requests
/// that were submitted until it began. Its end is rounded to a microsecond; the next one begins at the exact end.
class LlmReplica {
 public:
  /// `times` must outlive this.
  LlmReplica(const LlmLimits& limits, const LlmStepTimes& times) : limits_(limits), times_(&times) {
    free_blocks_ = limits_.kv_blocks;
  }

  /// Whether the cache can hold a request to its end; if not, no engine would ever answer it.
  [[nodiscard]] bool fits(const LlmRequest& request) const {
    return limits_.blocks(std::int64_t{request.prompt_tokens} + request.output_tokens - 1) <= limits_.kv_blocks;
  }
  /// Takes a request. False, and nothing happens, when it does not fit. Precondition: `now` does not fall.
  bool submit(const LlmRequest& request, Time now) {
    if (!fits(request)) return false;
    advance(now - Time{1});
    if (!stepping_ && !has_work()) wake_ = now;
    const std::uint32_t at = take_slot();
    sequences_[at] = {.request = request,
                      .queued = now,
                      .total = request.prompt_tokens,
                      .target = std::int64_t{request.prompt_tokens} + request.output_tokens};
    waiting_.push_back(at);
    ++counts_.submitted;
    return true;
  }
  /// When it wants to be advanced next; Time::max(): it has nothing to do.
  [[nodiscard]] Time next_time() const {
    if (stepping_) return step_end();
    return has_work() && rate_ > 0 ? wake_ : Time::max();
  }
  /// Ends and begins steps until `now`, that of `now` included.
  void advance(Time now) {
    while (next_time() <= now) {
      if (stepping_) {
        end_step();
      } else {
        clock_ = wake_;
        clock_ps_ = 0;
      }
      if (has_work() && rate_ > 0) begin_step();
    }
  }
  /// Its speed from the next step on: a step takes its time divided by that; 0: it begins none. Precondition: it was
  /// advanced to `now`.
  void set_rate(RatePpm rate, Time now) {
    if (rate_ == 0) wake_ = now;
    rate_ = rate;
  }
  /// Those answered since clear_done(), by time.
  [[nodiscard]] std::span<const LlmOutcome> done() const { return done_; }
  /// Those of which a first step began since then, by time.
  [[nodiscard]] std::span<const LlmBegin> begun() const { return begun_ids_; }
  /// Forgets both.
  void clear_done() {
    done_.clear();
    begun_ids_.clear();
  }

  /// Ends at once (the replica ends or fails): all its requests, those that run first, each in order; their cache is
  /// gone.
  std::vector<LlmRequest> stop() {
    std::vector<LlmRequest> left;
    for (const std::uint32_t at : running_) left.push_back(give_up(at));
    for (const std::uint32_t at : waiting_) left.push_back(give_up(at));
    running_.clear();
    waiting_.clear();
    stepping_ = false;
    return left;
  }
  /// Gives back the requests of which nothing was computed yet, in order; the rest goes on. For a replica that shall
  /// end.
  std::vector<LlmRequest> take_waiting() {
    std::vector<LlmRequest> left;
    std::deque<std::uint32_t> kept;
    for (const std::uint32_t at : waiting_) {
      if (sequences_[at].was_scheduled) {
        kept.push_back(at);
      } else {
        left.push_back(give_up(at));
      }
    }
    waiting_ = std::move(kept);
    return left;
  }

  /// Gives back the first request of that id of which nothing was computed yet; false: there is none. O(waiting).
  bool withdraw(std::uint64_t id) {
    const auto at = std::find_if(waiting_.begin(), waiting_.end(), [this, &id](std::uint32_t slot) {
      return sequences_[slot].request.id == id && !sequences_[slot].was_scheduled;
    });
    if (at == waiting_.end()) return false;
    give_up(*at);
    waiting_.erase(at);
    return true;
  }

  [[nodiscard]] bool has_work() const { return !running_.empty() || !waiting_.empty(); }  ///< requests are here
  [[nodiscard]] std::int64_t running() const { return static_cast<std::int64_t>(running_.size()); }  ///< sequences
  [[nodiscard]] std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }  ///< preempted, too
  /// Sequences of which something was computed: those that run, and those preempted, which wait first. O(preempted).
  [[nodiscard]] std::int64_t in_work() const {
    const auto fresh =
        std::find_if(waiting_.begin(), waiting_.end(), [this](auto at) { return !sequences_[at].was_scheduled; });
    return running() + (fresh - waiting_.begin());
  }
  [[nodiscard]] std::int64_t free_blocks() const { return free_blocks_; }  ///< of the cache
  [[nodiscard]] const LlmCounts& counts() const { return counts_; }        ///< sums
  [[nodiscard]] const LlmLimits& limits() const { return limits_; }        ///< as given

  /// Whether blocks are conserved, requests are, none is idle with work, and no limit is exceeded. O(requests).
  [[nodiscard]] bool consistent() const {
    std::int64_t blocks = 0;
    for (const std::uint32_t at : running_) {
      const Sequence& sequence = sequences_[at];
      blocks += sequence.blocks;
      if (sequence.computed >= sequence.target || sequence.blocks < limits_.blocks(sequence.computed)) return false;
    }
    for (const std::uint32_t at : waiting_) {
      if (sequences_[at].blocks != 0 || sequences_[at].computed != 0) return false;
    }
    return blocks + free_blocks_ == limits_.kv_blocks && free_blocks_ >= 0 && running() <= limits_.sequences &&
           counts_.submitted == counts_.completed + counts_.returned + running() + waiting() &&
           (stepping_ || rate_ == 0 || has_work() == (next_time() != Time::max()));
  }

 private:
  struct Sequence {
    LlmRequest request;
    Time queued{}, scheduled{}, first{};
    std::int64_t computed = 0;  // tokens in the cache
    std::int64_t total = 0;     // of prompt and answer so far
    std::int64_t target = 0;    // of both in the end
    std::int64_t blocks = 0;
    std::int64_t in_step = 0;  // tokens that the present step computes
    std::int32_t preemptions = 0;
    bool was_scheduled = false;
  };

  std::uint32_t take_slot() {
    if (free_slots_.empty()) {
      sequences_.emplace_back();
      return static_cast<std::uint32_t>(sequences_.size() - 1);
    }
    const std::uint32_t at = free_slots_.back();
    free_slots_.pop_back();
    return at;
  }
  void free_cache(Sequence& sequence) {
    free_blocks_ += sequence.blocks;
    sequence.blocks = sequence.computed = sequence.in_step = 0;
  }
  LlmRequest give_up(std::uint32_t at) {
    free_cache(sequences_[at]);
    free_slots_.push_back(at);
    ++counts_.returned;
    return sequences_[at].request;
  }
  // Room in the cache for `count` more tokens; false: there is none.
  bool reserve(Sequence& sequence, std::int64_t count) {
    const std::int64_t more = limits_.blocks(sequence.computed + count) - sequence.blocks;
    if (more > free_blocks_) return false;
    if (more > 0) {
      free_blocks_ -= more;
      sequence.blocks += more;
    }
    return true;
  }
  void preempt_last() {
    const std::uint32_t at = running_.back();
    running_.pop_back();
    free_cache(sequences_[at]);
    ++sequences_[at].preemptions;
    ++counts_.preemptions;
    waiting_.push_front(at);
  }

  void begin_step() {
    step_ = {};
    begun_ = step_end();
    const std::int64_t preempted_before = counts_.preemptions;
    std::int64_t left = schedule_running();
    if (counts_.preemptions == preempted_before) admit(left);
    counts_.tokens += step_.tokens();
    ++counts_.steps;
    const double slower = static_cast<double>(reference_rate) / rate_;
    const std::int64_t ps = std::llround(times_->step_us(step_) * ps_a_us * slower) + clock_ps_;
    clock_ = clock_ + Time{ps / ps_a_us};
    clock_ps_ = ps % ps_a_us;
    stepping_ = true;
  }
  // In the order of admission; returns the tokens that are left.
  std::int64_t schedule_running() {
    std::int64_t left = limits_.step_tokens;
    for (std::size_t i = 0; i < running_.size() && left > 0; ++i) {
      const std::uint32_t at = running_[i];
      Sequence& sequence = sequences_[at];
      const std::int64_t count = std::min(sequence.total - sequence.computed, left);
      while (i < running_.size() && !reserve(sequence, count)) preempt_last();
      if (i == running_.size()) break;  // it was the last itself
      compute(sequence, count);
      left -= count;
    }
    return left;
  }
  void admit(std::int64_t left) {
    while (!waiting_.empty() && left > 0 && running() < limits_.sequences) {
      const std::uint32_t at = waiting_.front();
      Sequence& sequence = sequences_[at];
      const std::int64_t all = sequence.total;
      const bool alone = step_.sequences == 0;
      if (!limits_.chunked && all > left && !alone) break;
      const std::int64_t count = limits_.chunked ? std::min(all, left) : all;
      if (limits_.whole_prompt_fits && limits_.blocks(all) > free_blocks_) break;
      if (!reserve(sequence, count)) break;
      waiting_.pop_front();
      running_.push_back(at);
      if (!sequence.was_scheduled) {
        sequence.scheduled = begun_;
        sequence.was_scheduled = true;
        begun_ids_.push_back({sequence.request.id, begun_});
      }
      compute(sequence, count);
      left -= count;
    }
  }
  void compute(Sequence& sequence, std::int64_t count) {
    const bool decode =
        count == 1 && sequence.computed + 1 == sequence.total && sequence.total > sequence.request.prompt_tokens;
    step_.add(count, sequence.computed, decode);
    sequence.in_step = count;
  }

  void end_step() {
    const Time now = step_end();
    counts_.busy_us += (now - begun_).us;
    stepping_ = false;
    std::size_t kept = 0;
    for (const std::uint32_t at : running_) {
      Sequence& sequence = sequences_[at];
      sequence.computed += sequence.in_step;
      const bool yields = sequence.in_step > 0 && sequence.computed == sequence.total;
      sequence.in_step = 0;
      if (yields) {
        ++sequence.total;
        if (sequence.total == sequence.request.prompt_tokens + 1) sequence.first = now;
        if (sequence.total == sequence.target) {
          finish(at, now);
          continue;
        }
      }
      running_[kept++] = at;
    }
    running_.resize(kept);
  }
  void finish(std::uint32_t at, Time now) {
    Sequence& sequence = sequences_[at];
    done_.push_back({.request = sequence.request,
                     .queued = sequence.queued,
                     .scheduled = sequence.scheduled,
                     .first_token = sequence.first,
                     .last_token = now,
                     .preemptions = sequence.preemptions});
    ++counts_.completed;
    free_cache(sequence);
    free_slots_.push_back(at);
  }
  [[nodiscard]] Time step_end() const { return clock_ + Time{clock_ps_ >= ps_a_us / 2 ? 1 : 0}; }

  static constexpr std::int64_t ps_a_us = 1'000'000;  // picoseconds

  LlmLimits limits_;
  const LlmStepTimes* times_;
  std::vector<Sequence> sequences_;  // by slot
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> running_;  // in the order of admission
  std::deque<std::uint32_t> waiting_;   // preempted ones first
  std::int64_t free_blocks_ = 0;
  bool stepping_ = false;
  Time clock_{}, begun_{}, wake_{};  // the end of the present step or of the last one; its begin; the begin of the next
  std::int64_t clock_ps_ = 0;
  RatePpm rate_ = reference_rate;
  LlmStep step_;
  LlmCounts counts_;
  std::vector<LlmOutcome> done_;
  std::vector<LlmBegin> begun_ids_;
};

}  // namespace gpusched
