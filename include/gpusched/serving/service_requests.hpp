// SPDX-License-Identifier: Apache-2.0
/// ServiceRequests: the requests of one service, whichever way they find its replicas.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "gpusched/core/types.hpp"
#include "gpusched/data/rate.hpp"
#include "gpusched/serving/request_ledger.hpp"
#include "gpusched/serving/request_queue.hpp"
#include "gpusched/serving/routed_requests.hpp"
#include "gpusched/serving/service_model.hpp"

namespace gpusched::detail {

/// One queue before all replicas (RequestQueue), one a replica behind a router, or LLM engines with either, as the
/// service says. A value that borrows the service.
class ServiceRequests {
 public:
  /// Borrows `service`; it begins at `begin`.
  ServiceRequests(const ServiceSpec& service, Time begin) : kind_(kind_of(service, begin)) {}

  /// What became of the requests.
  [[nodiscard]] const RequestLedger& ledger() const {
    return std::visit([](const RequestLedger& kind) -> const RequestLedger& { return kind; }, kind_);
  }
  /// As those of RequestLedger, for a service whose requests are told. \{
  void tell(const ServiceRequest& request) {
    std::visit([&request](RequestLedger& kind) { kind.tell(request); }, kind_);
  }
  void end_telling() {
    std::visit([](RequestLedger& kind) { kind.end_telling(); }, kind_);
  }
  /// \}
  /// When something happens next by itself; Time::max(): never.
  [[nodiscard]] Time next_time() const {
    return std::visit([](const auto& kind) { return kind.next_time(); }, kind_);
  }
  /// Lets all happen up to `t`, which does not fall.
  void advance_to(Time t) {
    std::visit([&t](auto& kind) { kind.advance_to(t); }, kind_);
  }
  /// A replica serves from now on. Precondition, here and below: advanced to the present.
  void open(std::uint32_t replica, RatePpm rate) {
    std::visit([&replica, &rate](auto& kind) { kind.open(replica, rate); }, kind_);
  }
  /// It takes requests, or takes no more of them. Precondition: it is open.
  void accept(std::uint32_t replica, bool accepts) {
    std::visit([&replica, &accepts](auto& kind) { kind.accept(replica, accepts); }, kind_);
  }
  /// Its speed changes; 0: it stands still. An LLM engine changes its speed with its next step.
  void set_rate(std::uint32_t replica, RatePpm rate) {
    std::visit([&replica, &rate](auto& kind) { kind.set_rate(replica, rate); }, kind_);
  }
  /// It is gone, and with it what it serves. resume() follows at the same instant, when all are gone that go.
  void close(std::uint32_t replica) {
    std::visit([&replica](auto& kind) { kind.close(replica); }, kind_);
  }
  /// What replicas left that are gone waits for others.
  void resume() {
    std::visit([](auto& kind) { kind.resume(); }, kind_);
  }
  /// A replica serves.
  [[nodiscard]] bool is_open(std::uint32_t replica) const {
    return std::visit([&replica](const auto& kind) { return kind.is_open(replica); }, kind_);
  }
  /// Its speed.
  [[nodiscard]] RatePpm rate(std::uint32_t replica) const {
    return std::visit([&replica](const auto& kind) { return kind.rate(replica); }, kind_);
  }
  /// Requests, or batches, that it serves now.
  [[nodiscard]] std::uint32_t busy(std::uint32_t replica) const {
    return std::visit([&replica](const auto& kind) { return kind.busy(replica); }, kind_);
  }

 private:
  using Kind = std::variant<RequestQueue, RoutedRequests<ReplicaServer>, RoutedRequests<LlmServer>>;

  static Kind kind_of(const ServiceSpec& service, Time begin) {
    if (service.llm) return RoutedRequests<LlmServer>(service, begin);
    if (service.routing == RoutingRule::shared_queue) return RequestQueue(service, begin);
    return RoutedRequests<ReplicaServer>(service, begin);
  }

  Kind kind_;
};

}  // namespace gpusched::detail
