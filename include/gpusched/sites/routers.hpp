// SPDX-License-Identifier: Apache-2.0
/// The routers of the literature, as plain structs. Of sites that a rule finds equal, the one where the job is is
/// chosen, then its home, then the smallest SiteId. Sites that may not run the job are left out.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "gpusched/core/rng.hpp"
#include "gpusched/sites/router.hpp"

namespace gpusched {

/// The site with the least key among those that may run the job and that `allows(site)`; no_site: there is none.
template <class Key, class Allows>
SiteId least_site(const RouterView& view, JobId job, Key key, Allows allows) {
  const SiteId place = view.place(job), home = view.home(job);
  SiteId best = no_site;
  const auto consider = [&view, &job, &allows, &best, &key](SiteId site) {
    if (!view.may_run(job, site) || !allows(site)) return;
    if (best == no_site || key(site) < key(best)) best = site;
  };
  consider(place);
  if (home != place) consider(home);
  for (SiteId site = 0; site < view.site_count(); ++site) {
    if (site != home && site != place) consider(site);
  }
  return best;
}
/// The same among all that may run it.
template <class Key>
SiteId least_site(const RouterView& view, JobId job, Key key) {
  return least_site(view, job, key, [](SiteId) { return true; });
}

/// Every job at its home: JobLocal (Ranganathan and Foster, HPDC 2002, "Decoupling computation and data scheduling in
/// distributed data-intensive applications").
struct LocalOnly {
  static constexpr bool reads_jobs_alone = true;  ///< see Router
  /// Its name on the command line; the same below.
  [[nodiscard]] std::string_view name() const { return "local"; }
  /// See Router; the same below.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const { return {view.home(job)}; }
};

/// Most GPUs that nobody asks for: the Worst Fit of KOALA (Mohamed and Epema, Concurrency and Computation 20(16),
/// 2008).
struct MostAvailable {
  static constexpr bool reads_no_run_times = true;                          ///< see Router
  [[nodiscard]] std::string_view name() const { return "most-available"; }  ///< as LocalOnly's
  /// As LocalOnly's.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    return {least_site(view, job, [&view](SiteId site) { return -view.unasked_milli(site); })};
  }
};

/// Fewest GPUs asked for, as a part of the site's: JobLeastLoaded (Ranganathan and Foster, HPDC 2002), which counts
/// jobs of alike sites.
struct LeastLoaded {
  static constexpr bool reads_no_run_times = true;                        ///< see Router
  [[nodiscard]] std::string_view name() const { return "least-loaded"; }  ///< as LocalOnly's
  /// As LocalOnly's.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    return {least_site(view, job, [&view](SiteId site) { return view.load(site); })};
  }
};

/// The site to which its data takes least, of these the least loaded: JobDataPresent (Ranganathan and Foster, HPDC
/// 2002).
struct DataPresent {
  static constexpr bool reads_no_run_times = true;                        ///< see Router
  [[nodiscard]] std::string_view name() const { return "data-present"; }  ///< as LocalOnly's
  /// As LocalOnly's.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    return {least_site(view, job,
                       [&view, &job](SiteId site) { return std::tuple(view.transfer(job, site), view.load(site)); })};
  }
};

/// The earliest expected end, transfer included: minimum completion time, MCT (Maheswaran et al., JPDC 59, 1999).
struct ShortestCompletion {
  [[nodiscard]] std::string_view name() const { return "shortest-completion"; }  ///< as LocalOnly's
  /// As LocalOnly's.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    return {least_site(view, job, [&view, &job](SiteId site) { return view.completion(job, site); })};
  }
};

/// What LowestSignal goes by.
enum class SiteSignal : std::uint8_t {
  carbon,  ///< g/kWh
  price,   ///< USD/MWh
};

/// The least carbon intensity (spatial shifting of Sukprasert et al., EuroSys 2024, at the present intensity) or the
/// least price of electricity (Qureshi et al., SIGCOMM 2009) at the job's submission, among sites where transfer and
/// expected wait are at most `patience`; where there is none, as ShortestCompletion.
struct LowestSignal {
  SiteSignal signal = SiteSignal::carbon;  ///< which
  Time patience = Time::max();             ///< max(): however long
  /// As LocalOnly's.
  [[nodiscard]] std::string_view name() const {
    return signal == SiteSignal::carbon ? "lowest-carbon" : "lowest-price";
  }
  /// As LocalOnly's.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    const SiteId site = least_site(
        view, job, [this, &view](SiteId at) { return signal == SiteSignal::carbon ? view.carbon(at) : view.price(at); },
        [this, &view, &job](SiteId at) {
          return patience == Time::max() || std::max(view.transfer(job, at), view.wait(job, at)) <= patience;
        });
    return site == no_site ? ShortestCompletion{}.route(view, job) : Route{site};
  }
};

/// The nearest site, by round trip from home, where the job is expected to end by its deadline; a job without one stays
/// at home, if it may run there. Where no site meets it, as ShortestCompletion. A rule of this project's own, after
/// nearest-replica selection.
struct NearestInTime {
  [[nodiscard]] std::string_view name() const { return "nearest-in-time"; }  ///< as LocalOnly's
  /// As LocalOnly's.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    const SiteId home = view.home(job);
    const SiteId site = least_site(
        view, job,
        [&view, &home](SiteId at) {
          const SiteLink* const link = view.world().link(home, at);
          return at == home || link == nullptr ? Time{} : link->round_trip;
        },
        [&view, &job](SiteId at) { return view.completion(job, at) <= view.deadline(job); });
    return site == no_site ? ShortestCompletion{}.route(view, job) : Route{site};
  }
};

/// Any that may run it, with equal chance: JobRandom (Ranganathan and Foster, HPDC 2002). What a job draws depends on
/// its id and the seed alone.
struct RandomSite {
  static constexpr bool reads_jobs_alone = true;                    ///< see Router
  std::uint64_t seed = 0;                                           ///< of the run
  [[nodiscard]] std::string_view name() const { return "random"; }  ///< as LocalOnly's
  /// As LocalOnly's.
  [[nodiscard]] Route route(const RouterView& view, JobId job) const {
    std::uint32_t count = 0;
    for (SiteId site = 0; site < view.site_count(); ++site) count += view.may_run(job, site) ? 1 : 0;
    if (count == 0) return {};
    Rng rng = Rng(seed).split("router").split(index(job));
    std::uint64_t left = rng.below(count);
    for (SiteId site = 0;; ++site) {
      if (view.may_run(job, site) && left-- == 0) return {site};
    }
  }
};

}  // namespace gpusched
