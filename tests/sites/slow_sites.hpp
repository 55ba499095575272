// SPDX-License-Identifier: Apache-2.0
/// A federation written down anew, without engine and network: sites that count GPUs and start jobs in order of their
/// coming (the first that does not fit blocks, or is passed over), everything recomputed at each instant.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "gpusched/core/rng.hpp"
#include "gpusched/sites/routers.hpp"

namespace gpusched::test {

/// Which rule sends jobs, by name as routers have them, and burst with a wait that is constant.
enum class SlowRule : std::uint8_t {
  local,
  most_available,
  least_loaded,
  data_present,
  completion,
  carbon,
  random,
  burst
};

/// What became of a job.
struct SlowSiteJob {
  SiteId site = no_site, then = no_site;
  enum class Stage : std::uint8_t { future, travels, waits, runs, done } stage = Stage::future;
  std::int64_t eligible = -1, joined = -1, start = -1, end = -1, until = -1;
  std::uint32_t moves = 0;
  std::set<std::size_t> needs = {};   // transfers under way that it waits for
  std::int64_t journey = -1;          // when its own is over
  std::int64_t gpus = 0, since = -1;  // asked for; the present start
  std::int64_t first_start = -1;
  SiteId ran_at = no_site;         // where its checkpoint is
  std::int64_t ran_at_since = -1;  // copies that came before are of an older one
  bool must_restart = false;
  std::int64_t worked = 0;   // before its present start
  std::int64_t loading = 0;  // what that start takes
};

/// A transfer; the last byte leaves at `moved`, -1 while it moves.
struct SlowTransfer {
  SiteItem what = SiteItem::job_data;
  std::uint32_t number = 0;
  SiteId from = 0, to = 0;
  std::int64_t bytes = 0, begin = 0, moved = -1, end = -1;
  long double left = 0, rate = 0;
};

class SlowSites {
 public:
  SlowSites(const JobTable& jobs, const SiteWorld& world, std::vector<std::int64_t> gpus, bool skips, SlowRule rule,
            Time wait, SiteId cloud, std::uint64_t seed, const FederationOptions& options, Time restart = {})
      : jobs_(jobs),
        world_(world),
        gpus_(std::move(gpus)),
        skips_(skips),
        rule_(rule),
        wait_(wait.us),
        cloud_(cloud),
        seed_(seed),
        options_(options),
        restart_(restart.us),
        queues_(gpus_.size()) {
    all.resize(jobs.size());
    for (std::uint32_t i = 0; i < jobs.size(); ++i) all[i].gpus = gpus_of(i);
    held.resize(gpus_.size());
  }

  void run() {
    if (options_.every.us > 0) round_ = jobs_.submit(JobId{0}).us + options_.every.us;
    for (std::int64_t next = next_time(); next >= 0; next = next_time()) {
      pass(next);
      instant();
    }
  }

  std::vector<SlowSiteJob> all;
  std::vector<SlowTransfer> transfers;
  std::vector<std::int64_t> held;  // by site: GPUs times microseconds

 private:
  using Stage = SlowSiteJob::Stage;

  [[nodiscard]] std::int64_t gpus_of(std::uint32_t job) const { return jobs_.shape(JobId{job}).tasks; }
  [[nodiscard]] JobPlace place(std::uint32_t job) const { return world_.place(JobId{job}); }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>(all.size()); }

  // ---- time ----

  [[nodiscard]] std::int64_t next_time() const {
    std::int64_t next = -1;
    const auto consider = [&](std::int64_t t) {
      if (t >= now_ && (next < 0 || t < next)) next = t;
    };
    bool over = true;
    for (std::uint32_t i = 0; i < count(); ++i) {
      const SlowSiteJob& job = all[i];
      over = over && job.stage == Stage::done;
      if (i >= submitted_) consider(jobs_.submit(JobId{i}).us);
      if (job.stage == Stage::future && open_from(i) >= 0) consider(std::max(open_from(i), jobs_.submit(JobId{i}).us));
      if (job.stage == Stage::runs) consider(job.end);
      if (job.stage == Stage::travels && job.journey > now_) consider(job.journey);
      if (job.stage == Stage::waits && job.first_start < 0 && job.until >= 0) consider(std::max(job.until, now_));
    }
    for (const SlowTransfer& transfer : transfers) {
      if (transfer.moved < 0) consider(now_ + ceil_us(transfer));
      if (transfer.moved >= 0 && transfer.end > now_) consider(transfer.end);
    }
    if (over) return -1;
    if (next >= 0 && round_ >= 0 && round_ < next) next = round_;
    return next;
  }
  // Rounded up, but for what rounding adds.
  static std::int64_t ceil_us(const SlowTransfer& transfer) {
    return std::max<std::int64_t>(0,
                                  static_cast<std::int64_t>(std::ceil(transfer.left / transfer.rate * 1e6L - 1e-3L)));
  }
  void pass(std::int64_t next) {
    for (SlowTransfer& transfer : transfers) {
      if (transfer.moved < 0) transfer.left -= transfer.rate * static_cast<long double>(next - now_) / 1e6L;
    }
    now_ = next;
  }

  void instant() {
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (all[i].stage == Stage::runs && all[i].end <= now_) {
        all[i].stage = Stage::done;
        held[all[i].site] += gpus_of(i) * (now_ - all[i].since);
      }
    }
    end_transfers();
    for (std::uint32_t i = 0; i < count(); ++i) hand_over(i);
    for (std::uint32_t i = 0; i < count(); ++i) {  // first those whose predecessors ended now
      if (i < submitted_ && all[i].stage == Stage::future && is_open(i)) route_first(i);
    }
    while (submitted_ < count() && jobs_.submit(JobId{submitted_}).us <= now_) {
      const std::uint32_t job = submitted_++;
      if (is_open(job)) route_first(job);
    }
    if (round_ == now_) route_again();
    for (SiteId site = 0; site < gpus_.size(); ++site) start_jobs(site);
  }

  // When the job waits no more for others; -1: never yet.
  [[nodiscard]] std::int64_t open_from(std::uint32_t job) const {
    std::int64_t from = 0;
    for (const JobId before : jobs_.dependencies().of(JobId{job})) {
      if (all[index(before)].stage != Stage::done) return -1;
      from = std::max(from, all[index(before)].end + jobs_.dependencies().delay(JobId{job}).us);
    }
    return from;
  }
  [[nodiscard]] bool is_open(std::uint32_t job) const { return open_from(job) >= 0 && open_from(job) <= now_; }

  void start_jobs(SiteId site) {
    std::int64_t free = gpus_[site];
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (all[i].stage == Stage::runs && all[i].site == site) free -= gpus_of(i);
    }
    std::vector<std::uint32_t>& queue = queues_[site];
    for (std::size_t at = 0; at < queue.size();) {
      const std::uint32_t job = queue[at];
      if (gpus_of(job) > free) {
        if (!skips_) return;
        ++at;
        continue;
      }
      free -= gpus_of(job);
      all[job].stage = Stage::runs;
      all[job].start = all[job].first_start < 0 ? now_ : all[job].start;
      all[job].first_start = all[job].start;
      all[job].since = now_;
      all[job].loading = std::exchange(all[job].must_restart, false) ? restart_ : 0;
      all[job].end = now_ + all[job].loading + jobs_.work(JobId{job}).us - all[job].worked;
      queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }

  // ---- data ----

  [[nodiscard]] std::vector<std::pair<SiteItem, std::uint32_t>> needs_of(std::uint32_t job) const {
    std::vector<std::pair<SiteItem, std::uint32_t>> needs;
    const JobPlace at = place(job);
    if (at.bytes > 0) needs.emplace_back(SiteItem::job_data, job);
    if (at.checkpoint_bytes > 0 && all[job].ran_at != no_site) needs.emplace_back(SiteItem::checkpoint, job);
    if (at.data_set != no_index && world_.data_sets[at.data_set].bytes > 0)
      needs.emplace_back(SiteItem::data_set, at.data_set);
    for (const JobId before : jobs_.dependencies().of(JobId{job})) {
      if (place(index(before)).output_bytes > 0) needs.emplace_back(SiteItem::output, index(before));
    }
    return needs;
  }
  [[nodiscard]] std::int64_t bytes_of(SiteItem what, std::uint32_t number) const {
    if (what == SiteItem::data_set) return world_.data_sets[number].bytes;
    if (what == SiteItem::checkpoint) return place(number).checkpoint_bytes;
    return what == SiteItem::job_data ? place(number).bytes : place(number).output_bytes;
  }
  [[nodiscard]] bool has(SiteId site, SiteItem what, std::uint32_t number) const {
    for (const SlowTransfer& transfer : transfers) {
      if (transfer.to == site && transfer.what == what && transfer.number == number && transfer.end >= 0 &&
          transfer.end <= now_ && (what != SiteItem::checkpoint || transfer.begin >= all[number].ran_at_since))
        return true;
    }
    if (what == SiteItem::job_data) return place(number).home == site;
    if (what == SiteItem::checkpoint) return all[number].ran_at == site;
    if (what == SiteItem::output) return all[number].site == site && all[number].stage == Stage::done;
    const auto& at = world_.data_sets[number].at;
    return std::count(at.begin(), at.end(), site) > 0;
  }
  [[nodiscard]] std::optional<std::size_t> coming(SiteId site, SiteItem what, std::uint32_t number) const {
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const SlowTransfer& transfer = transfers[i];
      if (transfer.to == site && transfer.what == what && transfer.number == number &&
          (transfer.end < 0 || transfer.end > now_))
        return i;
    }
    return std::nullopt;
  }
  [[nodiscard]] SiteId source(SiteItem what, std::uint32_t number, SiteId to) const {
    std::optional<std::pair<double, SiteId>> best;
    for (SiteId from = 0; from < gpus_.size(); ++from) {
      const SiteLink* const link = from == to ? nullptr : world_.link(from, to);
      if (link == nullptr || !has(from, what, number)) continue;
      const double seconds = static_cast<double>(bytes_of(what, number)) /
                                 std::min({link->bytes_per_s, world_.sites[from].uplink, world_.sites[to].downlink}) +
                             to_seconds(link->round_trip);
      if (!best || std::pair(seconds, from) < *best) best = {seconds, from};
    }
    return best ? best->second : no_site;
  }

  void end_transfers() {
    bool changed = false;
    for (SlowTransfer& transfer : transfers) {
      if (transfer.moved >= 0 || ceil_us(transfer) > 0) continue;
      transfer.moved = now_;
      transfer.end = now_ + world_.link(transfer.from, transfer.to)->round_trip.us;
      changed = true;
    }
    if (changed) share();
    for (std::uint32_t i = 0; i < count(); ++i) {
      SlowSiteJob& job = all[i];
      if (job.stage != Stage::travels) continue;
      std::erase_if(job.needs, [&](std::size_t at) { return transfers[at].end >= 0 && transfers[at].end <= now_; });
      if (job.needs.empty() && job.journey <= now_) join(i);
    }
  }

  // Max-min fair rates by another way than filling: no transfer may grow but at the cost of one that is not faster.
  // Raises the least rates first, transfer by transfer.
  void share() {
    std::vector<SlowTransfer*> open;
    for (SlowTransfer& transfer : transfers) {
      if (transfer.moved < 0) open.push_back(&transfer);
    }
    for (SlowTransfer* transfer : open) transfer->rate = 0;
    // Each transfer takes three things: its link, an uplink, a downlink.
    const auto things = [&](const SlowTransfer& transfer) {
      return std::vector<std::tuple<int, SiteId, SiteId>>{
          {0, transfer.from, transfer.to}, {1, transfer.from, 0}, {2, transfer.to, 0}};
    };
    std::map<std::tuple<int, SiteId, SiteId>, std::vector<SlowTransfer*>> users;
    std::map<std::tuple<int, SiteId, SiteId>, long double> room;
    for (SlowTransfer* transfer : open) {
      for (const auto& thing : things(*transfer)) users[thing].push_back(transfer);
      room[{0, transfer->from, transfer->to}] = world_.link(transfer->from, transfer->to)->bytes_per_s;
      room[{1, transfer->from, 0}] = world_.sites[transfer->from].uplink;
      room[{2, transfer->to, 0}] = world_.sites[transfer->to].downlink;
    }
    while (!room.empty()) {
      auto tightest = room.end();
      long double least = 0;
      for (auto at = room.begin(); at != room.end(); ++at) {
        const auto sharing = std::count_if(users[at->first].begin(), users[at->first].end(),
                                           [](const SlowTransfer* transfer) { return transfer->rate == 0; });
        if (sharing == 0) continue;
        const long double each = at->second / static_cast<long double>(sharing);
        if (tightest == room.end() || each < least) {
          tightest = at;
          least = each;
        }
      }
      if (tightest == room.end()) return;
      for (SlowTransfer* transfer : users[tightest->first]) {
        if (transfer->rate != 0) continue;
        transfer->rate = least;
        for (const auto& thing : things(*transfer)) room[thing] -= least;
      }
    }
  }

  // ---- routing ----

  [[nodiscard]] SiteId at(std::uint32_t job) const {
    return all[job].site == no_site ? place(job).home : all[job].site;
  }
  [[nodiscard]] bool may_run(std::uint32_t job, SiteId site) const {
    return gpus_of(job) <= gpus_[site] && reaches(job, site);
  }
  [[nodiscard]] bool reaches(std::uint32_t job, SiteId site) const {
    if (at(job) != site && world_.link(at(job), site) == nullptr) return false;
    for (const auto& [what, number] : needs_of(job)) {
      if (!has(site, what, number) && !coming(site, what, number) && source(what, number, site) == no_site)
        return false;
    }
    return true;
  }
  // Jobs at a site or on their way to it, without one.
  template <class Of>
  [[nodiscard]] SiteSum sum_at(SiteId site, std::uint32_t without, Of of) const {
    SiteSum sum = 0;
    for (std::uint32_t i = 0; i < count(); ++i) {
      const bool is_there = all[i].site == site && all[i].stage != Stage::future && all[i].stage != Stage::done;
      if (is_there && i != without) sum += of(i);
    }
    return sum;
  }
  [[nodiscard]] std::int64_t asked(SiteId site, std::uint32_t without) const {
    return static_cast<std::int64_t>(sum_at(site, without, [&](std::uint32_t i) { return gpus_of(i); }));
  }
  [[nodiscard]] std::int64_t transfer_us(std::uint32_t job, SiteId to) const {
    std::int64_t longest =
        at(job) == to || world_.link(at(job), to) == nullptr ? 0 : world_.link(at(job), to)->round_trip.us;
    for (const auto& [what, number] : needs_of(job)) {
      if (has(to, what, number)) continue;
      const SiteId from = source(what, number, to);
      if (from == no_site) continue;
      double on_link = 1, leaving = 1, arriving = 1;
      for (const SlowTransfer& other : transfers) {
        if (other.moved >= 0) continue;
        on_link += other.from == from && other.to == to ? 1 : 0;
        leaving += other.from == from ? 1 : 0;
        arriving += other.to == to ? 1 : 0;
      }
      const SiteLink& link = *world_.link(from, to);
      const double width = std::min(
          {link.bytes_per_s / on_link, world_.sites[from].uplink / leaving, world_.sites[to].downlink / arriving});
      longest =
          std::max(longest, from_seconds(static_cast<double>(bytes_of(what, number)) / width).us + link.round_trip.us);
    }
    return longest;
  }
  // At its own site a job keeps its place: those count that run, or stand before it in the queue.
  [[nodiscard]] std::int64_t wait_there_us(std::uint32_t job, SiteId site) const {
    if (all[job].stage == Stage::runs || world_.sites[site].is_unlimited) return 0;
    std::vector<std::uint32_t> ahead;
    for (std::uint32_t i = 0; i < count(); ++i) {
      if (all[i].stage == Stage::runs && all[i].site == site) ahead.push_back(i);
    }
    for (const std::uint32_t other : queues_[site]) {
      if (other == job) break;
      ahead.push_back(other);
    }
    std::int64_t gpus = 0;
    SiteSum work = 0;
    for (const std::uint32_t other : ahead) {
      gpus += gpus_of(other);
      work += SiteSum{gpus_of(other)} * jobs_.estimate(JobId{other}).us;
    }
    return gpus + gpus_of(job) <= gpus_[site] ? 0 : static_cast<std::int64_t>(work / gpus_[site]);
  }
  [[nodiscard]] std::int64_t wait_us(std::uint32_t job, SiteId site) const {
    const bool is_there = all[job].stage == Stage::waits || all[job].stage == Stage::runs;
    if (is_there && all[job].site == site) return wait_there_us(job, site);
    if (world_.sites[site].is_unlimited || asked(site, job) + gpus_of(job) <= gpus_[site]) return 0;
    const SiteSum work =
        sum_at(site, job, [&](std::uint32_t i) { return SiteSum{gpus_of(i)} * jobs_.estimate(JobId{i}).us; });
    return static_cast<std::int64_t>(work / gpus_[site]);
  }

  [[nodiscard]] Route rule_of(std::uint32_t job) const {
    const SiteId home = place(job).home;
    if (rule_ == SlowRule::local) return {home};
    if (rule_ == SlowRule::burst) {
      if (home == cloud_ || !may_run(job, cloud_)) return {home};
      if (at(job) == cloud_ || !may_run(job, home)) return {cloud_};
      return {home, Time{all[job].eligible + wait_}, cloud_};
    }
    std::vector<SiteId> sites;
    for (SiteId site = 0; site < gpus_.size(); ++site) {
      if (may_run(job, site)) sites.push_back(site);
    }
    if (sites.empty()) return {};
    if (rule_ == SlowRule::random) {
      Rng rng = Rng(seed_).split("router").split(job);
      return {sites[rng.below(sites.size())]};
    }
    const auto key = [&](SiteId site) {
      const bool is_cloud = world_.sites[site].is_unlimited;
      const double load = is_cloud ? 0 : static_cast<double>(asked(site, job)) / static_cast<double>(gpus_[site]);
      switch (rule_) {
        case SlowRule::most_available:
          return std::pair(is_cloud ? -1e18 : static_cast<double>(asked(site, job) - gpus_[site]), 0.0);
        case SlowRule::least_loaded: return std::pair(load, 0.0);
        case SlowRule::data_present: return std::pair(static_cast<double>(transfer_us(job, site)), load);
        case SlowRule::completion:
          return std::pair(static_cast<double>(std::max(transfer_us(job, site), wait_us(job, site))), 0.0);
        default: return std::pair(world_.sites[site].carbon_g_per_kwh.at(Time{now_}), 0.0);
      }
    };
    std::stable_sort(sites.begin(), sites.end(), [&](SiteId a, SiteId b) {
      return std::tuple(key(a), a != at(job), a != home, a) < std::tuple(key(b), b != at(job), b != home, b);
    });
    return {sites.front()};
  }

  void route_first(std::uint32_t job) {
    all[job].eligible = now_;
    send(job, rule_of(job));
  }

  void route_again() {
    round_ += options_.every.us;
    std::vector<std::uint32_t> waiting;
    for (const std::vector<std::uint32_t>& queue : queues_) waiting.insert(waiting.end(), queue.begin(), queue.end());
    for (SiteId site = 0; site < gpus_.size() && options_.moves_running; ++site) {
      for (std::uint32_t i = 0; i < count(); ++i) {
        if (all[i].stage == Stage::runs && all[i].site == site) waiting.push_back(i);
      }
    }
    for (const std::uint32_t job : waiting) {
      const bool stays = all[job].stage != Stage::waits && all[job].stage != Stage::runs;
      if (stays || all[job].moves >= options_.most_moves) continue;
      if (all[job].moves > 0 && all[job].joined == now_) continue;  // it just came
      if (all[job].stage == Stage::runs) {
        all[job].ran_at = all[job].site;
        all[job].ran_at_since = now_;
      }
      const Route route = rule_of(job);
      if (route.site == no_site || route.site == all[job].site) continue;
      const bool goes_on =
          route.until == Time::max() ||
          (may_run(job, route.then) && (route.site == route.then || world_.link(route.site, route.then) != nullptr));
      if (may_run(job, route.site) && goes_on) send(job, route);
    }
  }

  void hand_over(std::uint32_t job) {
    const SlowSiteJob& it = all[job];
    if (it.stage == Stage::waits && it.first_start < 0 && it.until >= 0 && it.until <= now_) send(job, {it.then});
  }

  void send(std::uint32_t number, const Route& route) {
    SlowSiteJob& job = all[number];
    const SiteId from = at(number);
    if (job.site != no_site && job.site != route.site) {
      std::erase(queues_[job.site], number);
      ++job.moves;
      if (job.stage == Stage::runs) stop(job);
    }
    job.site = route.site;
    job.until = route.until == Time::max() ? -1 : route.until.us;
    job.then = route.then;
    job.stage = Stage::travels;
    job.journey = from == route.site ? now_ : now_ + world_.link(from, route.site)->round_trip.us;
    for (const auto& [what, item] : needs_of(number)) {
      if (has(route.site, what, item)) continue;
      auto under_way = coming(route.site, what, item);
      if (!under_way) {
        under_way = transfers.size();
        SlowTransfer transfer{.what = what, .number = item, .from = source(what, item, route.site), .to = route.site};
        transfer.bytes = bytes_of(what, item);
        transfer.begin = now_;
        transfer.left = static_cast<long double>(transfer.bytes);
        transfers.push_back(transfer);
        share();
      }
      job.needs.insert(*under_way);
    }
    if (job.needs.empty() && job.journey <= now_) join(number);
  }

  // All work is kept; a start that is interrupted is begun anew.
  void stop(SlowSiteJob& job) {
    const std::int64_t passed = now_ - job.since;
    held[job.site] += job.gpus * passed;
    job.worked += std::max<std::int64_t>(0, passed - job.loading);
    job.must_restart = true;
    job.end = -1;
  }

  void join(std::uint32_t job) {
    all[job].stage = Stage::waits;
    all[job].joined = now_;
    queues_[all[job].site].push_back(job);
  }

  const JobTable& jobs_;
  const SiteWorld& world_;
  std::vector<std::int64_t> gpus_;
  bool skips_;
  SlowRule rule_;
  std::int64_t wait_;
  SiteId cloud_;
  std::uint64_t seed_;
  FederationOptions options_;
  std::int64_t restart_;  // what a job pays at its first start after it moved
  std::int64_t now_ = std::numeric_limits<std::int64_t>::min() / 4, round_ = -1;
  std::uint32_t submitted_ = 0;
  std::vector<std::vector<std::uint32_t>> queues_;
};

}  // namespace gpusched::test
