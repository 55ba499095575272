// SPDX-License-Identifier: Apache-2.0
#include "src/policies/preemptive/attained_service.hpp"

#include <cmath>
#include <utility>

namespace gpusched {
namespace {

constexpr std::int64_t gpu_us(double gpu_seconds) {
  return static_cast<std::int64_t>(gpu_seconds * static_cast<double>(microseconds_per_second));
}

}  // namespace

std::int64_t default_quantum_gpu_us(const View& view) {
  const PreemptionCost& cost = view.options().preemption;
  MilliGpu largest = 0;
  for (std::uint32_t shape = 0; shape < view.shape_count(); ++shape) {
    largest = std::max(largest, view.shape_of_id(shape).gpu_milli());
  }
  const std::int64_t turn_us = 2 * (cost.checkpoint + cost.restart + cost.checkpoint_interval).us;
  return std::max(gpu_us(3600), mul_div(turn_us, largest, whole_gpu));
}

ServiceSample::ServiceSample(std::vector<std::int64_t> services) : services_(std::move(services)), sums_{0} {
  std::sort(services_.begin(), services_.end());
  for (const std::int64_t service : services_) sums_.push_back(sums_.back() + static_cast<double>(service));
}

// Makes `place` the number of services up to that one.
void ServiceSample::move_to(std::int64_t service, std::uint32_t& place) const {
  const auto is_up_to = [&](std::size_t at) { return services_[at] <= service; };
  const bool may_be_ahead = place <= services_.size() && (place == 0 || is_up_to(place - 1));
  for (int step = 0; may_be_ahead && step < 4; ++step, ++place) {
    if (place == services_.size() || !is_up_to(place)) return;
  }
  place = static_cast<std::uint32_t>(std::upper_bound(services_.begin(), services_.end(), service) - services_.begin());
}

double ServiceSample::gittins_index(std::int64_t attained, std::int64_t look_ahead, Place& place) const {
  move_to(attained, place.first);
  move_to(later_by(Time{attained}, Time{look_ahead}).us, place.beyond);
  const std::size_t first = place.first, beyond = place.beyond;
  if (first == services_.size()) return 0;
  const auto finish = static_cast<double>(beyond - first), stay = static_cast<double>(services_.size() - beyond);
  const double expected =
      sums_[beyond] - sums_[first] - finish * static_cast<double>(attained) + stay * static_cast<double>(look_ahead);
  return finish / expected;
}

AttainedService::AttainedService(AttainedServiceOptions options, const NameTable& families)
    : options_(std::move(options)) {
  if (!options_.skewed.empty()) {
    for (const std::string& family : families.names()) {
      const auto begins = [&](const std::string& skewed) { return family.starts_with(skewed); };
      is_skewed_.push_back(std::any_of(options_.skewed.begin(), options_.skewed.end(), begins));
    }
  }
  services_ = std::move(options_.known_gpu_us);
}

// The hooks that PreemptiveOrder calls while it places jobs.
struct AttainedService::Hooks {
  AttainedService& policy;
  const View& view;

  Key before_start(JobId id) const {
    Job& job = policy.jobs_[index(id)];
    job.promotion = Time::max();
    job.origin = view.now() - (view.ran(id) - job.ran_base);
    policy.runs_of(view, id).insert(policy.run_of(id));
    policy.plan_crossing(view.shape(id), id);
    const Time first = view.first_start(id) == Time::max() ? view.now() : view.first_start(id);
    return policy.options_.by_first_start ? Key{policy.order_.key(id).level, first.us} : policy.order_.key(id);
  }
  void before_preempt(JobId id) const {
    policy.runs_of(view, id).erase(policy.run_of(id));
    policy.plan_promotion(view, id);
  }
  void restored(JobId id) const {
    policy.jobs_[index(id)].promotion = Time::max();
    policy.runs_of(view, id).insert(policy.run_of(id));
  }
  void before_displace() const {
    policy.cross_levels(view);
    policy.bring_indices_up_to_now(view);
  }
  [[nodiscard]] Placement placement(JobId id) const {
    if (policy.is_skewed_.empty() || view.family(id) == 0) return view.options().placement;
    return policy.is_skewed_[view.family(id)] ? Placement::consolidate : Placement::best_fit;
  }
};

void AttainedService::decide(const View& view, Decision& decision) {
  decision.keep_order();
  if (jobs_.empty()) {
    jobs_.resize(view.job_count());
    runs_.resize(std::size_t{view.queue_count()} * view.demand_count());
    levels_ = options_.levels ? *options_.levels : ServiceLevels::even(default_quantum_gpu_us(view));
  }
  // A wake for a crossing that never came is no event: indices would count anew.
  const bool only_woken = std::all_of(view.events().begin(), view.events().end(),
                                      [](const Event& event) { return event.kind == EventKind::wake; });
  if (options_.gittins && only_woken && view.now() != due_) return;
  note_events(view);
  indices_are_of_now_ = !options_.gittins;
  if (options_.gittins && services_.size() >= next_sample_size_) learn_distribution(view);
  if (overtaking_ <= view.now()) cross_levels(view);
  promote_starved(view);
  Hooks hooks{*this, view};
  order_.fill(view, decision, hooks);
  ask_to_wake(view, decision);
}

AttainedService::Key AttainedService::key_of(const View& view, JobId id) {
  const Job& job = jobs_[index(id)];
  if (options_.gittins) return {job.level, gittins_order(view, id)};
  // Jobs that never ran have no first start, and stand in order of submission.
  return {job.level, options_.by_first_start ? view.first_start(id).us : job.entered};
}

// Ascending as the index falls. An index is at most one job a microsecond, which one part in 10^18 tells apart.
std::int64_t AttainedService::gittins_order(const View& view, JobId id) {
  Job& job = jobs_[index(id)];
  const Time ran = view.ran(id) - job.ran_base;
  const std::int64_t attained = mul_div(ran.us, view.shape(id).gpu_milli(), whole_gpu);
  return -std::llround(sample_.gittins_index(attained, options_.look_ahead_gpu_us, job.place) * 1e18);
}

void AttainedService::note_events(const View& view) {
  for (const Event& event : view.events()) {
    const View then = view.at(event);
    if (leaves_cluster(event.kind)) {
      order_.leave(then, event.job);
      runs_of(then, event.job).erase(run_of(event.job));
      jobs_[index(event.job)].crossing = Time::max();
      if (event.kind == EventKind::finish && options_.gittins && !options_.knows_distribution) {
        services_.push_back(then.attained_gpu_us(event.job));
      }
    }
    if (returns_to_queue(event.kind)) {
      catch_up(then, event.job);
      plan_promotion(then, event.job);
      order_.wait(then, event.job, key_of(then, event.job));
    }
    if (event.kind == EventKind::withdraw) {
      order_.withdraw(then, event.job);
      if (view.phase(event.job) == JobPhase::done) jobs_[index(event.job)].promotion = Time::max();
    }
    if (event.kind == EventKind::submit) {
      Job& job = jobs_[index(event.job)];
      if (!std::exchange(job.came, true)) {  // else its user gave it another size
        job.entered = view.now().us;
        if (then.ran(event.job) > Time{}) {  // it ran under another policy
          job.origin = view.now() - then.ran(event.job);
          catch_up(then, event.job);
        }
      }
      order_.wait(then, event.job, key_of(then, event.job));
    }
  }
}

// The level of a job that runs, or ran until now, and since when it has it.
void AttainedService::catch_up(const View& view, JobId id) {
  Job& job = jobs_[index(id)];
  const Shape& shape = view.shape(id);
  const std::uint32_t level = levels_.level(mul_div((view.now() - job.origin).us, shape.gpu_milli(), whole_gpu));
  if (level == job.level) return;
  job.level = level;
  job.entered = (job.origin + time_to(shape, level)).us;
}

void AttainedService::cross_levels(const View& view) {
  while (!crossings_.empty() && crossings_.front().time <= view.now()) {
    const Due due = crossings_.front();
    pop(crossings_);
    if (jobs_[index(due.job)].crossing != due.time || view.phase(due.job) != JobPhase::running) continue;
    catch_up(view, due.job);  // several levels may have passed
    order_.rekey(view, due.job, key_of(view, due.job));
    plan_crossing(view.shape(due.job), due.job);
  }
}

void AttainedService::promote_starved(const View& view) {
  while (!promotions_.empty() && promotions_.front().time <= view.now()) {
    const Due due = promotions_.front();
    pop(promotions_);
    Job& job = jobs_[index(due.job)];
    if (job.promotion != due.time || view.phase(due.job) != JobPhase::pending) continue;
    job.promotion = Time::max();
    job.ran_base = view.ran(due.job);
    job.level = 0;
    job.entered = view.now().us;
    order_.rekey(view, due.job, key_of(view, due.job));
  }
}

// The distribution changes slowly once there is a history: the sample is taken anew whenever that grew by half.
void AttainedService::learn_distribution(const View& view) {
  next_sample_size_ = services_.size() + services_.size() / 2 + 1;
  sample_ = ServiceSample(services_);
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    for (const JobId job : view.queue(queue)) order_.rekey(view, job, key_of(view, job));
  }
}

// The index of a running job changes all the time. As in the authors' program it counts as of the latest event.
void AttainedService::bring_indices_up_to_now(const View& view) {
  if (indices_are_of_now_) return;
  indices_are_of_now_ = true;
  order_.rekey_running(view, [&](JobId job) { return key_of(view, job); });
}

// How long a job of that shape runs until it enters `level`; max() = never.
Time AttainedService::time_to(const Shape& shape, std::uint32_t level) const {
  const std::int64_t service = levels_.begin(level);
  if (service == std::numeric_limits<std::int64_t>::max() || shape.gpu_milli() == 0) return Time::max();
  return {mul_div_up(service, whole_gpu, shape.gpu_milli())};
}

std::set<AttainedService::Run>& AttainedService::runs_of(const View& view, JobId id) {
  return runs_[std::size_t{view.queue_of(id)} * view.demand_count() + view.demand(id)];
}

void AttainedService::plan_crossing(const Shape& shape, JobId id) {
  Job& job = jobs_[index(id)];
  const Time wanted = time_to(shape, job.level + 1);
  job.crossing = later_by(job.origin, wanted);
  if (job.crossing != Time::max()) push(crossings_, {job.crossing, id});
}

// The job is about to wait.
void AttainedService::plan_promotion(const View& view, JobId id) {
  Job& job = jobs_[index(id)];
  const Time ran = view.ran(id) - job.ran_base;
  if (options_.promote_knob <= 0 || job.level == 0 || ran.us == 0) return;
  const double wait_s = to_seconds(ran) * options_.promote_knob;
  if (wait_s > to_seconds(end_of_time)) return;
  job.promotion = view.now() + std::max(from_seconds(wait_s), Time{1});
  push(promotions_, {job.promotion, id});
}

// A running job can newly fall behind a waiting one only when it enters the waiting job's level or the next one, and
// only the first waiting job of each shape matters: behind another it would already be behind the first. When waiting
// jobs are in many levels, every crossing counts.
Time AttainedService::next_overtaking(const View& view) {
  constexpr std::size_t many = 8;
  Time next = Time::max();
  if (options_.gittins) {  // whoever enters a level makes an event, at which all indices count anew
    cross_levels(view);
    const auto stale = [&](const Due& due) {
      return jobs_[index(due.job)].crossing != due.time || view.phase(due.job) != JobPhase::running;
    };
    while (!crossings_.empty() && stale(crossings_.front())) pop(crossings_);
    return crossings_.empty() ? Time::max() : crossings_.front().time;
  }
  for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) {
    note_boundaries(view, queue);
    if (boundaries_.size() > many) {
      cross_levels(view);
      return crossings_.empty() ? Time::max() : crossings_.front().time;
    }
    if (boundaries_.empty()) continue;
    for (std::uint32_t shape = 0; shape < view.demand_count(); ++shape) {
      const std::set<Run>& runs = runs_[std::size_t{queue} * view.demand_count() + shape];
      if (runs.empty()) continue;
      for (const std::uint32_t level : boundaries_) {
        const Time wanted = time_to(view.shape_of_demand(shape), level);
        if (wanted == Time::max()) continue;
        const auto first = runs.upper_bound({view.now() - wanted, no_job});  // that has not entered it yet
        if (first != runs.end()) next = std::min(next, later_by(first->origin, wanted));
      }
    }
  }
  return next;
}

void AttainedService::note_boundaries(const View& view, std::uint32_t queue) {
  boundaries_.clear();
  if (view.queue(queue).empty()) return;
  for (std::uint32_t demand = 0; demand < view.demand_count(); ++demand) {
    const Key* const first = order_.first_waiting(view, queue, demand);
    if (first == nullptr) continue;
    for (const std::uint32_t level : {first->level, first->level + 1}) {
      if (level > 0 && std::find(boundaries_.begin(), boundaries_.end(), level) == boundaries_.end()) {
        boundaries_.push_back(level);
      }
    }
  }
}

void AttainedService::ask_to_wake(const View& view, Decision& decision) {
  overtaking_ = view.pending_count() > 0 ? next_overtaking(view) : Time::max();
  while (!promotions_.empty() && jobs_[index(promotions_.front().job)].promotion != promotions_.front().time) {
    pop(promotions_);
  }
  const Time promotion = promotions_.empty() ? Time::max() : promotions_.front().time;
  const Time wake = due_ = promotion < overtaking_ ? promotion : overtaking_;
  if (wake == next_wake_ || wake == Time::max()) return;
  if (decision.wake(wake) == Verdict::ok) next_wake_ = wake;
}

void AttainedService::push(std::vector<Due>& heap, Due due) {
  heap.push_back(due);
  std::push_heap(heap.begin(), heap.end());
}

void AttainedService::pop(std::vector<Due>& heap) {
  std::pop_heap(heap.begin(), heap.end());
  heap.pop_back();
}

namespace {

// Names joined by ':', as in "vgg:alexnet".
std::vector<std::string> split_names(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(':', begin), text.size());
    if (end > begin) names.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

Result<std::vector<std::int64_t>> service_list(const std::string& policy, const std::vector<double>& gpu_seconds) {
  std::vector<std::int64_t> list;
  for (const double value : gpu_seconds) {
    if (!list.empty() && gpu_us(value) <= list.back()) {
      return unexpected("policy '" + policy + "', parameter 'queue_limits_gpu_s': expected ascending numbers");
    }
    list.push_back(gpu_us(value));
  }
  return list;
}

Result<AnyPolicy> make_tiresias(const std::string& name, bool gittins, const PolicyParameters& parameters,
                                const PolicyContext& context) {
  auto limits = service_list(name, parameters.list("queue_limits_gpu_s"));
  if (!limits) return Unexpected{limits.error()};
  AttainedServiceOptions options{.name = name,
                                 .levels = ServiceLevels::cut_at(std::move(*limits)),
                                 .by_first_start = !gittins,
                                 .promote_knob = parameters.number("promote_knob"),
                                 .gittins = gittins,
                                 .skewed = split_names(parameters.word("skewed_families"))};
  if (gittins) {
    options.look_ahead_gpu_us = gpu_us(parameters.number("look_ahead_gpu_s"));
    options.knows_distribution = parameters.word("distribution") == "trace";
    for (const double service : parameters.list("history_gpu_s")) options.known_gpu_us.push_back(gpu_us(service));
    const auto know = [&](const JobTable& jobs, JobId job) {
      options.known_gpu_us.push_back(mul_div(jobs.work(job).us, jobs.shape(job).gpu_milli(), whole_gpu));
    };
    if (options.knows_distribution) {
      for (std::uint32_t i = 0; i < context.jobs->size(); ++i) know(*context.jobs, JobId{i});
    } else {
      context.past.for_each(know);
    }
  }
  return AnyPolicy(AttainedService(std::move(options), context.jobs->families()));
}

std::vector<ParameterInfo> tiresias_parameters() {
  return {
      {.name = "queue_limits_gpu_s",
       .fallback = std::vector<double>{3250, 7200},
       .meaning = "attained GPU-seconds at which a job leaves queue 0, 1, ...; ascending",
       .least = 1e-6,
       .most = 9e12},
      {.name = "promote_knob",
       .fallback = 0.0,
       .meaning = "a job waiting this many times what it ran returns to queue 0; 0 = never",
       .most = 1e6},
      {.name = "skewed_families",
       .fallback = std::string("vgg:alexnet"),
       .meaning = "model families of high skew (beginnings of names, joined by ':'), whose tasks are consolidated"}};
}

}  // namespace

PolicyInfo las_info() {
  return {.name = "las",
          .summary = "least attained GPU service first, preemptive; equals take turns, a quantum each",
          .source =
              "Nuyens & Wierman, 'The foreground-background queue' (2008), over GPU service as in Tiresias "
              "(NSDI'19, section 3.2); service is compared in whole quanta",
          .complexity = "O(shapes x log n)",
          .parameters =
              {{.name = "quantum_gpu_s",
                .fallback = 0.0,
                .meaning =
                    "GPU-seconds of a turn, behind which a job yields to those that have had fewer turns; 0: 3600, or "
                    "twice what a preemption costs the largest job if that is more",
                .least = 0,
                .most = 9e9}},
          .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
            AttainedServiceOptions options{.name = "las", .levels = {}};
            const double quantum = parameters.number("quantum_gpu_s");
            if (quantum > 0) options.levels = ServiceLevels::even(std::max<std::int64_t>(gpu_us(quantum), 1));
            return AnyPolicy(AttainedService(std::move(options), context.jobs->families()));
          },
          .preemptive = true,
          .work_conserving = true,
          .asymmetries = {{Symmetry::time_scale, "the quantum is an hour of GPU time where none is given"}}};
}

PolicyInfo tiresias_info() {
  return {
      .name = "tiresias",
      .summary = "discretised two-dimensional LAS: queues by attained GPU service, each in order of first start",
      .source = "Tiresias (NSDI'19), sections 3.2 to 3.4: PromoteKnob, placement by model skew; limits of its artifact",
      .complexity = "O(shapes x log n)",
      .parameters = tiresias_parameters(),
      .make = [](const PolicyParameters& parameters,
                 const PolicyContext& context) { return make_tiresias("tiresias", false, parameters, context); },
      .preemptive = true,
      .work_conserving = true,
      .chooses_nodes = true};
}

PolicyInfo tiresias_gittins_info() {
  auto parameters = tiresias_parameters();
  parameters.push_back({.name = "look_ahead_gpu_s",
                        .fallback = 3250.0,
                        .meaning = "GPU-seconds of further service that the Gittins index looks at",
                        .least = 1e-3,
                        .most = 9e12});
  parameters.push_back({.name = "distribution",
                        .fallback = std::string("finished"),
                        .meaning =
                            "services that the index knows: of jobs already finished, or of all jobs of the trace "
                            "from the beginning, as the authors' program",
                        .words = {"finished", "trace"}});
  parameters.push_back({.name = "history_gpu_s",
                        .fallback = std::vector<double>{},
                        .meaning = "GPU-seconds of past jobs, known before the first job of the run finishes"});
  return {.name = "tiresias-gittins",
          .summary = "the queues of tiresias, each in falling order of the Gittins index of the job's own GPU service",
          .source =
              "Tiresias (NSDI'19), section 3.2: discretised 2D-Gittins, and schedule 'dlas-gpu-gittins' of its "
              "simulator: fixed look-ahead, indices as of the latest event, ties by submission",
          .complexity = "O(shapes x log n); O(running) where a waiting job does not fit",
          .parameters = parameters,
          .make = [](const PolicyParameters& given,
                     const PolicyContext& context) { return make_tiresias("tiresias-gittins", true, given, context); },
          .preemptive = true,
          .work_conserving = true,
          .chooses_nodes = true};
}

}  // namespace gpusched
