// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/python_policy.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "gpusched/engine/decision.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/learn/agenda.hpp"
#include "gpusched/policy/policy.hpp"
#include "python/bindings/padded_observation.hpp"
#include "python/bindings/trace.hpp"
#include "src/policies/learned/agenda_policy.hpp"
#include "src/policies/seam/policy_failure.hpp"

namespace gpusched::python {
namespace {

const char* word(EventKind kind) {
  switch (kind) {
    case EventKind::finish: return "finish";
    case EventKind::retry: return "retry";
    case EventKind::wake: return "wake";
    case EventKind::submit: return "submit";
    case EventKind::start: return "start";
    case EventKind::preempt: return "preempt";
    case EventKind::move: return "move";
    case EventKind::kill: return "kill";
    case EventKind::node_down: return "node_down";
    case EventKind::withdraw: return "withdraw";
    case EventKind::reprioritize: return "reprioritize";
    case EventKind::refuse: return "refuse";
    case EventKind::more_power: return "more_power";
    case EventKind::node_up: break;
  }
  return "node_up";
}

const char* word(JobPhase phase) {
  switch (phase) {
    case JobPhase::future: return "not submitted yet";
    case JobPhase::pending: return "waiting";
    case JobPhase::running: return "running";
    case JobPhase::done: break;
  }
  return "finished";
}

// What a callable sees and commands. Python may keep it: after its decision every use raises. Arrays that it gave are
// copies, or columns that own themselves, and stay valid.
class PyView {
 public:
  PyView(const View& view, Decision& decision, nb::object jobs)
      : view_(&view), decision_(&decision), jobs_(std::move(jobs)) {}

  void end() { view_ = nullptr; }

  [[nodiscard]] double now_s() const { return to_seconds(open().now()); }
  [[nodiscard]] nb::object jobs() const { return jobs_; }
  [[nodiscard]] nb::object waiting() const {
    const View& view = open();
    std::vector<std::uint32_t> ids;
    ids.reserve(view.pending_count());
    for (std::uint32_t queue = 0; queue < view.queue_count(); ++queue) append(ids, view.queue(queue));
    return column(std::move(ids));
  }
  [[nodiscard]] nb::object running() const {
    std::vector<std::uint32_t> ids;
    append(ids, open().running());
    return column(std::move(ids));
  }
  [[nodiscard]] nb::object ran_s() const {
    const View& view = open();
    std::vector<double> seconds(view.arrived());
    for (std::uint32_t i = 0; i < seconds.size(); ++i) seconds[i] = to_seconds(view.ran(JobId{i}));
    return column(std::move(seconds));
  }
  [[nodiscard]] nb::list events() const {
    nb::list list;
    for (const Event& event : open().events()) {
      list.append(
          nb::make_tuple(word(event.kind), event.job == no_job ? nb::object(nb::none()) : nb::cast(index(event.job))));
    }
    return list;
  }
  [[nodiscard]] double free_gpus() const {
    return static_cast<double>(open().cluster().free_gpu_milli()) / static_cast<double>(whole_gpu);
  }
  [[nodiscard]] std::int64_t total_gpus() const { return open().cluster().total_gpus(); }
  [[nodiscard]] std::uint32_t arrived() const { return open().arrived(); }
  [[nodiscard]] std::uint32_t finished() const { return open().finished(); }

  bool fits(std::int64_t number) {
    const JobId job = job_of(number);
    return open().phase(job) == JobPhase::pending && decision_->fits(job);
  }
  bool start(std::int64_t number) {
    const JobId job = job_of(number);
    require(job, JobPhase::pending);
    return decision_->start(job) == Verdict::ok;
  }
  void preempt(std::int64_t number) {
    const JobId job = job_of(number);
    require(job, JobPhase::running);
    decision_->preempt(job);
  }
  void cancel(std::int64_t number) {
    const JobId job = job_of(number);
    if (decision_->cancel(job) == Verdict::ok) return;
    throw InputError("job " + std::to_string(number) + ", which is " + word(open().phase(job)) +
                     ", is not to be cancelled");
  }
  void wake(double time_s) {
    constexpr double most = 4e12;
    if (!std::isfinite(time_s) || time_s > most || from_seconds(time_s) <= open().now()) {
      throw InputError("wake(): expected an instant after now_s = " + std::to_string(now_s()) + ", not " +
                       std::to_string(time_s));
    }
    decision_->wake(from_seconds(time_s));
  }

 private:
  [[nodiscard]] const View& open() const {
    if (view_ == nullptr) throw std::runtime_error("this view belongs to a decision that is over; do not keep it");
    return *view_;
  }

  static void append(std::vector<std::uint32_t>& ids, const JobRange& jobs) {
    for (const JobId job : jobs) ids.push_back(index(job));
  }

  [[nodiscard]] JobId job_of(std::int64_t number) const {
    if (number < 0 || number >= open().job_count()) {
      throw InputError("job " + std::to_string(number) + " does not exist; expected a number below " +
                       std::to_string(open().job_count()));
    }
    return JobId{static_cast<std::uint32_t>(number)};
  }

  void require(JobId job, JobPhase phase) const {
    const JobPhase now = open().phase(job);
    if (now == phase) return;
    throw InputError("job " + std::to_string(index(job)) + " is " + word(now) + ", not " + word(phase));
  }

  const View* view_;  // null once the decision is over
  Decision* decision_;
  nb::object jobs_;
};

// Starts the jobs that a callable returned, in their order, passing over those that do not fit now.
void start_all(PyView& view, const nb::object& answer) {
  if (answer.is_none()) return;
  if (!nb::isinstance<nb::iterable>(answer) || nb::isinstance<nb::str>(answer)) {
    throw InputError("the policy returned " + nb::cast<std::string>(nb::repr(answer)) +
                     "; expected None or the numbers of waiting jobs");
  }
  for (const nb::handle entry : nb::iter(answer)) {
    const auto number = nb::steal(PyNumber_Index(entry.ptr()));  // numpy's integers too, no floats
    if (!number.is_valid()) {
      PyErr_Clear();
      throw InputError("the policy returned " + nb::cast<std::string>(nb::repr(entry)) +
                       " among jobs; expected the numbers of waiting jobs");
    }
    const long long job = PyLong_AsLongLong(number.ptr());
    if (job == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      throw InputError("the policy returned a number that is no job");
    }
    view.start(job);
  }
}

// What is made once a run of the job table; freed with the lock held, wherever the last policy ends.
struct HeldObject {
  nb::object object;
  explicit HeldObject(nb::object made) : object(std::move(made)) {}
  HeldObject(const HeldObject&) = delete;
  HeldObject& operator=(const HeldObject&) = delete;
  ~HeldObject() {
    const nb::gil_scoped_acquire locked;
    object.reset();
  }
};

// A copy of the policy calls the same object; it is told of a new run by `begin_run`.
class PythonPolicy {
 public:
  PythonPolicy(Callable* callable, const JobTable* table) : callable_(callable), table_(table) {}

  [[nodiscard]] std::string_view name() const { return callable_->name; }

  void decide(const View& view, Decision& decision) {
    if (callable_->stop->load(std::memory_order_relaxed)) return;
    const nb::gil_scoped_acquire locked;
    const auto begin = std::chrono::steady_clock::now();
    PyView* seen = nullptr;
    nb::object shown;
    try {
      if (!jobs_) jobs_ = std::make_shared<HeldObject>(job_columns(*table_, false));
      shown = nb::cast(new PyView(view, decision, jobs_->object), nb::rv_policy::take_ownership);
      seen = nb::cast<PyView*>(shown);
      if (!begun_ && nb::hasattr(callable_->function, "begin_run")) callable_->function.attr("begin_run")(shown);
      begun_ = true;
      start_all(*seen, callable_->function(shown));
    } catch (...) {
      callable_->fail(std::current_exception());
    }
    if (seen != nullptr) seen->end();
    callable_->count(std::chrono::steady_clock::now() - begin);
  }

 private:
  Callable* callable_;
  const JobTable* table_;
  std::shared_ptr<HeldObject> jobs_;
  bool begun_ = false;
};

// A callable that makes the choices of an Agenda: it is shown what VectorEnv shows, and its method `choose` gives the
// number of an action, or in mode preempt scores. Where it has features of its own, its method `job_features` makes
// them of the run's jobs.
class PythonAgent {
 public:
  PythonAgent(Callable* callable, const AgendaOptions& options, const PaddedShape& shape, const JobTable* jobs,
              std::span<const Time> true_runs, JobHistory history)
      : callable_(callable), shape_(shape), jobs_(jobs), agenda_(options, true_runs, std::move(history)) {}

  [[nodiscard]] std::string_view name() const { return callable_->name; }
  [[nodiscard]] bool clairvoyant() const { return agenda_.options().clairvoyant(); }

  void decide(const View& view, Decision& decision) {
    if (callable_->stop->load(std::memory_order_relaxed)) return;
    if (agenda_.options().signals && !view.knows_power()) {
      throw PolicyFailure("reads signals, of which this run tells nothing; add power=");
    }
    agenda_.observe(view);
    while (agenda_.open(view, decision)) {
      agenda_.make_room(observation_);
      agenda_.encode(view, observation_.slot(0));
      const auto action = ask();
      if (!action) return;
      if (agenda_.ranks()) {
        agenda_.rank(view, scores_);
      } else {
        agenda_.act(*action, view, decision);
      }
    }
  }

 private:
  // Nothing once the callable has failed; in mode preempt any number, and scores_ are there.
  std::optional<std::uint32_t> ask() {
    const nb::gil_scoped_acquire locked;
    const auto begin = std::chrono::steady_clock::now();
    std::optional<std::uint32_t> action;
    try {
      const nb::object answer = callable_->function.attr("choose")(seen());
      if (agenda_.ranks()) {
        take_scores(answer);
        action = 0;
      } else {
        action = token(answer);
      }
    } catch (...) {
      callable_->fail(std::current_exception());
    }
    callable_->count(std::chrono::steady_clock::now() - begin);
    return action;
  }

  [[nodiscard]] nb::dict seen() {
    nb::dict observation = padded_observation(observation_, 0, shape_, true);
    if (callable_->function.attr("features").is_none()) return observation;
    if (!features_) {
      features_ = std::make_shared<HeldObject>(callable_->function.attr("job_features")(job_columns(*jobs_, false)));
    }
    std::vector<std::int64_t> jobs(shape_.tokens, -1);
    for (std::uint32_t i = 0; i < std::min(agenda_.size(), shape_.tokens); ++i) jobs[i] = index(agenda_.job(i));
    const nb::object numbers = shaped(std::move(jobs), {1, shape_.tokens});
    observation["features"] = callable_->function.attr("features_of")(features_->object, numbers);
    return observation;
  }

  // Of the jobs that have no token the heuristic's preference counts.
  void take_scores(const nb::object& answer) {
    using Scores = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    Scores scores;
    if (!nb::try_cast(answer, scores) || scores.shape(0) != shape_.tokens) {
      throw InputError("the agent answered something else; expected " + std::to_string(shape_.tokens) + " scores");
    }
    scores_.assign(observation_.prior.begin(), observation_.prior.end() - 1);
    for (std::size_t i = 0; i < std::min<std::size_t>(scores_.size(), shape_.tokens); ++i) {
      if (!std::isfinite(scores.data()[i])) throw InputError("the agent gave a job a score that is not finite");
      scores_[i] = scores.data()[i];
    }
  }

  [[nodiscard]] std::uint32_t token(const nb::object& answer) const {
    std::int64_t number = -1;
    if (!nb::try_cast(answer, number)) {
      throw InputError("the agent chose " + nb::cast<std::string>(nb::repr(answer)) + "; expected a whole number");
    }
    const std::uint32_t size = agenda_.size();
    const bool is_job = number >= 0 && number < std::min(size, shape_.tokens);
    if (is_job || number == shape_.tokens) {
      const std::uint32_t action = is_job ? static_cast<std::uint32_t>(number) : size;
      if (agenda_.allowed(action)) return action;
    }
    throw InputError("the agent chose " + std::to_string(number) + ", which is not allowed; expected an action that " +
                     "action_mask has 1 for");
  }

  Callable* callable_;
  PaddedShape shape_;
  const JobTable* jobs_;
  std::shared_ptr<HeldObject> features_;
  Agenda agenda_;
  Observation observation_;
  std::vector<float> scores_;
};

PolicyInfo agent_info(Callable* callable) {
  const std::string text = nb::cast<std::string>(callable->function.attr("options_json"));
  const AgendaOptions options = agenda_options(text);
  return {.name = callable->name,
          .summary = "a trained agent in Python",
          .source = "Python",
          .make = [callable, options](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            const bool oracle = options.knowledge == RuntimeKnowledge::oracle;
            return AnyPolicy(PythonAgent(callable, options, padded_shape(options, *context.cluster), context.jobs,
                                         oracle ? context.jobs->works() : std::span<const Time>{},
                                         JobHistory::of(context.past, options.mode == ActionMode::preempt)));
          },
          .preemptive = options.mode == ActionMode::preempt,
          .agent = true,
          .knowledge = [known = estimator_name(options.knowledge)](const PolicyParameters&,
                                                                   const std::string&) { return known; }};
}

PolicyInfo callable_info(Callable* callable) {
  return {.name = callable->name,
          .summary = "a Python callable",
          .source = "Python",
          .make = [callable](const PolicyParameters&, const PolicyContext& context) -> Result<AnyPolicy> {
            return AnyPolicy(PythonPolicy(callable, context.jobs));
          }};
}

}  // namespace

void Callable::fail(std::exception_ptr reason) {
  const std::lock_guard lock(mutex);
  if (!failure) failure = std::move(reason);
  stop->store(true);
}

void Callable::count(std::chrono::nanoseconds spent) {
  calls += 1;
  call_ns += static_cast<std::uint64_t>(spent.count());
}

bool is_free_policy_name(const std::string& name) {
  const auto specs = parse_policy_list(name);
  if (!specs || specs->size() != 1) return false;
  const PolicySpec& spec = specs->front();
  return spec.name == name && spec.text == name && name.find_first_of(":/") == std::string::npos &&
         !PolicyRegistry::standard().find(name);
}

std::vector<std::unique_ptr<Callable>> add_callables(PolicyRegistry& registry, const nb::dict& callables,
                                                     std::atomic<bool>& stop) {
  std::vector<std::unique_ptr<Callable>> added;
  for (const auto& [name, function] : callables) {
    auto callable = std::make_unique<Callable>();
    callable->function = nb::borrow(function);
    callable->name = nb::cast<std::string>(name);
    callable->stop = &stop;
    const bool is_agent = nb::hasattr(callable->function, "options_json");
    registry.add(is_agent ? agent_info(callable.get()) : callable_info(callable.get()));
    added.push_back(std::move(callable));
  }
  return added;
}

void bind_policy(nb::module_& module) {
  module.def("is_free_policy_name", &is_free_policy_name, nb::arg("name"));
  nb::class_<PyView>(module, "View",
                     "What a policy sees at one instant, and its commands. It ends with the decision: later uses raise "
                     "RuntimeError. Arrays that it gave are copies and stay valid.")
      .def_prop_ro("now_s", &PyView::now_s, "The present instant, seconds on the trace's clock.")
      .def_prop_ro(
          "jobs", &PyView::jobs,
          "Columns of all jobs, by job number, as numpy arrays that are made once a run: submit_s, gpus, tasks, "
          "estimate_s, deadline_s, priority, user, group, vc, family. No true run times.")
      .def_prop_ro("waiting", &PyView::waiting, "Numbers of the waiting jobs, in the order in which they came to wait.")
      .def_prop_ro("running", &PyView::running, "Numbers of the running jobs; their order means nothing.")
      .def_prop_ro("ran_s", &PyView::ran_s, "Seconds that each job ran so far, for the jobs submitted so far.")
      .def_prop_ro("events", &PyView::events, "What happened at this instant: (kind, job number or None).")
      .def_prop_ro("free_gpus", &PyView::free_gpus, "GPUs that nobody holds, commands given so far included.")
      .def_prop_ro("total_gpus", &PyView::total_gpus, "GPUs of the cluster.")
      .def_prop_ro("arrived", &PyView::arrived, "Jobs submitted so far: those of a smaller number.")
      .def_prop_ro("finished", &PyView::finished, "Jobs finished so far.")
      .def("fits", &PyView::fits, nb::arg("job"), "True when the job waits and start() would start it now.")
      .def("start", &PyView::start, nb::arg("job"),
           "Starts a waiting job; False when it does not fit. Error: the job does not wait.")
      .def("preempt", &PyView::preempt, nb::arg("job"),
           "Stops a running job, which waits again. Error: it does not run.")
      .def("cancel", &PyView::cancel, nb::arg("job"),
           "Gives up a job that waits or runs: it is done, and no average counts it. Error: it does neither, or is a "
           "replica of a service or a task of a study.")
      .def("wake", &PyView::wake, nb::arg("time_s"),
           "Asks for a decision at that instant. Error: it is not after now_s.");
}

}  // namespace gpusched::python
