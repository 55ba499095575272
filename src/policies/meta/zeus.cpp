// SPDX-License-Identifier: Apache-2.0
// zeus: another policy decides who runs where; the GPUs of each job that starts get the power limit of least cost.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpusched/engine/effects/power_table.hpp"
#include "src/policies/carbon/power_limit.hpp"
#include "src/policies/meta/members.hpp"

namespace gpusched {
namespace {

bool has_limits(const PowerModel& model) {
  const auto any = [](const auto& rows) {
    return std::any_of(rows.begin(), rows.end(), [](const auto& row) { return !row.limits.empty(); });
  };
  return any(model.gpus) || any(model.families);
}

// The largest limit of the type, whoever runs on it: the paper's MaxPower.
double largest_limit_w(const PowerModel& model, std::uint32_t type) {
  double most_w = model.gpus[type].limits.empty() ? 0 : model.gpus[type].limits.back().limit_w;
  for (std::size_t at = type; at < model.families.size(); at += model.gpus.size()) {
    const std::vector<PowerLimit>& limits = model.families[at].limits;
    if (!limits.empty()) most_w = std::max(most_w, limits.back().limit_w);
  }
  return most_w;
}

// GPUs of each type that a job holds, in thousandths.
using GpusOfTypes = std::map<std::uint32_t, MilliGpu>;

GpusOfTypes held_gpus(const View& view, JobId job) {
  GpusOfTypes gpus;
  const MilliGpu per_task = view.shape(job).gpu_milli_per_task;
  view.for_each_grant(job, [&view, &gpus, per_task](const Grant& grant) {
    gpus[view.cluster().node_gpu_type(grant.node)] += grant.tasks * per_task;
  });
  return gpus;
}

// What an hour of the job's work, by the reference rate, comes to at a level. It goes as fast as its slowest GPU.
LimitedRun run_at(const detail::DrawTable& table, std::uint32_t family, const GpusOfTypes& gpus, std::uint32_t level) {
  LimitedRun run{.limit_w = 0, .time_s = 3600, .power_w = 0};
  for (const auto& [type, milli] : gpus) {
    const PowerLimit limit = table.limit(family, type, level);
    const std::int64_t mw = table.idle_mw(type) + table.busy_mw(family, type, level);
    run.limit_w = std::max(run.limit_w, limit.limit_w);  // infinite where nothing is limited
    run.power_w += static_cast<double>(mw) / 1e3 * static_cast<double>(milli) / whole_gpu;
    run.time_s = std::max(run.time_s, 3600 * static_cast<double>(reference_rate) / static_cast<double>(limit.speed));
  }
  return run;
}

// The levels that Decision::limit_power() can set, which are those of all types together, each with watts for it.
std::map<std::uint32_t, double> watts_of_levels(const PowerModel& model, const detail::DrawTable& table,
                                                std::uint32_t family) {
  const auto types = static_cast<std::uint32_t>(model.gpus.size());
  std::map<std::uint32_t, double> watts;
  for (std::uint32_t type = 0; type < types; ++type) {
    for (const PowerLimit& limit : model.limits(family, type)) {
      std::uint32_t level = table.top();
      for (std::uint32_t t = 0; t < types; ++t) level = std::min(level, table.level_below(family, t, limit.limit_w));
      watts.emplace(level, limit.limit_w);
    }
  }
  return watts;
}

class Zeus {
 public:
  Zeus(Members members, double eta) : members_(std::move(members)), eta_(eta) {}

  [[nodiscard]] std::string_view name() const { return "zeus"; }
  [[nodiscard]] bool clairvoyant() const { return members_.clairvoyant(); }

  void decide(const OracleView& view, Decision& decision) {
    members_.decide(0, view, decision);
    if (!view.knows_power()) return;
    if (!table_) table_.emplace(view.power_model(), static_cast<std::uint32_t>(view.families().size()));
    levels_.resize(view.job_count(), table_->top());
    started_.clear();
    decision.for_each_start([this](JobId job) { started_.push_back(job); });
    for (const JobId job : started_) limit(view, decision, job);
  }

 private:
  // Below a cap limits are only lowered: a start is admitted with the limit that the job had.
  void limit(const View& view, Decision& decision, JobId job) {
    const PowerModel& model = view.power_model();
    const GpusOfTypes gpus = held_gpus(view, job);
    double most_w = 0;
    for (const auto& [type, milli] : gpus) {
      most_w += largest_limit_w(model, type) * static_cast<double>(milli) / whole_gpu;
    }
    if (most_w == 0) return;  // its GPUs have no limits
    std::vector<LimitedRun> runs;
    std::vector<std::pair<std::uint32_t, double>> settings;
    for (const auto& setting : watts_of_levels(model, *table_, view.family(job))) {
      runs.push_back(run_at(*table_, view.family(job), gpus, setting.first));
      settings.push_back(setting);
    }
    const auto [level, watts] = settings[zeus_choice(runs, eta_, most_w)];
    std::uint32_t& present = levels_[index(job)];
    if (level == present || (level > present && std::isfinite(view.headroom_w()))) return;
    present = level;
    decision.limit_power(job, watts);
  }

  Members members_;
  double eta_;
  std::optional<detail::DrawTable> table_;  // of the run's model
  std::vector<std::uint32_t> levels_;       // by job: of its limit
  std::vector<JobId> started_;              // reused
};

Result<AnyPolicy> make_zeus(const PolicyParameters& parameters, const PolicyContext& context) {
  if (context.power == nullptr || !has_limits(*context.power)) {
    return unexpected("policy zeus: no GPU has power limits; give --power with gpus.TYPE.limits");
  }
  auto members = Members::make("zeus", parameters, context);
  if (!members) return Unexpected{members.error()};
  if (members->size() != 1) {
    return Unexpected{Error{.message = "expected one", .field = "policy zeus, parameter policies"}};
  }
  return AnyPolicy(Zeus(*std::move(members), parameters.number("eta")));
}

}  // namespace

PolicyInfo zeus_info() {
  ParameterInfo held = members_parameter({"fifo"});
  held.meaning = "the one policy that decides who runs where, with its parameters and backfilling";
  return {
      .name = "zeus",
      .summary = "another policy, under which each job's GPUs get the power limit of least cost of energy and time",
      .source =
          "You et al., \"Zeus\", NSDI 2023, equations 2 and 7: the power limit alone, with the batch size as given, "
          "from known curves of draw and speed where the paper profiles them in a job's first epoch",
      .complexity = "that of its policy, and O(power limits) for each start",
      .parameters = {std::move(held),
                     {.name = "eta",
                      .fallback = 0.5,
                      .meaning = "what energy is worth beside time: 0 time alone, 1 energy alone",
                      .most = 1}},
      .make = make_zeus,
      .preemptive = true,
      .files = files_of_members,
      .holds_policies = true};
}

}  // namespace gpusched
