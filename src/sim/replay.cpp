// SPDX-License-Identifier: Apache-2.0
#include "src/sim/replay.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <thread>

#include "gpusched/policy/simulate.hpp"
#include "gpusched/watch/energy.hpp"
#include "gpusched/watch/history_hash.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/seam/unfinished.hpp"
#include "traces/core/cluster_reader.hpp"

namespace gpusched {
namespace {

Result<Cluster> cluster_for(const Scenario& scenario, const TraceReport& report) {
  std::string text = scenario.cluster;
  if (text.empty()) text = report.cluster;
  if (text.empty() && report.machine_gpus > 0) text = std::to_string(report.machine_gpus);
  if (text.empty()) {
    return Unexpected{Error{.message = "not given, and the trace does not state its machine; give --cluster 352x8, say",
                            .field = "cluster"}};
  }
  auto cluster = parse_cluster(text);
  if (!cluster || scenario.placement != "count") return cluster;
  return cluster->pooled();
}

// [TYPE=]FILE_OR_NAME of each of --profile.
std::vector<std::string> given_profiles(const Scenario& scenario) {
  std::vector<std::string> given;
  for (std::size_t at = 0; at < scenario.profiles.size();) {
    const std::size_t comma = std::min(scenario.profiles.find(',', at), scenario.profiles.size());
    given.push_back(scenario.profiles.substr(at, comma - at));
    at = comma + 1;
  }
  return given;
}

// Without profiles every GPU runs at the speed of the trace.
Result<CalibratedRuntime> runtime_for(const Scenario& scenario, const JobTable& jobs, const Cluster& cluster) {
  const auto fail = [](const Error& error, const char* field) {
    return Unexpected{Error{.message = error.to_string(), .field = field}};
  };
  std::vector<TypeProfile> profiles;
  for (const std::string& given : given_profiles(scenario)) {
    auto profile = parse_type_profile(given);
    if (!profile) return fail(profile.error(), "fidelity.profiles");
    profiles.push_back(*std::move(profile));
  }
  if (profiles.empty()) {
    if (!scenario.reference_profile.empty() || scenario.slowdown != 1) {
      return unexpected("--reference-profile and --slowdown apply to durations that profiles give; add --profile");
    }
    return CalibratedRuntime{};
  }
  DeviceProfile reference = profiles.front().profile;
  if (!scenario.reference_profile.empty()) {
    auto given = find_device_profile(scenario.reference_profile);
    if (!given) return fail(given.error(), "fidelity.reference");
    reference = *std::move(given);
  }
  const bool any_share =
      std::any_of(jobs.shapes().begin(), jobs.shapes().end(), [](const Shape& shape) { return shape.is_share(); });
  RuntimeOptions options{.slowdown = scenario.slowdown,
                         .interference = any_share && scenario.interference == "profile"};
  for (std::uint32_t type = 0; type < cluster.gpu_types.size(); ++type) {
    const auto has_it = [type](const Node& node) { return node.gpus > 0 && node.gpu_type == type; };
    if (std::none_of(cluster.nodes.begin(), cluster.nodes.end(), has_it)) options.empty_types.push_back(type);
  }
  auto runtime = runtime_model_from_profiles(jobs.families(), cluster.gpu_types, profiles, reference, options);
  if (!runtime) return fail(runtime.error(), "fidelity.profiles");
  std::uint32_t without_family = 0;
  for (std::uint32_t i = 0; i < jobs.size(); ++i) without_family += jobs.families()[jobs.family(JobId{i})].empty();
  if (without_family > 0) {
    runtime->notes.push_back(std::to_string(without_family) + " of " + std::to_string(jobs.size()) +
                             " jobs state no family and run as 'mixed'");
  }
  return runtime;
}

Result<MeasureWindow> window_for(const Scenario& scenario, const JobTable& jobs) {
  MeasureWindow window;
  if (scenario.warmup.us != 0 || scenario.measure.us != 0) {
    const auto submits = jobs.submits();
    const auto first_at = [&](Time t) {
      return static_cast<std::uint32_t>(std::lower_bound(submits.begin(), submits.end(), t) - submits.begin());
    };
    const Time begin = submits.front() + scenario.warmup;
    window.first = first_at(begin);
    if (scenario.measure.us != 0) window.count = first_at(begin + scenario.measure) - window.first;
  } else {
    window.first = static_cast<std::uint32_t>(std::min<std::uint64_t>(scenario.warmup_jobs, jobs.size()));
    if (scenario.measure_jobs != 0) {
      window.count = static_cast<std::uint32_t>(std::min<std::uint64_t>(scenario.measure_jobs, jobs.size()));
    }
  }
  if (window.first >= window.end(jobs.size())) {
    return Unexpected{
        Error{.message = "no job is left to measure of " + std::to_string(jobs.size()), .field = "measure"}};
  }
  return window;
}

// The files that were read besides the trace, each once.
std::vector<std::string> files_of(const Scenario& scenario, const std::vector<PolicySpec>& specs) {
  std::vector<std::string> names = {scenario.cluster, scenario.reference_profile};
  for (const std::string& profile : given_profiles(scenario)) {
    names.push_back(profile);
    names.push_back(profile.substr(profile.find('=') + 1));  // TYPE=FILE
  }
  for (const PolicySpec& spec : specs) {
    if (!spec.name.starts_with("rl:")) continue;
    const std::string folder = spec.name.substr(3);
    names.insert(names.end(), {folder + "/model.json", folder + "/weights.bin"});
  }
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code ignored;
    const bool known = std::find(files.begin(), files.end(), name) != files.end();
    if (!known && std::filesystem::is_regular_file(name, ignored)) files.push_back(name);
  }
  return files;
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

// Adds what one run finishes to the common count, now and then.
class ProgressWatcher {
 public:
  explicit ProgressWatcher(ReplayProgress& progress) : progress_(&progress) {}

  void observe(const View& view, std::span<const Event>) {
    if (view.finished() < told_ + 4096) return;
    progress_->finished_jobs.fetch_add(view.finished() - told_, std::memory_order_relaxed);
    told_ = view.finished();
  }

 private:
  ReplayProgress* progress_;
  std::uint32_t told_ = 0;
};

PolicyContext context_of(const ReplayInput& input) {
  return {.jobs = &input.trace.jobs, .cluster = &input.cluster, .seed = input.options.seed};
}

// Notes Slurm's terms where the policy is slurm, and nothing otherwise.
class TermsWatcher {
 public:
  TermsWatcher(const ReplayInput& input, const PolicySpec& spec) {
    if (spec.name != "slurm") return;
    if (auto policy = make_slurm(spec, context_of(input))) log_.emplace(*std::move(policy));
  }

  void observe(const View& view, std::span<const Event> events) {
    if (log_) log_->observe(view, events);
  }

  [[nodiscard]] std::vector<SlurmStart> take() && { return log_ ? std::move(*log_).take() : std::vector<SlurmStart>{}; }

 private:
  std::optional<SlurmLog> log_;
};

PolicyRun run_policy(const ReplayInput& input, AnyPolicy policy, const PolicySpec& spec, ReplayDetail detail,
                     ReplayProgress& progress) {
  PolicyRun run;
  run.policy = spec.text;
  run.clairvoyant = policy.clairvoyant();
  auto engine = std::make_unique<Engine>(input.trace.jobs, input.cluster, input.options, &input.runtime.model);
  RunLog log(input.window);
  EnergyLog energy(input.runtime.power ? &*input.runtime.power : nullptr, input.window);
  IntervalLog intervals;
  HistoryHash history;
  ProgressWatcher watcher(progress);
  TermsWatcher terms(input, spec);
  const auto begin = std::chrono::steady_clock::now();
  const bool finished = detail.job_files ? simulate(*engine, policy, log, energy, watcher, intervals, history, terms)
                                         : simulate(*engine, policy, log, energy, watcher);
  run.sim_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!finished) {
    run.unfinished = engine->view().job_count() - engine->view().finished();
    run.why_unfinished = why_unfinished(*engine);
    return run;
  }
  run.jobs_per_s = run.sim_seconds > 0 ? input.trace.jobs.size() / run.sim_seconds : 0;
  run.metrics = compute_metrics(*engine, log, input.window);
  if (input.runtime.power) run.metrics.energy_kwh = energy.kwh();
  run.saturation = find_saturation(*engine, log, input.window);
  if (detail.splits) {
    for (const SplitBy by : {SplitBy::gpus, SplitBy::user, SplitBy::vc, SplitBy::status}) {
      run.splits.push_back(split_metrics(*engine, by, input.window));
    }
  }
  if (detail.job_files) {
    run.history_hash = history.value();
    run.intervals = std::move(intervals).take();
    run.slurm_starts = std::move(terms).take();
    run.engine = std::move(engine);
  }
  return run;
}

}  // namespace

Result<ReplayInput> load_replay(const Scenario& scenario, const PolicyRegistry& registry) {
  ReplayInput input;
  for (const std::string& text : scenario.policies) {
    auto specs = parse_policy_list(text);
    if (!specs) return Unexpected{specs.error()};
    for (PolicySpec& spec : *specs) {
      if (const auto known = registry.find(spec.name); !known) return Unexpected{known.error()};
      input.specs.push_back(std::move(spec));
    }
  }
  if (scenario.backfill != "none") {
    auto backfill = parse_backfill(scenario.backfill);
    if (!backfill) return Unexpected{Error{.message = backfill.error().message, .field = "backfill"}};
    input.backfill = *std::move(backfill);
  }
  auto trace = read_trace(scenario.trace, {.format = scenario.format,
                                           .columns = scenario.columns,
                                           .seed = scenario.seed,
                                           .drop_bad_rows = scenario.drop_bad_rows});
  if (!trace) return Unexpected{trace.error()};
  if (!scenario.manifest_sha256.empty() && scenario.manifest_sha256 != trace->report.sha256) {
    trace->report.notes.push_back(scenario.trace + " is not the trace of the manifest: its SHA-256 differs");
  }
  auto cluster = cluster_for(scenario, trace->report);
  if (!cluster) return Unexpected{cluster.error()};
  input.cluster = *std::move(cluster);
  auto fitted = fit_to_cluster(*std::move(trace), input.cluster, oversize_from_word(scenario.oversize));
  if (!fitted) return Unexpected{fitted.error()};
  input.trace = *std::move(fitted);
  if (input.trace.jobs.size() == 0) {
    return Unexpected{Error{.message = "no jobs are left to replay", .file = scenario.trace}};
  }
  const auto window = window_for(scenario, input.trace.jobs);
  if (!window) return Unexpected{window.error()};
  input.window = *window;
  input.options = {.placement = placement_from_name(scenario.placement).value_or(Placement::consolidate),
                   .preemption = scenario.preemption,
                   .seed = scenario.seed};
  auto runtime = runtime_for(scenario, input.trace.jobs, input.cluster);
  if (!runtime) return Unexpected{runtime.error()};
  input.runtime = *std::move(runtime);
  input.files = files_of(scenario, input.specs);
  input.jobs_outside_vcs = count_outside_vcs(input.trace.jobs, input.cluster);
  return input;
}

Result<std::vector<PolicyRun>> run_replay(const ReplayInput& input, const PolicyRegistry& registry,
                                          std::uint64_t threads, ReplayDetail detail, ReplayProgress& progress) {
  std::vector<std::optional<AnyPolicy>> policies;
  for (const PolicySpec& spec : input.specs) {
    const PolicyContext context = context_of(input);
    auto policy =
        input.backfill ? make_backfilled(registry, spec, *input.backfill, context) : registry.make(spec, context);
    if (!policy) return Unexpected{policy.error()};
    policies.emplace_back(*std::move(policy));
  }
  std::vector<PolicyRun> runs(policies.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      runs[i] = run_policy(input, *std::move(policies[i]), input.specs[i], detail, progress);
      policies[i].reset();
    }
  };
  std::vector<std::thread> helpers;
  for (std::uint64_t i = 1; i < std::min<std::uint64_t>(threads, runs.size()); ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  return runs;
}

}  // namespace gpusched
