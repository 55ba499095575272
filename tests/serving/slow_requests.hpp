// SPDX-License-Identifier: Apache-2.0
/// Requests behind a router second by second, as plain as can be: every second looks at every request and replica.
/// Written from what docs/services.md says. All times are whole seconds, those of an LLM engine's steps too.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gpusched/serving/request_ledger.hpp"
#include "tests/serving/slow_llm.hpp"

namespace gpusched::test {

class SlowRequests {
 public:
  struct Life {
    RequestPhase phase = RequestPhase::coming;
    std::int64_t start = -1, first = -1, end = -1;
    int replica = -1, retries = 0, holder = -1;  // holder: where it waits or is served; -1: before all
    double left = 0;
  };
  std::vector<Life> lives;

  explicit SlowRequests(const ServiceSpec& spec) : lives(spec.requests.size()), spec_(spec), replicas_(spec.most) {}

  // What happens by itself in second `now`; call for each second.
  void second(std::int64_t now) {
    now_ = now;
    if (spec_.llm) {
      come();
      pull();  // before a step that begins now
      settle();
      return;
    }
    for (Life& life : lives) {
      if (life.phase != RequestPhase::served) continue;
      life.left -= static_cast<double>(replicas_[at(life.holder)].rate) / 1e6;  // of the second that is over
      if (life.left > 1e-9) continue;
      life.phase = RequestPhase::completed;
      life.end = now;
      life.holder = -1;
    }
    settle();
    come();
    settle();
  }
  void open(std::uint32_t replica, RatePpm rate) {
    replicas_[replica] = {.is_open = true, .accepts = true, .rate = 0};
    if (spec_.llm) replicas_[replica].llm = std::make_shared<SlowLlm>(spec_.llm->limits, spec_.llm->times);
    set_rate(replica, rate);
  }
  void accept(std::uint32_t replica, bool accepts) {
    replicas_[replica].accepts = accepts;
    if (accepts) flush();
    if (!accepts) resend(replica);
    settle();
  }
  void set_rate(std::uint32_t replica, RatePpm rate) {
    const bool stood = replicas_[replica].rate == 0;
    replicas_[replica].rate = rate;
    if (stood && rate > 0) flush();
    settle();
  }
  void close(std::uint32_t replica) {
    Replica& own = replicas_[replica];
    own.is_open = own.accepts = false;
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
      Life& life = lives[i];
      if (life.holder != static_cast<int>(replica) || life.phase != RequestPhase::served) continue;
      if (spec_.lost == LostRequests::drop) {
        life.phase = RequestPhase::dropped;
        life.end = now_;
        life.holder = -1;
      } else {
        life.phase = RequestPhase::waiting;
        ++life.retries;
      }
    }
    if (own.llm) own.llm->stop();
    own.llm.reset();
    resend(replica);
    settle();
  }
  std::uint32_t busy(std::uint32_t replica) const {
    return static_cast<std::uint32_t>(std::count_if(lives.begin(), lives.end(), [&](const Life& life) {
      return life.holder == static_cast<int>(replica) && life.phase == RequestPhase::served;
    }));
  }
  int served() const { return count(RequestPhase::served); }
  int waiting() const { return count(RequestPhase::waiting); }

 private:
  struct Replica {
    bool is_open = false, accepts = false;
    RatePpm rate = 0;
    std::shared_ptr<SlowLlm> llm = {};
    std::size_t read = 0;  // lines of its log
  };

  static std::size_t at(int replica) { return static_cast<std::size_t>(replica); }
  static std::int64_t s(Time t) { return t.us / 1'000'000; }
  int count(RequestPhase phase) const {
    return static_cast<int>(
        std::count_if(lives.begin(), lives.end(), [&](const Life& life) { return life.phase == phase; }));
  }
  bool takes(std::size_t r) const { return replicas_[r].is_open && replicas_[r].accepts && replicas_[r].rate > 0; }
  bool is_shared() const { return spec_.routing == RoutingRule::shared_queue; }
  std::size_t load(std::size_t r) const {
    return static_cast<std::size_t>(std::count_if(
        lives.begin(), lives.end(), [&](const Life& life) { return life.holder == static_cast<int>(r); }));
  }

  void come() {
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
      if (lives[i].phase != RequestPhase::coming || s(spec_.requests[i].arrival) != now_) continue;
      lives[i].phase = RequestPhase::waiting;
      send(i);
    }
  }
  void send(std::uint32_t request) {
    lives[request].holder = -1;
    if (is_shared()) return;
    int chosen = -1;
    const std::uint64_t session = spec_.requests[request].session;
    if (spec_.routing == RoutingRule::round_robin) {
      for (std::size_t k = 1; k <= replicas_.size() && chosen < 0; ++k) {
        const std::size_t r = (at(last_ + 1) + k - 1) % replicas_.size();
        if (takes(r)) chosen = static_cast<int>(r);
      }
      if (chosen >= 0) last_ = chosen;
    } else if (spec_.routing == RoutingRule::session && sessions_.contains(session) && takes(at(sessions_[session]))) {
      chosen = sessions_[session];
    } else {
      for (std::size_t r = 0; r < replicas_.size(); ++r) {
        if (takes(r) && (chosen < 0 || load(r) < load(at(chosen)))) chosen = static_cast<int>(r);
      }
      if (chosen >= 0) sessions_[session] = chosen;
    }
    if (chosen >= 0) give(request, chosen);
  }
  void give(std::uint32_t request, int replica) {
    lives[request].holder = replica;
    if (!spec_.llm) return;
    const ServiceRequest& own = spec_.requests[request];
    replicas_[at(replica)].llm->submit({.id = request,
                                        .prompt_tokens = static_cast<std::int32_t>(own.prompt_tokens),
                                        .output_tokens = static_cast<std::int32_t>(own.output_tokens)},
                                       now_ * 1'000'000);
  }
  void flush() {
    if (is_shared()) return;
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
      if (lives[i].phase == RequestPhase::waiting && lives[i].holder < 0) send(i);
    }
  }
  void resend(std::uint32_t replica) {
    std::vector<std::uint32_t> moved;
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
      if (lives[i].holder == static_cast<int>(replica) && lives[i].phase == RequestPhase::waiting) moved.push_back(i);
    }
    for (const std::uint32_t i : moved) lives[i].holder = -1;
    if (replicas_[replica].llm) replicas_[replica].llm->take_waiting();
    for (const std::uint32_t i : moved) send(i);
  }

  void settle() {
    work();
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
      Life& life = lives[i];
      if (life.phase != RequestPhase::waiting || spec_.timeout == Time::max()) continue;
      if (now_ - s(spec_.requests[i].arrival) < s(spec_.timeout)) continue;
      if (life.holder >= 0 && spec_.llm) replicas_[at(life.holder)].llm->withdraw(i);
      life.phase = RequestPhase::timed_out;
      life.end = now_;
      life.holder = -1;
    }
    work();
  }
  void work() {
    if (!spec_.llm) {
      for (std::size_t r = 0; r < replicas_.size(); ++r) serve(static_cast<int>(r));
      return;
    }
    do {
      for (std::size_t r = 0; r < replicas_.size(); ++r) step(static_cast<int>(r));
    } while (pull());
  }
  void serve(int replica) {
    if (!replicas_[at(replica)].is_open || replicas_[at(replica)].rate == 0) return;
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
      if (lives[i].holder != replica || lives[i].phase != RequestPhase::waiting) continue;
      if (busy(static_cast<std::uint32_t>(replica)) >= spec_.at_once) return;
      lives[i].phase = RequestPhase::served;
      lives[i].start = now_;
      lives[i].replica = replica;
      lives[i].left = static_cast<double>(s(spec_.requests[i].work));
    }
  }
  void step(int replica) {
    Replica& own = replicas_[at(replica)];
    if (!own.llm) return;
    own.llm->until(now_ * 1'000'000);
    for (; own.read < own.llm->log.size(); ++own.read) {
      std::istringstream line(own.llm->log[own.read]);
      std::size_t id = 0;
      char colon = 0;
      std::int64_t queued = 0, scheduled = 0, first = 0, last = 0;
      line >> id >> colon >> queued >> scheduled >> first >> last;
      Life& life = lives[id];
      life = {RequestPhase::completed,
              scheduled / 1'000'000,
              first / 1'000'000,
              last / 1'000'000,
              replica,
              life.retries,
              -1,
              0};
    }
    for (std::uint32_t i = 0; i < lives.size(); ++i) {
      Life& life = lives[i];
      if (life.holder != replica || own.llm->begun(i) < 0) continue;
      life.phase = RequestPhase::served;
      life.start = own.llm->begun(i) / 1'000'000;
      life.replica = replica;
    }
  }
  bool pull() {
    bool any = false;
    for (std::uint32_t i = 0; is_shared() && i < lives.size(); ++i) {
      if (lives[i].phase != RequestPhase::waiting || lives[i].holder >= 0) continue;
      int chosen = -1;
      for (std::size_t r = 0; r < replicas_.size(); ++r) {
        if (!takes(r) || load(r) >= static_cast<std::size_t>(spec_.llm->limits.sequences)) continue;
        if (chosen < 0 || load(r) < load(at(chosen))) chosen = static_cast<int>(r);
      }
      if (chosen < 0) return any;
      give(i, chosen);
      any = true;
    }
    return any;
  }

  const ServiceSpec& spec_;
  std::vector<Replica> replicas_;
  std::int64_t now_ = 0;
  int last_ = -1;
  std::map<std::uint64_t, int> sessions_;
};

}  // namespace gpusched::test
