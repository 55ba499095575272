// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_plan.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "src/base/build_info.hpp"
#include "src/base/sha256.hpp"
#include "src/conditions/run_conditions.hpp"
#include "src/policies/backfill/backfill.hpp"
#include "src/policies/learned/trained_model.hpp"
#include "src/sim/manifest.hpp"
#include "src/sim/policy_text.hpp"
#include "src/sweep/sweep_trial.hpp"
#include "src/world/cluster_reader.hpp"
#include "src/world/sites_reader.hpp"
#include "src/world/slurm_site.hpp"
#include "traces/core/input_file.hpp"
#include "traces/core/trace_reader.hpp"

namespace gpusched {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view synthetic_prefix = "synthetic:";

Result<std::string> file_sha256(const std::string& path) {
  auto file = InputFile::open(path);
  if (!file) return Unexpected{file.error()};
  return file->sha256();
}

// Of a folder: of the names and hashes of its files, sorted.
Result<std::string> hash_of(const std::string& path) {
  std::error_code why;
  if (!fs::is_directory(path, why)) return file_sha256(path);
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(path, why)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) files.push_back(entry.path().string());
  }
  if (why) return Unexpected{Error{.message = "cannot read: " + why.message(), .file = path}};
  std::sort(files.begin(), files.end());
  std::string all;
  for (const std::string& file : files) {
    const auto hash = file_sha256(file);
    all += fs::path(file).lexically_relative(path).string() + " " + (hash ? *hash : "") + "\n";
  }
  return sha256_text(all);
}

// Numbers for texts, in order of first appearance.
class Numbering {
 public:
  std::uint32_t operator()(const std::string& text) {
    return numbers_.emplace(text, static_cast<std::uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
};

// The part of a run's values whose paths satisfy `wanted`, as text.
template <class Wanted>
std::string part_of(const Json& values, Wanted wanted) {
  Json part = Json::object();
  for (const auto& [path, value] : values.items()) {
    if (wanted(path)) part[path] = value;
  }
  return json_text(part, -1);
}

class Planner {
 public:
  Planner(SweepPlan& plan, const PolicyRegistry& registry) : plan_(&plan), registry_(&registry) {}

  Result<void> add(std::uint64_t i, SweepTrial* trial) {
    const auto point = plan_->sweep.point(i);
    if (!point) return Unexpected{point.error()};
    std::string contents;  // hashes of the files that the run reads
    std::string policy;
    if (auto done = check(*point, contents, policy); !done) {
      return unexpected(point_name(plan_->sweep, *point) + ": " + done.error().to_string());
    }
    const Json values = sweep_point_json(*point);
    if (trial != nullptr) {
      if (auto noted = trial->note(*point, values, i); !noted) {
        return unexpected(point_name(plan_->sweep, *point) + ": " + noted.error().to_string());
      }
    }
    const bool drawn = point->run.trace.starts_with(synthetic_prefix);
    const auto is_of_trace = [&](const std::string& path) {
      return path.starts_with("trace.") || (drawn && path == "seed");
    };
    const auto is_of_input = [&](const std::string& path) {
      return path != "policy" && path != "backfill" && path != "seed" && !path.starts_with("parameters.") &&
             !path.starts_with("preemption.") && !path.starts_with("measure.");
    };
    PlannedRun run;
    run.key = sha256_text(json_text(values, -1) + contents + plan_->program);
    run.trace = trace_number_(part_of(values, is_of_trace));
    run.input =
        input_number_(part_of(values, [&](const auto& path) { return is_of_trace(path) || is_of_input(path); }));
    const auto is_of_others = [](const std::string& path) {
      return path != "policy" && !path.starts_with("parameters.");
    };
    // A search tells its candidates apart by their texts.
    const std::string meaning =
        trial == nullptr ? run.key : sha256_text(part_of(values, is_of_others) + policy + "\n" + contents);
    const auto [place, is_new] = point_of_meaning_.emplace(meaning, i);
    if (!is_new) {
      return unexpected("run " + std::to_string(i + 1) + " is run " + std::to_string(place->second + 1) +
                        " once more: " + point_name(plan_->sweep, *point));
    }
    plan_->runs.push_back(std::move(run));
    return {};
  }

 private:
  // `contents` and `policy` are what the run reads, and its policy as everyone would write it.
  Result<void> check(const SweepPoint& point, std::string& contents, std::string& policy) {
    const Scenario& run = point.run;
    if (run.trace == "-") {
      return Unexpected{Error{.message = "expected a file: a sweep that goes on later must read the trace again",
                              .field = "trace.path"}};
    }
    if (!run.trace.starts_with(synthetic_prefix)) {
      std::error_code ignored;
      if (fs::is_directory(run.trace, ignored) && !has_pai_tables(run.trace)) {
        return Unexpected{
            Error{.message = "is a folder; expected a file, or a folder with pai_job_table.csv", .file = run.trace}};
      }
      if (auto done = add_file(run.trace, contents); !done) return done;
    }
    if (!run.cluster.empty() && known_clusters_.insert(run.cluster).second) {
      if (const auto cluster = parse_cluster(run.cluster); !cluster) return Unexpected{cluster.error()};
    }
    if (!point.sites.empty()) {
      for (const std::string& file : files_of_sites(point.sites)) {
        if (auto done = add_file(file, contents); !done) return done;
      }
    }
    const auto checked = check_policy(run);
    if (!checked) return Unexpected{checked.error()};
    std::vector<std::string> names = files_of(run.conditions);
    names.push_back(cluster_without_added(run.cluster));
    const auto site = read_slurm_site(run.slurm_conf, run.slurm_qos);
    if (!site) return Unexpected{site.error()};
    for (std::string& file : site->files()) names.push_back(std::move(file));
    names.insert(names.end(), checked->files.begin(), checked->files.end());
    policy = checked->text;
    for (const std::string& file : existing_files(names)) {
      if (auto done = add_file(file, contents); !done) return done;
    }
    return {};
  }

  struct CheckedPolicy {
    std::string text;                // canonical_text()
    std::vector<std::string> files;  // that it reads
  };

  Result<CheckedPolicy> check_policy(const Scenario& run) {
    const auto [place, is_new] = checked_policies_.try_emplace({run.policies.front(), run.backfill});
    if (!is_new) return place->second;
    const auto specs = parse_contestants(*registry_, run.policies);
    if (!specs) return Unexpected{specs.error()};
    if (specs->size() != 1) return unexpected("expected one policy a run, not '" + run.policies.front() + "'");
    if (const auto backfill = default_backfill(*registry_, run.backfill, *specs); !backfill) {
      return Unexpected{backfill.error()};
    }
    if (const auto checked = check_parameters(*registry_, specs->front()); !checked) return Unexpected{checked.error()};
    if (specs->front().name.starts_with("rl:")) {
      if (const auto model = load_model(specs->front().name.substr(3)); !model) return Unexpected{model.error()};
    }
    return place->second = {canonical_text(specs->front(), *registry_), files_of_policies(*specs, *registry_)};
  }

  Result<void> add_file(const std::string& path, std::string& contents) {
    auto known = hashes_.find(path);
    if (known == hashes_.end()) {
      auto hash = hash_of(path);
      if (!hash) return Unexpected{hash.error()};
      plan_->files.push_back({path, *hash});
      known = hashes_.emplace(path, *std::move(hash)).first;
    }
    contents += path + " " + known->second + "\n";
    return {};
  }

  SweepPlan* plan_;
  const PolicyRegistry* registry_;
  Numbering trace_number_, input_number_;
  std::unordered_map<std::string, std::uint64_t> point_of_meaning_;
  std::unordered_map<std::string, std::string> hashes_;  // by path
  std::set<std::string> known_clusters_;
  std::map<std::pair<std::string, std::string>, CheckedPolicy> checked_policies_;  // by policy and backfilling
};

}  // namespace

std::string point_name(const Sweep& sweep, const SweepPoint& point) {
  const Json values = sweep_point_json(point);
  std::string text;
  for (const std::string& path : sweep.columns) {
    const std::string cell = sweep_cell(values, path);
    if (!cell.empty()) text += (text.empty() ? "" : ", ") + path + " " + cell;
  }
  return text.empty() ? "policy " + point.policy : text;
}

Result<SweepPlan> plan_sweep(Sweep sweep, const PolicyRegistry& registry, bool tries) {
  const BuildInfo build = build_info();
  SweepPlan plan{.sweep = std::move(sweep),
                 .runs = {},
                 .files = {},
                 .program = std::string(build.version) + " " + std::string(build.git_commit)};
  Planner planner(plan, registry);
  SweepTrial trial;
  const auto refused = [&](Error error) {
    error.file = plan.sweep.file + (error.file.empty() ? "" : ": " + error.file);
    return Unexpected{std::move(error)};
  };
  const std::uint64_t count = plan.sweep.size();
  plan.runs.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    if (auto added = planner.add(i, tries ? &trial : nullptr); !added) return refused(added.error());
  }
  if (auto tried = trial.carry_out(plan.sweep, registry); !tried) return refused(tried.error());
  return plan;
}

}  // namespace gpusched
