// SPDX-License-Identifier: Apache-2.0
/// Routers choose the site of each job. What a router is: any copyable struct with `name()` and
/// `route(view, job) -> Route`; its memory is its members. RouterView is what it may know: no true run time.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "gpusched/sites/site_state.hpp"

namespace gpusched {

/// What a router may know at an instant. Cheap to copy; borrows the federation: valid until that moves.
class RouterView {
 public:
  /// Used by Federation.
  explicit RouterView(const detail::SiteState& state) : state_(&state) {}

  /// The present instant.
  [[nodiscard]] Time now() const { return state_->now; }
  /// Sites, signals, links and data.
  [[nodiscard]] const SiteWorld& world() const { return *state_->world; }
  /// Number of sites.
  [[nodiscard]] SiteId site_count() const { return state_->site_count(); }
  /// What its own policy knows of a site: free nodes, queues, jobs as submitted.
  [[nodiscard]] View site(SiteId site) const { return state_->engines[site].view(); }

  // ---- a job ----
  /// Where it was submitted.
  [[nodiscard]] SiteId home(JobId job) const { return world().place(job).home; }
  /// Where it is: its home, or where it was sent.
  [[nodiscard]] SiteId place(JobId job) const { return state_->place_of(job); }
  /// What it asks for.
  [[nodiscard]] const Shape& shape(JobId job) const { return state_->jobs->shape(job); }
  /// When it was submitted, or the last job that it waits for had ended.
  [[nodiscard]] Time eligible(JobId job) const { return state_->tracks[index(job)].eligible; }
  /// By when it should have ended, or Time::max().
  [[nodiscard]] Time deadline(JobId job) const { return state_->jobs->deadline(job); }
  /// The user's estimate; else what RuntimePredictor makes of the jobs that have ended at any site, 0 before any has.
  [[nodiscard]] Time predicted(JobId job) const { return state_->predicted(job); }

  // ---- a job at a site ----
  /// It fits the empty site, and there are links for it and for all that it needs.
  [[nodiscard]] bool may_run(JobId job, SiteId site) const {
    return state_->fits_empty(job, site) && state_->is_reachable(job, site);
  }
  /// predicted() less what it ran, divided by the job's speed on the site's fastest GPU type for it.
  [[nodiscard]] Time run_time(JobId job, SiteId at) const {
    const auto speeds = site(at).speeds(job);
    const Time left = state_->predicted_left(job);
    if (speeds.empty()) return left;
    const RatePpm best = std::max<RatePpm>(*std::max_element(speeds.begin(), speeds.end()), 1);
    return detail::EngineState::time_needed(best, left);
  }
  /// Until it and all that it needs are there, if links keep the transfers that they have now.
  [[nodiscard]] Time transfer(JobId job, SiteId to) const {
    const SiteId from = place(job);
    Time longest = from == to || world().link(from, to) == nullptr ? Time{} : world().link(from, to)->round_trip;
    state_->for_each_need(job, [this, &to, &longest](SiteItem what, std::uint32_t number) {
      if (state_->is_at(what, number, to)) return;
      const SiteId source = state_->source(what, number, to);
      if (source == no_site) return;
      const double seconds =
          static_cast<double>(state_->bytes_of(what, number)) / state_->network.width_for_one_more(source, to);
      longest = std::max(longest, from_seconds(std::min(seconds, 1e12)) + world().link(source, to)->round_trip);
    });
    return longest;
  }
  /// 0 where GPUs enough are free for all jobs that are there or on their way and for this one; else the predicted work
  /// of all these over the site's GPUs in service that services leave, at most 10^9 s. Of a job that is there already,
  /// only those count that run or wait before it; one that runs waits no more.
  [[nodiscard]] Time wait(JobId job, SiteId at) const {
    const detail::SiteLoad& load = state_->loads[at];
    const bool is_there = state_->ahead.job == job && state_->tracks[index(job)].site == at;
    if (is_there && state_->ahead.is_running) return {};
    const MilliGpu asked = is_there ? state_->ahead.asked : load.asked, by_services = state_->asked_by_services(at);
    const MilliGpu gpus = MilliGpu{site(at).cluster().up_gpus()} * whole_gpu;
    if (world().sites[at].is_unlimited || asked + by_services + shape(job).gpu_milli() <= gpus) return {};
    constexpr Time longest = whole_seconds(1'000'000'000);
    const MilliGpu for_jobs = gpus - by_services;
    if (for_jobs <= 0) return longest;
    const SiteSum wait = (is_there ? state_->ahead.backlog : load.backlog) / for_jobs;
    return wait > longest.us ? longest : Time{static_cast<std::int64_t>(wait)};
  }
  /// When it would have ended: now() + the longer of transfer() and wait() + run_time().
  [[nodiscard]] Time completion(JobId job, SiteId at) const {
    return now() + std::max(transfer(job, at), wait(job, at)) + run_time(job, at);
  }

  // ---- a site ----
  /// Jobs that are there or on their way, and the GPUs that they and services ask for.
  /// \{
  [[nodiscard]] std::uint32_t jobs_at(SiteId site) const { return state_->loads[site].jobs; }
  [[nodiscard]] MilliGpu asked_milli(SiteId site) const {
    return state_->loads[site].asked + state_->asked_by_services(site);
  }
  /// \}
  /// Those GPUs, divided by the site's; 0 where these are unlimited.
  [[nodiscard]] double load(SiteId at) const {
    if (world().sites[at].is_unlimited) return 0;
    const auto gpus = static_cast<double>(std::max<std::int64_t>(site(at).cluster().up_gpus(), 1));
    return static_cast<double>(asked_milli(at)) / static_cast<double>(whole_gpu) / gpus;
  }
  /// GPUs in service that no job asks for; negative: jobs wait. Most where they are unlimited.
  [[nodiscard]] MilliGpu unasked_milli(SiteId at) const {
    if (world().sites[at].is_unlimited) return std::numeric_limits<MilliGpu>::max();
    return site(at).cluster().up_gpus() * whole_gpu - asked_milli(at);
  }
  /// g/kWh and USD/MWh of its electricity now.
  /// \{
  [[nodiscard]] double carbon(SiteId site) const { return world().sites[site].carbon_g_per_kwh.at(now()); }
  [[nodiscard]] double price(SiteId site) const { return world().sites[site].usd_per_mwh.at(now()); }
  /// \}

 private:
  const detail::SiteState* state_;
};

/// Where a job goes.
struct Route {
  SiteId site = no_site;     ///< where; no_site: nowhere, an error of the router's
  Time until = Time::max();  ///< unless it has begun there by then,
  SiteId then = no_site;     ///< it goes there
};

/// A copy decides the same from the same state. One that never asks a view for predicted(), run_time(), wait() or
/// completion() may say so by a constant `reads_no_run_times`, which saves their sums;
/// one that asks for nothing but the job itself, its home and what holds for the whole run, by `reads_jobs_alone`. It
/// gives only sites that may_run() the job, or one whose `then` does and whose policy takes jobs that do not fit.
template <class R>
concept Router = requires(R router, const R& constant, const RouterView& view, JobId job) {
  { constant.name() } -> std::convertible_to<std::string_view>;
  { router.route(view, job) } -> std::same_as<Route>;
}
&&std::copyable<R>;

/// Any router, by value.
class AnyRouter {
 public:
  /// Holds `router`.
  template <class R>
  requires(!std::same_as<R, AnyRouter>) && Router<R> explicit AnyRouter(R router)
      : self_(std::make_unique<Model<R>>(std::move(router))) {}
  /// A copy has a router of its own.
  AnyRouter(const AnyRouter& other) : self_(other.self_->clone()) {}
  /// The moved-from object may only be assigned to or destroyed.
  AnyRouter(AnyRouter&&) noexcept = default;
  /// Replaces the router.
  AnyRouter& operator=(AnyRouter other) noexcept {
    self_ = std::move(other.self_);
    return *this;
  }
  ~AnyRouter() = default;

  /// The router's name.
  [[nodiscard]] std::string_view name() const { return self_->name(); }
  /// See Router.
  /// \{
  [[nodiscard]] bool reads_no_run_times() const { return self_->reads_no_run_times(); }
  [[nodiscard]] bool reads_jobs_alone() const { return self_->reads_jobs_alone(); }
  /// \}
  /// Where the job goes.
  Route route(const RouterView& view, JobId job) { return self_->route(view, job); }

 private:
  struct Concept {
    virtual ~Concept() = default;
    [[nodiscard]] virtual std::unique_ptr<Concept> clone() const = 0;
    [[nodiscard]] virtual std::string_view name() const = 0;
    [[nodiscard]] virtual bool reads_no_run_times() const = 0;
    [[nodiscard]] virtual bool reads_jobs_alone() const = 0;
    virtual Route route(const RouterView& view, JobId job) = 0;
  };
  template <class R>
  struct Model final : Concept {
    explicit Model(R r) : router(std::move(r)) {}
    [[nodiscard]] std::unique_ptr<Concept> clone() const override { return std::make_unique<Model>(router); }
    [[nodiscard]] std::string_view name() const override { return router.name(); }
    [[nodiscard]] bool reads_no_run_times() const override {
      if constexpr (requires { R::reads_no_run_times; }) return R::reads_no_run_times;
      return reads_jobs_alone();
    }
    [[nodiscard]] bool reads_jobs_alone() const override {
      if constexpr (requires { R::reads_jobs_alone; }) return R::reads_jobs_alone;
      return false;
    }
    Route route(const RouterView& view, JobId job) override { return router.route(view, job); }
    R router;
  };

  std::unique_ptr<Concept> self_;
};

}  // namespace gpusched
