// SPDX-License-Identifier: Apache-2.0
/// vLLM's scheduler as plain as can be: blocks are numbered things in a pile, every step looks at all requests. Written
/// from the rules alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "gpusched/serving/llm_replica.hpp"

namespace gpusched::test {

class SlowLlm {
 public:
  SlowLlm(const LlmLimits& limits, const LlmStepTimes& times) : limits_(limits), times_(times) {
    for (std::int64_t i = 0; i < limits.kv_blocks; ++i) pile_.push_back(i);
  }

  void submit(const LlmRequest& request, std::int64_t now) {
    if (idle()) start_ps_ = now * 1'000'000;
    queue_.push_back({.request = request, .queued = now, .tokens = request.prompt_tokens});
  }
  /// Everything that ends until `now`, and what begins then.
  void until(std::int64_t now) {
    while (true) {
      if (in_step_ && rounded(end_ps_) <= now) {
        end();
        start_ps_ = end_ps_;
        in_step_ = false;
      } else if (!in_step_ && !idle() && rounded(start_ps_) <= now) {
        begin();
        in_step_ = true;
      } else {
        return;
      }
    }
  }
  std::vector<std::uint64_t> stop() {
    std::vector<std::uint64_t> ids;
    for (auto* list : {&batch_, &queue_}) {
      for (Item& item : *list) ids.push_back(item.request.id), give_back(item);
      list->clear();
    }
    in_step_ = false;
    return ids;
  }
  std::vector<std::uint64_t> take_waiting() {
    std::vector<std::uint64_t> ids;
    for (auto at = queue_.begin(); at != queue_.end();) {
      if (at->scheduled >= 0) {
        ++at;
        continue;
      }
      ids.push_back(at->request.id);
      at = queue_.erase(at);
    }
    return ids;
  }

  bool withdraw(std::uint64_t id) {
    const auto at = std::find_if(queue_.begin(), queue_.end(),
                                 [&](const Item& item) { return item.request.id == id && item.scheduled < 0; });
    if (at == queue_.end()) return false;
    queue_.erase(at);
    return true;
  }
  std::size_t load() const { return batch_.size() + queue_.size(); }
  /// When the first step of a request that is here began; below 0: it did not.
  std::int64_t begun(std::uint64_t id) const {
    for (const auto* list : {&batch_, &queue_}) {
      for (const Item& item : *list) {
        if (item.request.id == id) return item.scheduled;
      }
    }
    return -1;
  }

  std::vector<std::string> log;
  std::int64_t preemptions = 0;

 private:
  struct Item {
    LlmRequest request;
    std::int64_t queued, tokens, cached = 0, now = 0, scheduled = -1, first = -1, preempted = 0;
    std::vector<std::int64_t> blocks = {};
  };

  static std::int64_t rounded(std::int64_t ps) { return (ps + 500'000) / 1'000'000; }
  bool idle() const { return batch_.empty() && queue_.empty(); }
  void give_back(Item& item) {
    for (const std::int64_t block : item.blocks) pile_.push_back(block);
    item.blocks.clear();
    item.cached = 0;
  }
  bool grow(Item& item, std::int64_t tokens) {
    std::vector<std::int64_t> taken;
    while (static_cast<std::int64_t>(item.blocks.size() + taken.size()) * limits_.block_tokens < tokens) {
      if (pile_.empty()) {
        for (const std::int64_t block : taken) pile_.push_back(block);
        return false;
      }
      taken.push_back(pile_.back());
      pile_.pop_back();
    }
    for (const std::int64_t block : taken) item.blocks.push_back(block);
    return true;
  }
  void begin() {
    for (auto* list : {&batch_, &queue_}) {
      for (Item& item : *list) item.now = 0;
    }
    std::int64_t budget = limits_.step_tokens;
    bool preempted = false;
    for (auto at = batch_.begin(); at != batch_.end() && budget > 0; ++at) {
      const std::int64_t want = std::min(budget, at->tokens - at->cached);
      bool gone = false;
      while (!gone && !grow(*at, at->cached + want)) {
        const auto last = std::prev(batch_.end());
        gone = last == at;
        give_back(*last);
        ++last->preempted, ++preemptions;
        preempted = true;
        queue_.splice(queue_.begin(), batch_, last);
      }
      if (gone) break;
      at->now = want;
      budget -= want;
    }
    while (!preempted && budget > 0 && !queue_.empty() &&
           static_cast<std::int64_t>(batch_.size()) < limits_.sequences) {
      Item& item = queue_.front();
      const bool none = std::none_of(batch_.begin(), batch_.end(), [](const Item& i) { return i.now > 0; });
      std::int64_t want = item.tokens;
      if (want > budget && limits_.chunked) want = budget;
      if (want > budget && !none) break;
      const auto free_tokens = static_cast<std::int64_t>(pile_.size()) * limits_.block_tokens;
      if (limits_.whole_prompt_fits && item.tokens > free_tokens) break;
      if (!grow(item, want)) break;
      item.now = want;
      if (item.scheduled < 0) item.scheduled = rounded(start_ps_);
      budget -= want;
      batch_.splice(batch_.end(), queue_, queue_.begin());
    }
    LlmStep step;
    for (const Item& item : batch_) {
      if (item.now == 0) continue;
      ++step.sequences;
      const bool is_decode = item.tokens > item.request.prompt_tokens && item.cached == item.tokens - 1;
      if (is_decode) {
        ++step.decodes;
        step.decode_kv += item.tokens;
      } else {
        step.prefill_tokens += item.now;
        for (std::int64_t i = 0; i < item.now; ++i) step.prefill_pairs_2 += 2 * (item.cached + i) + 1;
      }
    }
    end_ps_ = start_ps_ + std::llround(times_.step_us(step) * 1e6);
  }
  void end() {
    const std::int64_t now = rounded(end_ps_);
    for (auto at = batch_.begin(); at != batch_.end();) {
      at->cached += at->now;
      if (at->now > 0 && at->cached == at->tokens) {
        ++at->tokens;
        if (at->first < 0) at->first = now;
        if (at->tokens - at->request.prompt_tokens == at->request.output_tokens) {
          log.push_back(std::to_string(at->request.id) + ": " + std::to_string(at->queued) + " " +
                        std::to_string(at->scheduled) + " " + std::to_string(at->first) + " " + std::to_string(now) +
                        " " + std::to_string(at->preempted));
          give_back(*at);
          at = batch_.erase(at);
          continue;
        }
      }
      ++at;
    }
  }

  LlmLimits limits_;
  const LlmStepTimes& times_;
  std::list<Item> batch_, queue_;
  std::vector<std::int64_t> pile_;
  bool in_step_ = false;
  std::int64_t start_ps_ = 0, end_ps_ = 0;
};

}  // namespace gpusched::test
