// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/calibrate.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "src/calibration/child_process.hpp"
#include "src/calibration/duration_model.hpp"
#include "src/calibration/job_mix.hpp"
#include "src/calibration/sample_store.hpp"
#include "src/sim/build_info.hpp"
#include "src/sim/process_info.hpp"

namespace gpusched {
namespace {

constexpr double repeat_limit = 0.03;
constexpr double co_location_mae_limit = 0.10;
constexpr double co_location_gain_limit = 0.80;  // of the error of assuming no interference
constexpr double energy_limit = 0.15;

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
              .cold_starts = 5};
    case SuiteScale::full: break;
  }
  return {};
}

std::string_view to_string(SuiteScale scale) {
  return scale == SuiteScale::tiny ? "tiny" : scale == SuiteScale::quick ? "quick" : "full";
}

/// Standard deviation over mean of the samples' middle nine tenths: an interruption is not the device's noise.
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

std::string short_ratio(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * ratio);
  return text;
}

double checkpoint_bytes(SuiteScale scale) {
  switch (scale) {
    case SuiteScale::tiny: return 1 << 23;
    case SuiteScale::quick: return 1 << 28;
    case SuiteScale::full: break;
  }
  return 1 << 30;
}

/// Asked before anything is measured: checkpoints come last.
Result<void> check_room(const std::string& folder, double bytes) {
  std::error_code failed;
  const auto space = std::filesystem::space(folder, failed);
  if (failed) return Unexpected{Error{.message = "no checkpoint can be written here", .file = folder}};
  if (static_cast<double>(space.available) > bytes) return {};
  const auto mib = [](double size) { return std::to_string(static_cast<std::uint64_t>(size / 1048576)) + " MiB"; };
  return Unexpected{Error{.message = "a checkpoint of " + mib(bytes) +
                                     " has no room here: " + mib(static_cast<double>(space.available)) + " are free",
                          .file = folder}};
}

/// GB/s of writing `bytes` to a file until it is on the disk, then of reading it back.
Result<std::vector<double>> time_checkpoint(const std::string& folder, double bytes) {
  const std::string path = folder + "/gpusched-checkpoint-" + std::to_string(::getpid()) + ".tmp";
  const std::vector<char> block(1 << 22, 'x');
  const auto failed = [&] {
    std::remove(path.c_str());
    return Unexpected{Error{.message = "cannot write and read a checkpoint here", .file = folder}};
  };
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR, 0600);
  if (file < 0) return failed();
  const auto blocks = static_cast<std::int64_t>(bytes / static_cast<double>(block.size()));
  const double begin = monotonic_s();
  bool sound = true;
  for (std::int64_t i = 0; i < blocks && sound; ++i)
    sound = ::write(file, block.data(), block.size()) == static_cast<ssize_t>(block.size());
  sound = sound && ::fsync(file) == 0;
  const double written = monotonic_s();
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  std::vector<char> back(block.size());
  sound = sound && ::lseek(file, 0, SEEK_SET) == 0;
  for (std::int64_t i = 0; i < blocks && sound; ++i)
    sound = ::read(file, back.data(), back.size()) == static_cast<ssize_t>(back.size());
  const double read = monotonic_s();
  ::close(file);
  if (!sound) return failed();
  std::remove(path.c_str());
  const double total = static_cast<double>(blocks) * static_cast<double>(block.size());
  return std::vector<double>{total / (written - begin) / 1e9, total / (read - written) / 1e9};
}

class Calibration {
 public:
  Calibration(Backend& backend, const CalibrateOptions& options, SampleStore store)
      : backend_(backend),
        options_(options),
        protocol_(protocol_of(options.scale)),
        store_(std::move(store)),
        facts_(backend.facts()),
        suite_(make_suite(backend, options.scale, options.seed)),
        pairs_(interference_kernels(backend)),
        checks_(check_calls(backend)),
        rng_(Rng(options.seed).split("bootstrap")) {
    total_ = static_cast<std::uint32_t>(checks_.size() + std::size_t{2} * turns() * suite_.size() +
                                        pairs_.size() * (pairs_.size() + 1) / 2 + 3 +
                                        (options.job_mix ? 1 + std::size(mix_schedules) : 0));
  }

  Result<DeviceProfile> run() {
    for (const auto& part : {&Calibration::measure_cold_start, &Calibration::check_results, &Calibration::measure_suite,
                             &Calibration::measure_pairs, &Calibration::measure_process_pairs,
                             &Calibration::measure_power, &Calibration::measure_checkpoint}) {
      if (auto done = (this->*part)(); !done) return Unexpected{done.error()};
    }
    DeviceProfile profile = make_profile();
    if (options_.job_mix && options_.open) {
      if (auto done = compare_job_mix(profile); !done) return Unexpected{done.error()};
    }
    if (!options_.samples_path.empty()) {
      profile.raw = RawSamples{options_.samples_path.substr(options_.samples_path.rfind('/') + 1), store_.hash()};
    }
    return profile;
  }

 private:
  // ---- measuring ----

  /// The samples kept under `id`, or those that `take` makes now.
  template <class Take>
  Result<std::vector<double>> measure(const std::string& id, Take take) {
    if (options_.progress) options_.progress(done_, total_, id);
    ++done_;
    if (const std::vector<double>* kept = store_.find(id)) return *kept;
    if (options_.stop.stop_requested()) {
      return unexpected("stopped with " + std::to_string(store_.size()) +
                        " measurements kept; the same command goes on from there");
    }
    Result<std::vector<double>> samples = take();
    if (!samples) return Unexpected{Error{.message = id + ": " + samples.error().to_string()}};
    if (auto kept = store_.add(id, *samples); !kept) return Unexpected{kept.error()};
    return samples;
  }

  /// Passes come round to a point by turns, first one and then the other, each with its share of the samples.
  [[nodiscard]] std::uint32_t turns() const { return std::min(facts_.turns, protocol_.most_turns); }

  /// At least the protocol's samples, more until they agree or time is up.
  Result<std::vector<double>> time_step(std::span<const KernelCall> step) {
    const double begin = backend_.clock_s();
    const std::uint32_t share = (protocol_.least_samples + turns() - 1) / turns();
    auto samples = backend_.time_us(step, share);
    while (samples && noise_of(*samples) > protocol_.noise_ratio &&
           backend_.clock_s() - begin < protocol_.most_seconds / turns()) {
      auto more = backend_.time_us(step, share);
      if (!more) return more;
      samples->insert(samples->end(), more->begin(), more->end());
    }
    return samples;
  }

  Result<void> check_results() {
    for (const KernelCall& call : checks_) {
      const auto error = measure("check " + describe(call), [&]() -> Result<std::vector<double>> {
        const auto found = backend_.check(call);
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

  Result<void> measure_cold_start() {
    auto times = measure("cold_start_s", [&] { return backend_.cold_start_s(protocol_.cold_starts); });
    if (!times) return Unexpected{times.error()};
    cold_start_s_ = *times;
    return {};
  }

  /// A point's time in a pass is that of the fastest turn, which is the typical one of the turn's samples: a
  /// disturbance only ever lengthens them.
  Result<void> measure_suite() {
    std::array<std::vector<std::vector<double>>, 2> turn_us;  // by pass and point
    turn_us.fill(std::vector<std::vector<double>>(suite_.size()));
    for (std::uint32_t turn = 0; turn < turns(); ++turn) {
      for (std::size_t pass = 0; pass < 2; ++pass) {
        for (std::size_t i = 0; i < suite_.size(); ++i) {
          std::string id = suite_[i].id + " pass" + std::to_string(pass + 1);
          if (turns() > 1) id += " turn" + std::to_string(turn + 1);
          const auto samples = measure(id, [&] { return time_step(suite_[i].step); });
          if (!samples) return Unexpected{samples.error()};
          turn_us[pass][i].push_back(quantile(*samples, facts_.typical_quantile));
          sample_counts_[suite_[i].id] += static_cast<std::uint32_t>(samples->size());
        }
      }
    }
    for (std::size_t i = 0; i < suite_.size(); ++i) {
      for (std::size_t pass = 0; pass < 2; ++pass) {
        typical_us_[pass].push_back(*std::min_element(turn_us[pass][i].begin(), turn_us[pass][i].end()));
      }
      time_us_[suite_[i].id] = 0.5 * (typical_us_[0][i] + typical_us_[1][i]);
    }
    return {};
  }

  Result<void> measure_pairs() {
    const std::size_t size = pairs_.size();
    slowdown_.assign(size, std::vector<double>(size, 1));
    for (std::size_t a = 0; a < size; ++a) {
      for (std::size_t b = a; b < size; ++b) {
        const auto both =
            measure("beside " + pairs_[a].first + " " + pairs_[b].first, [&]() -> Result<std::vector<double>> {
              const auto found = backend_.co_locate(pairs_[a].second, pairs_[b].second, protocol_.pair_seconds);
              if (!found) return Unexpected{found.error()};
              return std::vector<double>{(*found)[0], (*found)[1]};
            });
        if (!both) return Unexpected{both.error()};
        slowdown_[a][b] = (*both)[0];
        slowdown_[b][a] = (*both)[1];
        if (a == b) slowdown_[a][a] = 0.5 * ((*both)[0] + (*both)[1]);
      }
    }
    return {};
  }

  Result<void> measure_process_pairs() {
    if (!options_.open) return {};
    const auto cells = measure("beside in processes", [&]() -> Result<std::vector<double>> {
      std::vector<KernelCall> calls;
      for (const auto& [name, call] : pairs_) calls.push_back(call);
      const auto slowdown = co_locate_processes(options_.open, calls, protocol_.pair_seconds);
      if (!slowdown) return Unexpected{slowdown.error()};
      std::vector<double> flat;
      for (const auto& row : *slowdown) flat.insert(flat.end(), row.begin(), row.end());
      return flat;
    });
    if (!cells) return Unexpected{cells.error()};
    for (std::size_t row = 0; row < pairs_.size(); ++row) {
      const auto begin = cells->begin() + static_cast<std::ptrdiff_t>(row * pairs_.size());
      process_slowdown_.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(pairs_.size()));
    }
    return {};
  }

  /// Samples: watts, idle watts, seconds; none when there is no sensor.
  Result<std::vector<double>> power_of(const std::string& id, std::span<const KernelCall> step, double duty,
                                       double seconds) {
    return measure("power " + id, [&]() -> Result<std::vector<double>> {
      const auto reading = backend_.power(step, duty, seconds);
      if (!reading) return Unexpected{reading.error()};
      if (!*reading) return std::vector<double>{0};
      return std::vector<double>{(*reading)->watts, (*reading)->idle_watts, (*reading)->seconds};
    });
  }

  Result<void> measure_power() {
    for (const auto& [name, call] : pairs_) {
      for (const double duty : {1.0, 0.5}) {
        if (duty < 1 && !protocol_.all_power && name != "gemm") continue;
        const double seconds = duty < 1 ? protocol_.step_power_seconds : protocol_.power_seconds;
        const auto reading =
            power_of(name + " " + std::to_string(static_cast<int>(100 * duty)), {&call, 1}, duty, seconds);
        if (!reading) return Unexpected{reading.error()};
        if (reading->size() < 3) return {};
        if (duty == 1.0) active_w_[name] = (*reading)[0];
        idle_w_ = (*reading)[1];
        has_power_ = (*reading)[2] >= 2;
        duty_points_[name].push_back({duty, (*reading)[0]});
      }
    }
    const auto steps = std::span(suite_).last(static_cast<std::size_t>(std::count_if(
        suite_.begin(), suite_.end(), [](const SuitePoint& p) { return p.role == PointRole::composite; })));
    // Steps end the suite, the largest of each class last.
    for (const SuitePoint& point : protocol_.all_power ? steps : steps.last(steps.size() / 3)) {
      const auto reading = power_of(point.id, point.step, 1, protocol_.step_power_seconds);
      if (!reading) return Unexpected{reading.error()};
      step_w_[point.id] = reading->front();
    }
    return {};
  }

  Result<void> measure_checkpoint() {
    if (options_.checkpoint_folder.empty()) return {};
    const double bytes = checkpoint_bytes(options_.scale);
    const auto rates = measure("checkpoint", [&] { return time_checkpoint(options_.checkpoint_folder, bytes); });
    if (!rates) return Unexpected{rates.error()};
    checkpoint_gbs_ = *rates;
    return {};
  }

  // ---- fitting ----

  /// Which of its kernel's fits a call belongs to: "_row", "_l2", "_l3" or, for other products and for memory, "".
  [[nodiscard]] std::string place_of(const KernelCall& call) const {
    if (model_of(call.kernel) == KernelModel::roofline) return is_row_product(call) ? "_row" : "";
    if (footprint_of(call) <= 0.5 * facts_.limits.cache_bytes) return "_l2";
    if (footprint_of(call) <= 0.5 * facts_.limits.last_cache_bytes) return "_l3";
    return "";
  }

  [[nodiscard]] std::uint32_t tile_side(Kernel kernel) const {
    const auto side = facts_.tile_sides.find(kernel);
    return side == facts_.tile_sides.end() ? 1 : side->second;
  }

  /// The points that a kernel is fitted to; `place`: only those of that place.
  [[nodiscard]] std::vector<WorkPoint> points_of(Kernel kernel, std::optional<std::string> place = {}) const {
    std::vector<WorkPoint> points;
    for (const SuitePoint& point : suite_) {
      const KernelCall& call = point.step.front();
      if (point.role != PointRole::fit || call.kernel != kernel) continue;
      if (place && place_of(call) != *place) continue;
      points.push_back({.flops = flops_of(in_whole_tiles(call, tile_side(kernel))),
                        .bytes = bytes_of(call),
                        .time_us = time_us_.at(point.id),
                        .depth = facts_.has_step_floor ? depth_of(call) : 0});
    }
    return points;
  }

  static Quantity fitted(std::string_view key, double value, const ConfidenceInterval& ci95, std::size_t n) {
    Quantity quantity = gpusched::quantity(key, value, Source::fitted);
    quantity.ci95 = {ci95.low, ci95.high};
    if (ci95.bound != Bound::both) quantity.bound = ci95.bound == Bound::at_least ? "at_least" : "at_most";
    quantity.n = static_cast<std::uint32_t>(n);
    return quantity;
  }

  static Quantity measured(std::string_view key, double value, std::size_t n) {
    Quantity quantity = gpusched::quantity(key, value, Source::measured);
    quantity.n = static_cast<std::uint32_t>(n);
    return quantity;
  }

  /// Adds the line of kernel `name` at `place`, where there are points enough.
  void fit_line(DeviceProfile& profile, const std::string& name, const std::string& place,
                std::span<const WorkPoint> points, const Rng& rng) const {
    const auto fit = fit_bandwidth(points, options_.bootstraps, rng);
    if (!fit) return;
    profile.ops[name + place] = {.t0_us = fitted("t0_us", fit->t0_us, fit->ci95[0], points.size()),
                                 .w_gbs = fitted("w_gbs", fit->w_gbs, fit->ci95[1], points.size())};
  }

  void fit_kernel(DeviceProfile& profile, Kernel kernel) {
    const std::string name(gpusched::to_string(kernel));
    const Rng rng = rng_.split(name);
    if (model_of(kernel) == KernelModel::roofline) {
      auto points = points_of(kernel, "");
      if (points.size() >= least_roofline_points) {
        fit_line(profile, name, "_row", points_of(kernel, "_row"), rng.split("row"));
      }
      if (!profile.ops.contains(name + "_row")) points = points_of(kernel);
      const auto fit = fit_roofline(points, options_.bootstraps, rng);
      if (!fit) return;
      profile.fits[name] = {.t0_us = fitted("t0_us", fit->fit.t0_us, fit->ci95[0], points.size()),
                            .p_tflops = fitted("p_tflops", fit->fit.p_tflops, fit->ci95[1], points.size()),
                            .w_gbs = fitted("w_gbs", fit->fit.w_gbs, fit->ci95[2], points.size()),
                            .gamma = fitted("gamma", fit->fit.gamma, fit->ci95[3], points.size()),
                            .tile_side = tile_side(kernel),
                            .train_mape_ratio = measured("train_mape_ratio", fit->train_mape_ratio, points.size())};
      if (fit->fit.step_ns > 0) {
        profile.fits[name].step_ns = fitted("step_ns", fit->fit.step_ns, fit->ci95[4], points.size());
      }
    } else if (model_of(kernel) == KernelModel::bandwidth) {
      for (const std::string place : {"_l2", "_l3", ""}) fit_line(profile, name, place, points_of(kernel, place), rng);
    } else if (model_of(kernel) == KernelModel::transfer) {
      const auto points = points_of(kernel);
      const auto fit = fit_bandwidth(points, options_.bootstraps, rng);
      if (!fit) return;
      TransferFit transfer{.alpha_us = fitted("alpha_us", fit->t0_us, fit->ci95[0], points.size()),
                           .beta_gbs = fitted("beta_gbs", fit->w_gbs, fit->ci95[1], points.size())};
      for (const WorkPoint& point : points) transfer.table_bytes_us.push_back({point.bytes, point.time_us});
      profile.transfers[name] = transfer;
    }
  }

  void add_peaks(DeviceProfile& profile) {
    const bool has_matrix_units = backend_.supports(Kernel::mma_bf16) || backend_.supports(Kernel::gemm_bf16);
    for (const Kernel kernel : {Kernel::fma_fp32, Kernel::fma_fp64, Kernel::fma_fp16}) {
      for (const WorkPoint& point : points_of(kernel)) {
        // What sheets call the fp16 peak of such a device is that of its matrix units, not of its plain ones.
        const bool plain = kernel == Kernel::fma_fp16 && has_matrix_units;
        const std::string key = plain ? "fp16_plain_tflops" : std::string(peak_of(kernel));
        (plain ? profile.resources : profile.peaks)[key] = measured(key, point.flops / point.time_us / 1e6, 1);
      }
    }
    double p = 0;
    for (const Kernel kernel : {Kernel::gemm_bf16, Kernel::mma_bf16}) {
      for (const WorkPoint& point : points_of(kernel)) p = std::max(p, point.flops / point.time_us / 1e6);
    }
    if (p > 0) profile.peaks["bf16_tflops"] = measured("bf16_tflops", p, 1);
    for (const auto& [place, key] : {std::pair{"_l2", "l2_gbs"}, std::pair{"", "memory_gbs"}}) {
      double w = 0;
      for (const Kernel kernel : {Kernel::copy, Kernel::triad}) {
        for (const WorkPoint& point : points_of(kernel, place)) w = std::max(w, point.bytes / point.time_us / 1e3);
      }
      if (w > 0) profile.peaks[key] = measured(key, w, 1);
    }
  }

  void add_interference(DeviceProfile& profile) {
    Interference matrix{.mode = facts_.co_location_mode};
    for (const auto& [name, call] : pairs_) matrix.kernels.push_back(name);
    matrix.slowdown = slowdown_;
    profile.interference = matrix;
    if (process_slowdown_.empty()) return;
    matrix.mode = "processes";
    matrix.slowdown = process_slowdown_;
    profile.process_interference = matrix;
  }

  // ---- the job mix ----

  Result<void> compare_job_mix(DeviceProfile& profile) {
    const auto jobs = make_job_mix(backend_, profile, options_.scale, options_.seed);
    if (!jobs) return Unexpected{jobs.error()};
    const auto start_s = measure("job start", [&]() -> Result<std::vector<double>> {
      const auto found = measure_job_start_s(options_.open, *jobs);
      if (!found) return Unexpected{found.error()};
      return std::vector<double>{*found};
    });
    if (!start_s) return Unexpected{start_s.error()};
    profile.cold_start["job_s"] = measured("job_s", start_s->front(), jobs->size());
    std::vector<MixTimes> real, simulated;
    for (const MixSchedule schedule : mix_schedules) {
      auto times = run_mix_for_real(*jobs, schedule);
      if (!times) return Unexpected{times.error()};
      auto model = simulate_job_mix(profile, *jobs, schedule, start_s->front());
      if (!model) return Unexpected{model.error()};
      real.push_back(*std::move(times));
      simulated.push_back(*std::move(model));
    }
    std::vector<Gate>& gates = profile.validation.gates;
    for (Gate& gate : job_mix_gates(*jobs, real, simulated)) gates.push_back(std::move(gate));
    profile.validation.verdict = verdict_of(gates);
    return {};
  }

  /// Samples: all starts, then all ends.
  Result<MixTimes> run_mix_for_real(std::span<const MixJob> jobs, MixSchedule schedule) {
    const auto samples =
        measure("job mix " + std::string(gpusched::to_string(schedule)), [&]() -> Result<std::vector<double>> {
          auto times = run_job_mix(options_.open, jobs, schedule);
          if (!times) return Unexpected{times.error()};
          std::vector<double> flat = std::move(times->start_s);
          flat.insert(flat.end(), times->end_s.begin(), times->end_s.end());
          return flat;
        });
    if (!samples) return Unexpected{samples.error()};
    const auto middle = samples->begin() + static_cast<std::ptrdiff_t>(jobs.size());
    return MixTimes{.start_s = {samples->begin(), middle}, .end_s = {middle, samples->end()}};
  }

  void add_power(DeviceProfile& profile) {
    if (!has_power_) return;
    PowerModel power{.idle_w = measured("idle_w", idle_w_, 1),
                     .beta = quantity("beta", 1, Source::fitted),
                     .sensor = "energy_counter"};
    double beta = 0;
    for (const auto& [name, watts] : active_w_) {
      power.active_w[name] = measured("active_w", watts, 1);
      if (duty_points_[name].size() < 2) continue;
      beta += fit_power_beta(idle_w_, watts, duty_points_[name]);
      ++power.beta.n;
    }
    power.beta.value = std::max(beta / std::max(power.beta.n, 1U), 0.0);
    profile.power = power;
  }

  // ---- judging ----

  /// Predicted and timed values of a role's points, with the peaks' roofline beside.
  struct Judged {
    std::vector<double> predicted, baseline, timed;
    std::vector<ValidationPoint> points;
  };
  Judged judge(const DeviceProfile& profile, const DeviceProfile& sheet, PointRole role,
               std::optional<Kernel> only = {}) const {
    Judged judged;
    for (const SuitePoint& point : suite_) {
      if (point.role != role || (only && point.step.front().kernel != *only)) continue;
      const auto fit = predict(profile, point.step);
      const auto peaks = predict_from_peaks(sheet, point.step);
      if (!fit || !peaks) continue;
      judged.predicted.push_back(fit->time_us);
      judged.baseline.push_back(*peaks);
      judged.timed.push_back(time_us_.at(point.id));
      judged.points.push_back({.id = point.id,
                               .timed_us = judged.timed.back(),
                               .predicted_us = judged.predicted.back(),
                               .roofline_us = judged.baseline.back()});
    }
    return judged;
  }

  /// Each pair predicted from all others by sensitivity and pressure, as speeds (1 / slowdown).
  [[nodiscard]] std::vector<Gate> co_location_gates() const {
    double error = 0;
    double none_error = 0;
    std::uint32_t n = 0;
    for (std::size_t a = 0; a < slowdown_.size(); ++a) {
      for (std::size_t b = 0; b < slowdown_.size(); ++b) {
        if (a == b) continue;
        auto known = slowdown_;
        known[a][b] = 0;
        const double speed = 1 / slowdown_[a][b];
        error += std::abs(1 / complete_interference(known)[a][b] - speed);
        none_error += std::abs(1 - speed);
        ++n;
      }
    }
    error /= n;
    none_error /= n;
    const double gain = none_error > 0 ? error / none_error : 1;
    return {{.name = "co-location MAE",
             .status = error <= co_location_mae_limit ? "pass" : "fail",
             .value_ratio = error,
             .limit_ratio = co_location_mae_limit,
             .n = n,
             .note = "of the speed of pairs left out of the fit"},
            {.name = "co-location gain",
             .status = gain <= co_location_gain_limit ? "pass" : "fail",
             .value_ratio = gain,
             .limit_ratio = co_location_gain_limit,
             .n = n,
             .note = "of the error of assuming no interference, " + short_ratio(none_error)}};
  }

  /// The representative kernel whose power a call of a step draws.
  static const char* power_class(Kernel kernel) {
    switch (model_of(kernel)) {
      case KernelModel::roofline: return kernel == Kernel::conv2d ? "fma" : "gemm";
      case KernelModel::bandwidth: return kernel == Kernel::gather ? "gather" : "dram";
      default: return "small";
    }
  }

  /// Microjoules of a call: its representative's draw, scaled by how busy the call keeps the device beside it.
  [[nodiscard]] double predicted_energy(const DeviceProfile& profile, const KernelCall& call) const {
    const auto time = predict(profile, call);
    const std::string kernel = power_class(call.kernel);
    const auto known =
        std::find_if(pairs_.begin(), pairs_.end(), [&](const auto& pair) { return pair.first == kernel; });
    const auto representative = predict(profile, known->second);
    if (!time || !representative) return 0;
    const double idle_w = profile.power->idle_w.value;
    const double u = std::min(time->busy_share / representative->busy_share, 1 / representative->busy_share);
    const double above_w = profile.power->active_w.at(kernel).value - idle_w;
    return time->time_us * (idle_w + above_w * std::pow(u, profile.power->beta.value));
  }

  [[nodiscard]] Gate energy_gate(const DeviceProfile& profile) const {
    Gate gate{.name = "energy of steps", .limit_ratio = energy_limit};
    if (!profile.power) {
      gate.note = "no power sensor, or windows shorter than it needs";
      return gate;
    }
    std::vector<double> predicted_j;
    std::vector<double> measured_j;
    for (const SuitePoint& point : suite_) {
      const auto drawn = step_w_.find(point.id);
      if (drawn == step_w_.end()) continue;
      double joule = 0;
      for (const KernelCall& call : point.step) joule += predicted_energy(profile, call);
      predicted_j.push_back(joule);
      measured_j.push_back(time_us_.at(point.id) * drawn->second);
    }
    const ErrorSummary errors = summarise_errors(predicted_j, measured_j);
    gate.value_ratio = errors.mape_ratio;
    gate.n = errors.n;
    gate.status = errors.mape_ratio <= energy_limit ? "pass" : "fail";
    return gate;
  }

  void validate(DeviceProfile& profile) const {
    // The vendor's sheet where one is shipped, else the ceilings just measured.
    const auto shipped = shipped_profile_of_model(profile.model);
    const DeviceProfile& sheet = shipped ? *shipped : profile;
    const std::string against = shipped ? "datasheet roofline" : "roofline of measured peaks";
    std::vector<Gate>& gates = profile.validation.gates;
    gates.push_back(repeat_gate(typical_us_[0], typical_us_[1], repeat_limit));
    const Judged held_out = judge(profile, sheet, PointRole::held_out);
    const Judged steps = judge(profile, sheet, PointRole::composite);
    gates.push_back(error_gate("held-out sizes", summarise_errors(held_out.predicted, held_out.timed), 0.10, 0.20));
    // Each product by itself as well: many good predictions of one must not hide bad ones of another.
    for (const Kernel product : {Kernel::gemm_naive16, Kernel::gemm_tiled, Kernel::gemm_fp32, Kernel::gemm_bf16}) {
      if (!backend_.supports(product)) continue;
      const Judged of_product = judge(profile, sheet, PointRole::held_out, product);
      gates.push_back(error_gate("held-out " + std::string(gpusched::to_string(product)),
                                 summarise_errors(of_product.predicted, of_product.timed), 0.10, 0.20));
    }
    gates.push_back(error_gate("composite steps", summarise_errors(steps.predicted, steps.timed), 0.10,
                               facts_.is_hopper ? 0.20 : 0.15));
    gates.push_back(better_gate("steps against " + against, summarise_errors(steps.predicted, steps.timed),
                                summarise_errors(steps.baseline, steps.timed)));
    if (shipped) gates.back().note = "the sheet of " + shipped->model;
    for (const Judged* judged : {&held_out, &steps}) {
      profile.validation.points.insert(profile.validation.points.end(), judged->points.begin(), judged->points.end());
    }
    gates.push_back(energy_gate(profile));
    for (Gate& gate : co_location_gates()) gates.push_back(std::move(gate));
    profile.validation.verdict = verdict_of(gates);
  }

  DeviceProfile make_profile() {
    const BuildInfo build = build_info();
    DeviceProfile profile{.kind = facts_.kind,
                          .vendor = facts_.vendor,
                          .model = facts_.model,
                          .backend = backend_.name(),
                          .created_utc = utc_now()};
    profile.profile_id = profile.backend + "-" + profile.model + "-" + profile.created_utc.substr(0, 10);
    for (char& c : profile.profile_id) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      if (c >= 'A' && c <= 'Z')
        c = static_cast<char>(c - 'A' + 'a');
      else if (!plain)
        c = '-';
    }
    profile.tool = {{"version", std::string(build.version)},
                    {"git", std::string(build.git_commit)},
                    {"compiler", std::string(build.compiler)}};
    profile.environment = backend_.facts().environment;  // as it is after the samples
    profile.environment["suite"] = std::string(to_string(options_.scale)) + ", seed " + std::to_string(options_.seed);
    profile.resources = facts_.resources;
    add_peaks(profile);
    for (std::size_t i = 0; i < kernel_count; ++i) fit_kernel(profile, static_cast<Kernel>(i));
    if (const auto launch = time_us_.find("launch 1"); launch != time_us_.end()) {
      profile.resources["launch_us"] = measured("launch_us", launch->second, sample_counts_["launch 1"]);
    }
    if (!cold_start_s_.empty()) {
      profile.cold_start["context_s"] = measured("context_s", quantile(cold_start_s_, 0.5), cold_start_s_.size());
      profile.cold_start["context_p90_s"] =
          measured("context_p90_s", quantile(cold_start_s_, 0.9), cold_start_s_.size());
    }
    if (checkpoint_gbs_.size() == 2) {
      profile.resources["checkpoint_write_gbs"] = measured("checkpoint_write_gbs", checkpoint_gbs_[0], 1);
      profile.resources["checkpoint_read_gbs"] = measured("checkpoint_read_gbs", checkpoint_gbs_[1], 1);
    }
    if (!backend_.supports(Kernel::peer_copy)) {
      profile.transfers["peer_copy"] = {.alpha_us = quantity("alpha_us", 0, Source::unavailable),
                                        .beta_gbs = quantity("beta_gbs", 0, Source::unavailable)};
    }
    add_interference(profile);
    add_power(profile);
    validate(profile);
    return profile;
  }

  Backend& backend_;
  const CalibrateOptions& options_;
  Protocol protocol_;
  SampleStore store_;
  DeviceFacts facts_;
  std::vector<SuitePoint> suite_;
  std::vector<std::pair<std::string, KernelCall>> pairs_;
  std::vector<KernelCall> checks_;
  Rng rng_;
  std::uint32_t done_ = 0;
  std::uint32_t total_ = 0;

  std::array<std::vector<double>, 2> typical_us_;  // by pass, in the suite's order
  std::map<std::string, double> time_us_;
  std::map<std::string, std::uint32_t> sample_counts_;
  std::vector<std::vector<double>> slowdown_;
  std::vector<std::vector<double>> process_slowdown_;
  std::vector<double> cold_start_s_;
  std::vector<double> checkpoint_gbs_;
  std::map<std::string, double> active_w_;
  std::map<std::string, std::vector<PowerPoint>> duty_points_;
  std::map<std::string, double> step_w_;
  double idle_w_ = 0;
  bool has_power_ = false;
};

}  // namespace

Gate error_gate(std::string name, const ErrorSummary& errors, double mape_limit, double p90_limit) {
  Gate gate{.name = std::move(name), .value_ratio = errors.mape_ratio, .limit_ratio = mape_limit, .n = errors.n};
  if (errors.n == 0) return gate;
  gate.status = errors.mape_ratio <= mape_limit && errors.p90_ratio <= p90_limit ? "pass" : "fail";
  gate.note = "p90 " + short_ratio(errors.p90_ratio) + " of at most " + short_ratio(p90_limit);
  return gate;
}

Gate better_gate(std::string name, const ErrorSummary& fitted, const ErrorSummary& baseline) {
  Gate gate{
      .name = std::move(name), .value_ratio = fitted.mape_ratio, .limit_ratio = baseline.mape_ratio, .n = fitted.n};
  if (fitted.n == 0) return gate;
  gate.status = fitted.mape_ratio < baseline.mape_ratio ? "pass" : "fail";
  return gate;
}

Gate repeat_gate(std::span<const double> first, std::span<const double> second, double limit) {
  std::vector<double> differences;
  for (std::size_t i = 0; i < first.size(); ++i) differences.push_back(std::abs(first[i] / second[i] - 1));
  Gate gate{.name = "repeat", .limit_ratio = limit, .n = static_cast<std::uint32_t>(differences.size())};
  if (differences.empty()) return gate;
  gate.note = "95th percentile between two passes; median " + short_ratio(quantile(differences, 0.5));
  gate.value_ratio = quantile(std::move(differences), 0.95);
  gate.status = gate.value_ratio <= limit ? "pass" : "fail";
  return gate;
}

std::string verdict_of(std::span<const Gate> gates) {
  bool ran = false;
  for (const Gate& gate : gates) {
    if (gate.status == "fail") return "fail";
    ran = ran || gate.status == "pass";
  }
  return ran ? "pass" : "not_run";
}

Result<DeviceProfile> calibrate(Backend& backend, const CalibrateOptions& options) {
  const std::string identity = "backend=" + backend.name() + " device=" + backend.facts().model +
                               " suite=" + std::string(to_string(options.scale)) +
                               " seed=" + std::to_string(options.seed);
  if (!options.checkpoint_folder.empty()) {
    if (auto room = check_room(options.checkpoint_folder, checkpoint_bytes(options.scale)); !room) {
      return Unexpected{room.error()};
    }
  }
  auto store = SampleStore::open(options.samples_path, identity);
  if (!store) return Unexpected{store.error()};
  return Calibration(backend, options, std::move(*store)).run();
}

}  // namespace gpusched
