// SPDX-License-Identifier: Apache-2.0
/// FragmentationLog: how much of the idle GPU time of a run lay on nodes where other GPUs were in use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/record_pool.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/measured_span.hpp"

namespace gpusched {

/// An Observer; O(1) per grant, 16 bytes for each grant that is held. A gang that wants whole nodes finds none among
/// idle GPUs that are spread over nodes in use (Jeon et al., ATC'19, section 3.1, tell the share of empty servers).
class FragmentationLog {
 public:
  /// Watches a run for the span from the first measured submission to the last measured end.
  explicit FragmentationLog(MeasureWindow window = {}) : span_(window) {}

  /// Adds up idle GPU time since the last call and follows the events.
  void observe(const OracleView& view, std::span<const Event> events) {
    if (grants_of_job_.empty()) begin(view);
    span_.pass(
        view.now(),
        [this](Time span) {
          sums_.idle += detail::WideInt{idle_} * span.us;
          sums_.stranded += detail::WideInt{stranded_} * span.us;
        },
        [this] { at_begin_ = sums_; });
    for (const Event& event : events) {
      switch (event.kind) {
        case EventKind::start: open(view, event.job); break;
        case EventKind::move:
          close(event.job);
          open(view, event.job);
          break;
        case EventKind::finish:
          if (span_.measures(event.job)) at_end_ = sums_;
          close(event.job);
          break;
        case EventKind::withdraw:
        case EventKind::refuse:
          if (span_.measures(event.job)) at_end_ = sums_;
          break;
        case EventKind::preempt:
        case EventKind::retry:
        case EventKind::kill: close(event.job); break;
        case EventKind::node_down:
        case EventKind::node_up: put_in_service(nodes_[index(event.node)], event.kind == EventKind::node_up); break;
        case EventKind::submit:
        case EventKind::reprioritize:
        case EventKind::more_power:
        case EventKind::wake: break;
      }
    }
  }

  /// Idle GPU time on nodes in use / idle GPU time, in [0, 1]; 0 when no GPU was idle. Precondition: the run is
  /// finished.
  [[nodiscard]] double share() const {
    const detail::WideInt idle = at_end_.idle - at_begin_.idle;
    return idle == 0 ? 0 : static_cast<double>(at_end_.stranded - at_begin_.stranded) / static_cast<double>(idle);
  }

 private:
  struct Held {
    NodeId node = no_node;
    std::uint32_t next = no_index;
    MilliGpu milli = 0;
  };
  struct Node {
    MilliGpu all = 0, used = 0;
    bool is_up = true;  ///< what is free on others is withheld, not idle
    /// As far as it is in service.
    [[nodiscard]] MilliGpu stranded() const { return used > 0 ? all - used : 0; }
  };
  /// Thousandths of a GPU times microseconds.
  struct Sums {
    detail::WideInt idle = 0, stranded = 0;
  };

  void begin(const OracleView& view) {
    span_.begin(view);
    grants_of_job_.resize(view.job_count(), no_index);
    for (std::uint32_t node = 0; node < view.cluster().node_count(); ++node) {
      nodes_.push_back({.all = MilliGpu{view.cluster().node_gpus(NodeId{node})} * whole_gpu,
                        .is_up = view.cluster().is_up(NodeId{node})});
      if (nodes_.back().is_up) idle_ += nodes_.back().all;
    }
  }

  void open(const OracleView& view, JobId job) {
    const MilliGpu milli_per_task = view.shape(job).gpu_milli_per_task;
    if (milli_per_task == 0) return;
    std::uint32_t& head = grants_of_job_[index(job)];
    view.for_each_grant(job, [this, &milli_per_task, &head](const Grant& grant) {
      const MilliGpu milli = grant.tasks * milli_per_task;
      use(grant.node, milli);
      head = held_.add({.node = grant.node, .next = head, .milli = milli});
    });
  }

  void close(JobId job) {
    std::uint32_t& head = grants_of_job_[index(job)];
    while (head != no_index) {
      const Held held = held_[head];
      held_.remove(head);
      head = held.next;
      use(held.node, -held.milli);
    }
  }

  void use(NodeId at, MilliGpu milli) {
    Node& node = nodes_[index(at)];
    if (!node.is_up) {
      node.used += milli;
      return;
    }
    stranded_ -= node.stranded();
    node.used += milli;
    stranded_ += node.stranded();
    idle_ -= milli;
  }

  void put_in_service(Node& node, bool up) {
    const std::int64_t sign = up ? 1 : -1;
    stranded_ += sign * node.stranded();
    idle_ += sign * (node.all - node.used);
    node.is_up = up;
  }

  detail::MeasuredSpan span_;
  std::vector<std::uint32_t> grants_of_job_;
  RecordPool<Held, &Held::next> held_;
  std::vector<Node> nodes_;
  MilliGpu idle_ = 0, stranded_ = 0;
  Sums sums_, at_begin_, at_end_;
};

}  // namespace gpusched
