// SPDX-License-Identifier: Apache-2.0
/// SiteState: everything that a run over several sites changes, but for policies and router. RouterView reads it,
/// Federation moves it; nobody else touches it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gpusched/engine/engine.hpp"
#include "gpusched/policy/runtime_predictor.hpp"
#include "gpusched/sites/site_network.hpp"
#include "gpusched/sites/site_world.hpp"

namespace gpusched {

/// What a transfer moved.
enum class SiteItem : std::uint8_t {
  job_data,    ///< a job's own
  output,      ///< of a job, for one after it
  checkpoint,  ///< of a job that ran
  data_set,    ///< that jobs share
};

/// A transfer, as it was.
struct SiteTransfer {
  SiteItem what = SiteItem::job_data;  ///< what moved
  std::uint32_t number = 0;            ///< of the job or of the data set
  SiteId from = 0;                     ///< site that it left
  SiteId to = 0;                       ///< site where it goes
  std::int64_t bytes = 0;              ///< of it
  Time begin{};                        ///< it begins to move
  Time end = Time::max();              ///< it is there: the last byte and a round trip later; max(): on its way
  Time moved = Time::max();            ///< the last byte has left
};

namespace detail {

/// Where a job is in the run, beside what its engine knows.
struct JobTrack {
  enum class Stage : std::uint8_t { future, travels, there, done };
  SiteId site = no_site;          ///< where it is, or travels to
  SiteId then = no_site;          ///< where it goes at `until`, unless it has begun
  SiteId ran_at = no_site;        ///< where its checkpoint was made, if it may leave after it ran
  Stage stage = Stage::future;    ///< which
  std::uint16_t moves = 0;        ///< after the first routing
  std::uint32_t missing = 0;      ///< things on their way to it
  std::uint32_t open = 0;         ///< jobs that it waits for
  Time eligible{};                ///< submitted, and the last of these had ended
  Time joined = Time::max();      ///< its queue, at its last site
  Time until = Time::max();       ///< see `then`
  Time ran_before{};              ///< elsewhere, when it joined
  Time sent{};                    ///< when it was last sent to a site
  Time on_the_way{};              ///< how long it waited for its journeys and for what it needs, all together
  std::int64_t predicted_us = 0;  ///< its part of its site's backlog
};

/// What a router made a site busy with: jobs that wait there, run there or are on their way.
struct SiteLoad {
  std::uint32_t jobs = 0;      ///< of them
  MilliGpu asked = 0;          ///< GPUs
  SiteSum backlog = 0;         ///< those times predicted run times: thousandths of a GPU times microseconds
  std::uint32_t coming = 0;    ///< of those jobs: on their way
  std::uint32_t done = 0;      ///< jobs and replicas that ended there
  std::uint32_t replicas = 0;  ///< rows of services there that are not over

  friend bool operator==(const SiteLoad&, const SiteLoad&) = default;
};

/// What is before a job that waits or runs at its site and may leave: of those that wait, who came earlier.
struct JobsAhead {
  JobId job = no_job;       ///< whom it is said of
  MilliGpu asked = 0;       ///< GPUs of those that run there, or wait before it
  SiteSum backlog = 0;      ///< those times predicted run times, as SiteLoad::backlog
  bool is_running = false;  ///< it runs, so that nobody is ahead of it
};

/// An item at a site, or on its way there.
struct ItemAtSite {
  bool is_here = false;
  std::vector<JobId> waiting = {};  ///< jobs that need it there
};

/// The engines of all sites, and the jobs that they share. A value.
class SiteEngines {
 public:
  /// For so many jobs.
  void open(std::uint32_t jobs, std::size_t sites) {
    jobs_ = HostedJobs(jobs);
    engines_.reserve(sites);
  }
  Engine& add(const JobTable& jobs, const Cluster& cluster, const EngineOptions& options, RunInputs inputs) {
    inputs.hosted = &jobs_;
    inputs.engine = static_cast<std::uint32_t>(engines_.size());
    return engines_.emplace_back(jobs, cluster, options, inputs);
  }

  SiteEngines() = default;
  SiteEngines(SiteEngines&&) noexcept = default;
  SiteEngines& operator=(SiteEngines&&) noexcept = default;
  SiteEngines(const SiteEngines& other) : engines_(other.engines_), jobs_(other.jobs_) { share(); }
  SiteEngines& operator=(const SiteEngines& other) { return *this = SiteEngines(other); }
  ~SiteEngines() = default;

  Engine& operator[](std::size_t site) { return engines_[site]; }
  const Engine& operator[](std::size_t site) const { return engines_[site]; }
  [[nodiscard]] std::size_t size() const { return engines_.size(); }
  /// The job joins soon: a hint for the memory.
  void will_join(JobId job) const {
    prefetch(&jobs_.states[index(job)]);
    prefetch(&jobs_.states[index(job)].attempt);
    prefetch(&jobs_.stays[index(job)]);
  }

 private:
  static void prefetch(const void* at) {
#if defined(__GNUC__)
    __builtin_prefetch(at, 1);
#endif
  }
  void share() {
    for (Engine& engine : engines_) engine.share(jobs_);
  }

  std::vector<Engine> engines_;
  HostedJobs jobs_;
};

struct SiteState {
  const JobTable* jobs = nullptr;        ///< borrowed
  const SiteWorld* world = nullptr;      ///< borrowed
  std::vector<const Cluster*> clusters;  ///< borrowed
  Time now{};
  SiteEngines engines;
  std::vector<SiteLoad> loads;
  JobsAhead ahead = {};  ///< of the job that is routed anew
  bool learns = true;    ///< the router asks for run times: the predictor and SiteLoad::backlog are kept
  std::vector<JobTrack> tracks;
  SiteNetwork network;
  RuntimePredictor predictor;
  std::vector<SiteTransfer> transfers;  ///< all, by their beginning
  /// Items that are not only where they were at first: [item * sites + site].
  std::map<std::uint64_t, ItemAtSite> items;
  mutable std::vector<std::vector<std::int8_t>> fits;  ///< [site][shape * queues + queue]: known, yes or no
  std::vector<SiteSum> bytes_in, bytes_out;            ///< by site
  std::uint32_t done = 0;                              ///< jobs

  [[nodiscard]] SiteId site_count() const { return static_cast<SiteId>(engines.size()); }

  // ---- where things are ----

  /// Numbers of items: own data of jobs, their outputs, data sets.
  [[nodiscard]] std::uint64_t item(SiteItem what, std::uint32_t number) const {
    return std::uint64_t{jobs->size()} * static_cast<std::uint64_t>(what) + number;
  }
  [[nodiscard]] std::uint64_t key(SiteItem what, std::uint32_t number, SiteId site) const {
    return item(what, number) * site_count() + site;
  }
  [[nodiscard]] bool is_at(SiteItem what, std::uint32_t number, SiteId site) const {
    const auto known = items.find(key(what, number, site));
    if (known != items.end() && known->second.is_here) return true;
    switch (what) {
      case SiteItem::job_data: return world->place(JobId{number}).home == site;
      case SiteItem::output: return tracks[number].site == site && tracks[number].stage == JobTrack::Stage::done;
      case SiteItem::checkpoint: return tracks[number].ran_at == site;
      case SiteItem::data_set: break;
    }
    const std::vector<SiteId>& at = world->data_sets[number].at;
    return std::find(at.begin(), at.end(), site) != at.end();
  }
  [[nodiscard]] bool is_on_its_way(SiteItem what, std::uint32_t number, SiteId site) const {
    const auto known = items.find(key(what, number, site));
    return known != items.end() && !known->second.is_here;
  }
  [[nodiscard]] std::int64_t bytes_of(SiteItem what, std::uint32_t number) const {
    if (what == SiteItem::data_set) return world->data_sets[number].bytes;
    const JobPlace place = world->place(JobId{number});
    if (what == SiteItem::checkpoint) return place.checkpoint_bytes;
    return what == SiteItem::job_data ? place.bytes : place.output_bytes;
  }

  /// Seconds that so many bytes take on an idle link between idle sites, its round trip included. Precondition: there
  /// is such a link.
  [[nodiscard]] double idle_seconds(SiteId from, SiteId to, std::int64_t bytes) const {
    const SiteLink& link = *world->link(from, to);
    const double width = std::min({link.bytes_per_s, world->sites[from].uplink, world->sites[to].downlink});
    return static_cast<double>(bytes) / width + to_seconds(link.round_trip);
  }
  /// The site that has the item and from which it would come soonest, were nothing else on its way; no_site: there is
  /// no way.
  [[nodiscard]] SiteId source(SiteItem what, std::uint32_t number, SiteId to) const {
    SiteId best = no_site;
    double least = 0;
    for (SiteId from = 0; from < site_count(); ++from) {
      if (from == to || world->link(from, to) == nullptr || !is_at(what, number, from)) continue;
      const double seconds = idle_seconds(from, to, bytes_of(what, number));
      if (best == no_site || seconds < least) {
        best = from;
        least = seconds;
      }
    }
    return best;
  }

  /// Calls visit(what, number) for each thing with bytes that the job needs where it runs.
  template <class Visit>
  void for_each_need(JobId job, Visit visit) const {
    const JobPlace place = world->place(job);
    if (place.bytes > 0) visit(SiteItem::job_data, index(job));
    if (place.checkpoint_bytes > 0 && tracks[index(job)].ran_at != no_site) visit(SiteItem::checkpoint, index(job));
    if (place.data_set != no_index && world->data_sets[place.data_set].bytes > 0) {
      visit(SiteItem::data_set, place.data_set);
    }
    for (const JobId before : jobs->dependencies().of(job)) {
      if (bytes_of(SiteItem::output, index(before)) == 0) continue;
      const SiteId made_at = tracks[index(before)].site;  // a cancelled job made nothing
      if (made_at != no_site && engines[made_at].is_cancelled(before)) continue;
      visit(SiteItem::output, index(before));
    }
  }

  /// The job has run at its site since it joined: what was kept of it elsewhere is old.
  void note_run(JobId job) {
    JobTrack& track = tracks[index(job)];
    const View view = engines[track.site].view();
    if (view.phase(job) != JobPhase::running && view.ran(job) == track.ran_before) return;
    track.ran_at = track.site;
    for (SiteId site = 0; site < site_count(); ++site) items.erase(key(SiteItem::checkpoint, index(job), site));
  }

  /// The run time that is left of what somebody expects. At least 0.
  [[nodiscard]] Time predicted_left(JobId job) const {
    const SiteId site = tracks[index(job)].site;
    if (site == no_site) return predicted(job);
    const View view = engines[site].view();  // as of the last instant at which something happened there
    const Time since = view.phase(job) == JobPhase::running ? now - view.now() : Time{};
    return std::max(predicted(job) - view.ran(job) - since, Time{});
  }

  /// Where a job is that may be sent: its home before its first routing.
  [[nodiscard]] SiteId place_of(JobId job) const {
    const JobTrack& track = tracks[index(job)];
    return track.site == no_site ? world->place(job).home : track.site;
  }

  // ---- what fits where ----

  /// Its gang finds room on the empty site.
  [[nodiscard]] bool fits_empty(JobId job, SiteId site) const {
    const View view = engines[site].view();
    const std::size_t at = std::size_t{view.shape_id(job)} * view.queue_count() + view.queue_of(job);
    std::vector<std::int8_t>& known = fits[site];
    if (known.empty()) known.assign(std::size_t{view.shape_count()} * view.queue_count(), -1);
    if (known[at] < 0) {
      known[at] = ClusterState::fits_when_empty(*clusters[site], jobs->gpu_specs(), view.shape(job), view.queue_of(job))
                      ? 1
                      : 0;
    }
    return known[at] == 1;
  }
  /// There is a way for the job and all that it needs.
  [[nodiscard]] bool is_reachable(JobId job, SiteId site) const {
    const SiteId from = place_of(job);
    if (from != site && world->link(from, site) == nullptr) return false;
    bool reached = true;
    for_each_need(job, [this, &reached, &site](SiteItem what, std::uint32_t number) {
      reached = reached && (is_at(what, number, site) || is_on_its_way(what, number, site) ||
                            source(what, number, site) != no_site);
    });
    return reached;
  }

  // ---- loads ----

  [[nodiscard]] bool is_replica(JobId job) const { return index(job) < jobs->replicas(); }
  /// GPUs of the replicas at a site that are asked for, or hold them still.
  [[nodiscard]] MilliGpu asked_by_services(SiteId site) const {
    MilliGpu sum = 0;
    for (const SiteService& service : world->services) {
      for (const SitePart& part : service.parts) {
        if (part.site != site) continue;
        const ServiceSpec& spec = engines[site].services().model().services[part.service];
        sum += engines[site].services().asked_for(part.service) * jobs->shape(JobId{spec.first_row}).gpu_milli();
      }
    }
    return sum;
  }

  void add_load(JobId job, SiteId site, std::int64_t sign) {
    SiteLoad& load = loads[site];
    if (is_replica(job)) {
      load.replicas += static_cast<std::uint32_t>(sign);
      return;
    }
    const MilliGpu milli = jobs->shape(job).gpu_milli();
    load.jobs += static_cast<std::uint32_t>(sign);
    load.asked += sign * milli;
    load.backlog += sign * work_of(job);
  }
  /// GPUs times predicted run time; 0 where nobody asks for those.
  [[nodiscard]] SiteSum work_of(JobId job) const {
    return learns ? SiteSum{jobs->shape(job).gpu_milli()} * tracks[index(job)].predicted_us : SiteSum{0};
  }
  /// What was counted is what tracks and engines say, and each engine is consistent. O(jobs + sites).
  [[nodiscard]] bool consistent() const {
    using Stage = JobTrack::Stage;
    std::vector<SiteLoad> found(loads.size());
    std::uint32_t ended = 0;
    for (std::uint32_t i = 0; i < jobs->size(); ++i) {
      const JobTrack& track = tracks[i];
      if (track.stage == Stage::future) continue;
      SiteLoad& load = found[track.site];
      const JobPhase phase = engines[track.site].view().phase(JobId{i});
      if (track.stage == Stage::done) {
        ++ended;
        ++load.done;
        if (phase != JobPhase::done) return false;
        continue;
      }
      if (is_replica(JobId{i})) {
        ++load.replicas;
        continue;
      }
      if (track.stage == Stage::there && phase != JobPhase::pending && phase != JobPhase::running) return false;
      if ((track.stage == Stage::travels) != (phase == JobPhase::future)) return false;
      ++load.jobs;
      load.coming += track.stage == Stage::travels ? 1 : 0;
      load.asked += jobs->shape(JobId{i}).gpu_milli();
      if (learns) load.backlog += SiteSum{jobs->shape(JobId{i}).gpu_milli()} * track.predicted_us;
    }
    for (SiteId site = 0; site < site_count(); ++site) {
      if (!engines[site].consistent()) return false;
    }
    return ended == done && found == loads;
  }
  /// The run time that somebody expects who knows what users estimate and how long jobs ran that have ended.
  [[nodiscard]] Time predicted(JobId job) const {
    GPUSCHED_ASSERT(learns, "a router that reads_no_run_times asks for one");
    if (jobs->estimate(job) != Time::max()) return jobs->estimate(job);
    return from_seconds(std::min(predictor.predict_seconds(jobs->vc(job), jobs->shape_id(job), jobs->user(job)), 1e9));
  }
};

}  // namespace detail
}  // namespace gpusched
