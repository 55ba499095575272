// SPDX-License-Identifier: Apache-2.0
#include "src/policies/programs/process_messages.hpp"

#include <span>
#include <utility>
#include <vector>

#include "src/base/name_text.hpp"

namespace gpusched {
namespace {

constexpr double mib_of_gib = 1024;
constexpr double most_tasks = 1e6;

// A span or instant that may be missing.
void read_time(JsonFields& fields, const std::string& key, Time& target, double least) {
  std::int64_t us = Time::max().us;
  fields.read(key, us, least);
  target = Time{us};
}

void read_name(JsonFields& fields, const std::string& key, std::string& target) {
  fields.read(key, target);
  target = name_text(target);
}

void put_name(Json& json, const char* key, const NameTable& names, std::uint32_t number) {
  if (number != 0) json[key] = names[number];
}

// A whole number is written without a fraction.
Json quantity(std::int64_t parts, double scale) {
  const double value = static_cast<double>(parts) / scale;
  const auto whole = static_cast<std::int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

Json owners_json(const Cluster& cluster, const Node& node) {
  if (node.vc_group == no_index) return cluster.vcs[node.vc].name;
  Json names = Json::array();
  for (const std::uint32_t vc : cluster.vc_groups[node.vc_group]) names.push_back(cluster.vcs[vc].name);
  return names;
}

Json node_json(const Cluster& cluster, const Node& node) {
  Json entry = {{"gpus", node.gpus}};
  if (!node.name.empty()) entry["name"] = node.name;
  if (cluster.gpu_types[node.gpu_type] != any_gpu_type) entry["gpu_type"] = cluster.gpu_types[node.gpu_type];
  if (node.cpu_milli < unlimited) entry["cpus"] = quantity(node.cpu_milli, double{whole_gpu});
  if (node.memory_mib < unlimited) entry["memory_gib"] = quantity(node.memory_mib, mib_of_gib);
  if (node.vc != no_index || node.vc_group != no_index) entry["vc"] = owners_json(cluster, node);
  if (node.island_gpus > 0) entry["island_gpus"] = node.island_gpus;
  if (node.rack != 0) entry["rack"] = "r" + std::to_string(node.rack);
  return entry;
}

}  // namespace

std::string message_line(const Json& message) { return json_text(message, -1); }

Json greeting() { return {{"type", "hello"}, {"protocol", process_protocol}, {"version", process_protocol_version}}; }

void read_greeting(JsonFields& fields) {
  std::string type, protocol;
  std::int64_t version = 0;
  for (const char* key : {"type", "protocol", "version"}) fields.require(key);
  fields.read("type", type);
  if (type != "hello") fields.fail("type", "expected \"hello\" first");
  fields.read("protocol", protocol);
  if (protocol != process_protocol) fields.fail("protocol", "expected \"" + std::string(process_protocol) + "\"");
  fields.read("version", version);
  if (version != process_protocol_version) {
    fields.fail("version", "expected " + std::to_string(process_protocol_version) +
                               ", the version of the protocol that this program has");
  }
}

OnlineJob read_job(JsonFields& fields, Time* submit) {
  OnlineJob job;
  for (const char* key : {"id", "gpu_milli_per_task"}) fields.require(key);
  fields.read("id", job.id);  // as it is: the host knows the job by it
  fields.read("tasks", job.shape.tasks, 1, most_tasks);
  fields.read("gpu_milli_per_task", job.shape.gpu_milli_per_task, 0, 1e9);
  if (job.shape.gpu_milli_per_task > whole_gpu && job.shape.is_share()) {
    fields.fail("gpu_milli_per_task", "expected 0 to 1000 or a multiple of 1000");
  }
  fields.read("cpu_milli_per_task", job.shape.cpu_milli_per_task, 0, 1e12);
  fields.read("memory_mib_per_task", job.shape.memory_mib_per_task, 0, 1e12);
  read_time(fields, "duration_us", job.duration, 0);
  read_time(fields, "estimate_us", job.estimate, 0);
  read_time(fields, "deadline_us", job.deadline, -9e15);
  read_name(fields, "user", job.user);
  read_name(fields, "group", job.group);
  read_name(fields, "vc", job.vc);
  read_name(fields, "name", job.name);
  read_name(fields, "family", job.family);
  read_name(fields, "gpu_type", job.gpu_spec);
  fields.read("priority", job.priority, -2147483648.0);
  if (submit != nullptr) {
    fields.require("submit_us");
    fields.read("submit_us", submit->us, -9e15);
  }
  return job;
}

Json job_json(const OracleView& view, JobId job, bool with_duration) {
  const JobTable& jobs = view.jobs();
  const Shape& shape = view.shape(job);
  Json json = {{"id", jobs.external_id(job)},
               {"tasks", shape.tasks},
               {"gpu_milli_per_task", shape.gpu_milli_per_task},
               {"cpu_milli_per_task", shape.cpu_milli_per_task},
               {"memory_mib_per_task", shape.memory_mib_per_task}};
  if (with_duration) json["duration_us"] = jobs.work(job).us;
  if (jobs.estimate(job) != Time::max()) json["estimate_us"] = jobs.estimate(job).us;
  if (jobs.deadline(job) != Time::max()) json["deadline_us"] = jobs.deadline(job).us;
  put_name(json, "user", jobs.users(), jobs.user(job));
  put_name(json, "group", jobs.groups(), jobs.group(job));
  put_name(json, "vc", jobs.vcs(), jobs.vc(job));
  put_name(json, "name", jobs.names(), jobs.name(job));
  put_name(json, "family", jobs.families(), jobs.family(job));
  put_name(json, "gpu_type", jobs.gpu_specs(), shape.gpu_spec);
  if (view.priority(job) != 0) json["priority"] = view.priority(job);
  return json;
}

Json machines_json(const Cluster& cluster) {
  Json json = {{"name", cluster.name}};
  for (const VirtualCluster& vc : cluster.vcs) {
    Json entry = {{"name", vc.name}};
    if (vc.quota < unlimited) entry["quota_gpus"] = quantity(vc.quota, double{whole_gpu});
    json["vcs"].push_back(std::move(entry));
  }
  json["nodes"] = Json::array();
  for (const Node& node : cluster.nodes) json["nodes"].push_back(node_json(cluster, node));
  return json;
}

Json nodes_out_json(const View& view) {
  std::vector<bool> out(view.cluster().node_count());
  for (std::uint32_t node = 0; node < out.size(); ++node) out[node] = !view.cluster().is_up(NodeId{node});
  const std::span<const Event> events = view.events();
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->kind == EventKind::node_down) out[index(event->node)] = false;
    if (event->kind == EventKind::node_up) out[index(event->node)] = true;
  }
  Json list = Json::array();
  for (std::uint32_t node = 0; node < out.size(); ++node) {
    if (out[node]) list.push_back(node);
  }
  return list;
}

std::string_view action_word(OnlineAction action) {
  static constexpr std::string_view words[] = {"start", "preempt", "move", "cancel"};
  return words[static_cast<std::size_t>(action)];
}

Json nodes_json(const std::vector<OnlinePart>& nodes) {
  Json list = Json::array();
  for (const OnlinePart& part : nodes) {
    Json entry = {{"node", index(part.node)}, {"tasks", part.tasks}};
    for (std::uint32_t device = 0; device < 64; ++device) {
      if ((part.devices >> device & 1u) != 0) entry["gpus"].push_back(device);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace gpusched
