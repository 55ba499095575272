// SPDX-License-Identifier: Apache-2.0
/// RequestLedger: what became of each request of one service. The kinds of queues before its replicas build on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gpusched/core/config.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/serving/service_load.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched {

/// Where a request is, or how it ended.
enum class RequestPhase : std::uint8_t {
  coming,     ///< it was not sent yet
  waiting,    ///< in a queue
  served,     ///< a replica works on it
  completed,  ///< it was answered
  dropped,    ///< its replica was lost
  timed_out,  ///< it waited for too long and left
};

/// One request's life.
struct RequestRecord {
  Time start = Time::max();                   ///< when it was served last; max(): never
  Time first_token = Time::max();             ///< of the answer; max(): never, or its replica is no LLM engine
  Time end = Time::max();                     ///< when it was answered, or left
  std::uint32_t replica = no_index;           ///< that served it last, from 0 on in its service
  std::uint32_t next = no_index;              ///< the next of its batch
  std::uint16_t retries = 0;                  ///< how often its replica was lost and it waited again
  RequestPhase phase = RequestPhase::coming;  ///< now
};

/// How many requests there were so far.
struct RequestCounts {
  std::uint64_t injected = 0;   ///< that came
  std::uint64_t completed = 0;  ///< that were answered
  std::uint64_t dropped = 0;    ///< that were lost with a replica
  std::uint64_t timed_out = 0;  ///< that left unserved
  std::uint64_t waiting = 0;    ///< in a queue now
  std::uint64_t served = 0;     ///< being served now

  /// Every request that came is somewhere.
  [[nodiscard]] bool add_up() const { return injected == completed + dropped + timed_out + waiting + served; }
  /// Count by count.
  RequestCounts& operator+=(const RequestCounts& other) {
    injected += other.injected;
    completed += other.completed;
    dropped += other.dropped;
    timed_out += other.timed_out;
    waiting += other.waiting;
    served += other.served;
    return *this;
  }
};

/// The requests of a service up to an instant. Only what builds on it changes it.
class RequestLedger {
 public:
  RequestLedger() = default;
  /// Borrows `service`; it begins at `begin`.
  RequestLedger(const ServiceSpec& service, Time begin)
      : service_(&service), begin_(begin), now_(begin), is_open_(service.is_told), records_(service.requests.size()) {}

  /// Another request of a service whose requests are told. Precondition: its arrival is at now() or later, and not
  /// before that of the one told before.
  void tell(const ServiceRequest& request) {
    GPUSCHED_ASSERT(is_open_ && begin_ + request.arrival >= now_, "a request is told too late");
    told_.push_back(request);
    records_.emplace_back();
  }
  /// None is told any more.
  void end_telling() { is_open_ = false; }

  /// No request is to come.
  [[nodiscard]] bool all_came() const { return coming_ == records_.size() && !is_open_; }
  /// And none is left.
  [[nodiscard]] bool over() const { return all_came() && counts_.waiting + counts_.served == 0; }
  /// Requests by where they are.
  [[nodiscard]] const RequestCounts& counts() const { return counts_; }
  /// By number, in order of arrival.
  [[nodiscard]] std::span<const RequestRecord> records() const { return records_; }
  /// Of the service.
  [[nodiscard]] Time begin() const { return begin_; }
  /// Up to when it was moved.
  [[nodiscard]] Time now() const { return now_; }
  /// As it comes here.
  [[nodiscard]] const ServiceRequest& request(std::uint32_t number) const {
    return service_->is_told ? told_[number] : service_->requests[number];
  }
  /// When a request comes.
  [[nodiscard]] Time arrival(std::uint32_t number) const { return begin_ + request(number).arrival; }
  /// Integral over time of the replicas that serve, in replica-microseconds.
  [[nodiscard]] std::int64_t open_us() const { return open_us_; }
  /// Integral of requests in the system, in request-microseconds.
  [[nodiscard]] std::int64_t held_us() const { return held_us_; }

  /// What an autoscaler is told. `starting`: replicas that are asked for or load.
  [[nodiscard]] ServiceLoad load(std::int32_t ready, std::int32_t starting) const {
    const double mean_s =
        served_ == 0 ? service_->mean_service_s : static_cast<double>(served_us_) / 1e6 / static_cast<double>(served_);
    return {.now = now_,
            .ready = ready,
            .starting = starting,
            .in_flight = static_cast<std::int64_t>(counts_.served),
            .queued = static_cast<std::int64_t>(counts_.waiting),
            .arrived = static_cast<std::int64_t>(counts_.injected),
            .held_us = held_us_,
            .mean_service_s = mean_s};
  }

 protected:
  /// The service, as given.
  [[nodiscard]] const ServiceSpec& service() const { return *service_; }
  /// When a request that waits gives up.
  [[nodiscard]] Time leaves(std::uint32_t request) const { return later_by(arrival(request), service_->timeout); }
  /// When the next request comes; Time::max(): never.
  [[nodiscard]] Time next_arrival() const { return coming_ == records_.size() ? Time::max() : arrival(coming_); }

  /// Time goes on to `t`.
  void pass_time(Time t) {
    const std::int64_t span = (t - now_).us;
    held_us_ += static_cast<std::int64_t>(counts_.waiting + counts_.served) * span;
    open_us_ += static_cast<std::int64_t>(open_) * span;
    now_ = t;
  }
  /// The next request comes and waits. Its number.
  std::uint32_t come() {
    records_[coming_].phase = RequestPhase::waiting;
    ++counts_.injected;
    ++counts_.waiting;
    return coming_++;
  }
  /// A replica begins to serve a request that waits.
  void begin_service(std::uint32_t request, std::uint32_t replica, Time at) {
    RequestRecord& record = records_[request];
    record.start = at;
    record.replica = replica;
    record.phase = RequestPhase::served;
    --counts_.waiting;
    ++counts_.served;
  }
  /// One that was served is answered now.
  void complete(std::uint32_t request) {
    RequestRecord& record = records_[request];
    record.end = now_;
    record.phase = RequestPhase::completed;
    served_us_ += (now_ - record.start).us;
    ++served_;
    ++counts_.completed;
    --counts_.served;
  }
  /// The replica of one that was served is lost. True: it waits again; false: it was dropped.
  bool lose(std::uint32_t request) {
    RequestRecord& record = records_[request];
    --counts_.served;
    const bool waits = service_->lost == LostRequests::retry;
    if (waits && record.retries < 0xffff) ++record.retries;
    record.phase = waits ? RequestPhase::waiting : RequestPhase::dropped;
    ++(waits ? counts_.waiting : counts_.dropped);
    if (!waits) record.end = now_;
    return waits;
  }
  /// One that waits gives up.
  void leave(std::uint32_t request) {
    records_[request].phase = RequestPhase::timed_out;
    records_[request].end = now_;
    --counts_.waiting;
    ++counts_.timed_out;
  }
  /// A request's life, to be written on.
  [[nodiscard]] RequestRecord& record(std::uint32_t request) { return records_[request]; }
  /// A replica more serves, or one fewer. \{
  void count_open() { ++open_; }
  void count_closed() { --open_; }
  /// \}

 private:
  const ServiceSpec* service_ = nullptr;
  Time begin_{}, now_{};
  bool is_open_ = false;                // more may be told
  std::vector<ServiceRequest> told_;    // by request
  std::uint32_t coming_ = 0;            // the next request
  std::vector<RequestRecord> records_;  // by request
  std::uint32_t open_ = 0;
  RequestCounts counts_;
  std::int64_t held_us_ = 0, open_us_ = 0, served_us_ = 0, served_ = 0;
};

}  // namespace gpusched
