// SPDX-License-Identifier: Apache-2.0
/// Federation: several sites in one run. One engine and one policy a site, a router between them, and links over which
/// data follows jobs. A value, as engines are: a copy runs on independently. Borrows the JobTable, the SiteWorld, and
/// the clusters and RunInputs of its sites.
///
///   Federation federation(jobs, world, sites, AnyRouter(LeastLoaded{}));
///   federation.run([](SiteId, const OracleView&, std::span<const Event>) {});
///
/// A federation of one site is simulate() of that site, event by event. Replicas of services (SiteWorld::services) are
/// rows of the table that no router is asked about.
///
/// The order of an instant: requests of services reach sites or are sent (SiteRequests); sites by SiteId apply the ends
/// and effects that are due; jobs whose last transfer is over join, by id; jobs that were to go elsewhere by now leave
/// (Route::until); jobs whose last predecessor ended, by id, then jobs submitted, by id, are routed; at a multiple of
/// FederationOptions::every waiting jobs are routed anew; sites on which something happened let their policies decide,
/// by SiteId.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpusched/policy/policy.hpp"
#include "gpusched/policy/progress_watch.hpp"
#include "gpusched/sites/router.hpp"
#include "gpusched/sites/site_requests.hpp"

namespace gpusched {

/// What a site runs on. Pointers are borrowed.
struct SiteSetup {
  const Cluster* cluster = nullptr;  ///< its machines
  AnyPolicy policy;                  ///< who decides there
  EngineOptions options = {};        ///< not one_event_a_step
  RunInputs inputs = {};             ///< without changes of jobs; the window of measured jobs is all
};

/// Why a run ended.
enum class FederationEnd : std::uint8_t {
  finished,      ///< every job ended
  waits,         ///< jobs are left waiting for ever
  goes_on,       ///< it would go on for ever
  stopped,       ///< somebody wanted it to
  wrong_router,  ///< the router sent a job where it may not run: wrong_route()
};

/// See the head of this file.
class Federation {
 public:
  /// Before the first event. `sites`: by SiteId. Precondition: as many as world.sites, at least one job.
  Federation(const JobTable& jobs, const SiteWorld& world, const std::vector<SiteSetup>& sites, AnyRouter router,
             const FederationOptions& options = {})
      : router_(std::move(router)), options_(options), requests_(world, jobs.submit(JobId{0})) {
    state_.jobs = &jobs;
    state_.world = &world;
    state_.now = jobs.submit(JobId{0});
    state_.network = SiteNetwork(world);
    state_.loads.resize(sites.size());
    state_.fits.resize(sites.size());
    state_.bytes_in.resize(sites.size());
    state_.bytes_out.resize(sites.size());
    state_.tracks.resize(jobs.size());
    for (std::uint32_t i = 0; i < jobs.size() && !jobs.dependencies().is_empty(); ++i) {
      state_.tracks[i].open = static_cast<std::uint32_t>(jobs.dependencies().of(JobId{i}).size());
    }
    state_.engines.open(jobs.size(), sites.size());
    state_.learns = !router_.reads_no_run_times();
    for (const SiteSetup& site : sites) {
      GPUSCHED_ASSERT(site.inputs.changes == nullptr && !site.options.one_event_a_step, "sites do not take that");
      state_.clusters.push_back(site.cluster);
      Engine& engine = state_.engines.add(jobs, *site.cluster, site.options, site.inputs);
      if (options_.moves_running && sites.size() > 1) engine.keep_accounts();
      policies_.push_back(site.policy);
      progress_.emplace_back(engine.view());
    }
    for (SiteId site = 0; site < state_.site_count(); ++site) {
      expect(site);
      next_.push_back(state_.engines[site].next_event_time());
    }
    touched_.resize(sites.size());
    silent_.resize(sites.size());
    if (options_.every > Time{}) next_round_ = state_.now + options_.every;
  }

  /// Runs to the end. `watch(site, view, events)` sees what an Observer of simulate() would, at each site in the order
  /// of time; `stopped()` is asked now and then. Sites that have nothing to do with each other are run one after
  /// another.
  template <class Watch, class Stopped = bool (*)()>
  FederationEnd run(
      Watch watch, Stopped stopped = [] { return false; }) {
    if (keeps_apart()) return run_apart(watch, stopped);
    for (std::uint64_t steps = 1;; ++steps) {
      if (steps % 256 == 0 && stopped()) return FederationEnd::stopped;
      const Time next = next_time();
      if (next == Time::max()) break;
      state_.now = next;
      submit(next);
      move_requests(next);
      move_sites(next);
      end_transfers();
      hand_over();
      route_new();
      if (next == next_round_) route_again();
      if (wrong_route_ != no_job) return FederationEnd::wrong_router;
      if (!decide(watch)) return FederationEnd::goes_on;
    }
    return state_.done == state_.jobs->size() ? FederationEnd::finished : FederationEnd::waits;
  }

  /// The engine of a site: what it tells of a job holds for jobs that ended there.
  [[nodiscard]] const Engine& engine(SiteId site) const { return state_.engines[site]; }
  /// Number of sites.
  [[nodiscard]] SiteId site_count() const { return state_.site_count(); }
  /// Where the job ended; before, where it is or travels to; no_site before it was routed.
  [[nodiscard]] SiteId site_of(JobId job) const { return state_.tracks[index(job)].site; }
  /// When it was submitted, or the last job that it waits for had ended.
  [[nodiscard]] Time eligible(JobId job) const { return state_.tracks[index(job)].eligible; }
  /// When it joined the queue of its last site. What passed since eligible() went by on links and at other sites.
  [[nodiscard]] Time joined(JobId job) const { return state_.tracks[index(job)].joined; }
  /// How often it was sent elsewhere after its first routing.
  [[nodiscard]] std::uint32_t moves(JobId job) const { return state_.tracks[index(job)].moves; }
  /// All transfers, by their beginning.
  [[nodiscard]] const std::vector<SiteTransfer>& transfers() const { return state_.transfers; }
  /// Bytes that came to a site so far, and that left it.
  /// \{
  [[nodiscard]] SiteSum bytes_in(SiteId site) const { return state_.bytes_in[site]; }
  [[nodiscard]] SiteSum bytes_out(SiteId site) const { return state_.bytes_out[site]; }
  /// \}
  /// Jobs that ended, and those that did at that site.
  /// \{
  [[nodiscard]] std::uint32_t finished() const { return state_.done; }
  [[nodiscard]] std::uint32_t finished(SiteId site) const { return state_.loads[site].done; }
  /// \}
  /// The number in SiteService::requests of one that came to a part of the service, by its number there.
  [[nodiscard]] std::uint32_t request_number(std::uint32_t service, std::uint32_t part, std::uint32_t request) const {
    return requests_.number(service, part, request);
  }
  /// The present instant.
  [[nodiscard]] Time now() const { return state_.now; }
  /// What the router sees.
  [[nodiscard]] RouterView view() const { return RouterView(state_); }
  /// The job that the router sent where it may not run; no_job: none.
  [[nodiscard]] JobId wrong_route() const { return wrong_route_; }

  /// All of it, for those who check.
  [[nodiscard]] const detail::SiteState& state() const { return state_; }

  /// True when all counts of who is where agree with the engines. O(jobs + sites).
  [[nodiscard]] bool consistent() const { return state_.consistent(); }

 private:
  using Stage = detail::JobTrack::Stage;
  using Due = std::pair<std::int64_t, std::uint32_t>;  // microseconds, and what
  using DueQueue = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

  [[nodiscard]] Time next_time() const {
    if (!ready_.empty()) return state_.now;  // what they waited for was cancelled at this instant
    const auto submits = state_.jobs->submits();
    Time next = submitted_ < submits.size() ? submits[submitted_] : Time::max();
    next = std::min({next, state_.network.next_time(), due(arriving_), requests_.next_time()});
    next = std::min({next, due(leaving_), due(delayed_)});
    for (const Time of_site : next_) next = std::min(next, of_site);
    // Routing anew alone keeps no run going.
    return next == Time::max() ? next : std::min(next, next_round_);
  }
  static Time due(const DueQueue& queue) { return queue.empty() ? Time::max() : Time{queue.top().first}; }

  // ---- sites that have nothing to do with each other ----

  // The router looks at no site, and each job runs where all that it needs is when it is submitted. Routes them all
  // then. Where engines know of failures or meters, the end of the last job concerns all sites.
  bool keeps_apart() {
    if (!apart_.empty()) return true;
    const JobTable& jobs = *state_.jobs;
    bool alone =
        submitted_ == 0 && router_.reads_jobs_alone() && jobs.dependencies().is_empty() && options_.every == Time{};
    for (SiteId site = 0; site < state_.site_count(); ++site) alone = alone && !state_.engines[site].has_effects();
    if (!alone) return false;
    const AnyRouter before = router_;
    const Time begin = state_.now;
    apart_.resize(state_.site_count());
    for (std::uint32_t i = 0; i < jobs.size() && alone; ++i) {
      const JobId job{i};
      state_.now = state_.tracks[i].eligible = jobs.submit(job);
      const Route route = router_.route(RouterView(state_), job);
      alone = route.until == Time::max() && may_go(job, route) && needs_nothing(job, route.site);
      if (alone) apart_[route.site].jobs.push_back(job);
    }
    state_.now = begin;
    if (alone) return true;
    router_ = before;
    apart_.clear();
    return false;
  }

  [[nodiscard]] bool needs_nothing(JobId job, SiteId site) const {
    const SiteId home = state_.world->place(job).home;
    bool nothing = home == site || state_.world->link(home, site)->round_trip == Time{};
    state_.for_each_need(job, [this, &nothing, &site](SiteItem what, std::uint32_t number) {
      nothing = nothing && state_.is_at(what, number, site);
    });
    return nothing;
  }

  template <class Watch, class Stopped>
  FederationEnd run_apart(Watch& watch, Stopped& stopped) {
    FederationEnd ended = FederationEnd::finished;
    Time end = state_.now;
    for (SiteId site = 0; site < state_.site_count() && ended == FederationEnd::finished; ++site) {
      ended = run_one(site, watch, stopped);
      end = std::max(end, state_.now);
    }
    state_.now = end;
    submitted_ = routed_ = state_.jobs->size();
    state_.done = 0;
    for (SiteId site = 0; site < state_.site_count(); ++site) count(site);
    if (ended != FederationEnd::finished) return ended;
    if (state_.done < state_.jobs->size()) return FederationEnd::waits;
    end_all();
    touched_.assign(touched_.size(), false);
    return FederationEnd::finished;
  }

  // Finished: nothing is left to happen there.
  template <class Watch, class Stopped>
  FederationEnd run_one(SiteId site, Watch& watch, Stopped& stopped) {
    constexpr std::size_t ahead = 12;
    const auto submits = state_.jobs->submits();
    const std::vector<JobId>& jobs = apart_[site].jobs;
    std::size_t& next = apart_[site].next;
    Engine& engine = state_.engines[site];
    for (std::uint64_t steps = 1;; ++steps) {
      if (steps % 256 == 0 && stopped()) return FederationEnd::stopped;
      const Time now = std::min(next < jobs.size() ? submits[index(jobs[next])] : Time::max(), next_[site]);
      if (now == Time::max()) return FederationEnd::finished;
      state_.now = now;
      const std::size_t first = next;
      while (next < jobs.size() && submits[index(jobs[next])] == now) ++next;
      // Those submitted anywhere lie between the present ones and the next.
      const auto from = next == 0 ? submits.begin() : submits.begin() + index(jobs[next - 1]) + 1;
      const auto until = next < jobs.size() ? submits.begin() + index(jobs[next]) : submits.end();
      engine.advance_to(now);
      engine.tell_submitted(static_cast<std::uint32_t>(std::upper_bound(from, until, now) - submits.begin()));
      progress_[site].observe(engine.view(), engine.events());
      for (std::size_t i = first; i < next; ++i) {
        if (i + ahead < jobs.size()) state_.engines.will_join(jobs[i + ahead]);
        engine.join(jobs[i]);
      }
      if (!decide_at(site, watch)) return FederationEnd::goes_on;
    }
  }

  // What the other way of running counts as it goes.
  void count(SiteId site) {
    state_.loads[site] = {};
    const View view = state_.engines[site].view();
    for (std::size_t i = 0; i < apart_[site].next; ++i) {
      const JobId job = apart_[site].jobs[i];
      detail::JobTrack& track = state_.tracks[index(job)];
      track.site = site;
      track.joined = track.eligible;
      track.stage = view.phase(job) == JobPhase::done ? Stage::done : Stage::there;
      if (track.stage == Stage::there) state_.add_load(job, site, 1);
      state_.loads[site].done += track.stage == Stage::done ? 1 : 0;
    }
    state_.done += state_.loads[site].done;
  }

  // ---- the parts of an instant ----

  void submit(Time now) {
    const auto submits = state_.jobs->submits();
    while (submitted_ < submits.size() && submits[submitted_] <= now) ++submitted_;
  }

  void move_requests(Time now) {
    if (requests_.next_time() != now) return;
    std::vector<char> changed(state_.site_count());
    requests_.move(now, state_.engines, [&changed](SiteId site) { changed[site] = 1; });
    for (SiteId site = 0; site < state_.site_count(); ++site) {
      if (changed[site] != 0) next_[site] = state_.engines[site].next_event_time();
    }
  }

  void move_sites(Time now) {
    for (SiteId site = 0; site < state_.site_count(); ++site) {
      if (next_[site] <= now) move(site);
    }
  }

  // Applies what is due at a site.
  void move(SiteId site) {
    Engine& engine = state_.engines[site];
    if (state_.done < state_.jobs->size() || is_over_)
      expect(site);  // else end_all() does, when the instant is applied
    const bool moved = engine.advance_to(state_.now);
    engine.tell_submitted(submitted_);
    // An instant that brings nothing is none, but where there are too many of them, as in simulate().
    if (moved || ++silent_[site] % Engine::most_silent_instants == 0)
      progress_[site].observe(engine.view(), engine.events());
    touched_[site] = true;
    end_services(site);
    if (!moved) return;
    for (const Event& event : engine.events()) {
      if (event.kind == EventKind::finish && !state_.is_replica(event.job)) end(event.job, site);
    }
  }

  // Replicas of services that are over there end, which is no event.
  void end_services(SiteId site) {
    for (const SiteService& service : state_.world->services) {
      for (const SitePart& part : service.parts) {
        const Engine& engine = state_.engines[site];
        if (part.site != site || engine.services().closed(part.service) == Time::max()) continue;
        const ServiceSpec& spec = engine.services().model().services[part.service];
        if (state_.tracks[spec.first_row].stage == Stage::done) continue;
        for (std::uint32_t row = spec.first_row; row < spec.first_row + spec.most; ++row) end(JobId{row}, site);
      }
    }
  }

  // A site is over when all jobs have ended, wherever. Until those that are on their way join, it knows none of them.
  void expect(SiteId site) {
    const std::uint32_t here = state_.loads[site].done;
    const std::uint32_t all = state_.jobs->size() - (state_.done - here);
    const detail::SiteLoad& load = state_.loads[site];
    const bool others_go_on =
        all - here > load.jobs + load.replicas - load.coming || requests_.next_time() != Time::max();
    state_.engines[site].expect(all, others_go_on);
  }

  // The instant is applied at the site, if nothing was due there.
  Engine& at_now(SiteId site) {
    if (!touched_[site]) move(site);
    return state_.engines[site];
  }

  void end(JobId job, SiteId site) {
    detail::JobTrack& track = state_.tracks[index(job)];
    state_.add_load(job, site, -1);
    track.stage = Stage::done;
    ++state_.loads[site].done;
    ++state_.done;
    const View view = state_.engines[site].view();
    if (state_.learns && !state_.is_replica(job) && !view.is_cancelled(job)) state_.predictor.learn(view, job);
    if (state_.jobs->dependencies().is_empty()) return;
    for (const JobId after : state_.jobs->successors().of(job)) {
      if (--state_.tracks[index(after)].open > 0) continue;
      const Time delay = state_.jobs->dependencies().delay(after);
      if (delay > Time{}) {
        delayed_.push({later_by(state_.now, delay).us, index(after)});
        ++state_.tracks[index(after)].open;
      } else if (index(after) < routed_) {
        ready_.push_back(after);
      }
    }
  }

  void end_transfers() {
    while (state_.network.next_time() == state_.now) {
      const SiteNetwork::Flow flow = state_.network.pop();
      const std::uint32_t transfer = flows_.at({flow.link, flow.number});
      flows_.erase({flow.link, flow.number});
      SiteTransfer& moved = state_.transfers[transfer];
      moved.moved = state_.now;
      moved.end = later_by(state_.now, state_.world->link(moved.from, moved.to)->round_trip);
      arriving_.push({moved.end.us, 2 * transfer});
    }
    std::vector<JobId> there;
    while (due(arriving_) == state_.now) {
      const std::uint32_t what = arriving_.top().second;
      arriving_.pop();
      if (what % 2 == 1) {  // a job's own journey
        if (--state_.tracks[what / 2].missing == 0) there.push_back(JobId{what / 2});
        continue;
      }
      const SiteTransfer& moved = state_.transfers[what / 2];
      detail::ItemAtSite& item = state_.items[state_.key(moved.what, moved.number, moved.to)];
      item.is_here = true;
      state_.bytes_in[moved.to] += moved.bytes;
      for (const JobId job : std::exchange(item.waiting, {})) {
        if (--state_.tracks[index(job)].missing == 0) there.push_back(job);
      }
    }
    std::sort(there.begin(), there.end());
    for (const JobId job : there) join(job);
  }

  void join(JobId job) {
    detail::JobTrack& track = state_.tracks[index(job)];
    Engine& engine = at_now(track.site);
    track.stage = Stage::there;
    track.joined = state_.now;
    track.on_the_way += state_.now - track.sent;
    --state_.loads[track.site].coming;
    engine.join(job);
    track.ran_before = engine.ran(job);
    if (track.until < state_.now) leaving_.push({state_.now.us, index(job)});  // it was on its way for too long
  }

  // Jobs that have not begun by when they were to.
  void hand_over() {
    while (!leaving_.empty() && leaving_.top().first <= state_.now.us) {
      const JobId job{leaving_.top().second};
      leaving_.pop();
      const detail::JobTrack& track = state_.tracks[index(job)];
      if (track.until > state_.now || !may_leave(job) || state_.engines[track.site].first_start(job) != Time::max())
        continue;
      send(job, {.site = track.then});
    }
  }

  // It waits and never ran, or jobs that ran may leave, too.
  [[nodiscard]] bool may_leave(JobId job) const {
    const detail::JobTrack& track = state_.tracks[index(job)];
    if (track.stage != Stage::there) return false;
    const Engine& engine = state_.engines[track.site];
    return options_.moves_running ||
           (engine.first_start(job) == Time::max() && engine.view().phase(job) == JobPhase::pending);
  }

  // Jobs that were to wait for a time after the end of others, and did.
  void end_delays() {
    while (!delayed_.empty() && delayed_.top().first <= state_.now.us) {
      const JobId job{delayed_.top().second};
      delayed_.pop();
      if (--state_.tracks[index(job)].open == 0 && index(job) < routed_) ready_.push_back(job);
    }
  }

  void route_new() {
    end_delays();
    std::sort(ready_.begin(), ready_.end());
    for (const JobId job : std::exchange(ready_, {})) route(job);
    while (routed_ < submitted_) {
      const JobId job{routed_++};
      if (state_.tracks[index(job)].open == 0) route(job);
    }
  }

  void route(JobId job) {
    detail::JobTrack& track = state_.tracks[index(job)];
    track.eligible = state_.now;
    if (state_.is_replica(job)) return send(job, {.site = state_.place_of(job)});
    if (state_.learns) track.predicted_us = state_.predicted(job).us;
    const Route route = router_.route(RouterView(state_), job);
    if (may_go(job, route)) {
      send(job, route);
    } else if (wrong_route_ == no_job) {
      wrong_route_ = job;
    }
  }

  [[nodiscard]] bool may_go(JobId job, const Route& route) const {
    const auto runs_at = [this, &job](SiteId site) {
      return site < state_.site_count() && RouterView(state_).may_run(job, site);
    };
    if (route.until == Time::max()) return runs_at(route.site);
    const bool goes_on = route.site == route.then || state_.world->link(route.site, route.then) != nullptr;
    return route.site < state_.site_count() && state_.is_reachable(job, route.site) && goes_on && runs_at(route.then);
  }

  // First those that wait, by site and queue, then those that run.
  void route_again() {
    next_round_ = next_round_ + options_.every;
    std::vector<JobId> waiting;
    for (SiteId site = 0; site < state_.site_count(); ++site) {
      const View view = state_.engines[site].view();
      for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
        for (const JobId job : view.queue(queue)) waiting.push_back(job);
      }
    }
    std::vector<JobId> running;
    for (SiteId site = 0; site < state_.site_count() && options_.moves_running; ++site) {
      const auto first = static_cast<std::ptrdiff_t>(running.size());
      for (const JobId job : state_.engines[site].view().running()) running.push_back(job);
      std::sort(running.begin() + first, running.end());
    }
    std::pair<SiteId, std::uint32_t> walked{no_site, 0};  // a queue
    detail::JobsAhead at_site, ahead;
    for (const JobId job : waiting) {
      if (state_.is_replica(job)) continue;
      const SiteId site = state_.tracks[index(job)].site;
      const std::pair<SiteId, std::uint32_t> queue{site, state_.engines[site].view().queue_of(job)};
      if (queue.first != walked.first) at_site = running_at(site);
      if (std::exchange(walked, queue) != queue) ahead = at_site;
      ahead.job = job;
      if (route_again(ahead)) continue;
      ahead.asked += state_.jobs->shape(job).gpu_milli();
      ahead.backlog += state_.work_of(job);
    }
    for (const JobId job : running) route_again({.job = job, .is_running = true});
    state_.ahead = {};
  }

  // All that run at a site.
  [[nodiscard]] detail::JobsAhead running_at(SiteId site) const {
    detail::JobsAhead ahead;
    for (const JobId job : state_.engines[site].view().running()) {
      if (state_.is_replica(job)) continue;
      ahead.asked += state_.jobs->shape(job).gpu_milli();
      ahead.backlog += state_.work_of(job);
    }
    return ahead;
  }

  // True when the job goes elsewhere.
  bool route_again(const detail::JobsAhead& ahead) {
    const JobId job = ahead.job;
    const detail::JobTrack& track = state_.tracks[index(job)];
    // One that came from elsewhere at this instant stays: its events are of one instant.
    const bool just_came = track.moves > 0 && track.joined == state_.now;
    if (state_.is_replica(job) || !may_leave(job) || track.moves >= options_.most_moves || just_came) return false;
    const SiteId here = track.site;
    if (options_.moves_running) state_.note_run(job);
    state_.add_load(job, here, -1);  // as if it came anew, but that it keeps its place here
    state_.ahead = ahead;
    const Route route = router_.route(RouterView(state_), job);
    state_.add_load(job, here, 1);
    if (route.site == here || !may_go(job, route)) return false;
    send(job, route);
    return true;
  }

  // Sends the job to a site, with what it needs there.
  void send(JobId job, const Route& route) {
    detail::JobTrack& track = state_.tracks[index(job)];
    const SiteId from = state_.place_of(job);
    if (track.site != no_site) {
      state_.add_load(job, track.site, -1);
      if (track.site != route.site) {
        at_now(track.site).leave(job);
        ++track.moves;
      }
    }
    track.site = route.site;
    track.until = route.until;
    track.then = route.then;
    track.stage = Stage::travels;
    track.sent = state_.now;
    state_.add_load(job, route.site, 1);
    ++state_.loads[route.site].coming;
    if (route.until != Time::max()) leaving_.push({std::max(route.until, state_.now).us, index(job)});
    if (from != route.site) travel(job, state_.world->link(from, route.site)->round_trip);
    state_.for_each_need(job, [this, &job](SiteItem what, std::uint32_t number) { fetch(job, what, number); });
    if (track.missing == 0) join(job);
  }

  void travel(JobId job, Time round_trip) {
    if (round_trip == Time{}) return;
    ++state_.tracks[index(job)].missing;
    arriving_.push({later_by(state_.now, round_trip).us, 2 * index(job) + 1});
  }

  // Lets the job wait for something that is not at its site.
  void fetch(JobId job, SiteItem what, std::uint32_t number) {
    detail::JobTrack& track = state_.tracks[index(job)];
    if (state_.is_at(what, number, track.site)) return;
    ++track.missing;
    if (!state_.is_on_its_way(what, number, track.site)) begin_transfer(what, number, track.site);
    state_.items[state_.key(what, number, track.site)].waiting.push_back(job);
  }

  void begin_transfer(SiteItem what, std::uint32_t number, SiteId to) {
    const SiteId from = state_.source(what, number, to);
    const std::int64_t bytes = state_.bytes_of(what, number);
    state_.items[state_.key(what, number, to)] = {};
    state_.bytes_out[from] += bytes;
    const SiteNetwork::Flow flow = state_.network.begin(state_.now, from, to, bytes);
    flows_[{flow.link, flow.number}] = static_cast<std::uint32_t>(state_.transfers.size());
    state_.transfers.push_back(
        {.what = what, .number = number, .from = from, .to = to, .bytes = bytes, .begin = state_.now});
  }

  // The policies of all sites where something happened. False: one would go on for ever.
  template <class Watch>
  bool decide(Watch& watch) {
    bool goes_on = false;
    do {  // once more where a decision cancelled the last job
      if (state_.done == state_.jobs->size() && !is_over_) end_all();
      for (SiteId site = 0; site < state_.site_count(); ++site) {
        if (touched_[site]) goes_on = !decide_at(site, watch) || goes_on;
      }
    } while (state_.done == state_.jobs->size() && !is_over_);
    return !goes_on;
  }

  template <class Watch>
  bool decide_at(SiteId site, Watch& watch) {
    touched_[site] = false;
    Engine& engine = state_.engines[site];
    const OracleView view = engine.view();
    if (!engine.events().empty()) {
      watch(site, view, engine.events());
      Decision decision = engine.decision();
      policies_[site].decide(view, decision);
      engine.apply();
    }
    if (!engine.events().empty()) {
      watch(site, view, engine.events());
      progress_[site].observe(view, engine.events());
      if (apart_.empty()) end_cancelled(site);
    }
    expect(site);
    next_[site] = engine.next_event_time();
    return !progress_[site].endless();
  }

  // Jobs that the decision gave up.
  void end_cancelled(SiteId site) {
    const Engine& engine = state_.engines[site];
    for (const Event& event : engine.events()) {
      if (event.kind == EventKind::withdraw && engine.is_cancelled(event.job)) end(event.job, site);
    }
  }

  // All sites end at the same instant, that of the last job's end.
  void end_all() {
    next_round_ = Time::max();
    for (SiteId site = 0; site < state_.site_count(); ++site) {
      at_now(site);
      expect(site);
    }
    is_over_ = true;
  }

  struct Apart {
    std::vector<JobId> jobs;  // that run there, by submission
    std::size_t next = 0;     // the first that has not joined
  };

  detail::SiteState state_;
  std::vector<Apart> apart_;  // by site; empty: sites have to do with each other
  std::vector<AnyPolicy> policies_;
  AnyRouter router_;
  FederationOptions options_;
  std::vector<detail::ProgressWatch> progress_;
  std::vector<Time> next_;             // event, by site
  std::vector<std::uint32_t> silent_;  // instants without events, by site
  std::vector<char> touched_;          // by site: this instant is applied there, and it is yet to decide
  detail::SiteRequests requests_;
  std::uint32_t submitted_ = 0;  // jobs, by now
  std::uint32_t routed_ = 0;     // those of lower ids were routed, or wait for others
  std::vector<JobId> ready_;     // the last job that they wait for has ended
  DueQueue leaving_;             // jobs by Route::until
  DueQueue delayed_;             // jobs that wait for a time after the end of others
  DueQueue arriving_;            // 2 * transfer, or 2 * job + 1: when it is there
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> flows_;  // transfers by link and number
  Time next_round_ = Time::max();
  bool is_over_ = false;
  JobId wrong_route_ = no_job;
};

}  // namespace gpusched
