// SPDX-License-Identifier: Apache-2.0
#include "src/process/host_session.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "src/base/nearest_name.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/programs/process_messages.hpp"
#include "src/process/online_growth.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/run_input.hpp"

namespace gpusched {
namespace {

constexpr const char* input_name = "standard input";

const PolicyRegistry& policies() {
  static const PolicyRegistry all = PolicyRegistry::standard();
  return all;
}

Result<PolicySpec> one_policy(const std::string& text) {
  auto specs = parse_policies(policies(), text);
  if (!specs) return Unexpected{specs.error()};
  if (specs->size() != 1) return unexpected("expected one policy, not " + std::to_string(specs->size()));
  if (auto checked = check_parameters(policies(), specs->front()); !checked) return Unexpected{checked.error()};
  return specs->front();
}

// The value of `key` as text; none where it is missing or something else.
std::string word_of(const Json& message, const char* key) {
  if (!message.is_object()) return {};
  const auto entry = message.find(key);
  return entry != message.end() && entry->is_string() ? entry->get<std::string>() : std::string();
}

// Jobs change how the cards of some node are cut, which is no matter of the jobs that are left alone.
bool cuts_cards(const Cluster& cluster) {
  return std::any_of(cluster.migs.begin(), cluster.migs.end(),
                     [](const MigNode& node) { return node.layout != MigLayout::fixed; });
}

Result<Cluster> cluster_of(const Json& value) {
  if (!value.is_string() && !value.is_object()) {
    return unexpected("expected a text as --cluster takes it, or the object of a cluster file");
  }
  auto cluster =
      value.is_string() ? parse_cluster(value.get<std::string>()) : cluster_from_json(value.dump(), input_name);
  if (!cluster || cluster->limits.empty()) return cluster;
  return Unexpected{Error{.message = "expected a cluster without limits: the host keeps those of its users",
                          .file = input_name,
                          .field = "/limits"}};
}

}  // namespace

FieldTable serve_fields(ServeOptions& options) {
  FieldTable fields{{"policy", "--policy", "the policy that decides; `gpusched policies` lists all", &options.policy}};
  append_fields(fields, condition_fields(options.conditions, "serve"));
  fields.push_back({"seed", "--seed", "of random placement and of policies that draw", &options.seed});
  return fields;
}

std::string serve_schema() {
  ServeOptions defaults;
  return fields_schema(serve_fields(defaults), "gpusched serve",
                       "What `gpusched serve --config FILE` takes. Every key but policy is optional.");
}

Result<HostSession> HostSession::create(const ServeOptions& options) {
  if (options.policy.empty()) return bad_option("policy", "is missing; give the one that decides");
  if (auto policy = one_policy(options.policy); !policy) return Unexpected{in_option("policy", policy.error())};
  return HostSession(options);
}

Error HostSession::placed(Error error) const {
  error.file = input_name;
  error.line = line_;
  return error;
}

Unexpected HostSession::wrong(std::string message, std::string field) const {
  return Unexpected{placed({.message = std::move(message), .field = std::move(field)})};
}

Error HostSession::too_long(std::size_t most) {
  ++line_;
  return placed({.message = "expected a line of at most " + std::to_string(most >> 20) + " MiB"});
}

Result<std::string> HostSession::answer(const std::string& line) {
  ++line_;
  if (ended_) return wrong("nothing may follow \"end\"");
  const auto message = parse_json_strictly(line, input_name);
  if (!message) return wrong(message.error().message, message.error().field);
  if (!message->is_object()) return wrong("expected an object");
  if (!scheduler_) return answer_hello(*message);
  const std::string type = word_of(*message, "type");
  if (type == "events") return answer_events(*message);
  if (type != "end") return wrong("expected events|end", "/type");
  JsonFields fields(*message, input_name);
  std::string ignored;
  fields.read("type", ignored);
  if (auto read = fields.finish(); !read) return Unexpected{placed(read.error())};
  ended_ = true;
  return message_line({{"type", "end"}, {"unfinished", scheduler_->unfinished()}});
}

Result<std::string> HostSession::answer_hello(const Json& message) {
  JsonFields fields(message, input_name);
  read_greeting(fields);
  bool nodes_may_fail = false;
  fields.read("nodes_may_fail", nodes_may_fail);
  fields.require("cluster");
  const Json* const machines = fields.find("cluster");
  const Json* const jobs = fields.find("jobs");
  std::vector<std::int64_t> nodes_out;
  fields.read("nodes_out", nodes_out, 0);
  if (auto read = fields.finish(); !read) return Unexpected{placed(read.error())};
  auto cluster = cluster_of(*machines);
  if (!cluster) return wrong(cluster.error().message, "/cluster" + cluster.error().field);
  EngineOptions options{.seed = options_.seed};
  const bool counts = options_.conditions.placement == count_placement;
  if (!counts) options.placement = *placement_from_name(options_.conditions.placement);
  const auto make = [spec = *one_policy(options_.policy), seed = options_.seed](const JobTable& table,
                                                                                const Cluster& nodes) {
    auto made = make_policy(policies(), spec, {.jobs = &table, .cluster = &nodes, .seed = seed});
    // Where it went wrong is no place of the host's line.
    return made ? std::move(made) : Result<AnyPolicy>(unexpected("--policy: " + made.error().to_string()));
  };
  OnlineGrowth growth = online_growth(policies(), *one_policy(options_.policy), nodes_may_fail);
  if (cuts_cards(*cluster)) growth.remembers = no_index;
  scheduler_.emplace(counts ? cluster->pooled() : *std::move(cluster), make, options, nodes_may_fail, growth);
  if (auto told = take_nodes_out(nodes_out); !told) return Unexpected{told.error()};
  if (jobs != nullptr) {
    if (auto announced = announce_jobs(*jobs); !announced) return Unexpected{announced.error()};
  }
  Json answer = greeting();
  answer["name"] = options_.policy;
  return message_line(answer);
}

Result<void> HostSession::take_nodes_out(const std::vector<std::int64_t>& nodes) {
  if (!nodes.empty() && options_.conditions.placement == count_placement) {
    return wrong("expected another --placement than count, which knows no nodes", "/nodes_out");
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    const auto node = static_cast<std::uint32_t>(std::clamp(nodes[i], std::int64_t{0}, most));
    auto told = nodes[i] == std::int64_t{node} ? scheduler_->out_at_start(NodeId{node})
                                               : unexpected("no node " + std::to_string(nodes[i]));
    if (!told) return wrong(told.error().message, "/nodes_out/" + std::to_string(i));
  }
  return {};
}

Result<void> HostSession::announce_jobs(const Json& jobs) {
  if (!jobs.is_array()) return wrong("expected an array of jobs", "/jobs");
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const std::string path = "/jobs/" + std::to_string(i);
    JsonFields fields(jobs[i], input_name, path);
    Time submit;
    OnlineJob job = read_job(fields, &submit);
    if (auto read = fields.finish(); !read) return Unexpected{placed(read.error())};
    if (auto told = scheduler_->announce(std::move(job), submit); !told) return wrong(told.error().message, path);
  }
  return {};
}

Result<std::string> HostSession::answer_events(const Json& message) {
  JsonFields fields(message, input_name);
  std::string type;
  Time now;
  fields.read("type", type);
  fields.require("time_us");
  fields.read("time_us", now.us, -9e15);
  fields.require("events");
  const Json* const events = fields.read_array("events");
  if (auto read = fields.finish(); !read) return Unexpected{placed(read.error())};
  for (std::size_t i = 0; i < events->size(); ++i) {
    if (auto taken = take_event((*events)[i], "/events/" + std::to_string(i)); !taken) return Unexpected{taken.error()};
  }
  const auto commands = scheduler_->decide(now);
  if (!commands) return wrong(commands.error().message);
  return message_line(
      decisions_json(now, *commands, scheduler_->next_call(), [&](JobId job) { return scheduler_->id(job); }));
}

Result<void> HostSession::take_event(const Json& event, const std::string& path) {
  const std::string word = word_of(event, "event");
  JsonFields fields(event, input_name, path);
  std::string id, ignored;
  fields.read("event", ignored);
  Result<void> taken{};
  if (word == "job_submitted" && event.contains("job")) {
    OnlineJob job;
    fields.read_object("job", [&](JsonFields& described) { job = read_job(described); });
    if (auto read = fields.finish(); !read) return Unexpected{placed(read.error())};
    taken = scheduler_->submit(std::move(job));
  } else if (word == "job_submitted" || word == "job_finished" || word == "job_cancelled") {
    fields.require("id");
    fields.read("id", id);
    if (auto read = fields.finish(); !read) return Unexpected{placed(read.error())};
    taken = word == "job_submitted"  ? scheduler_->submit(id)
            : word == "job_finished" ? scheduler_->finish(id)
                                     : scheduler_->cancel(id);
  } else if (word == "node_down" || word == "node_up") {
    std::uint32_t node = 0;
    fields.require("node");
    fields.read("node", node);
    if (auto read = fields.finish(); !read) return Unexpected{placed(read.error())};
    taken = word == "node_down" ? scheduler_->node_down(NodeId{node}) : scheduler_->node_up(NodeId{node});
  } else {
    fields.fail("event", "expected job_submitted|job_finished|job_cancelled|node_down|node_up");
    return Unexpected{placed(fields.finish().error())};
  }
  if (!taken) return wrong(taken.error().message, path);
  return {};
}

}  // namespace gpusched
