// SPDX-License-Identifier: Apache-2.0
/// Energy of a run: PowerTable says how much power GPUs draw under which jobs, EnergyLog watches a run and integrates
/// it.
///
/// A card draws idle + (active - idle) u^beta watts, u being the share of time that it is busy. A job that has a card
/// for itself keeps it busy as its family does; one that holds s thousandths of it, s/1000 of that. Jobs that share a
/// card add up to one u, and the card's active draw is their mean, weighted by what each adds.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "gpusched/core/record_pool.hpp"
#include "gpusched/core/types.hpp"
#include "gpusched/engine/engine.hpp"
#include "gpusched/watch/measured_span.hpp"

namespace gpusched {

/// Power by GPU type and job family. Immutable; borrowed by EnergyLog.
struct PowerTable {
  /// What does not depend on the job.
  struct GpuType {
    double idle_w = 0;  ///< of an idle card
    double beta = 1;    ///< exponent of the busy share
  };
  /// A job family on a GPU type.
  struct FamilyOnType {
    double active_w = 0;    ///< watts of a card that is always busy with this family
    double busy_share = 1;  ///< (0, 1] of the time that a job alone on a card keeps it busy
  };
  std::vector<GpuType> types = {};          ///< by Cluster GPU type
  std::vector<FamilyOnType> families = {};  ///< [family * types.size() + type]
};

/// An Observer; O(1) per grant. Counts GPUs only: neither hosts nor network nor cooling. Every GPU of
/// the cluster draws at least its idle power from the first measured submission to the last measured end.
class EnergyLog {
 public:
  /// Does nothing when `table` is null.
  explicit EnergyLog(const PowerTable* table, MeasureWindow window = {}) : table_(table), span_(window) {}

  /// Adds up the energy since the last call and follows the events.
  void observe(const OracleView& view, std::span<const Event> events) {
    if (table_ == nullptr) return;
    if (loads_of_job_.empty()) begin(view);
    span_.pass(
        view.now(), [this](Time span) { used_mw_us_ += detail::WideInt{idle_mw_ + busy_mw_} * span.us; },
        [this] { at_begin_ = used_mw_us_; });
    for (const Event& event : events) {
      switch (event.kind) {
        case EventKind::start: open(view, event.job); break;
        case EventKind::move:
          close(event.job);
          open(view, event.job);
          break;
        case EventKind::finish:
          if (span_.measures(event.job)) at_end_ = used_mw_us_;
          close(event.job);
          break;
        case EventKind::withdraw:
          if (span_.measures(event.job)) at_end_ = used_mw_us_;
          break;
        case EventKind::preempt:
        case EventKind::retry:
        case EventKind::kill: close(event.job); break;
        case EventKind::submit:
        case EventKind::wake:
        case EventKind::reprioritize:
        case EventKind::more_power:
        case EventKind::node_down:
        case EventKind::node_up: break;
      }
    }
  }

  /// Energy of all GPUs over the measured span. Precondition: the run is finished.
  [[nodiscard]] double kwh() const {
    constexpr double mw_us_per_kwh = joules_per_kwh * 1e3 * 1e6;
    return static_cast<double>(at_end_ - at_begin_) / mw_us_per_kwh;
  }

 private:
  // What a task adds. Integers, so that what goes is exactly what came.
  struct Load {
    std::int64_t busy_ppm = 0;      // of a card
    std::int64_t busy_ppm_mw = 0;   // busy_ppm times the milliwatts that the family's work draws above idle
    std::uint32_t card = no_index;  // no_index: whole GPUs, whose milliwatts are in `whole_mw`
    std::uint32_t gpu_type = 0;
    std::int64_t whole_mw = 0;
    std::uint32_t next = no_index;
  };
  struct Card {
    std::int64_t busy_ppm = 0, busy_ppm_mw = 0, mw = 0;
  };
  static constexpr double ppm = 1e6;

  void begin(const OracleView& view) {
    span_.begin(view);
    loads_of_job_.resize(view.job_count(), no_index);
    cards_.resize(view.cluster().card_count());
    double idle_w = 0;
    for (std::uint32_t node = 0; node < view.cluster().node_count(); ++node) {
      idle_w +=
          table_->types[view.cluster().node_gpu_type(NodeId{node})].idle_w * view.cluster().node_gpus(NodeId{node});
    }
    idle_mw_ = std::llround(1e3 * idle_w);
  }

  void open(const OracleView& view, JobId job) {
    view.for_each_grant(job, [&](const Grant& grant) { add(view, job, grant); });
  }

  void add(const OracleView& view, JobId job, const Grant& grant) {
    const MilliGpu milli = view.shape(job).gpu_milli_per_task;
    if (milli == 0) return;
    const std::uint32_t type = view.cluster().node_gpu_type(grant.node);
    const PowerTable::FamilyOnType& of = table_->families[view.family(job) * table_->types.size() + type];
    const double above_idle_mw = 1e3 * (of.active_w - table_->types[type].idle_w);
    Load load{.gpu_type = type, .next = loads_of_job_[index(job)]};
    if (view.shape(job).is_share() && grant.devices != 0) {
      load.card = view.cluster().card(grant.node, static_cast<std::uint32_t>(std::countr_zero(grant.devices)));
      load.busy_ppm = std::llround(of.busy_share * ppm * static_cast<double>(milli) / static_cast<double>(whole_gpu));
      load.busy_ppm_mw = load.busy_ppm * std::llround(above_idle_mw);
      change_card(load, +1);
    } else {
      const double gpus = static_cast<double>(grant.tasks * milli) / static_cast<double>(whole_gpu);
      load.whole_mw = std::llround(gpus * above_idle_mw * std::pow(of.busy_share, table_->types[type].beta));
      busy_mw_ += load.whole_mw;
    }
    loads_of_job_[index(job)] = loads_.add(load);
  }

  void close(JobId job) {
    std::uint32_t& head = loads_of_job_[index(job)];
    while (head != no_index) {
      const Load load = loads_[head];
      loads_.remove(head);
      head = load.next;
      busy_mw_ -= load.whole_mw;
      if (load.card != no_index) change_card(load, -1);
    }
  }

  void change_card(const Load& load, std::int64_t sign) {
    Card& card = cards_[load.card];
    card.busy_ppm += sign * load.busy_ppm;
    card.busy_ppm_mw += sign * load.busy_ppm_mw;
    busy_mw_ -= card.mw;
    card.mw = 0;
    if (card.busy_ppm > 0) {
      const auto busy_ppm = static_cast<double>(card.busy_ppm);
      card.mw = std::llround(static_cast<double>(card.busy_ppm_mw) / busy_ppm *
                             std::pow(busy_ppm / ppm, table_->types[load.gpu_type].beta));
    }
    busy_mw_ += card.mw;
  }

  const PowerTable* table_;
  detail::MeasuredSpan span_;
  std::vector<std::uint32_t> loads_of_job_;
  RecordPool<Load, &Load::next> loads_;
  std::vector<Card> cards_;
  std::int64_t idle_mw_ = 0, busy_mw_ = 0;
  detail::WideInt used_mw_us_ = 0, at_begin_ = 0, at_end_ = 0;
};

}  // namespace gpusched
