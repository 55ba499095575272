// SPDX-License-Identifier: Apache-2.0
#include "src/world/service_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "gpusched/core/rng.hpp"
#include "gpusched/data/gpu_demand.hpp"
#include "src/base/json_fields.hpp"
#include "src/base/number_text.hpp"
#include "src/world/llm_engine_reader.hpp"
#include "src/world/request_arrivals.hpp"
#include "src/world/service_rules.hpp"
#include "src/world/service_sites.hpp"
#include "src/world/task_fields.hpp"
#include "traces/core/job_records.hpp"

namespace gpusched {
namespace {

constexpr double longest_service_s = 1e9, most_memory_part = 10;
constexpr std::uint32_t most_replicas = 10'000;

// What of a service stands in the file and not in ServiceSpec.
struct ReplicaRow : TaskFields {
  std::string name;
  bool states_memory = false;  // device memory, or that of weights
};

// How long requests are served.
struct ServedBy {
  enum class Kind : std::uint8_t { none, fixed, exponential, batches, tokens, logged };
  Kind kind = Kind::none;
  double base_s = 0, prompt_s = 0, output_s = 0;
};

constexpr std::array<NamedValue<LostRequests>, 2> lost_names{
    {{"retry", LostRequests::retry}, {"drop", LostRequests::drop}}};

constexpr std::array<NamedValue<bool>, 2> queue_names{{{"service", false}, {"replica", true}}};
constexpr std::array<NamedValue<RoutingRule>, 4> router_names{{{"least-loaded", RoutingRule::least_loaded},
                                                               {"round-robin", RoutingRule::round_robin},
                                                               {"random", RoutingRule::random},
                                                               {"session", RoutingRule::session}}};

// The devices of the text, with that part of the device memory that it names, in whole MiB.
std::string with_part_of_memory(const std::string& devices, double part) {
  const std::int64_t mib = GpuDemand(devices).memory_mib();
  if (mib == 0 || part == 1) return devices;
  const auto less = static_cast<std::int64_t>(std::ceil(static_cast<double>(mib) * part - 1e-6));
  return devices.substr(0, devices.rfind('@')) + "@" + std::to_string(less) + "MiB";
}

class ServiceReader {
 public:
  // `sites`: of services over sites; null: there is one cluster.
  ServiceReader(JsonFields& fields, const std::string& file, const Rng& rng, const MemoryParts& memory,
                const SiteWorld* sites)
      : fields_(fields), file_(file), rng_(rng), memory_(memory), sites_(sites) {}

  // Stops at the first error, which `fields` keeps, or which is returned.
  Result<void> read() {
    fields_.require("name");
    fields_.read("name", row.name);
    if (fields_.good() && row.name.empty()) fields_.refuse("name", "a name");
    spec.name = row.name;
    read_seconds(fields_, "begin_s", spec.begin);
    if (auto done = read_replica(); !done || !fields_.good()) return done;
    read_served();
    fields_.read("at_once", spec.at_once, 1, 1'000'000);
    if (spec.llm) take_engine();
    if (!spec.batches.empty() && spec.at_once > 1) fields_.fail("at_once", "expected none beside batch_s");
    double timeout_s = 0;
    fields_.read_above_zero("timeout_s", timeout_s, longest_service_s);
    if (fields_.has("timeout_s")) spec.timeout = from_seconds(timeout_s);
    fields_.read_word("lost", spec.lost, lost_names);
    read_promise();
    read_router();
    fields_.read_object("start", [&](JsonFields& start) {
      read_seconds(start, "cold_s", spec.cold_start);
      spec.warm_start = spec.cold_start;
      read_seconds(start, "warm_s", spec.warm_start);
      read_seconds(start, "keep_warm_s", spec.keep_warm);
      if (spec.warm_start > spec.cold_start) start.refuse("warm_s", "at most cold_s");
    });
    if (!fields_.good()) return {};
    if (auto done = read_requests(); !done || !fields_.good()) return done;
    spec.mean_service_s = mean_service_s();
    if (sites_ != nullptr) {
      read_sites();
    } else if (fields_.has("sites")) {
      fields_.fail("sites", "expected none beside one cluster; gpusched federate takes them");
    } else {
      read_replicas(spec, spec.most);
    }
    check_promise();
    return {};
  }

  ServiceSpec spec;
  ReplicaRow row;
  // Of services over sites: `spec` holds the requests as clients send them, these serve them.
  SiteService over_sites;
  std::vector<ServiceSpec> parts;

 private:
  static void read_seconds(JsonFields& fields, const char* key, Time& time) {
    double seconds = to_seconds(time);
    fields.read(key, seconds, 0, longest_service_s);
    time = from_seconds(seconds);
  }

  void read_served() {
    if (spec.llm) return;
    fields_.require("serves");
    fields_.read_object("serves", [&](JsonFields& own) {
      int ways = 0;
      const auto is = [&](const char* key, ServedBy::Kind kind) {
        if (!own.has(key)) return false;
        ++ways;
        served_.kind = kind;
        return true;
      };
      if (is("seconds", ServedBy::Kind::fixed)) own.read_above_zero("seconds", served_.base_s, longest_service_s);
      if (is("mean_s", ServedBy::Kind::exponential)) own.read_above_zero("mean_s", served_.base_s, longest_service_s);
      if (is("batch_s", ServedBy::Kind::batches)) read_batches(own);
      if (is("output_token_s", ServedBy::Kind::tokens)) {
        own.read("base_s", served_.base_s, 0, longest_service_s);
        own.read("prompt_token_s", served_.prompt_s, 0, longest_service_s);
        own.read("output_token_s", served_.output_s, 0, longest_service_s);
      }
      if (is("logged", ServedBy::Kind::logged)) {
        bool logged = true;
        own.read("logged", logged);
        if (!logged) own.refuse("logged", "true");
      }
      if (ways != 1 && own.good())
        fields_.refuse("serves", "one of seconds, mean_s, batch_s, output_token_s and logged");
    });
  }

  void read_batches(JsonFields& own) {
    std::vector<double> seconds;
    own.read("batch_s", seconds, 0);
    const auto takes_time = [](double s) { return s > 0 && s <= longest_service_s; };
    if (seconds.empty() || !std::all_of(seconds.begin(), seconds.end(), takes_time)) {
      own.refuse("batch_s", "seconds above 0, for a batch of 1, of 2 and so on");
    }
    for (const double s : seconds) spec.batches.push_back(from_seconds(s));
    read_seconds(own, "delay_s", spec.batch_delay);
  }

  void read_promise() {
    if (!fields_.has("promise")) return;
    fields_.read_object("promise", [&](JsonFields& own) {
      LatencyPromise promise;
      if (!spec.llm || !(own.has("first_token_s") || own.has("per_token_s"))) own.require("within_s");
      const auto read = [&](const char* key, Time& within) {
        double within_s = 0;
        own.read_above_zero(key, within_s, longest_service_s);
        if (own.has(key)) within = from_seconds(within_s);
      };
      read("within_s", promise.within);
      for (const char* key : {"first_token_s", "per_token_s"}) {
        if (own.has(key) && !spec.llm) own.fail(key, "expected none, as replicas have no llm");
      }
      read("first_token_s", promise.first_token);
      read("per_token_s", promise.per_token);
      own.read("part", promise.part, 1e-6, 1 - 1e-9);
      spec.promise = promise;
    });
  }

  void read_router() {
    bool own_queues = false;
    fields_.read_word("queue", own_queues, queue_names);
    if (own_queues) spec.routing = RoutingRule::least_loaded;
    if (fields_.has("router") && !own_queues) fields_.fail("router", "expected none, as \"queue\" is not \"replica\"");
    fields_.read_word("router", spec.routing, router_names);
    spec.router_seed = rng_.split("router").next();
  }

  // The engine says how requests are served.
  void take_engine() {
    for (const char* key : {"serves", "at_once"}) {
      if (fields_.has(key)) fields_.fail(key, "expected none beside replica/llm");
    }
    spec.at_once = static_cast<std::uint32_t>(spec.llm->limits.sequences);
  }

  Result<void> read_replica() {
    fields_.require("replica");
    Result<void> done;
    fields_.read_object("replica", [&](JsonFields& own) {
      read_task_shape(own, row);
      row.states_memory = GpuDemand(row.gpu_type).memory_mib() > 0;
      row.gpu_type = with_part_of_memory(row.gpu_type, memory_.model);
      if (!own.has("llm")) return;
      own.read_object("llm", [&](JsonFields& llm) {
        row.states_memory = row.states_memory || llm.has("weights_gib");
        const double gpus = static_cast<double>(row.shape.gpu_milli_per_task) / whole_gpu;
        done = read_llm_engine(llm, file_, row.shape.tasks * gpus, memory_, spec.llm);
      });
    });
    read_task_owner(fields_, row);
    return done;
  }

  Result<void> read_requests() {
    fields_.require("requests");
    Result<void> done;
    fields_.read_object("requests", [&](JsonFields& own) {
      done = read_request_source(own, file_, rng_.split("arrivals"), spec.requests, log_);
    });
    if (!done || !fields_.good()) return done;
    using Kind = ServedBy::Kind;
    if (served_.kind == Kind::logged && !log_.has_service_times) {
      fields_.fail("serves/logged", "expected a log with a column service_s");
    }
    if (served_.kind == Kind::tokens && !log_.has_tokens) {
      fields_.fail("serves/output_token_s", "expected a log with prompt_tokens and output_tokens");
    }
    if (spec.routing == RoutingRule::session && !log_.has_sessions) {
      fields_.fail("router", "expected a log with a column session");
    }
    if (spec.llm) {
      read_alone_times();
    } else {
      draw_service();
    }
    return {};
  }

  void read_alone_times() {
    std::string why =
        log_.has_tokens ? refuse_llm_requests(spec) : "expected a log with prompt_tokens and output_tokens";
    if (why.empty()) {
      alone_ = llm_alone_times(spec);
      for (std::size_t i = 0; i < alone_.size(); ++i) spec.requests[i].work = from_seconds(alone_[i].all_s);
    } else {
      fields_.fail("replica/llm", std::move(why));
    }
  }

  void draw_service() {
    Rng rng = rng_.split("served");
    for (ServiceRequest& request : spec.requests) {
      double seconds = served_.base_s;
      if (served_.kind == ServedBy::Kind::exponential) seconds = rng.exponential(served_.base_s);
      if (served_.kind == ServedBy::Kind::tokens) {
        seconds += served_.prompt_s * request.prompt_tokens + served_.output_s * request.output_tokens;
      }
      if (served_.kind != ServedBy::Kind::logged) request.work = from_seconds(std::min(seconds, longest_service_s));
    }
  }

  // Of a request alone: as it is given, or as the requests turn out.
  [[nodiscard]] double mean_service_s() const {
    using Kind = ServedBy::Kind;
    if (served_.kind == Kind::fixed || served_.kind == Kind::exponential) return served_.base_s;
    if (served_.kind == Kind::batches) return to_seconds(spec.batches.front());
    double sum = 0;
    for (const ServiceRequest& request : spec.requests) sum += to_seconds(request.work);
    return sum / static_cast<double>(spec.requests.size());
  }

  void read_replicas(ServiceSpec& of, std::uint32_t most) {
    of.most = most;
    if (sites_ == nullptr) fields_.read("most", of.most, 1, most_replicas);
    ReplicaLimits limits{.least = 1, .most = static_cast<std::int32_t>(of.most)};
    fields_.read("least", limits.least, 0, of.most);
    of.autoscaler = read_autoscaler(fields_, limits, of);
  }

  // At each site the service is one of its own, with the times of its replicas there.
  void read_sites() {
    if (fields_.has("most")) return fields_.fail("most", "expected none, as sites/at says it for each site");
    ServiceSites found = read_service_sites(fields_, *sites_, spec, rng_.split("origins"));
    found.service.requests = std::move(spec.requests);
    for (std::uint32_t i = 0; i < found.most.size() && fields_.good(); ++i) {
      const SitePart& part = found.service.parts[i];
      ServiceSpec own = spec;
      own.is_told = true;
      own.engine = part.site;
      if (part.speed != 1) own.mean_service_s /= part.speed;
      for (Time& takes : own.batches) takes = at_speed(takes, part.speed);
      // Who scales by the promise knows that the way takes a part of it.
      if (own.promise && own.promise->within != Time::max())
        own.promise->within = std::max(own.promise->within - found.least_way[i], Time{1});
      read_replicas(own, found.most[i]);
      own.promise = spec.promise;
      parts.push_back(std::move(own));
    }
    over_sites = std::move(found.service);
  }

  // The time of service that the promised part of the requests needs if nobody waits.
  void check_promise() {
    if (!spec.promise || !fields_.good() || !row.family.empty()) return;  // a family may be faster than the reference
    if (spec.llm) return check_engine();
    double needed_s = served_.base_s;
    if (served_.kind == ServedBy::Kind::exponential) needed_s = -served_.base_s * std::log1p(-spec.promise->part);
    if (served_.kind == ServedBy::Kind::batches) {
      needed_s = to_seconds(*std::min_element(spec.batches.begin(), spec.batches.end()));
    }
    if (served_.kind == ServedBy::Kind::tokens || served_.kind == ServedBy::Kind::logged)
      needed_s = quantile_s(works_s());
    check_time("within_s", with_way_s(needed_s), spec.promise->within);
  }
  // With the way, at the site where that is over first; of the clients for whom it takes longest.
  [[nodiscard]] double with_way_s(double needed_s) const {
    if (sites_ == nullptr) return needed_s;
    double worst_s = 0;
    for (const std::vector<SiteWay>& ways : over_sites.ways) {
      double least_s = std::numeric_limits<double>::infinity();
      for (const SiteWay& way : ways)
        least_s = std::min(least_s, to_seconds(way.there + way.back) + needed_s / over_sites.parts[way.part].speed);
      worst_s = std::max(worst_s, least_s);
    }
    return worst_s;
  }
  void check_engine() {
    const auto check = [&](const char* key, double LlmAloneTimes::*time, Time promised) {
      std::vector<double> times_s;
      for (const LlmAloneTimes& alone : alone_) times_s.push_back(alone.*time);
      // A step is rounded to a microsecond.
      const double needed_s = quantile_s(std::move(times_s));
      if (promised != Time::max())
        check_time(key, time == &LlmAloneTimes::all_s ? with_way_s(needed_s) : needed_s, promised + Time{1});
    };
    check("within_s", &LlmAloneTimes::all_s, spec.promise->within);
    check("first_token_s", &LlmAloneTimes::first_token_s, spec.promise->first_token);
    check("per_token_s", &LlmAloneTimes::per_token_s, spec.promise->per_token);
  }
  void check_time(const std::string& key, double needed_s, Time promised) {
    if (needed_s <= to_seconds(promised)) return;
    fields_.fail("promise/" + key, "expected at least the " + formatted("%.4g", needed_s) +
                                       " s in which a replica serves that part of the requests when nobody waits");
  }

  [[nodiscard]] const std::vector<ServiceRequest>& requests() const {
    return sites_ == nullptr ? spec.requests : over_sites.requests;
  }
  [[nodiscard]] double quantile_s(std::vector<double> times_s) const {
    const auto count = static_cast<double>(times_s.size());
    const auto at = static_cast<std::size_t>(std::max(std::ceil(spec.promise->part * count) - 1, 0.0));
    std::nth_element(times_s.begin(), times_s.begin() + static_cast<std::ptrdiff_t>(at), times_s.end());
    return times_s[at];
  }
  [[nodiscard]] std::vector<double> works_s() const {
    std::vector<double> works_s;
    for (const ServiceRequest& request : requests()) works_s.push_back(to_seconds(request.work));
    return works_s;
  }

  JsonFields& fields_;
  const std::string& file_;
  Rng rng_;
  MemoryParts memory_;
  const SiteWorld* sites_;
  ServedBy served_;
  RequestLog log_;
  std::vector<LlmAloneTimes> alone_;  // by request, of an LLM engine
};

struct ServicesOfFile {
  ServiceModel model;
  std::vector<ReplicaRow> rows;         // by service
  std::vector<SiteService> over_sites;  // by number in the file, if they are

  void add(ServiceSpec spec, ReplicaRow row) {
    spec.first_row = model.rows();
    model.services.push_back(std::move(spec));
    rows.push_back(std::move(row));
  }
};

MemoryParts read_memory(JsonFields& fields) {
  MemoryParts memory;
  fields.read_object("memory", [&](JsonFields& own) {
    own.read_above_zero("model", memory.model, most_memory_part);
    own.read_above_zero("kv_blocks", memory.kv_blocks, most_memory_part);
  });
  return memory;
}

// A part of what no service states would change nothing.
void check_memory(JsonFields& fields, const ServicesOfFile& services, const MemoryParts& memory) {
  const std::vector<ServiceSpec>& specs = services.model.services;
  const bool has_llm = std::any_of(specs.begin(), specs.end(), [](const ServiceSpec& spec) { return bool(spec.llm); });
  const auto states_memory = [](const ReplicaRow& row) { return row.states_memory; };
  if (memory.model != 1 && std::none_of(services.rows.begin(), services.rows.end(), states_memory)) {
    fields.fail("memory/model", "expected a service with device memory in gpu_type, or with weights_gib");
  }
  if (memory.kv_blocks != 1 && !has_llm) fields.fail("memory/kv_blocks", "expected a service with llm");
}

// Those of one file, over `sites` unless that is null.
Result<ServicesOfFile> parse_services(std::string_view text, const std::string& file, std::uint64_t seed,
                                      const SiteWorld* sites) {
  const auto json = parse_json_strictly(text, file);
  if (!json) return Unexpected{json.error()};
  JsonFields fields(*json, file);
  ServicesOfFile found;
  std::set<std::string> names;
  Result<void> done;
  fields.require("services");
  fields.read("list_requests", found.model.lists_requests);
  const MemoryParts memory = read_memory(fields);
  fields.read_objects("services", [&](JsonFields& own, std::size_t number) {
    ServiceReader reader(own, file, Rng(seed).split("services").split(number), memory, sites);
    if (done) done = reader.read();
    if (!done) return;
    if (own.good() && !names.insert(reader.row.name).second) own.refuse("name", "a name that no other service has");
    if (sites == nullptr) return found.add(std::move(reader.spec), std::move(reader.row));
    for (std::size_t i = 0; i < reader.parts.size(); ++i) {
      reader.over_sites.parts[i].service = static_cast<std::uint32_t>(found.model.services.size());
      ReplicaRow row = reader.row;
      row.name += "@" + sites->sites[reader.parts[i].engine].name;
      found.add(std::move(reader.parts[i]), std::move(row));
    }
    found.over_sites.push_back(std::move(reader.over_sites));
  });
  if (!done) return Unexpected{done.error()};
  if (fields.good() && found.model.is_empty()) fields.refuse("services", "at least one service");
  check_memory(fields, found, memory);
  if (auto finished = fields.finish(); !finished) return Unexpected{finished.error()};
  return found;
}

// The table with its replicas in front.
Result<JobTable> with_replicas(const JobTable& jobs, const ServicesOfFile& services) {
  JobTableBuilder builder;
  builder.reserve(jobs.size() + services.model.rows());
  builder.keep_clock_of(jobs);
  const Time submit = jobs.size() == 0 ? Time{} : jobs.submit(JobId{0});
  for (std::size_t i = 0; i < services.rows.size(); ++i) {
    const ReplicaRow& row = services.rows[i];
    for (std::uint32_t k = 0; k < services.model.services[i].most; ++k) {
      const std::string id = row.name + ":" + std::to_string(k);
      builder.add({.id = id,
                   .submit = submit,
                   .work = replica_work,
                   .shape = row.shape,
                   .user = row.user,
                   .vc = row.vc,
                   .name = row.name,
                   .gpu_spec = row.gpu_type,
                   .family = row.family,
                   .priority = row.priority});
    }
  }
  builder.end_replicas();
  TableRecord record_of(jobs);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) builder.add(record_of(JobId{i}));
  return std::move(builder).build();
}

// A replica of a service, that of that number in the file, finds room on the empty cluster.
Result<void> check_room(const ServiceSpec& service, std::size_t number, const JobTable& jobs, const Cluster& cluster,
                        const std::string& file) {
  const JobId job{service.first_row};
  const std::string& id = jobs.external_id(job);
  return check_task_room(job, jobs.vcs()[jobs.vc(job)], jobs, cluster,
                         "a replica of '" + id.substr(0, id.rfind(':')) + "'", file,
                         "/services/" + std::to_string(number) + "/replica");
}

// As with_replicas(), unless the table has them.
Result<void> add_replicas(JobTable& jobs, const ServicesOfFile& services, const std::string& file) {
  if (jobs.replicas() == 0) {
    auto table = with_replicas(jobs, services);
    if (!table) {
      Error error = table.error();
      error.file = file;
      return Unexpected{std::move(error)};
    }
    jobs = *std::move(table);
  }
  GPUSCHED_ASSERT(jobs.replicas() == services.model.rows(), "the table has the replicas of other services");
  return {};
}

}  // namespace

Result<ServiceModel> services_from_json(std::string_view text, const std::string& file, JobTable& jobs,
                                        const Cluster& cluster, std::uint64_t seed) {
  auto services = parse_services(text, file, seed, nullptr);
  if (!services) return Unexpected{services.error()};
  if (auto done = add_replicas(jobs, *services, file); !done) return Unexpected{done.error()};
  for (std::size_t i = 0; i < services->model.services.size(); ++i) {
    if (auto done = check_room(services->model.services[i], i, jobs, cluster, file); !done)
      return Unexpected{done.error()};
  }
  return std::move(services->model);
}

Result<ServicesOverSites> read_services_over_sites(const std::string& path, JobTable& jobs, const SiteWorld& sites,
                                                   std::uint64_t seed) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  auto services = parse_services(*text, path, seed, &sites);
  if (!services) return Unexpected{services.error()};
  if (auto done = add_replicas(jobs, *services, path); !done) return Unexpected{done.error()};
  return ServicesOverSites{.model = std::move(services->model), .services = std::move(services->over_sites)};
}

Result<void> check_room_at_sites(const ServiceModel& model, std::span<const SiteService> services, const JobTable& jobs,
                                 std::span<const Cluster> clusters, const std::string& file) {
  for (std::size_t i = 0; i < services.size(); ++i) {
    for (const SitePart& part : services[i].parts) {
      auto room = check_room(model.services[part.service], i, jobs, clusters[part.site], file);
      if (!room) return room;
    }
  }
  return {};
}

Result<ServiceModel> read_services(const std::string& path, JobTable& jobs, const Cluster& cluster,
                                   std::uint64_t seed) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return services_from_json(*text, path, jobs, cluster, seed);
}

std::vector<std::string> files_of_services(const std::string& path) {
  std::vector<std::string> files;
  const auto text = read_text_file(path);
  if (!text) return files;
  const auto json = parse_json_strictly(*text, path);
  if (!json || !json->is_object() || !json->contains("services") || !(*json)["services"].is_array()) return files;
  for (const Json& service : (*json)["services"]) {
    if (!service.is_object() || !service.contains("requests") || !service["requests"].is_object()) continue;
    for (const char* key : {"log", "rate_file"}) {
      const Json& requests = service["requests"];
      if (requests.contains(key) && requests[key].is_string()) {
        files.push_back(path_from(path, requests[key].get<std::string>()));
      }
    }
    if (!service.contains("replica") || !service["replica"].is_object()) continue;
    const Json& replica = service["replica"];
    if (!replica.contains("llm")) continue;
    for (std::string& name : files_of_llm_engine(replica["llm"], path)) files.push_back(std::move(name));
  }
  return files;
}

}  // namespace gpusched
