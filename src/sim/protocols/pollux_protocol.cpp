// SPDX-License-Identifier: Apache-2.0
#include "src/sim/protocols/pollux_protocol.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <system_error>
#include <tuple>

#include "src/base/field_parser.hpp"
#include "src/base/strict_json.hpp"
#include "src/calibration/profile/measured_csv.hpp"

namespace gpusched {
namespace {

namespace fs = std::filesystem;
using Curve = PolluxApplication::Curve;

constexpr std::int64_t longest_s = std::int64_t{10} * 365 * 86'400;

// ceil() of the artifact's quotients.
std::int64_t quotient_up(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(a) / static_cast<double>(b) - 1e-8));
}

PolluxStep mix(const PolluxStep& a, const PolluxStep& b, double share) {
  return {std::lerp(a.step_s, b.step_s, share), std::lerp(a.sync_s, b.sync_s, share)};
}

std::optional<PolluxStep> step_at(const Curve& curve, std::int64_t samples) {
  const auto above = curve.lower_bound(samples);
  if (above == curve.end()) return std::nullopt;
  if (above->first == samples) return above->second;
  if (above == curve.begin()) return std::nullopt;
  const auto below = std::prev(above);
  return mix(below->second, above->second,
             static_cast<double>(samples - below->first) / static_cast<double>(above->first - below->first));
}

// A placement's name: the GPUs of each node, a digit each, begun at the node that makes it least.
std::string name_of(const std::vector<std::int64_t>& gpus_on_nodes) {
  std::string name, least;
  for (const std::int64_t gpus : gpus_on_nodes) name += static_cast<char>('0' + gpus);
  least = name;
  for (std::size_t i = 1; i < name.size(); ++i) least = std::min(least, name.substr(i) + name.substr(0, i));
  return least;
}

// ---- reading ----

// The cells of a row as what the artifact measures.
class Cells : public MeasuredCells {
 public:
  using MeasuredCells::MeasuredCells;

  std::string placement(std::size_t which) {
    const std::string& gpus = text(which);
    const auto is_count = [](char c) { return c >= '1' && c <= '9'; };
    if (gpus.empty() || gpus.size() > 1000 || !std::all_of(gpus.begin(), gpus.end(), is_count)) {
      fail(which, "the GPUs on each node, a digit of 1 to 9 each");
    }
    return gpus;
  }
  PolluxStep step(std::size_t which) {
    const PolluxStep step{number(which, 0), number(which + 1, 0)};
    if (step.step_s <= 0) fail(which, "a positive number of seconds");
    if (step.sync_s > step.step_s) fail(which + 1, "no more seconds than step_time");
    return step;
  }
};

Result<void> for_each_cells(const std::string& path, std::span<const MeasuredColumn> columns,
                            const std::function<void(Cells&, const MeasuredRow&)>& visit) {
  const auto text = read_text_file(path);
  if (!text) return Unexpected{text.error()};
  return for_each_measured_row(*text, path, columns, [&](const MeasuredRow& row) {
    Cells cells(path, row, columns);
    visit(cells, row);
    return cells.done();
  });
}

Result<void> read_placements(const std::string& path, PolluxApplication& application) {
  constexpr std::array<MeasuredColumn, 4> columns{{{"placement"}, {"local_bsz"}, {"step_time"}, {"sync_time"}}};
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<PolluxStep>> measured;
  const auto done = for_each_cells(path, columns, [&](Cells& cells, const MeasuredRow&) {
    const std::string placement = cells.placement(0);
    const std::int64_t samples = cells.count(1, 1);
    const PolluxStep step = cells.step(2);
    application.placements[placement][samples] = step;
    std::int64_t gpus = 0;
    for (const char c : placement) gpus += c - '0';
    measured[{static_cast<std::int64_t>(placement.size()), gpus, samples}].push_back(step);
    application.most_samples = std::max(application.most_samples, samples);
    if (application.least_samples == 0 || samples < application.least_samples) application.least_samples = samples;
  });
  if (!done) return done;
  if (measured.empty()) return Unexpected{Error{.message = "expected step times below a header", .file = path}};
  for (const auto& [at, steps] : measured) {
    PolluxStep mean;
    for (const PolluxStep& step : steps) mean = {mean.step_s + step.step_s, mean.sync_s + step.sync_s};
    const auto count = static_cast<double>(steps.size());
    const auto [nodes, gpus, samples] = at;
    application.sizes[{nodes, gpus}][samples] = {mean.step_s / count, mean.sync_s / count};
  }
  return {};
}

Result<void> read_scalability(const std::string& path, PolluxApplication& application) {
  constexpr std::array<MeasuredColumn, 5> columns{
      {{"num_nodes"}, {"num_replicas"}, {"local_bsz"}, {"step_time"}, {"sync_time"}}};
  return for_each_cells(path, columns, [&](Cells& cells, const MeasuredRow&) {
    const std::int64_t nodes = cells.count(0, 1), gpus = cells.count(1, 1), samples = cells.count(2, 1);
    application.sizes[{nodes, gpus}].emplace(samples, cells.step(3));
  });
}

Result<std::vector<PolluxApplication::Epoch>> read_training(const std::string& path) {
  constexpr std::array<MeasuredColumn, 4> columns{{{"progress"}, {"iteration"}, {"grad_sqr"}, {"grad_var"}}};
  std::vector<PolluxApplication::Epoch> epochs;
  const auto done = for_each_cells(path, columns, [&](Cells& cells, const MeasuredRow&) {
    const PolluxApplication::Epoch epoch{cells.number(0, 0), cells.number(1, 0), cells.number(2, 0),
                                         cells.number(3, 0)};
    if (!epochs.empty() && epoch.progress < epochs.back().progress) cells.fail(0, "no less than in the row before");
    if (epoch.grad_sqr + epoch.grad_var <= 0) cells.fail(2, "a gradient that is not zero");
    epochs.push_back(epoch);
  });
  if (!done) return Unexpected{done.error()};
  if (epochs.empty()) return Unexpected{Error{.message = "expected epochs below a header", .file = path}};
  return epochs;
}

// B of validation-B.csv.
std::optional<std::int64_t> batch_of(const std::string& file) {
  constexpr std::string_view begin = "validation-", end = ".csv";
  if (!file.starts_with(begin) || !file.ends_with(end) || file.size() <= begin.size() + end.size()) return std::nullopt;
  const auto batch =
      parse_exact<std::int64_t>(std::string_view(file).substr(begin.size(), file.size() - begin.size() - end.size()));
  return batch && *batch >= 1 && *batch <= 1'000'000'000 ? batch : std::nullopt;
}

Result<PolluxApplication> read_application(const fs::path& folder) {
  PolluxApplication application;
  if (auto done = read_placements((folder / "placements.csv").string(), application); !done) {
    return Unexpected{done.error()};
  }
  if (folder.filename() == "yolov3") application.most_samples = std::min<std::int64_t>(application.most_samples, 8);
  std::error_code failed;
  if (fs::exists(folder / "scalability.csv", failed)) {
    if (auto done = read_scalability((folder / "scalability.csv").string(), application); !done) {
      return Unexpected{done.error()};
    }
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, failed)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::size_t epochs = 0;
  for (const fs::path& file : files) {
    const auto batch = batch_of(file.filename().string());
    if (!batch) continue;
    auto training = read_training(file.string());
    if (!training) return Unexpected{training.error()};
    epochs = application.training.empty() ? training->size() : std::min(epochs, training->size());
    application.training.emplace(*batch, std::move(*training));
  }
  if (application.training.empty()) {
    return Unexpected{Error{.message = "expected files validation-BATCH.csv", .file = folder.string()}};
  }
  for (std::size_t e = 0; e < epochs; ++e) {
    double least = application.training.begin()->second[e].progress;
    for (const auto& [batch, training] : application.training) least = std::min(least, training[e].progress);
    application.progress.push_back(least);
  }
  return application;
}

Result<void> read_step_times(const std::string& path, PolluxProfiles& profiles) {
  constexpr std::array<MeasuredColumn, 5> columns{
      {{"application"}, {"placement"}, {"local_bsz"}, {"step_time_s"}, {"sync_time_s"}}};
  return for_each_cells(path, columns, [&](Cells& cells, const MeasuredRow& row) {
    const std::string placement = cells.placement(1);
    const std::int64_t samples = cells.count(2, 1);
    const PolluxStep step = cells.step(3);
    if (const auto found = profiles.find(row.cells[0]); found != profiles.end()) {
      found->second.exact[placement][samples] = step;
    } else {
      cells.fail(0, "a folder of this name beside the file");
    }
  });
}

// ---- running ----

struct JobState {
  const PolluxJob* job = nullptr;
  const PolluxApplication* application = nullptr;
  std::vector<std::pair<std::size_t, std::int64_t>> nodes{};  // node, GPUs on it; none: the job does not run
  std::int64_t gpus = 0;
  double batch = 1;  // of the present allocation
  double step_s = 0;
  std::int64_t restart_left_s = 0;
  std::size_t epoch = 0;
  double progress = 0;
  std::int64_t end_s = -1;
  bool known = false, chosen = false;  // Tiresias: in a queue; among those that run
  bool demoted = false;
  std::int64_t ran_s = 0;
};

// How a batch is divided over GPUs and accumulation steps.
struct Division {
  std::int64_t samples = 0;  // a GPU and step
  std::int64_t accumulated = 0;
};

Division divide(const PolluxApplication& application, std::int64_t batch, std::int64_t gpus, bool accumulates) {
  const std::int64_t local = quotient_up(batch, gpus);
  std::int64_t steps = quotient_up(local, application.most_samples) - 1;
  if (gpus == 1 && accumulates) steps = std::max<std::int64_t>(steps, 1);
  const std::int64_t most = application.largest_batch() / (gpus * (steps + 1));
  return {std::min(quotient_up(local, steps + 1), most), steps};
}

// The value that `member` of an epoch has at a batch size, linear between those measured.
double between(const PolluxApplication& application, double batch, std::size_t epoch,
               double PolluxApplication::Epoch::*member) {
  auto above = application.training.begin();
  while (static_cast<double>(above->first) < batch) ++above;
  const double high = above->second[epoch].*member;
  const auto high_batch = static_cast<double>(above->first);
  if (high_batch == batch || above == application.training.begin()) return high;
  --above;
  const double low = above->second[epoch].*member;
  const auto low_batch = static_cast<double>(above->first);
  return ((batch - low_batch) * high + (high_batch - batch) * low) / (high_batch - low_batch);
}

// What a step at a batch size is worth, in steps at the smallest one.
double gain_of(const PolluxApplication& application, std::size_t epoch, double batch) {
  const double scale = batch / static_cast<double>(application.smallest_batch());
  const double sqr = between(application, batch, epoch, &PolluxApplication::Epoch::grad_sqr);
  const double var = between(application, batch, epoch, &PolluxApplication::Epoch::grad_var);
  return (var + sqr) / (var / scale + sqr);
}

class PolluxRun {
 public:
  PolluxRun(const std::vector<PolluxJob>& jobs, const PolluxProfiles& profiles, PolluxPolicy policy,
            const PolluxOptions& options)
      : options_(options), policy_(policy) {
    for (const PolluxJob& job : jobs) states_.push_back({.job = &job, .application = &profiles.at(job.application)});
  }

  Result<PolluxResult> run() {
    std::size_t left = states_.size();
    for (std::int64_t now = 0; left > 0; now += options_.round_s) {
      if (now > longest_s) return Unexpected{Error{.message = "jobs are not done after ten years"}};
      for (JobState& state : states_) {
        if (state.end_s >= 0 || state.nodes.empty()) continue;
        advance(state, now);
        if (state.end_s >= 0) --left;
      }
      choose_active(now + options_.round_s);
      policy_ == PolluxPolicy::tiresias ? tiresias() : optimus();
      if (error_) return Unexpected{*error_};
    }
    double sum = 0;
    for (const JobState& state : states_) {
      result_.jct_s.push_back(state.end_s - state.job->submit_s);
      sum += static_cast<double>(result_.jct_s.back());
    }
    result_.avg_jct_s = states_.empty() ? 0 : sum / static_cast<double>(states_.size());
    return result_;
  }

 private:
  using Queue = std::vector<JobState*>;

  void choose_active(std::int64_t now) {
    active_.clear();
    for (JobState& state : states_) {
      if (state.end_s < 0 && state.job->submit_s <= now) active_.push_back(&state);
    }
  }

  // One round of a running job from `now` on.
  void advance(JobState& state, std::int64_t now) {
    const PolluxApplication& application = *state.application;
    std::int64_t left = options_.round_s;
    const std::int64_t delay = std::min(state.restart_left_s, left);
    state.restart_left_s -= delay;
    left -= delay;
    result_.allocated_gpu_s += options_.round_s * state.gpus;
    result_.restart_gpu_s += delay * state.gpus;
    while (left > 0 && state.end_s < 0) {
      const double speed = goodput(state);
      const double end = application.progress[state.epoch];
      const double reached = state.progress + speed * static_cast<double>(left);
      if (reached < end) {
        state.progress = reached;
        return;
      }
      const auto rest = static_cast<std::int64_t>(
          std::min(std::nearbyint((end - state.progress) / speed), static_cast<double>(left)));
      state.progress = end;
      left -= rest;
      if (++state.epoch == application.progress.size()) state.end_s = now + options_.round_s - left;
    }
    if (state.end_s >= 0) result_.tail_gpu_s += left * state.gpus;
  }

  static double goodput(const JobState& state) {
    return gain_of(*state.application, state.epoch, state.batch) / state.step_s;
  }

  // ---- allocations ----

  static void release(JobState& state) {
    state.nodes.clear();
    state.gpus = 0;
  }

  [[nodiscard]] std::vector<std::int64_t> idle_gpus() const {
    std::vector<std::int64_t> idle(static_cast<std::size_t>(options_.nodes), options_.gpus_per_node);
    for (const JobState* state : active_) {
      for (const auto& [node, gpus] : state->nodes) idle[node] -= gpus;
    }
    return idle;
  }

  void allocate(JobState& state, std::int64_t gpus, std::vector<std::int64_t>& idle) {
    std::vector<std::int64_t> placement;
    for (std::int64_t left = gpus; left > 0; left -= placement.back()) {
      const auto most = std::max_element(idle.begin(), idle.end());
      placement.push_back(std::min(*most, left));
      *most -= placement.back();
      state.nodes.emplace_back(static_cast<std::size_t>(most - idle.begin()), placement.back());
    }
    const PolluxApplication& application = *state.application;
    const std::int64_t batch = state.job->batch_size, smallest = application.smallest_batch();
    const Division division = divide(application, batch, gpus, batch > smallest);
    const auto steps = static_cast<double>(division.accumulated);
    const PolluxStep step = step_of(state, placement, division.samples);
    state.gpus = gpus;
    state.batch = static_cast<double>(gpus * division.samples * (division.accumulated + 1));
    state.step_s = step.step_s + (step.step_s - step.sync_s) * steps;
    state.restart_left_s = options_.restart_s;
    ++result_.starts;
  }

  PolluxStep step_of(const JobState& state, const std::vector<std::int64_t>& placement, std::int64_t samples) {
    if (const auto step = state.application->step(placement, samples)) return *step;
    if (!error_) {
      error_ = Error{.message = "no step time of " + state.job->application + " was measured for the placement " +
                                name_of(placement) + " at " + std::to_string(samples) + " samples a GPU, which job '" +
                                state.job->name + "' needs"};
    }
    return {1, 0};
  }

  // ---- Tiresias ----

  void tiresias() {
    constexpr std::int64_t limit_gpu_s = std::int64_t{16} * 3600;
    for (Queue* queue : {&first_, &second_}) std::erase_if(*queue, [](const JobState* s) { return s->end_s >= 0; });
    for (JobState* state : active_) {
      if (!state->known) first_.push_back(state);
      state->known = true;
    }
    for (JobState* state : active_) {
      if (!state->chosen) continue;
      state->ran_s += options_.round_s;
      if (state->demoted || state->ran_s * state->job->gpus < limit_gpu_s) continue;
      state->demoted = true;
      std::erase(first_, state);
      second_.push_back(state);
    }
    std::int64_t left = options_.nodes * options_.gpus_per_node;
    for (const Queue* queue : {&first_, &second_}) {
      for (JobState* state : *queue) {
        state->chosen = state->job->gpus <= left;
        if (state->chosen) left -= state->job->gpus;
        if (!state->chosen) release(*state);
      }
    }
    auto idle = idle_gpus();
    for (const Queue* queue : {&first_, &second_}) {
      for (JobState* state : *queue) {
        if (state->chosen && state->nodes.empty()) allocate(*state, state->job->gpus, idle);
      }
    }
  }

  // ---- Optimus ----

  struct Share {
    JobState* state = nullptr;
    std::int64_t gpus = 0;
    double gain = 0;
  };

  void optimus() {
    if (active_.empty()) return;
    std::int64_t left = options_.nodes * options_.gpus_per_node;
    std::vector<Share> shares;
    for (JobState* state : active_) {
      Share share{.state = state};
      if (left > 0) {
        share.gpus = 1;
        share.gain = --left > 0 ? gain_of_one_more(share) : 0;
      }
      shares.push_back(share);
    }
    for (; left > 0; --left) {
      Share& best = *std::max_element(shares.begin(), shares.end(),
                                      [](const Share& a, const Share& b) { return a.gain < b.gain; });
      if (best.gain <= 0) break;
      ++best.gpus;
      best.gain = gain_of_one_more(best);
    }
    for (const Share& share : shares) {
      if (share.state->gpus != share.gpus) release(*share.state);
    }
    std::stable_sort(shares.begin(), shares.end(), [](const Share& a, const Share& b) { return a.gpus < b.gpus; });
    auto idle = idle_gpus();
    for (const Share& share : shares) {
      if (share.gpus > 0 && share.state->nodes.empty()) allocate(*share.state, share.gpus, idle);
    }
  }

  double gain_of_one_more(const Share& share) {
    const JobState& state = *share.state;
    const std::int64_t most =
        state.job->application == "ncf" ? 1 : state.job->batch_size / state.application->least_samples;
    if (share.gpus + 1 > most) return 0;
    return (predicted_step_s(state, share.gpus) - predicted_step_s(state, share.gpus + 1)) * steps_left(state);
  }

  static double steps_left(const JobState& state) {
    const std::size_t last = state.application->progress.size() - 1;
    if (last <= state.epoch) return 1;
    const auto at = [&](std::size_t epoch) {
      return between(*state.application, static_cast<double>(state.job->batch_size), epoch,
                     &PolluxApplication::Epoch::iterations);
    };
    return at(last) - at(state.epoch);
  }

  // On as few nodes as can be; the artifact counts at most 16.
  double predicted_step_s(const JobState& state, std::int64_t gpus) {
    const auto key = std::tuple(state.application, state.job->batch_size, gpus);
    if (const auto known = predicted_.find(key); known != predicted_.end()) return known->second;
    std::vector<std::int64_t> placement;
    for (std::int64_t left = gpus; left > 0; left -= placement.back())
      placement.push_back(std::min<std::int64_t>(left, 4));
    const Division division = divide(*state.application, state.job->batch_size, gpus, true);
    const PolluxStep step = step_of(state, placement, division.samples);
    return predicted_[key] = step.step_s + (step.step_s - step.sync_s) * static_cast<double>(division.accumulated);
  }

  PolluxOptions options_;
  PolluxPolicy policy_;
  std::vector<JobState> states_;
  Queue active_;  // submitted and not done, in order of the file
  Queue first_, second_;
  std::map<std::tuple<const PolluxApplication*, std::int64_t, std::int64_t>, double> predicted_;
  std::optional<Error> error_;
  PolluxResult result_;
};

}  // namespace

std::optional<PolluxStep> PolluxApplication::step(const std::vector<std::int64_t>& gpus_on_nodes,
                                                  std::int64_t samples) const {
  const std::string name = name_of(gpus_on_nodes);
  if (const auto found = exact.find(name); found != exact.end()) {
    if (const auto at = found->second.find(samples); at != found->second.end()) return at->second;
  }
  if (const auto found = placements.find(name); found != placements.end()) return step_at(found->second, samples);
  const std::int64_t nodes = std::min<std::int64_t>(static_cast<std::int64_t>(gpus_on_nodes.size()), 16);
  const std::int64_t gpus = std::accumulate(gpus_on_nodes.begin(), gpus_on_nodes.end(), std::int64_t{0});
  std::optional<std::pair<std::int64_t, PolluxStep>> below;
  for (auto at = sizes.lower_bound({nodes, 0}); at != sizes.end() && at->first.first == nodes; ++at) {
    const auto here = step_at(at->second, samples);
    const std::int64_t size = at->first.second;
    if (!here) continue;
    if (size == gpus) return here;
    if (size > gpus) {
      if (!below) return std::nullopt;
      return mix(below->second, *here,
                 static_cast<double>(gpus - below->first) / static_cast<double>(size - below->first));
    }
    below = {size, *here};
  }
  return std::nullopt;
}

std::optional<double> pollux_goodput(const PolluxApplication& application, std::size_t epoch,
                                     const std::vector<std::int64_t>& gpus_on_nodes, std::int64_t batch_size) {
  const std::int64_t gpus = std::accumulate(gpus_on_nodes.begin(), gpus_on_nodes.end(), std::int64_t{0});
  const Division division = divide(application, batch_size, gpus, batch_size > application.smallest_batch());
  const auto step = application.step(gpus_on_nodes, division.samples);
  if (!step) return std::nullopt;
  const auto batch = static_cast<double>(gpus * division.samples * (division.accumulated + 1));
  if (batch < static_cast<double>(application.smallest_batch())) return std::nullopt;
  const double step_s = step->step_s + (step->step_s - step->sync_s) * static_cast<double>(division.accumulated);
  return gain_of(application, epoch, batch) / step_s;
}

Result<PolluxProfiles> read_pollux_profiles(const std::string& folder) {
  std::error_code failed;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.is_directory(failed)) folders.push_back(entry.path());
  }
  if (folders.empty()) {
    return Unexpected{Error{.message = "expected a folder with a folder for each application", .file = folder}};
  }
  std::sort(folders.begin(), folders.end());
  PolluxProfiles profiles;
  for (const fs::path& path : folders) {
    auto application = read_application(path);
    if (!application) return Unexpected{application.error()};
    profiles.emplace(path.filename().string(), std::move(*application));
  }
  const std::string step_times = (fs::path(folder) / "step_times.csv").string();
  if (fs::exists(step_times, failed)) {
    if (auto done = read_step_times(step_times, profiles); !done) return Unexpected{done.error()};
  }
  return profiles;
}

Result<std::vector<PolluxJob>> read_pollux_jobs(const std::string& path, const PolluxProfiles& profiles) {
  constexpr std::array<MeasuredColumn, 5> columns{
      {{"name"}, {"time"}, {"application"}, {"num_replicas"}, {"batch_size"}}};
  std::vector<PolluxJob> jobs;
  const auto done = for_each_cells(path, columns, [&](Cells& cells, const MeasuredRow& row) {
    PolluxJob job{.name = row.cells[0], .application = row.cells[2]};
    job.submit_s = cells.count(1, 0, 100'000'000);
    job.gpus = cells.count(3, 1);
    job.batch_size = cells.count(4, 1);
    const auto found = profiles.find(job.application);
    if (found == profiles.end()) {
      cells.fail(2, "an application that was measured");
    } else if (job.batch_size < found->second.smallest_batch() || job.batch_size > found->second.largest_batch()) {
      cells.fail(4, "from " + std::to_string(found->second.smallest_batch()) + " to " +
                        std::to_string(found->second.largest_batch()) + " samples, as measured");
    }
    jobs.push_back(std::move(job));
  });
  if (!done) return Unexpected{done.error()};
  return jobs;
}

Result<PolluxResult> run_pollux(const std::vector<PolluxJob>& jobs, const PolluxProfiles& profiles, PolluxPolicy policy,
                                const PolluxOptions& options) {
  const std::int64_t gpus = options.nodes * options.gpus_per_node;
  for (const PolluxJob& job : jobs) {
    if (policy == PolluxPolicy::optimus || job.gpus <= gpus) continue;
    return Unexpected{Error{.message = "job '" + job.name + "' wants " + std::to_string(job.gpus) +
                                       " GPUs, the cluster has " + std::to_string(gpus)}};
  }
  return PolluxRun(jobs, profiles, policy, options).run();
}

}  // namespace gpusched
