// SPDX-License-Identifier: Apache-2.0
#include "src/policies/fair/lsf.hpp"

#include <cmath>

#include "src/policies/fair/owner_order.hpp"

namespace gpusched {

double Lsf::dynamic_priority(std::uint32_t owner, Time now) const {
  const double shares = static_cast<double>(options_.shares.milli(owner)) / 1000;
  const Account& account = accounts_[owner];
  const double gpus = static_cast<double>(account.held) / static_cast<double>(whole_gpu);
  return shares / (account.past.at(now) / 3600 * options_.used_factor +
                   account.running_s(now) / 3600 * options_.run_time_factor + (1 + gpus) * options_.run_job_factor);
}

double Lsf::standing(const View& view, std::uint32_t owner) const {
  const Account& account = accounts_[owner];
  const double gpus = static_cast<double>(account.held) / static_cast<double>(whole_gpu);
  const double load = account.past.at(view.now()) / 3600 * options_.used_factor +
                      account.running_s(view.now()) / 3600 * options_.run_time_factor + gpus * options_.run_job_factor;
  return std::log2(load) + half_lives(view.now());
}

std::int64_t Lsf::bound(const View& view, double standing, std::int64_t fixed) const {
  const double rounding = 1e-9 + 1e-15 * (std::abs(standing) + half_lives(view.now()));
  const double load = std::exp2(standing - half_lives(view.now()) - rounding);
  const double shares = static_cast<double>(-fixed) / 1000;
  return -std::llround(shares / (load + options_.run_job_factor) * 1e9);
}

// In billionths, kept until the owner's holdings or the time change: an owner has many classes.
std::int64_t Lsf::priority_now(std::uint32_t owner, Time now) {
  PriorityNow& priority = priorities_[owner];
  if (priority.time != now) priority = {now, std::llround(dynamic_priority(owner, now) * 1e9)};
  return priority.value;
}

void Lsf::inherit(const Lsf& before, const View& view) {
  for (std::uint32_t owner = 0; owner < before.accounts_.size(); ++owner) {
    accounts_[owner].past.inherit(before.accounts_[owner].past, view.now());
  }
  priorities_ = {};
}

// "A tenth after history_hours" as a half-life.
double Lsf::half_life_s() const { return options_.history_hours * 3600 * std::log10(2.0); }

void Lsf::hold(const View& view, JobId job, std::uint32_t owner, std::int64_t sign) {
  Account& account = accounts_[owner];
  const MilliGpu change = sign * view.shape(job).gpu_milli();
  account.past.hold(view.now(), change);
  account.held += change;
  account.jobs += sign;
  if (started_.empty()) started_.resize(view.job_count());
  if (sign > 0) started_[index(job)] = view.now();
  account.start_sum_us += std::int64_t{sign} * started_[index(job)].us;
  priorities_[owner].time = Time::max();
}

namespace {

Result<Lsf> make_lsf(const PolicyParameters& parameters, const PolicyContext& context) {
  const auto column = owner_column("lsf", parameters, context);
  if (!column) return Unexpected{column.error()};
  return Lsf({.column = *column,
              .shares = OwnerWeights(parameters.list("weights")),
              .used_factor = parameters.number("used_factor"),
              .run_time_factor = parameters.number("run_time_factor"),
              .run_job_factor = parameters.number("run_job_factor"),
              .history_hours = parameters.number("history_hours")});
}

ParameterInfo number(std::string name, double fallback, std::string meaning, double least) {
  return {.name = std::move(name), .fallback = fallback, .meaning = std::move(meaning), .least = least, .most = 1e9};
}

}  // namespace

PolicyInfo lsf_info() {
  return owner_order_info(
      {.name = "lsf",
       .summary = "user fair-share by dynamic priority: shares over decayed usage, run time and GPUs held",
       .source =
           "IBM Spectrum LSF documentation, \"Dynamic user priority\"; GPU time stands for CPU time, GPUs for job "
           "slots",
       .parameters = {owner_parameter("user"), weights_parameter(),
                      number("used_factor", 0.7, "CPU_TIME_FACTOR: weight of past GPU hours", 0),
                      number("run_time_factor", 0.7, "RUN_TIME_FACTOR: weight of the hours of running jobs", 0),
                      number("run_job_factor", 3, "RUN_JOB_FACTOR: weight of GPUs held, plus one", 0.001),
                      number("history_hours", 5, "HIST_HOURS: after this long a tenth of past usage counts", 0.001)},
       .asymmetries = {{Symmetry::time_scale, "hours weigh beside numbers of GPUs"}}},
      make_lsf);
}

}  // namespace gpusched
