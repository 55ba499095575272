// SPDX-License-Identifier: Apache-2.0
#include "src/world/sites_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "src/base/name_text.hpp"
#include "src/base/nearest_name.hpp"
#include "src/world/absent_names.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/failure_reader.hpp"
#include "src/world/fit_to_cluster.hpp"
#include "src/world/power_fields.hpp"
#include "src/world/power_reader.hpp"
#include "src/world/service_reader.hpp"
#include "src/world/signal_fields.hpp"
#include "src/world/site_jobs.hpp"

namespace gpusched {
namespace {

constexpr double most_link_mbps = 1e9, most_rtt_ms = 1e6, most_site_usd = 1e6, most_data_gb = 1e9,
                 most_interval_s = 1e9;

constexpr std::array<NamedValue<HomeColumn>, 3> home_columns{
    {{"vc", HomeColumn::vc}, {"user", HomeColumn::user}, {"group", HomeColumn::group}}};

// Fills a SitesOfRun from one object.
class SitesBuilder {
 public:
  SitesBuilder(std::string file, const JobTable& jobs, std::uint64_t seed)
      : file_(std::move(file)), jobs_(jobs), seed_(seed) {}

  Result<SitesOfRun> build(std::string_view text, const std::string& trace) {
    const auto json = parse_json_strictly(text, file_);
    if (!json) return Unexpected{json.error()};
    JsonFields fields(*json, file_);
    found_.files.push_back(file_);
    read_sites(fields);
    if (good(fields)) read_links(fields);
    if (good(fields)) read_data_sets(fields);
    SiteJobs homes;
    if (good(fields)) read_home(fields, homes);
    read_rest(fields, homes);
    if (failed_) return Unexpected{*failed_};
    if (auto done = fields.finish(); !done) return Unexpected{done.error()};
    if (auto done = check_links_to_data(); !done) return Unexpected{done.error()};
    auto places = places_of_jobs(homes, trace, jobs_, world(), found_.files, found_.notes);
    if (!places) return Unexpected{places.error()};
    world().jobs = *std::move(places);
    found_.reads_trace = homes.file.empty() && has_site_columns(trace);
    return std::move(found_);
  }

 private:
  SiteWorld& world() { return found_.world; }
  [[nodiscard]] bool good(const JsonFields& fields) const { return fields.good() && !failed_; }
  void fail(Error error) {
    if (!failed_) failed_ = std::move(error);
  }

  // ---- sites ----

  void read_sites(JsonFields& fields) {
    fields.require("sites");
    fields.read_objects("sites", [&](JsonFields& own, std::size_t) { read_site(own); });
    if (good(fields) && world().sites.empty()) fields.fail("sites", "expected at least one site");
  }

  void read_site(JsonFields& own) {
    Site site;
    std::string name, cluster;
    own.require("name");
    own.read("name", name);
    site.name = name_text(name);
    own.read("unlimited", site.is_unlimited);
    own.read("usd_per_gpu_h", site.usd_per_gpu_h, 0, most_site_usd);
    read_width(own, "uplink_mbps", site.uplink);
    read_width(own, "downlink_mbps", site.downlink);
    read_signal(own, {"carbon", SignalKind::carbon, 0, 1e6}, site.carbon_g_per_kwh);
    read_signal(own, {"usd_per_mwh", SignalKind::price, -1e6, 1e6}, site.usd_per_mwh);
    if (!good(own)) return;
    if (site.name.empty() || site.name == "total") return own.fail("name", "expected a name, and not total");
    if (find_site(site.name) != no_site) return own.fail("name", "expected another name than a site before has");
    if (site.is_unlimited != !own.has("cluster"))
      return own.fail(site.is_unlimited ? "cluster" : "", "expected either cluster or \"unlimited\": true");
    found_.clusters.push_back(site.is_unlimited ? cloud_for(jobs_) : read_cluster_of(own));
    found_.failures.push_back(read_failures_of(own, site.is_unlimited));
    found_.powers.push_back(read_power_of(own, site));
    take_signals(found_.powers.back(), site);
    world().sites.push_back(std::move(site));
  }

  void read_signal(JsonFields& own, const SignalField& field, Signal& signal) {
    if (auto read = read_signal_field(own, field, file_, jobs_, found_.notes, failed_)) signal = *std::move(read);
    note_file(own, field.key);
  }

  // The file that a field names, of itself or under "file".
  void note_file(JsonFields& own, const char* key) {
    const Json* value = own.find(key);
    if (value != nullptr && value->is_object() && value->contains("file")) value = &(*value)["file"];
    if (value != nullptr && value->is_string()) found_.files.push_back(path_beside(file_, value->get<std::string>()));
  }

  static void read_width(JsonFields& own, const char* key, double& bytes_per_s) {
    if (!own.has(key)) {
      own.find(key);
      return;
    }
    double mbps = 0;
    own.read_above_zero(key, mbps, most_link_mbps);
    bytes_per_s = mbps * bytes_per_s_per_mbps;
  }

  // As --cluster takes it, a file beside this one, or the object of a cluster file.
  Cluster read_cluster_of(JsonFields& own) {
    const Json* const value = own.find("cluster");
    Result<Cluster> cluster = Cluster{};
    if (value->is_object()) {
      cluster = cluster_from_json(value->dump(), file_);
      if (!cluster) own.fail("cluster" + cluster.error().field, cluster.error().message);
    } else {
      std::string text;
      own.read("cluster", text);
      if (!own.good()) return {};
      const std::string beside = path_beside(file_, text);
      const bool is_file = std::ifstream(beside).good();
      cluster = parse_cluster(is_file ? beside : text);
      if (is_file) found_.files.push_back(beside);
      if (!cluster) {
        const Error& error = cluster.error();
        error.file.empty() ? own.fail("cluster", error.message) : fail(error);
      }
    }
    if (cluster && !cluster->limits.empty()) own.fail("cluster", "expected a cluster without limits at a site");
    return cluster ? *std::move(cluster) : Cluster{};
  }

  NodeFailures read_failures_of(JsonFields& own, bool is_unlimited) {
    std::string path;
    own.read("failures", path);
    if (!good(own) || path.empty()) return {};
    if (is_unlimited) {
      own.fail("failures", "expected none of an unlimited site, which has no nodes");
      return {};
    }
    path = path_beside(file_, path);
    found_.files.push_back(path);
    for (std::string& file : files_of_failures(path)) found_.files.push_back(std::move(file));
    auto failures = gpusched::read_failures(path, found_.clusters.back(), jobs_.trace_begin(),
                                            Rng(seed_).split("site").split(world().sites.size()).next());
    if (!failures) fail(failures.error());
    return failures ? *std::move(failures) : NodeFailures{};
  }

  // A ready model, a file beside this one, or the object of such a file; with the site's own signals.
  PowerModel read_power_of(JsonFields& own, const Site& site) {
    const Json* const value = own.find("power");
    if (value == nullptr || !good(own)) return {};
    if (site.is_unlimited) {
      own.fail("power", "expected none of an unlimited site, which has no nodes");
      return {};
    }
    Result<PowerOfRun> power = PowerOfRun{};
    if (value->is_object()) {
      power = power_from_json(value->dump(), file_, found_.clusters.back(), jobs_);
    } else {
      std::string name;
      own.read("power", name);
      if (!own.good()) return {};
      const auto ready = ready_powers();
      const bool is_ready = std::any_of(ready.begin(), ready.end(), [&](const auto& one) { return one.name == name; });
      if (!is_ready) name = path_beside(file_, name);
      for (const std::string& file : files_of_power(name)) found_.files.push_back(file);
      power = read_power(name, found_.clusters.back(), jobs_);
    }
    if (!power) {
      Error error = power.error();
      if (value->is_object()) error.field = own.path() + "/power" + error.field;
      fail(std::move(error));
      return {};
    }
    found_.notes.insert(found_.notes.end(), power->notes.begin(), power->notes.end());
    const PowerPlace place{.carbon_g_per_kwh = site.carbon_g_per_kwh, .usd_per_mwh = site.usd_per_mwh};
    const bool has_own = !place.carbon_g_per_kwh.is_empty() || !place.usd_per_mwh.is_empty();
    if (has_own && !power->model.places.empty()) {
      own.fail("power", "expected no carbon and usd_per_mwh in it beside those of the site");
    }
    if (has_own) power->model.places = {place};
    return std::move(power->model);
  }

  // What the site's power says of all its nodes is the site's own, for its links and for routers.
  static void take_signals(const PowerModel& power, Site& site) {
    if (power.places.size() != 1) return;
    site.carbon_g_per_kwh = power.places.front().carbon_g_per_kwh;
    site.usd_per_mwh = power.places.front().usd_per_mwh;
  }

  // ---- names of sites ----

  [[nodiscard]] SiteId find_site(std::string_view name) const {
    const std::vector<Site>& sites = found_.world.sites;
    const auto at = std::find_if(sites.begin(), sites.end(), [&](const Site& site) { return site.name == name; });
    return at == sites.end() ? no_site : static_cast<SiteId>(at - sites.begin());
  }
  // An error at that path where it is none.
  SiteId site_at(JsonFields& own, std::string_view path, const Json& value) const {
    const SiteId site = value.is_string() ? find_site(name_text(value.get<std::string>())) : no_site;
    if (site == no_site) {
      const std::vector<std::string> known = site_names(found_.world);
      own.refuse(path,
                 "the name of a site" + (value.is_string() ? suggest_nearest(value.get<std::string>(), known) : ""));
    }
    return site;
  }
  SiteId read_site_name(JsonFields& own, const char* key) const {
    own.require(key);
    const Json* const value = own.find(key);
    return value == nullptr ? no_site : site_at(own, key, *value);
  }

  // ---- links ----

  void read_links(JsonFields& fields) {
    world().links.resize(world().sites.size() * world().sites.size());
    fields.read_objects("links", [&](JsonFields& own, std::size_t) {
      SiteLink link;
      double mbps = 0, rtt_ms = 0, usd = 0;
      own.require("mbps");
      own.read_above_zero("mbps", mbps, most_link_mbps);
      own.read("rtt_ms", rtt_ms, 0, most_rtt_ms);
      own.read("usd_per_gb", usd, 0, most_site_usd);
      link = {.bytes_per_s = mbps * bytes_per_s_per_mbps,
              .round_trip = from_seconds(rtt_ms / 1000),
              .micro_usd_per_gb = Signal::to_micro(usd)};
      if (!own.has("between")) return add_link(own, read_site_name(own, "from"), read_site_name(own, "to"), link);
      const Json* const pair = own.read_array("between");
      if (pair == nullptr) return;
      if (pair->size() != 2) return own.refuse("between", "two names of sites");
      const SiteId a = site_at(own, "between/0", (*pair)[0]), b = site_at(own, "between/1", (*pair)[1]);
      add_link(own, a, b, link);
      if (own.good()) add_link(own, b, a, link);
    });
  }

  void add_link(JsonFields& own, SiteId from, SiteId to, const SiteLink& link) {
    if (!own.good()) return;
    std::optional<SiteLink>& place = world().links[std::size_t{from} * world().sites.size() + to];
    const std::string names = world().sites[from].name + " to " + world().sites[to].name;
    if (from == to) return own.fail("", "expected a link between two sites, not from " + names);
    if (place) return own.fail("", "expected one link from " + names + ", not a second");
    place = link;
  }

  // ---- data ----

  void read_data_sets(JsonFields& fields) {
    fields.read_objects("data_sets", [&](JsonFields& own, std::size_t) {
      DataSet set;
      double gb = 0;
      own.require("name");
      own.read("name", set.name);
      set.name = name_text(set.name);
      own.require("gb");
      own.read("gb", gb, 0, most_data_gb);
      set.bytes = std::llround(gb * bytes_per_gb);
      own.require("at");
      const Json* const at = own.read_array("at");
      for (std::size_t i = 0; at != nullptr && i < at->size(); ++i) {
        set.at.push_back(site_at(own, "at/" + std::to_string(i), (*at)[i]));
      }
      if (own.good() && set.at.empty()) own.fail("at", "expected at least one site");
      const auto same = [&](const DataSet& other) { return other.name == set.name; };
      if (std::any_of(world().data_sets.begin(), world().data_sets.end(), same))
        own.fail("name", "expected another name than a data set before has");
      world().data_sets.push_back(std::move(set));
    });
  }

  // Every site has each data set, or a link from one that has it.
  [[nodiscard]] Result<void> check_links_to_data() const {
    const SiteWorld& world = found_.world;
    for (std::size_t number = 0; number < world.data_sets.size(); ++number) {
      const DataSet& set = world.data_sets[number];
      for (SiteId site = 0; site < world.sites.size(); ++site) {
        const auto reaches = [&](SiteId from) { return from == site || world.link(from, site) != nullptr; };
        if (std::any_of(set.at.begin(), set.at.end(), reaches)) continue;
        return Unexpected{Error{.message = "site '" + world.sites[site].name + "' has neither data set '" + set.name +
                                           "' nor a link from a site that has it",
                                .file = file_,
                                .field = "/data_sets/" + std::to_string(number)}};
      }
    }
    return {};
  }

  void read_home(JsonFields& fields, SiteJobs& homes) {
    if (!fields.has("home")) {
      fields.find("home");
      return;
    }
    fields.read_object("home", [&](JsonFields& own) {
      own.require("by");
      own.read_word("by", homes.column, home_columns);
      own.read_members("of", [&](JsonFields& of, const std::string& name, const Json& value) {
        homes.of[name_text(name)] = site_at(of, name, value);
      });
      if (own.has("else")) homes.otherwise = read_site_name(own, "else");
      own.find("else");
    });
  }

  void read_rest(JsonFields& fields, SiteJobs& homes) {
    std::string jobs;
    fields.read("jobs", jobs);
    if (!jobs.empty()) homes.file = path_beside(file_, jobs);
    double kwh = 0.06, every = 0;
    fields.read("network_kwh_per_gb", kwh, 0, 1e3);
    world().network_nj_per_byte = std::llround(kwh * 3.6e6);
    fields.read_object("migration", [&](JsonFields& own) {
      own.read("every_s", every, 0, most_interval_s);
      own.read("most_moves", found_.options.most_moves, 1, 60'000);
      own.read("running", found_.options.moves_running);
      if (fields.has("migration") && every <= 0) own.fail("every_s", "expected a number above 0");
    });
    found_.options.every = from_seconds(every);
  }

  std::string file_;
  const JobTable& jobs_;
  std::uint64_t seed_;
  SitesOfRun found_;
  std::optional<Error> failed_;
};

}  // namespace

Result<SitesOfRun> sites_from_json(std::string_view text, const std::string& file, const std::string& trace,
                                   const JobTable& jobs, std::uint64_t seed) {
  return SitesBuilder(file, jobs, seed).build(text, trace);
}

Result<SitesOfRun> read_sites(const std::string& path, const std::string& trace, const JobTable& jobs,
                              std::uint64_t seed) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return sites_from_json(*text, path, trace, jobs, seed);
}

// The table gets the replicas; then sites are read anew, which are made for that table.
Result<SitesOfRun> read_served_sites(const SiteFiles& files, JobTable& jobs, std::uint64_t seed) {
  auto sites = read_sites(files.sites, files.trace, jobs, seed);
  if (!sites || files.services.empty()) return sites;
  auto found = read_services_over_sites(files.services, jobs, sites->world, seed);
  if (!found) return Unexpected{found.error()};
  sites = read_sites(files.sites, files.trace, jobs, seed);
  if (!sites) return sites;
  sites->world.services = std::move(found->services);
  sites->services = std::move(found->model);
  for (const ServiceSpec& service : sites->services.services) {
    for (std::uint32_t row = service.first_row; row < service.first_row + service.most; ++row)
      sites->world.jobs[row].home = service.engine;
  }
  sites->files.push_back(files.services);
  for (std::string& file : files_of_services(files.services)) sites->files.push_back(std::move(file));
  return sites;
}

Result<void> check_fits_sites(const SitesOfRun& sites, const SiteFiles& files, const JobTable& jobs) {
  auto room = check_room_at_sites(sites.services, sites.world.services, jobs, sites.clusters, files.services);
  if (!room) return room;
  return check_fits_a_site(jobs, sites.clusters, sites.world, files.trace);
}

Result<SitesOfRun> read_fitting_sites(const SiteFiles& files, JobTable& jobs, std::uint64_t seed) {
  auto sites = read_served_sites(files, jobs, seed);
  if (!sites) return sites;
  if (auto fits = check_fits_sites(*sites, files, jobs); !fits) return Unexpected{fits.error()};
  return sites;
}

std::vector<std::string> files_of_sites(const std::string& path) {
  std::vector<std::string> files{path};
  const auto text = read_text_file(path);
  const auto json = text ? parse_json_strictly(*text, path) : Result<Json>(Unexpected{text.error()});
  if (!json) return files;
  const auto add = [&files](std::string file) {
    if (std::find(files.begin(), files.end(), file) == files.end()) files.push_back(std::move(file));
  };
  const Json values = json->flatten();
  for (const auto& [place, value] : values.items()) {
    if (!value.is_string()) continue;
    const std::string file = path_beside(path, value.get<std::string>());
    if (!std::ifstream(file).good()) continue;
    add(file);
    const std::string_view key = std::string_view(place).substr(place.rfind('/') + 1);
    if (key == "power") std::ranges::for_each(files_of_power(file), add);
    if (key == "failures") std::ranges::for_each(files_of_failures(file), add);
  }
  return files;
}

void leave_out_columns_of(const SitesOfRun& sites, std::vector<std::string>& lines) {
  if (!sites.reads_trace) return;
  std::erase_if(lines, [](const std::string& line) { return line.starts_with("columns not used: "); });
}

}  // namespace gpusched
