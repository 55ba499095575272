// SPDX-License-Identifier: Apache-2.0
#include "src/sites/federate_report.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "src/base/csv_text.hpp"
#include "src/base/number_text.hpp"
#include "src/base/strict_json.hpp"
#include "src/base/text_table.hpp"
#include "src/sim/job_file.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/report.hpp"
#include "src/sim/service_report.hpp"

namespace gpusched {
namespace {

// What is told of a site, and of all.
struct SiteFigure {
  const char* name;
  double (*of)(const SiteAccount&);
};

double mean_s(SiteSum us, std::uint32_t jobs) {
  return jobs == 0 ? 0 : static_cast<double>(us) / (jobs * static_cast<double>(microseconds_per_second));
}

constexpr std::array<SiteFigure, 16> site_figures{
    {{"jobs", [](const SiteAccount& a) { return static_cast<double>(a.jobs); }},
     {"gpu_hours", [](const SiteAccount& a) { return a.gpu_hours(); }},
     {"avg_wait_s", [](const SiteAccount& a) { return mean_s(a.wait_us, a.jobs); }},
     {"avg_data_wait_s", [](const SiteAccount& a) { return mean_s(a.data_wait_us, a.jobs); }},
     {"avg_jct_s", [](const SiteAccount& a) { return mean_s(a.jct_us, a.jobs); }},
     {"bytes_in", [](const SiteAccount& a) { return static_cast<double>(a.bytes_in); }},
     {"bytes_out", [](const SiteAccount& a) { return static_cast<double>(a.bytes_out); }},
     {"egress_usd", [](const SiteAccount& a) { return a.egress_usd(); }},
     {"gpus_usd", [](const SiteAccount& a) { return a.rent_usd() + a.bill.rent_usd(); }},
     {"energy_kwh", [](const SiteAccount& a) { return a.bill.kwh(); }},
     {"carbon_kg", [](const SiteAccount& a) { return a.bill.carbon_kg(); }},
     {"electricity_usd", [](const SiteAccount& a) { return a.bill.electricity_usd(); }},
     {"network_kwh", [](const SiteAccount& a) { return a.network_kwh(); }},
     {"network_carbon_kg", [](const SiteAccount& a) { return a.network_carbon_kg(); }},
     {"total_carbon_kg", [](const SiteAccount& a) { return a.bill.carbon_kg() + a.network_carbon_kg(); }},
     {"total_usd", [](const SiteAccount& a) { return a.egress_usd() + a.rent_usd() + a.bill.usd(); }}}};

SiteAccount total_of(const RouterRun& run) {
  SiteAccount sum;
  for (const SiteAccount& account : run.accounts) sum += account;
  return sum;
}

std::string sites_csv(const FederateInput& input, const RouterRun& run) {
  std::string text = "site";
  for (const SiteFigure& figure : site_figures) text += "," + std::string(figure.name);
  text += '\n';
  const auto add = [&](const std::string& name, const SiteAccount& account) {
    append_csv_field(text, name);
    for (const SiteFigure& figure : site_figures) text += "," + exact_number(figure.of(account));
    text += '\n';
  };
  for (SiteId site = 0; site < run.accounts.size(); ++site) add(input.sites.world.sites[site].name, run.accounts[site]);
  add("total", total_of(run));
  return text;
}

std::string transfers_csv(const FederateInput& input, const RouterRun& run) {
  constexpr std::array<const char*, 4> words{"job_data", "output", "checkpoint", "data_set"};
  const SiteWorld& world = input.sites.world;
  std::string text = "what,name,from,to,bytes,begin_s,end_s,egress_usd\n";
  for (const SiteTransfer& transfer : run.federation->transfers()) {
    text += words[static_cast<std::size_t>(transfer.what)];
    append_csv_field(text += ',', transfer.what == SiteItem::data_set
                                      ? world.data_sets[transfer.number].name
                                      : input.trace.jobs.external_id(JobId{transfer.number}));
    append_csv_field(text += ',', world.sites[transfer.from].name);
    append_csv_field(text += ',', world.sites[transfer.to].name);
    append_integer(text += ',', transfer.bytes);
    append_seconds(text += ',', transfer.begin);
    append_seconds(text += ',', transfer.end);
    text += "," + exact_number(static_cast<double>(egress_of(world, transfer)) / (1e6 * bytes_per_gb)) + "\n";
  }
  return text;
}

std::string timelines_csv(const FederateInput& input, const RouterRun& run) {
  std::string text = "site,time_s,waiting_jobs,running_jobs,waiting_gpus,used_gpus,up_gpus\n";
  for (SiteId site = 0; site < run.timelines.size(); ++site) {
    const Site& own = input.sites.world.sites[site];
    for (const ClusterLevel& level : run.timelines[site].levels()) {
      append_csv_field(text, own.name);
      append_seconds(text += ',', level.since);
      append_integer(text += ',', level.waiting_jobs);
      append_integer(text += ',', level.running_jobs);
      append_decimal(text += ',', level.waiting_milli, whole_gpu);
      append_decimal(text += ',', level.used_milli, whole_gpu);
      if (own.is_unlimited) {
        text += ",\n";
      } else {
        append_integer(text += ',', level.up_gpus);
        text += '\n';
      }
    }
  }
  return text;
}

// Of all meters together; nothing where no site has one.
std::optional<PowerAccount> power_of_sites(const Federation& federation) {
  std::optional<PowerAccount> sum;
  for (SiteId site = 0; site < federation.site_count(); ++site) {
    if (!federation.engine(site).knows_power()) continue;
    const PowerAccount account = power_account(federation.engine(site));
    PowerAccount& all = sum ? *sum : sum.emplace();
    all.meter += account.meter;
    all.jobs += account.jobs;
    all.services += account.services;
    for (std::size_t i = 0; i < most_bills; ++i) all.others[i] += account.others[i];
    all.has_carbon = all.has_carbon || account.has_carbon;
    all.has_money = all.has_money || account.has_money;
  }
  return sum;
}

// The bills of jobs where they ran, with the price of the GPUs that they held. None where no site has a meter.
BillColumns bills_of(const Federation& federation, const JobTable& jobs) {
  std::optional<PowerAccount> power = power_of_sites(federation);
  if (!power) return {};
  std::vector<Bill> bills(jobs.size());
  for (std::uint32_t i = jobs.replicas(); i < jobs.size(); ++i) {  // replicas are no jobs
    for (SiteId site = 0; site < federation.site_count(); ++site) {
      const Engine& engine = federation.engine(site);
      const bool was_there = site == federation.site_of(JobId{i}) || federation.moves(JobId{i}) > 0;
      if (engine.knows_power()) bills[i] += engine.bill(JobId{i});
      const std::int64_t micro_usd = std::llround(federation.view().world().sites[site].usd_per_gpu_h * 1e6);
      power->has_money = power->has_money || micro_usd > 0;
      if (!was_there || micro_usd == 0) continue;
      const Bill price{.rent = detail::WideInt{engine.gpu_time(JobId{i}).held()} * micro_usd / whole_gpu};
      bills[i] += price;
      power->jobs += price;
    }
  }
  return bill_columns(*power, bills);
}

std::string jobs_csv_of(const FederateInput& input, const RouterRun& run) {
  const Federation& federation = *run.federation;
  JobFile file{.engine = [&](JobId job) -> const Engine& { return federation.engine(federation.site_of(job)); },
               .eligible = [&](JobId job) { return federation.eligible(job); }};
  std::vector<Time> estimates;
  for (std::uint32_t i = 0; i < input.trace.jobs.size(); ++i) {
    const std::vector<Time>& of_site = run.estimates[federation.site_of(JobId{i})].estimates();
    if (!of_site.empty()) estimates.push_back(of_site[i]);
  }
  file.estimates = estimates;
  file.gpu_types.resize(input.trace.jobs.size());
  for (SiteId site = 0; site < federation.site_count(); ++site) {
    if (!input.sites.world.sites[site].is_unlimited)
      add_gpu_types(input.sites.clusters[site], run.intervals[site].intervals(), file.gpu_types);
  }
  file.bills = bills_of(federation, input.trace.jobs);
  file.more_names = ",site";
  file.more = [&](JobId job) {
    std::string text = ",";
    append_csv_field(text, input.sites.world.sites[federation.site_of(job)].name);
    return text;
  };
  return jobs_csv(file);
}

// With the bills of its replicas as in a replay; `gpus_usd` also for GPU hours at the price of its site.
Json row_of(const std::optional<PowerAccount>& power, const ServiceFigures& figures, double gpus_usd) {
  Json row = service_json(figures);
  if (power) row["energy_kwh"] = figures.bill.kwh();
  if (power && power->has_carbon) row["carbon_kg"] = figures.bill.carbon_kg();
  if (power && power->has_money) row["electricity_usd"] = figures.bill.electricity_usd();
  row["gpus_usd"] = gpus_usd;
  return row;
}

// Visits each service at each of its sites, and in total: visit(service, site, row).
template <class Visit>
void for_each_service_row(const FederateInput& input, const RouterRun& run, Visit visit) {
  const std::optional<PowerAccount> power = power_of_sites(*run.federation);
  for (std::size_t i = 0; i < run.services.size(); ++i) {
    const std::vector<SitePart>& parts = input.sites.world.services[i].parts;
    double sum_usd = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Site& site = input.sites.world.sites[parts[k].site];
      const ServiceFigures& own = run.services[i].at[k];
      const double usd = own.bill.rent_usd() + own.gpu_hours * site.usd_per_gpu_h;
      sum_usd += usd;
      visit(own, site.name, row_of(power, own, usd));
    }
    visit(run.services[i].all, "total", row_of(power, run.services[i].all, sum_usd));
  }
}

// A row for each service at each of its sites, and one at "total".
std::string services_csv_of(const FederateInput& input, const RouterRun& run) {
  std::string text;
  for_each_service_row(input, run, [&](const ServiceFigures& figures, const std::string& site, const Json& row) {
    if (text.empty()) text = "service,site" + names_of_row(row) + '\n';
    append_csv_field(text, figures.name);
    append_csv_field(text += ',', site);
    text += cells_of_row(row) + '\n';
  });
  return text;
}

std::string requests_csv_of(const FederateInput& input, const RouterRun& run) {
  const SiteWorld& world = input.sites.world;
  const Time origin = input.trace.jobs.submit(JobId{0});
  std::string text = "service,site,from,sent_s,away_s," + requests_header();
  for (std::uint32_t i = 0; i < world.services.size(); ++i) {
    const SiteService& service = world.services[i];
    for (std::uint32_t k = 0; k < service.parts.size(); ++k) {
      const SitePart& part = service.parts[k];
      const RequestLedger& queue = run.federation->engine(part.site).services().requests(part.service);
      append_requests(text, queue, [&](std::uint32_t request) {
        const std::uint32_t number = run.federation->request_number(i, k, request);
        std::string first;
        append_csv_field(first, service.name);
        append_csv_field(first += ',', world.sites[part.site].name);
        append_csv_field(first += ',', world.sites[service.from[service.origins[number]]].name);
        append_seconds(first += ',', origin + service.begin + service.requests[number].arrival);
        append_seconds(first += ',', queue.request(request).away);
        append_integer(first += ',', number);
        return first;
      });
    }
  }
  return text;
}

Json services_json_of(const FederateInput& input, const RouterRun& run) {
  Json all = Json::object();
  for_each_service_row(input, run, [&](const ServiceFigures& figures, const std::string& site, Json row) {
    Json& own = all[figures.name];
    if (own.is_null()) own = {{"sites", Json::object()}};
    (site == "total" ? own["total"] : own["sites"][site]) = std::move(row);
  });
  return all;
}

// A line for each router, service and site.
std::string services_table_of(const FederateInput& input, const std::vector<RouterRun>& runs, const TextStyle& style) {
  if (input.sites.services.is_empty()) return {};
  TextTable table({"router", "service", "site", "requests", "lost", "mean ms", "p99 ms", "in time", "repl.", "GPU-h"},
                  3);
  const auto add = [&](const RouterRun& run, const std::string& site, const ServiceFigures& of) {
    table.add(
        {run.router, of.name, site, human_count(of.requests.injected),
         human_count(of.requests.dropped + of.requests.timed_out),
         of.requests.completed > 0 ? formatted("%.1f", 1e3 * of.mean_latency_s) : "-",
         of.requests.completed > 0 ? formatted("%.1f", 1e3 * of.p99_latency_s) : "-",
         of.slo_attainment ? formatted("%.2f", 100 * *of.slo_attainment) + "%" + (of.kept == false ? "!" : "") : "-",
         formatted("%.2f", of.mean_replicas), formatted("%.1f", of.gpu_hours)});
  };
  for (const RouterRun& run : runs) {
    for (std::size_t i = 0; i < run.services.size(); ++i) {
      const std::vector<SitePart>& parts = input.sites.world.services[i].parts;
      for (std::size_t k = 0; k < parts.size(); ++k)
        add(run, input.sites.world.sites[parts[k].site].name, run.services[i].at[k]);
      if (parts.size() > 1) add(run, "total", run.services[i].all);
    }
  }
  table.set_important({3, 7, 5, 6, 8});
  return "\n" + table.text(style) +
         "requests; milliseconds from the client and back to it; in time: answered as promised (!: fewer than "
         "promised)\n";
}

// A folder's name of a router's text: without what file systems and shells dislike.
std::string folder_of(const std::string& text, std::size_t number) {
  std::string name = std::to_string(number + 1) + "-";
  for (const char c : text) name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' ? c : '_';
  return name.substr(0, 80);
}

Json account_json(const SiteAccount& account) {
  Json json = Json::object();
  for (const SiteFigure& figure : site_figures) json[figure.name] = figure.of(account);
  json["jobs"] = account.jobs;
  return json;
}

Json manifest_json(const FederateOptions& options, const FederateInput& input, const std::vector<RouterRun>& runs) {
  FederateOptions copy = options;
  Json files = Json::array(), routers = Json::array();
  for (const std::string& path : existing_files(input.sites.files)) files.push_back(file_json(path));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Json hashes = Json::object();
    for (SiteId site = 0; site < runs[i].histories.size(); ++site) {
      char hash[20];
      std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(runs[i].histories[site].value()));
      hashes[input.sites.world.sites[site].name] = hash;
    }
    routers.push_back({{"router", runs[i].router}, {"folder", folder_of(runs[i].router, i)}, {"history_hash", hashes}});
  }
  Json manifest = build_json();
  manifest.update({{"config", Json::parse(fields_json(federate_fields(copy), false))},
                   {"trace", trace_json(input.trace.report)},
                   {"files", std::move(files)},
                   {"seed", options.seed},
                   {"routers", std::move(routers)},
                   {"warnings", federate_notes(input, runs)}});
  return manifest;
}

std::vector<std::string> cells_of(const std::string& name, const SiteAccount& a) {
  return {name,
          std::to_string(a.jobs),
          formatted("%.1f", a.gpu_hours()),
          formatted("%.3f", mean_s(a.wait_us, a.jobs) / 3600),
          formatted("%.3f", mean_s(a.jct_us, a.jobs) / 3600),
          formatted("%.1f", static_cast<double>(a.bytes_in) / bytes_per_gb),
          formatted("%.2f", a.egress_usd()),
          formatted("%.2f", a.egress_usd() + a.rent_usd() + a.bill.usd()),
          formatted("%.3f", a.bill.carbon_kg() + a.network_carbon_kg())};
}

}  // namespace

std::string federate_table(const FederateInput& input, const std::vector<RouterRun>& runs, const TextStyle& style) {
  const auto header = [](const char* first) {
    return std::vector<std::string>{first, "jobs", "GPU h", "wait h", "JCT h", "GB in", "egress $", "all $", "kg CO2"};
  };
  TextTable routers(header("router"));
  for (const RouterRun& run : runs) routers.add(cells_of(run.router, total_of(run)));
  const auto rate = [&](std::size_t column, auto figure) {
    routers.rate(column, Best::least, runs, [&](const RouterRun& run) {
      return Rated{.value = figure(total_of(run)), .may_be_best = !run.clairvoyant};
    });
  };
  rate(3, [](const auto& total) { return mean_s(total.wait_us, total.jobs); });
  rate(4, [](const auto& total) { return mean_s(total.jct_us, total.jobs); });
  rate(6, [](const auto& total) { return total.egress_usd(); });
  rate(7, [](const auto& total) { return total.egress_usd() + total.rent_usd() + total.bill.usd(); });
  rate(8, [](const auto& total) { return total.bill.carbon_kg() + total.network_carbon_kg(); });
  std::string text = routers.text(style);
  for (const RouterRun& run : runs) {
    TextTable sites(header("site"));
    for (SiteId site = 0; site < run.accounts.size(); ++site)
      sites.add(cells_of(input.sites.world.sites[site].name, run.accounts[site]));
    text += "\n" + run.router + "\n" + sites.text(style);
  }
  return text + "wait and JCT (from submission to the end) are means; all $: egress, GPUs and electricity\n" +
         services_table_of(input, runs, style);
}

std::string federate_json(const FederateOptions& options, const FederateInput& input,
                          const std::vector<RouterRun>& runs) {
  Json list = Json::array();
  for (const RouterRun& run : runs) {
    Json sites = Json::array();
    for (SiteId site = 0; site < run.accounts.size(); ++site) {
      Json entry = {{"site", input.sites.world.sites[site].name}};
      entry.update(account_json(run.accounts[site]));
      sites.push_back(std::move(entry));
    }
    list.push_back({{"router", run.router},
                    {"transfers", run.federation->transfers().size()},
                    {"sites", std::move(sites)},
                    {"total", account_json(total_of(run))},
                    {"sim_seconds", run.sim_seconds}});
    if (!run.services.empty()) list.back()["services"] = services_json_of(input, run);
  }
  return json_text(Json{{"manifest", manifest_json(options, input, runs)}, {"runs", std::move(list)}});
}

std::vector<std::string> federate_notes(const FederateInput& input, const std::vector<RouterRun>& runs) {
  std::vector<std::string> lines = left_out_lines(input.trace.report);
  leave_out_columns_of(input.sites, lines);
  lines.insert(lines.end(), input.sites.notes.begin(), input.sites.notes.end());
  if (!runs.empty() && runs.front().clairvoyant)
    lines.push_back("policy " + input.policy.text + " knows true run times, which no real scheduler does");
  for (const RouterRun& run : runs) {
    const std::uint32_t cancelled = total_of(run).cancelled;
    if (cancelled == 0) continue;
    lines.push_back("router " + run.router + ": policy " + input.policy.text + " cancels " + counted(cancelled, "job") +
                    ", which no average counts");
  }
  for (const RouterRun& run : runs) {
    for (SiteId site = 0; site < run.federation->site_count(); ++site) {
      const Engine& engine = run.federation->engine(site);
      if (!engine.knows_power()) continue;
      const std::string whose = run.router + ": site " + input.sites.world.sites[site].name;
      const std::vector<std::string> exceeded = cap_warnings(whose, power_account(engine));
      lines.insert(lines.end(), exceeded.begin(), exceeded.end());
    }
  }
  return lines;
}

Result<void> write_router_files(OutputFolder& folder, const FederateInput& input, const RouterRun& run,
                                std::size_t number) {
  const std::string place = folder_of(run.router, number) + "/";
  if (auto done = folder.write(place + "sites.csv", sites_csv(input, run)); !done) return done;
  if (auto done = folder.write(place + "transfers.csv", transfers_csv(input, run)); !done) return done;
  if (auto done = folder.write(place + "jobs.csv", jobs_csv_of(input, run)); !done) return done;
  if (run.services.empty()) {
    folder.leave_out(place + "services.csv");
  } else if (auto done = folder.write(place + "services.csv", services_csv_of(input, run)); !done) {
    return done;
  }
  if (!input.sites.services.lists_requests) {
    folder.leave_out(place + "requests.csv");
  } else if (auto done = folder.write(place + "requests.csv", requests_csv_of(input, run)); !done) {
    return done;
  }
  if (run.timelines.empty()) {
    folder.leave_out(place + "timeline.csv");
  } else if (auto done = folder.write(place + "timeline.csv", timelines_csv(input, run)); !done) {
    return done;
  }
  return folder.publish();
}

Result<void> write_federate_manifest(OutputFolder& folder, const FederateOptions& options, const FederateInput& input,
                                     const std::vector<RouterRun>& runs) {
  return write_files(folder, {{manifest_name, json_text(manifest_json(options, input, runs))}});
}

}  // namespace gpusched
