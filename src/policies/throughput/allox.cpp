// SPDX-License-Identifier: Apache-2.0
// AlloX (Le et al., EuroSys'20): waiting jobs are matched to GPUs and places in the queues of these at the least sum of
// completion times. The first job of a queue starts and runs until it ends.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "gpusched/engine/decision.hpp"
#include "src/policies/seam/duration_estimator.hpp"
#include "src/policies/throughput/empty_cluster.hpp"
#include "src/policies/throughput/gavel_allocator.hpp"
#include "src/policies/throughput/min_cost_assignment.hpp"

namespace gpusched {
namespace {

// At each event the idle GPUs are matched, as in Gavel's artifact (policies/allox.py): with nothing idle there is
// nothing to decide, and places in queues are forgotten. A job that is k-th from the end of its queue delays k jobs, by
// its time on that GPU type: that is what its place costs. Of assignments of equal cost the types named first decide. A
// gang, which the paper does not know, counts with its time x GPUs. Gangs that no GPU type alone can hold, and jobs
// without GPUs, start where there is room, after the others.
class Allox {
 public:
  Allox(const GpuTypes& types, std::uint32_t window, AnyDurationEstimator estimator)
      : types_by_name_(types.by_name), gpu_types_(types.count()), window_(window), estimator_(std::move(estimator)) {}

  [[nodiscard]] std::string_view name() const { return "allox"; }
  [[nodiscard]] bool clairvoyant() const { return estimator_.clairvoyant(); }

  void decide(const OracleView& view, Decision& decision) {
    if (!empty_) empty_.emplace(view);
    estimator_.observe(view);
    for (const Event& event : view.events()) {
      if (enters_queue(event.kind)) enter(view, event.job);
      if (event.kind != EventKind::withdraw) continue;
      std::erase_if(waiting_, [&](const Waiting& entry) { return entry.job == event.job; });
      std::erase(without_type_, event.job);
    }
    match(view, decision);
    const auto started = [&](JobId job) { return decision.start(job) == Verdict::ok; };
    std::erase_if(without_type_, started);
  }

 private:
  struct Waiting {
    JobId job = no_job;
    std::vector<double> area;  // on each GPU type: seconds x GPUs; infinite where it cannot run
  };

  void enter(const OracleView& view, JobId job) {
    const Shape& shape = view.shape(job);
    const double gpu_s = to_seconds(estimator_.estimate(view, job)) * static_cast<double>(shape.gpu_milli()) /
                         static_cast<double>(whole_gpu);
    Waiting entry{job, std::vector<double>(gpu_types_, std::numeric_limits<double>::infinity())};
    bool any = false;
    for (std::uint32_t type = 0; type < gpu_types_ && shape.gpu_milli() > 0; ++type) {
      if (!empty_->can_hold(view, job, type)) continue;
      entry.area[type] = gpu_s * static_cast<double>(reference_rate) / static_cast<double>(view.speed(job, type));
      any = true;
    }
    const auto before = [&](JobId a, JobId b) { return view.queue_place(a) < view.queue_place(b); };
    if (any) {
      const auto place = std::upper_bound(waiting_.begin(), waiting_.end(), job,
                                          [&](JobId a, const Waiting& b) { return before(a, b.job); });
      waiting_.insert(place, std::move(entry));
    } else {
      without_type_.insert(std::upper_bound(without_type_.begin(), without_type_.end(), job, before), job);
    }
  }

  void match(const OracleView& view, Decision& decision) {
    const std::vector<std::uint32_t> idle = idle_gpus(view);
    const std::vector<const Waiting*> rows = rows_of(view, idle);
    if (rows.empty()) return;
    struct Place {
      std::uint32_t type = 0;
      std::uint32_t from_end = 1;  // of the queue of one GPU
    };
    std::vector<Place> places;
    std::vector<std::uint32_t> capacity;
    for (const std::uint32_t type : types_by_name_) {
      // GPUs of a type are alike: if all jobs went there, their queues would be as long as this.
      const std::size_t longest = idle[type] == 0 ? 0 : (rows.size() + idle[type] - 1) / idle[type];
      for (std::uint32_t from_end = 1; from_end <= longest; ++from_end) {
        places.push_back({type, from_end});
        capacity.push_back(idle[type]);
      }
    }
    std::vector<double> cost;
    for (const Waiting* row : rows) {
      for (const Place& place : places) cost.push_back(row->area[place.type] * place.from_end);
    }
    const std::vector<std::uint32_t> place_of = min_cost_assignment(cost, capacity);
    std::vector<std::uint32_t> order(rows.size());
    for (std::uint32_t row = 0; row < order.size(); ++row) order[row] = row;
    // The job furthest from the end of a queue is first in it; among alike GPUs the shorter job.
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      const Place &at_a = places[place_of[a]], &at_b = places[place_of[b]];
      if (at_a.from_end != at_b.from_end) return at_a.from_end > at_b.from_end;
      return rows[a]->area[at_a.type] < rows[b]->area[at_b.type];
    });
    std::vector<JobId> started;
    for (const std::uint32_t row : order) {
      const JobId job = rows[row]->job;
      if (decision.start_on_type(job, places[place_of[row]].type) == Verdict::ok) started.push_back(job);
    }
    std::erase_if(waiting_, [&](const Waiting& entry) {
      return std::find(started.begin(), started.end(), entry.job) != started.end();
    });
  }

  // GPUs of each type of which no part is held; for shares, a GPU that is held in part counts as none.
  [[nodiscard]] std::vector<std::uint32_t> idle_gpus(const View& view) const {
    std::vector<std::uint32_t> idle(gpu_types_, 0);
    for (std::uint32_t node = 0; node < view.cluster().node_count(); ++node) {
      idle[view.cluster().node_gpu_type(NodeId{node})] += view.cluster().node_idle_gpus(NodeId{node});
    }
    return idle;
  }

  // The first waiting jobs that the idle GPUs of some type could hold by number.
  [[nodiscard]] std::vector<const Waiting*> rows_of(const View& view, const std::vector<std::uint32_t>& idle) const {
    std::vector<const Waiting*> rows;
    for (const Waiting& entry : waiting_) {
      const MilliGpu milli = view.shape(entry.job).gpu_milli();
      bool fits = false;
      for (std::uint32_t type = 0; type < gpu_types_; ++type) {
        fits = fits || (entry.area[type] < std::numeric_limits<double>::infinity() && idle[type] > 0 &&
                        idle[type] * whole_gpu >= milli);
      }
      if (fits) rows.push_back(&entry);
      if (rows.size() == window_) break;
    }
    return rows;
  }

  std::vector<std::uint32_t> types_by_name_;  // the order of places, by which ties go
  std::uint32_t gpu_types_;
  std::uint32_t window_;
  AnyDurationEstimator estimator_;
  std::optional<EmptyCluster> empty_;
  std::vector<Waiting> waiting_;     // in order of arrival (QueuePlace)
  std::vector<JobId> without_type_;  // likewise
};

}  // namespace

PolicyInfo allox_info() {
  auto parameters = estimate_parameters("exact");
  parameters.push_back({.name = "window_jobs",
                        .fallback = 64.0,
                        .meaning = "waiting jobs that a matching looks at, the earliest first",
                        .least = 1,
                        .most = 4096,
                        .is_count = true});
  return {.name = "allox",
          .summary = "waiting jobs matched to idle GPUs by type at the least sum of completion times, no preemption",
          .source =
              "Le et al., AlloX: compute allocation in hybrid clusters, EuroSys'20, section 4, over idle GPUs as "
              "in policies/allox.py of Gavel's artifact; gangs count as their time x GPUs",
          .complexity = "O(window^2 x places + nodes)",
          .parameters = std::move(parameters),
          .make = [](const PolicyParameters& given, const PolicyContext& context) -> Result<AnyPolicy> {
            auto estimator = make_duration_estimator(given, context);
            if (!estimator) return unexpected("policy allox, " + estimator.error().to_string());
            return AnyPolicy(Allox(GpuTypes(*context.cluster), static_cast<std::uint32_t>(given.number("window_jobs")),
                                   *std::move(estimator)));
          }};
}

}  // namespace gpusched
