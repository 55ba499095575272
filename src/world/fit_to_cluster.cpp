// SPDX-License-Identifier: Apache-2.0
#include "src/world/fit_to_cluster.hpp"

#include <algorithm>
#include <vector>

#include "gpusched/engine/cluster_state.hpp"
#include "src/base/number_text.hpp"
#include "traces/core/job_records.hpp"

namespace gpusched {
namespace {

// How many tasks of each (shape, queue) the empty cluster holds; asked once a pair, since jobs are many.
class EmptyClusterFit {
 public:
  EmptyClusterFit(const JobTable& jobs, const Cluster& cluster)
      : jobs_(jobs),
        state_(cluster, jobs.gpu_specs(), Rng{}),
        queues_(static_cast<std::uint32_t>(cluster.vcs.size()) + 1),
        most_(jobs.shapes().size() * queues_, unknown) {
    queue_of_vc_.assign(jobs.vcs().size(), queues_ - 1);
    for (std::uint32_t vc = 0; vc + 1 < queues_; ++vc) {
      const std::uint32_t named = jobs.vcs().find(cluster.vcs[vc].name);
      if (named != no_index) queue_of_vc_[named] = vc;
    }
  }

  // All of its tasks fit.
  bool holds(JobId job) { return tasks(job) == jobs_.shape(job).tasks; }
  // Tasks of the job that fit, up to what it asks for.
  std::uint32_t tasks(JobId job) {
    const std::uint32_t queue = queue_of_vc_[jobs_.vc(job)];
    std::uint32_t& most = most_[std::size_t{jobs_.shape_id(job)} * queues_ + queue];
    if (most == unknown) most = count(jobs_.shape(job), queue);
    return most;
  }

 private:
  static constexpr std::uint32_t unknown = no_index;

  std::uint32_t count(const Shape& shape, std::uint32_t queue) {
    std::uint32_t fits = 0;
    for (std::uint32_t least = 1, most = shape.tasks; least <= most;) {  // fitting is monotone in the number of tasks
      const std::uint32_t middle = least + (most - least) / 2;
      Shape smaller = shape;
      smaller.tasks = middle;
      ClusterState empty = state_;
      if (empty.place(smaller, queue, Placement::consolidate) != no_index) {
        fits = middle;
        least = middle + 1;
      } else {
        most = middle - 1;
      }
    }
    return fits;
  }

  const JobTable& jobs_;
  ClusterState state_;
  std::uint32_t queues_;
  std::vector<std::uint32_t> most_;
  std::vector<std::uint32_t> queue_of_vc_;
};

std::string demand(const Shape& shape) {
  const auto gpus = [](MilliGpu milli) {
    return milli % whole_gpu == 0 ? std::to_string(milli / whole_gpu) + " GPUs" : std::to_string(milli) + "/1000 GPU";
  };
  std::string text = gpus(shape.gpu_milli());
  if (shape.tasks > 1 && shape.gpu_milli_per_task > whole_gpu) {
    text += " (" + std::to_string(shape.tasks) + " tasks of " + gpus(shape.gpu_milli_per_task) + ")";
  }
  if (shape.cpu_milli_per_task > 0) text += ", " + std::to_string(shape.cpu_milli_per_task) + " milli-CPU a task";
  if (shape.memory_mib_per_task > 0) text += ", " + std::to_string(shape.memory_mib_per_task) + " MiB a task";
  return text;
}

// Where links lead from a site, over however many others.
std::vector<bool> sites_behind(const SiteWorld& world, SiteId home) {
  std::vector<bool> reached(world.sites.size());
  std::vector<SiteId> next{home};
  reached[home] = true;
  while (!next.empty()) {
    const SiteId from = next.back();
    next.pop_back();
    for (SiteId to = 0; to < world.sites.size(); ++to) {
      if (reached[to] || world.link(from, to) == nullptr) continue;
      reached[to] = true;
      next.push_back(to);
    }
  }
  return reached;
}

std::string what_asks(const JobTable& jobs, JobId job) {
  const std::string& spec = jobs.gpu_specs()[jobs.shape(job).gpu_spec];
  return "job '" + jobs.external_id(job) + "' asks for " + demand(jobs.shape(job)) +
         (spec.empty() ? "" : " of type " + spec);
}

}  // namespace

Result<void> check_fits_a_site(const JobTable& jobs, std::span<const Cluster> sites, const SiteWorld& world,
                               const std::string& file) {
  std::vector<EmptyClusterFit> fits;
  fits.reserve(sites.size());
  for (const Cluster& site : sites) fits.emplace_back(jobs, site);
  std::vector<std::vector<bool>> ways(sites.size());  // by home, once asked for
  std::vector<JobId> misfits, stranded;
  for (std::uint32_t i = jobs.replicas(); i < jobs.size(); ++i) {  // replicas are bound to their sites
    const JobId job{i};
    const SiteId home = world.place(job).home;
    if (ways[home].empty()) ways[home] = sites_behind(world, home);
    bool fits_one = false, fits_near = false;
    for (SiteId site = 0; site < sites.size() && !fits_near; ++site) {
      const bool holds = fits[site].holds(job);
      fits_one = fits_one || holds;
      fits_near = holds && ways[home][site];
    }
    if (!fits_near) (fits_one ? stranded : misfits).push_back(job);
  }
  const auto error = [&](const std::vector<JobId>& some, const std::string& why) {
    return Unexpected{Error{.message = what_asks(jobs, some.front()) + ", which " + why +
                                       "; such jobs: " + std::to_string(some.size()) + "; leave them out with --where",
                            .file = file}};
  };
  if (!misfits.empty()) return error(misfits, "no site can ever provide");
  if (stranded.empty()) return {};
  return error(stranded, "no site can ever provide to which links lead from its home, '" +
                             world.sites[world.place(stranded.front()).home].name + "'");
}

Result<Trace> fit_to_cluster(Trace trace, const Cluster& cluster, Oversize mode) {
  EmptyClusterFit fit(trace.jobs, cluster);
  std::vector<JobId> misfits;
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    if (!fit.holds(JobId{i})) misfits.push_back(JobId{i});
  }
  if (misfits.empty()) return trace;
  if (mode == Oversize::refuse) {
    return Unexpected{Error{.message = what_asks(trace.jobs, misfits.front()) + ", which cluster " + cluster.name +
                                       " (" + std::to_string(cluster.total_gpus()) +
                                       " GPUs) can never provide; such jobs: " + std::to_string(misfits.size()) +
                                       "; use --oversize drop or --oversize clamp",
                            .file = trace.report.path}};
  }
  JobTableBuilder builder;
  builder.reserve(trace.jobs.size());
  builder.ignore_missing_predecessors();
  TableRecord record_of(trace.jobs);
  std::uint64_t clamped = 0;
  for (std::uint32_t i = 0; i < trace.jobs.size(); ++i) {
    const JobId job{i};
    JobRecord record = record_of(job);
    const std::uint32_t tasks = fit.tasks(job);
    if (tasks < record.shape.tasks) {
      if (mode == Oversize::drop || tasks == 0) {
        trace.report.drop("larger than the cluster", 0);
        --trace.report.kept;
        continue;
      }
      record.shape.tasks = tasks;
      ++clamped;
    }
    builder.add(record);
  }
  if (clamped > 0) trace.report.notes.push_back(counted(clamped, "job") + " clamped to what the cluster holds");
  if (builder.size() == 0) return Unexpected{Error{.message = "no job fits the cluster", .file = trace.report.path}};
  auto jobs = std::move(builder).build();
  if (!jobs) return Unexpected{jobs.error()};
  trace.jobs = std::move(*jobs);
  trace.jobs.set_midnight_to_zero(trace.report.clock);
  return trace;
}

}  // namespace gpusched
