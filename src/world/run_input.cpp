// SPDX-License-Identifier: Apache-2.0
#include "src/world/run_input.hpp"

#include <algorithm>
#include <utility>

#include "src/base/nearest_name.hpp"
#include "src/world/added_nodes.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/limit_json.hpp"
#include "src/world/limit_text.hpp"

namespace gpusched {
namespace {

// "+8x8" is added to what the trace states.
std::string cluster_text(const InputRequest& request, const TraceReport& report) {
  const bool only_added = request.cluster.starts_with('+');
  if (!request.cluster.empty() && !only_added) return request.cluster;
  std::string stated = report.cluster;
  if (stated.empty() && report.machine_gpus > 0) stated = std::to_string(report.machine_gpus);
  return stated.empty() ? "" : stated + request.cluster;
}

std::uint32_t count_outside_vcs(const JobTable& jobs, const Cluster& cluster) {
  if (cluster.vcs.empty()) return 0;
  std::vector<bool> has_queue(jobs.vcs().size(), false);
  for (const VirtualCluster& vc : cluster.vcs) {
    const std::uint32_t named = jobs.vcs().find(vc.name);
    if (named != no_index) has_queue[named] = true;
  }
  std::uint32_t outside = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) outside += has_queue[jobs.vc(JobId{i})] ? 0 : 1;
  return outside;
}

// What --cluster or the trace names, "+8x8" behind it, or the nodes of slurm.conf.
Result<Cluster> cluster_of(const InputRequest& request, const TraceReport& report, SlurmSite& site,
                           const InputFieldNames& names) {
  const bool only_added = request.cluster.starts_with('+');
  if ((request.cluster.empty() || only_added) && site.conf && site.conf->cluster) {
    const SlurmCluster& described = *site.conf->cluster;
    for (const std::string& note : described.notes) site.notes.push_back(request.slurm_conf + ": " + note);
    auto cluster = add_nodes(described.cluster, request.cluster);
    if (cluster) return cluster;
    return Unexpected{Error{.message = cluster.error().message, .field = names.cluster}};
  }
  const std::string text = cluster_text(request, report);
  if (text.empty()) {
    const bool by_slurm = !request.slurm_conf.empty();
    return Unexpected{Error{.message = "not given, and " +
                                       (request.trace.empty() ? "there is no trace that states it"
                                                              : request.trace + " does not state its machine") +
                                       (by_slurm ? ", nor has " + request.slurm_conf + " lines NodeName" : "") +
                                       "; expected NAME, FILE, NODESxGPUS[:TYPE] (352x8) or GPUS",
                            .field = names.cluster}};
  }
  auto cluster = parse_cluster(text);
  if (cluster) return cluster;
  Error error = cluster.error();
  if (error.file.empty()) error.field = names.cluster;
  return Unexpected{std::move(error)};
}

Unexpected unknown_placement(const std::string& given, const std::string& field) {
  const std::vector<std::string> known = placement_words();
  return Unexpected{Error{
      .message = "expected one of " + joined(known, "|") + ", not '" + given + "'" + suggest_nearest(given, known),
      .field = field}};
}

}  // namespace

std::vector<std::string> placement_words() {
  std::vector<std::string> words{std::string(count_placement)};
  for (const PlacementName& entry : placement_names) words.emplace_back(entry.name);
  return words;
}

Result<Trace> read_requested_trace(const InputRequest& request) {
  if (request.slurm_qos.empty()) return read_trace(request.trace, request.reading);
  const auto site = read_slurm_site("", request.slurm_qos);
  if (!site) return Unexpected{site.error()};
  ReadOptions reading = request.reading;
  reading.qos = site->qos_weights();
  return read_trace(request.trace, reading);
}

Result<RunInput> load_input(const InputRequest& request, const InputFieldNames& names) {
  if (request.placement != count_placement && !placement_from_name(request.placement)) {
    return unknown_placement(request.placement, names.placement);
  }
  if (request.trace.empty() && request.has_services) {
    Trace none;
    none.report.path = "no jobs";
    none.jobs = *JobTableBuilder().build();
    return fit_input(request, std::move(none), names);
  }
  auto trace = read_requested_trace(request);
  if (!trace) return Unexpected{trace.error()};
  return fit_input(request, *std::move(trace), names);
}

namespace {

// Some node cuts its GPUs or slices their time.
bool shares_by_device(const Cluster& cluster) {
  return std::any_of(cluster.nodes.begin(), cluster.nodes.end(), [](const Node& node) {
    return node.mig != no_index || node.sharing == SharingMode::time_slicing;
  });
}

// Limits that hold for no job. `asked`: those that the user wrote for this trace, while files of Slurm name all that a
// site has.
void note_limits(Trace& trace, const Cluster& cluster, const std::vector<LimitRule>& asked) {
  std::vector<std::string>& notes = trace.report.notes;
  for (std::string& line : absent_in_limits(asked, trace.jobs, "cluster")) notes.push_back(std::move(line));
  for (std::string& line : absent_owners(cluster.limits, trace.jobs)) notes.push_back(std::move(line));
  const bool asks = std::any_of(cluster.limits.begin(), cluster.limits.end(), [](const LimitRule& rule) {
    const bool is_of_qos = !rule.qos.empty() && rule.or_vcs.empty();
    return is_of_qos || !rule.allow_qos.empty() || rule.per == LimitOwner::qos;
  });
  if (asks && !trace.jobs.has_qos())
    notes.emplace_back("no job of the trace has a QOS, so that limits of QOS hold for none");
}

}  // namespace

Result<RunInput> fit_input(const InputRequest& request, Trace trace, const InputFieldNames& names) {
  RunInput input;
  const bool count_only = request.placement == count_placement;
  if (!count_only) {
    const auto rule = placement_from_name(request.placement);
    if (!rule) return unknown_placement(request.placement, names.placement);
    input.placement = *rule;
  }
  auto site = read_slurm_site(request.slurm_conf, request.slurm_qos);
  if (!site) return Unexpected{site.error()};
  auto cluster = cluster_of(request, trace.report, *site, names);
  if (!cluster) return Unexpected{cluster.error()};
  std::vector<LimitRule> asked_limits = cluster->limits;
  if (auto done = set_slurm_limits(*site, *cluster); !done) return Unexpected{done.error()};
  const auto more = parse_limits(request.limits);
  if (!more) return Unexpected{Error{.message = more.error().message, .field = "limits"}};
  cluster->limits.insert(cluster->limits.end(), more->begin(), more->end());
  asked_limits.insert(asked_limits.end(), more->begin(), more->end());
  auto requesting = request_partition_limits(*site, cluster->limits, std::move(trace));
  if (!requesting) return Unexpected{requesting.error()};
  trace = *std::move(requesting);
  if (site->conf && site->conf->preempt_type == SlurmPreemptType::qos && !trace.jobs.has_qos()) {
    trace.report.notes.emplace_back("no job of the trace has a QOS, so that nobody preempts by it");
  }
  input.slurm = *std::move(site);
  if (count_only && shares_by_device(*cluster)) {
    return Unexpected{Error{.message = "count makes a number of the GPUs, which cannot be cut or take turns as mig or "
                                       "sharing of the cluster say",
                            .field = names.placement}};
  }
  input.cluster = count_only ? cluster->pooled() : *std::move(cluster);
  auto fitted = fit_to_cluster(std::move(trace), input.cluster, request.oversize);
  if (!fitted) return Unexpected{fitted.error()};
  input.trace = *std::move(fitted);
  if (input.trace.jobs.size() == 0 && !request.has_services) {
    return Unexpected{Error{.message = "no jobs are left to run", .file = request.trace}};
  }
  // Replicas have users and queues of their own.
  if (!request.has_services) note_limits(input.trace, input.cluster, asked_limits);
  input.jobs_outside_vcs = count_outside_vcs(input.trace.jobs, input.cluster);
  return input;
}

}  // namespace gpusched
