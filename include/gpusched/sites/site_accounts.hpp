// SPDX-License-Identifier: Apache-2.0
/// SiteAccounts: what a run over several sites came to, by site, in whole numbers that add up.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpusched/sites/federation.hpp"

namespace gpusched {

/// A site's part, of the jobs that ended there, the replicas of services and the data that moved.
struct SiteAccount {
  std::uint32_t jobs = 0;       ///< that ended there with their work done
  std::uint32_t cancelled = 0;  ///< that the policy there cancelled, which what follows of waits and times leaves out
  SiteSum wait_us = 0;          ///< of them: from eligible to the end, less the time that they ran
  SiteSum data_wait_us = 0;     ///< the part of it on their way, or without what they need
  SiteSum jct_us = 0;           ///< from eligible to the end
  SiteSum held = 0;             ///< GPUs, by whomever: thousandths times microseconds
  SiteSum rent = 0;             ///< those times millionths of USD a GPU hour (Site::usd_per_gpu_h)
  SiteSum bytes_in = 0;         ///< that arrived
  SiteSum bytes_out = 0;        ///< that left
  SiteSum egress = 0;           ///< of what left: bytes times millionths of USD a GB
  SiteSum network_nj = 0;       ///< to move that
  SiteSum network_carbon = 0;   ///< that times millionths of g/kWh, the origin's mean while the bytes move
  Bill bill = {};               ///< of the site's meter; nothing where its engine knows no power

  /// In units that people use.
  /// \{
  [[nodiscard]] double egress_usd() const { return static_cast<double>(egress) / (1e6 * bytes_per_gb); }
  [[nodiscard]] double rent_usd() const { return static_cast<double>(rent) / (1e6 * 3.6e9 * whole_gpu); }
  [[nodiscard]] double gpu_hours() const { return static_cast<double>(held) / (3.6e9 * whole_gpu); }
  [[nodiscard]] double network_kwh() const { return static_cast<double>(network_nj) / 3.6e15; }
  [[nodiscard]] double network_carbon_kg() const { return static_cast<double>(network_carbon) / 3.6e24; }
  /// \}

  /// Part by part.
  /// \{
  SiteAccount& operator+=(const SiteAccount& other) {
    jobs += other.jobs;
    cancelled += other.cancelled;
    wait_us += other.wait_us;
    data_wait_us += other.data_wait_us;
    jct_us += other.jct_us;
    held += other.held;
    rent += other.rent;
    bytes_in += other.bytes_in;
    bytes_out += other.bytes_out;
    egress += other.egress;
    network_nj += other.network_nj;
    network_carbon += other.network_carbon;
    bill += other.bill;
    return *this;
  }
  friend bool operator==(const SiteAccount&, const SiteAccount&) = default;
  /// \}
};

namespace detail {

/// Millionths of g/kWh at the origin, the mean while the bytes of a transfer move.
inline SiteSum micro_carbon_of(const SiteWorld& world, const SiteTransfer& transfer) {
  const Signal& signal = world.sites[transfer.from].carbon_g_per_kwh;
  if (signal.is_empty()) return 0;
  const std::int64_t us = (transfer.moved - transfer.begin).us;
  return us == 0 ? signal.micro_at(transfer.begin) : signal.integral(transfer.begin, transfer.moved) / us;
}

inline void add_job(const Federation& federation, JobId job, SiteAccount& account) {
  const Engine& engine = federation.engine(federation.site_of(job));
  account.held += engine.gpu_time(job).held();
  if (federation.state().is_replica(job)) return;
  if (engine.is_cancelled(job)) {
    ++account.cancelled;
    return;
  }
  const Time jct = engine.end(job) - federation.eligible(job);
  ++account.jobs;
  account.jct_us += jct.us;
  account.wait_us += (jct - engine.ran(job)).us;
  account.data_wait_us += federation.state().tracks[index(job)].on_the_way.us;
}

// What it held at sites where it did not end.
inline void add_past_stays(const Federation& federation, JobId job, std::vector<SiteAccount>& accounts) {
  if (federation.moves(job) == 0) return;
  for (SiteId site = 0; site < federation.site_count(); ++site) {
    if (site != federation.site_of(job)) accounts[site].held += federation.engine(site).gpu_time(job).held();
  }
}

// Something that a job needed was not there when it joined its queue.
inline bool lacked_data(const Federation& federation, const std::map<std::uint64_t, Time>& came, JobId job) {
  const SiteState& state = federation.state();
  const SiteId site = federation.site_of(job);
  bool lacked = false;
  state.for_each_need(job, [&came, &state, &site, &federation, &job, &lacked](SiteItem what, std::uint32_t number) {
    const auto known = came.find(state.key(what, number, site));
    const bool was_there =
        known == came.end() ? state.is_at(what, number, site) : known->second <= federation.joined(job);
    lacked = lacked || !was_there;
  });
  return lacked;
}

// Each request of a service over sites came to one of them, and is over there.
inline std::optional<std::string> fault_of_requests(const Federation& federation) {
  for (const SiteService& service : federation.view().world().services) {
    RequestCounts sum;
    for (const SitePart& part : service.parts) {
      sum += federation.engine(part.site).services().requests(part.service).counts();
    }
    if (sum.injected == service.requests.size() && sum.add_up() && sum.waiting + sum.served == 0) continue;
    return "requests of '" + service.name + "' are missing at its sites";
  }
  return std::nullopt;
}

}  // namespace detail

/// What a transfer cost its origin: bytes times millionths of USD a GB.
inline SiteSum egress_of(const SiteWorld& world, const SiteTransfer& transfer) {
  return SiteSum{transfer.bytes} * world.link(transfer.from, transfer.to)->micro_usd_per_gb;
}

/// By site. Precondition: every job has ended.
inline std::vector<SiteAccount> site_accounts(const Federation& federation) {
  const SiteWorld& world = federation.view().world();
  std::vector<SiteAccount> accounts(federation.site_count());
  const std::uint32_t jobs = federation.engine(0).jobs().size();
  for (std::uint32_t i = 0; i < jobs; ++i) {
    detail::add_job(federation, JobId{i}, accounts[federation.site_of(JobId{i})]);
    detail::add_past_stays(federation, JobId{i}, accounts);
  }
  for (const SiteTransfer& transfer : federation.transfers()) {
    accounts[transfer.to].bytes_in += transfer.bytes;
    SiteAccount& origin = accounts[transfer.from];
    const SiteSum nj = SiteSum{transfer.bytes} * world.network_nj_per_byte;
    origin.bytes_out += transfer.bytes;
    origin.egress += egress_of(world, transfer);
    origin.network_nj += nj;
    origin.network_carbon += nj * detail::micro_carbon_of(world, transfer);
  }
  for (SiteId site = 0; site < federation.site_count(); ++site) {
    SiteAccount& account = accounts[site];
    account.rent = account.held * std::llround(world.sites[site].usd_per_gpu_h * 1e6);
    if (federation.engine(site).knows_power()) account.bill = federation.engine(site).power().meter();
  }
  return accounts;
}

/// What is wrong with a finished run; nothing when each job ended at one site and is nowhere else, all that it needed
/// was there when it joined its queue, what sites sent and got while it ran is what the transfers add up to, the GPU
/// time of all jobs is that of all sites, and each meter shows what its jobs and others drew. O(jobs x sites +
/// transfers).
inline std::optional<std::string> fault_of_sites(const Federation& federation,
                                                 const std::vector<SiteAccount>& accounts) {
  const JobTable& jobs = federation.engine(0).jobs();
  SiteAccount sum;
  SiteSum moved = 0, in = 0, out = 0, held = 0, ended = 0;
  for (const SiteAccount& account : accounts) sum += account;
  std::map<std::uint64_t, Time> came;
  for (const SiteTransfer& transfer : federation.transfers()) {
    came[federation.state().key(transfer.what, transfer.number, transfer.to)] = transfer.end;
    moved += transfer.bytes;
    if (transfer.end == Time::max()) return "a transfer is still on its way";
  }
  for (SiteId site = 0; site < federation.site_count(); ++site) {
    const Engine& engine = federation.engine(site);
    in += federation.bytes_in(site);
    out += federation.bytes_out(site);
    ended += engine.view().finished();
    for (std::uint32_t i = 0; i < jobs.size(); ++i) {
      held += engine.gpu_time(JobId{i}).held();
      const bool is_here = federation.site_of(JobId{i}) == site;
      if (is_here != (engine.view().phase(JobId{i}) == JobPhase::done) || (!is_here && engine.ran(JobId{i}) > Time{})) {
        return "job '" + jobs.external_id(JobId{i}) + "' did not end at one site alone";
      }
    }
    if (engine.knows_power() && !engine.power().adds_up())
      return "the bills of jobs and others at a site are not that of its meter";
  }
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (detail::lacked_data(federation, came, JobId{i}))
      return "job '" + jobs.external_id(JobId{i}) + "' began without its data";
  }
  if (in != moved || out != moved || sum.bytes_in != moved || sum.bytes_out != moved)
    return "bytes that left, bytes that came and the transfers differ";
  if (held != sum.held) return "the GPU time of jobs is not that of sites";
  if (ended != jobs.size() || sum.jobs + sum.cancelled != jobs.size() - jobs.replicas()) return "jobs are missing";
  if (auto fault = detail::fault_of_requests(federation)) return fault;
  return std::nullopt;
}

}  // namespace gpusched
