// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/measurements.hpp"

#include <algorithm>
#include <cmath>

#include "src/calibration/measure/checkpoint_speed.hpp"
#include "src/calibration/measure/process_pairs.hpp"

namespace gpusched {
namespace {

struct Protocol {
  std::uint32_t least_samples = 10;
  double noise_ratio = 0.005;     ///< stop at this standard deviation over mean
  double most_seconds = 0.15;     ///< of one point, after the least samples
  double pair_seconds = 0.6;      ///< alone and beside
  double power_seconds = 5;       ///< of a kernel at full duty
  double step_power_seconds = 3;  ///< of one at half duty, and of a step
  bool all_power = true;  ///< every kernel at half duty and every step; else one kernel, and each class's largest step
  std::uint32_t cold_starts = 10;
  std::uint32_t most_turns = 10;  ///< of a pass
};

Protocol protocol_of(SuiteScale scale) {
  switch (scale) {
    case SuiteScale::tiny:
      return {.least_samples = 5,
              .most_seconds = 0,
              .pair_seconds = 0.03,
              .power_seconds = 0.1,
              .step_power_seconds = 0.1,
              .cold_starts = 2,
              .most_turns = 1};
    case SuiteScale::quick:
      return {.most_seconds = 0.02,
              .pair_seconds = 0.2,
              .power_seconds = 2.2,
              .step_power_seconds = 2.2,
              .all_power = false,
              .cold_starts = 5,
              .most_turns = 2};
    case SuiteScale::full: break;
  }
  return {};
}

/// Standard deviation over mean of the samples' middle nine tenths, so that an interruption does not count as noise of
/// the device.
double noise_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  samples.resize(std::max<std::size_t>(2, samples.size() * 9 / 10));
  const auto n = static_cast<double>(samples.size());
  double mean = 0;
  double variance = 0;
  for (const double sample : samples) mean += sample / n;
  for (const double sample : samples) variance += (sample - mean) * (sample - mean) / (n - 1);
  return std::sqrt(variance) / mean;
}

/// What the parts of a measurement share.
struct Taking {
  Backend& backend;
  const CalibrateOptions& options;
  Sampler& sampler;
  Protocol protocol;
  std::uint32_t turns;  ///< passes come round to a point by turns, first one and then the other
};

/// At least the protocol's samples, more until they agree or time is up; a turn's share of them.
Result<std::vector<double>> time_step(const Taking& taking, std::span<const KernelCall> step) {
  const Protocol& protocol = taking.protocol;
  const double begin = taking.backend.clock_s();
  const std::uint32_t share = (protocol.least_samples + taking.turns - 1) / taking.turns;
  auto samples = taking.backend.time_us(step, share);
  while (samples && noise_of(*samples) > protocol.noise_ratio &&
         taking.backend.clock_s() - begin < protocol.most_seconds / taking.turns) {
    auto more = taking.backend.time_us(step, share);
    if (!more) return more;
    samples->insert(samples->end(), more->begin(), more->end());
  }
  return samples;
}

Result<void> check_results(const Taking& taking, std::span<const KernelCall> calls) {
  for (const KernelCall& call : calls) {
    const auto error = taking.sampler.measure("check " + describe(call), [&]() -> Result<std::vector<double>> {
      const auto found = taking.backend.check(call);
      if (!found) return Unexpected{found.error()};
      return std::vector<double>{*found};
    });
    if (!error) return Unexpected{error.error()};
    if (!(error->front() <= error_limit(call))) {
      return unexpected(describe(call) + " computes a wrong result on this device: error " +
                        std::to_string(error->front()) + " of at most " + std::to_string(error_limit(call)));
    }
  }
  return {};
}

/// A point's time in a pass is that of its fastest turn, because a disturbance can only lengthen a turn.
Result<void> time_suite(const Taking& taking, Measurements& found) {
  std::array<std::vector<std::vector<double>>, 2> turn_us;  // by pass and point
  turn_us.fill(std::vector<std::vector<double>>(found.suite.size()));
  for (std::uint32_t turn = 0; turn < taking.turns; ++turn) {
    for (std::size_t pass = 0; pass < 2; ++pass) {
      for (std::size_t i = 0; i < found.suite.size(); ++i) {
        const SuitePoint& point = found.suite[i];
        std::string id = point.id + " pass" + std::to_string(pass + 1);
        if (taking.turns > 1) id += " turn" + std::to_string(turn + 1);
        const auto samples = taking.sampler.measure(id, [&] { return time_step(taking, point.step); });
        if (!samples) return Unexpected{samples.error()};
        turn_us[pass][i].push_back(quantile(*samples, found.facts.typical_quantile));
        found.samples[point.id] += static_cast<std::uint32_t>(samples->size());
      }
    }
  }
  for (std::size_t i = 0; i < found.suite.size(); ++i) {
    for (std::size_t pass = 0; pass < 2; ++pass) {
      found.pass_us[pass].push_back(*std::min_element(turn_us[pass][i].begin(), turn_us[pass][i].end()));
    }
    found.time_us[found.suite[i].id] = 0.5 * (found.pass_us[0][i] + found.pass_us[1][i]);
  }
  return {};
}

Result<void> pair_kernels(const Taking& taking, Measurements& found) {
  const auto& kernels = found.representatives;
  found.slowdown.assign(kernels.size(), std::vector<double>(kernels.size(), 1));
  for (std::size_t a = 0; a < kernels.size(); ++a) {
    for (std::size_t b = a; b < kernels.size(); ++b) {
      const std::string id = "beside " + kernels[a].first + " " + kernels[b].first;
      const auto both = taking.sampler.measure(id, [&]() -> Result<std::vector<double>> {
        const auto times = taking.backend.co_locate(kernels[a].second, kernels[b].second, taking.protocol.pair_seconds);
        if (!times) return Unexpected{times.error()};
        return std::vector<double>{(*times)[0], (*times)[1]};
      });
      if (!both) return Unexpected{both.error()};
      found.slowdown[a][b] = (*both)[0];
      found.slowdown[b][a] = (*both)[1];
      if (a == b) found.slowdown[a][a] = 0.5 * ((*both)[0] + (*both)[1]);
    }
  }
  return {};
}

Result<void> pair_processes(const Taking& taking, Measurements& found) {
  if (!taking.options.open) return {};
  const auto cells = taking.sampler.measure("beside in processes", [&]() -> Result<std::vector<double>> {
    std::vector<KernelCall> calls;
    for (const auto& [name, call] : found.representatives) calls.push_back(call);
    const auto slowdown = co_locate_processes(taking.options.open, calls, taking.protocol.pair_seconds);
    if (!slowdown) return Unexpected{slowdown.error()};
    std::vector<double> flat;
    for (const auto& row : *slowdown) flat.insert(flat.end(), row.begin(), row.end());
    return flat;
  });
  if (!cells) return Unexpected{cells.error()};
  const std::size_t size = found.representatives.size();
  for (std::size_t row = 0; row < size; ++row) {
    const auto begin = cells->begin() + static_cast<std::ptrdiff_t>(row * size);
    found.process_slowdown.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(size));
  }
  return {};
}

/// A step or kernel whose power is measured.
struct PowerPlan {
  std::string id;
  std::vector<KernelCall> step;
  double duty = 1;
  bool is_step = false;
};

std::vector<PowerPlan> power_plans(const Protocol& protocol, const Measurements& found) {
  std::vector<PowerPlan> plans;
  for (const auto& [name, call] : found.representatives) {
    for (const double duty : {1.0, 0.5}) {
      if (duty == 1 || protocol.all_power || name == "gemm") plans.push_back({name, {call}, duty});
    }
  }
  const auto is_step = [](const SuitePoint& point) { return point.role == PointRole::composite; };
  const auto steps =
      std::span(found.suite)
          .last(static_cast<std::size_t>(std::count_if(found.suite.begin(), found.suite.end(), is_step)));
  // Steps end the suite, the largest of each class last.
  for (const SuitePoint& point : protocol.all_power ? steps : steps.last(steps.size() / 3)) {
    plans.push_back({point.id, point.step, 1, true});
  }
  return plans;
}

/// Samples: watts, idle watts, seconds; none when there is no sensor.
Result<std::vector<double>> measure_power(const Taking& taking, const PowerPlan& plan) {
  const bool is_long = plan.duty == 1 && !plan.is_step;
  const double seconds = is_long ? taking.protocol.power_seconds : taking.protocol.step_power_seconds;
  std::string id = "power " + plan.id;
  if (!plan.is_step) id += " " + std::to_string(static_cast<int>(100 * plan.duty));
  return taking.sampler.measure(id, [&]() -> Result<std::vector<double>> {
    const auto reading = taking.backend.power(plan.step, plan.duty, seconds);
    if (!reading) return Unexpected{reading.error()};
    if (!*reading) return std::vector<double>{0};
    return std::vector<double>{(*reading)->watts, (*reading)->idle_watts, (*reading)->seconds};
  });
}

Result<void> measure_powers(const Taking& taking, std::span<const PowerPlan> plans, Measurements& found) {
  constexpr double least_window_s = 2;  // sensors average over that long
  PowerMeasurements power;
  bool trusted = !plans.empty();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const PowerPlan& plan = plans[i];
    const auto reading = measure_power(taking, plan);
    if (!reading) return Unexpected{reading.error()};
    if (reading->size() < 3) {
      taking.sampler.leave_out(plans.size() - i - 1);
      return {};
    }
    const double watts = (*reading)[0];
    trusted = trusted && (*reading)[2] >= least_window_s;
    if (plan.is_step) {
      power.step_w[plan.id] = watts;
      continue;
    }
    power.idle_w = (*reading)[1];
    if (plan.duty == 1) power.active_w[plan.id] = watts;
    power.duty_points[plan.id].push_back({plan.duty, watts});
  }
  if (trusted) found.power = std::move(power);
  return {};
}

Result<void> measure_checkpoint(const Taking& taking, Measurements& found) {
  const std::string& folder = taking.options.checkpoint_folder;
  if (folder.empty()) return {};
  auto rates = taking.sampler.measure("checkpoint",
                                      [&] { return time_checkpoint(folder, checkpoint_bytes(taking.options.scale)); });
  if (!rates) return Unexpected{rates.error()};
  found.checkpoint_gbs = *std::move(rates);
  return {};
}

}  // namespace

Result<std::vector<double>> Sampler::measure(const std::string& id, const Take& take) {
  if (options_.progress) options_.progress(done_, total_, id);
  ++done_;
  if (const std::vector<double>* kept = store_.find(id)) return *kept;
  if (options_.stop.stop_requested()) {
    return unexpected("stopped with " + std::to_string(store_.size()) +
                      " measurements kept; the same command continues from there");
  }
  Result<std::vector<double>> samples = take();
  if (!samples) return Unexpected{Error{.message = id + ": " + samples.error().to_string()}};
  if (auto kept = store_.add(id, *samples); !kept) return Unexpected{kept.error()};
  return samples;
}

Result<Measurements> take_measurements(Backend& backend, const CalibrateOptions& options, Sampler& sampler) {
  Measurements found{.facts = backend.facts(),
                     .suite = make_suite(backend, options.scale, options.seed),
                     .representatives = interference_kernels(backend)};
  const Protocol protocol = protocol_of(options.scale);
  const Taking taking{backend, options, sampler, protocol, std::min(found.facts.turns, protocol.most_turns)};
  const std::vector<KernelCall> checks = check_calls(backend);
  const std::vector<PowerPlan> powers = power_plans(protocol, found);
  const std::size_t pairs = found.representatives.size() * (found.representatives.size() + 1) / 2;
  sampler.expect(1 + checks.size() + std::size_t{2} * taking.turns * found.suite.size() + pairs +
                 (options.open ? 1 : 0) + powers.size() + (options.checkpoint_folder.empty() ? 0 : 1));

  auto cold_starts = sampler.measure("cold_start_s", [&] { return backend.cold_start_s(protocol.cold_starts); });
  if (!cold_starts) return Unexpected{cold_starts.error()};
  found.cold_start_s = *std::move(cold_starts);
  if (auto done = check_results(taking, checks); !done) return Unexpected{done.error()};
  if (auto done = time_suite(taking, found); !done) return Unexpected{done.error()};
  if (auto done = pair_kernels(taking, found); !done) return Unexpected{done.error()};
  if (auto done = pair_processes(taking, found); !done) return Unexpected{done.error()};
  if (auto done = measure_powers(taking, powers, found); !done) return Unexpected{done.error()};
  if (auto done = measure_checkpoint(taking, found); !done) return Unexpected{done.error()};
  return found;
}

}  // namespace gpusched
