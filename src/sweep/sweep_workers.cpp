// SPDX-License-Identifier: Apache-2.0
#include "src/sweep/sweep_workers.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "src/base/byte_stream.hpp"
#include "src/base/interruption.hpp"
#include "src/base/number_text.hpp"
#include "src/sweep/sweep_point_run.hpp"

namespace gpusched {
namespace {

using Clock = std::chrono::steady_clock;

// What a worker answers; `message` bytes of text follow.
struct Reply {
  RunStatus status;
  bool fatal;
  std::uint32_t message;
  double wall_s, cpu_s, sim_s;
  Metrics metrics;
  Saturation saturation;
  bool clairvoyant;
};
static_assert(std::is_trivially_copyable_v<Reply>);

// The life of a worker: it ends when nobody asks any more.
[[noreturn]] void serve(int socket, PointRunner runner) {
  std::uint64_t number = 0;
  while (receive_all(socket, &number, sizeof number)) {
    const SweepResult result = runner.run(number);
    const std::string text = result.message.substr(0, 4000);
    const Reply reply{.status = result.status,
                      .fatal = result.fatal,
                      .message = static_cast<std::uint32_t>(text.size()),
                      .wall_s = result.wall_s,
                      .cpu_s = result.cpu_s,
                      .sim_s = result.sim_s,
                      .metrics = result.metrics,
                      .saturation = result.saturation,
                      .clairvoyant = result.clairvoyant};
    if (!send_all(socket, &reply, sizeof reply) || !send_all(socket, text.data(), text.size())) break;
  }
  ::_exit(0);
}

// Runs of one input, in order of their numbers.
struct Group {
  std::uint32_t trace = 0;
  std::vector<std::uint64_t> points;  // that nobody has, the next one last
  bool taken = false;                 // by a worker, which has prepared its input
};

struct Worker {
  pid_t process = -1;
  int socket = -1;
  std::vector<std::uint32_t> traces;  // that were read when it was forked
  std::optional<std::size_t> group;   // whose input it has prepared
  std::vector<std::uint64_t> points;  // that it was sent; it runs the first
  Clock::time_point begun = {};       // of the first

  [[nodiscard]] bool has(std::uint32_t trace) const {
    return std::find(traces.begin(), traces.end(), trace) != traces.end();
  }
};

std::string death_text(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* const name = ::strsignal(signal);
    return "the process of the run was ended by signal " + std::to_string(signal) + " (" +
           (name == nullptr ? "unknown" : name) + ")";
  }
  return "the process of the run ended with exit code " + std::to_string(WEXITSTATUS(status));
}

class WorkerPool {
 public:
  WorkerPool(const SweepPlan& plan, const PolicyRegistry& registry, const WorkerOptions& options,
             SweepProgress& progress, const std::function<Result<void>(std::uint64_t, const SweepResult&)>& ended)
      : plan_(&plan), registry_(&registry), options_(&options), progress_(&progress), ended_(&ended) {}
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  ~WorkerPool() {
    for (Worker& worker : workers_) kill(worker);
  }

  Result<void> run(const std::vector<std::uint64_t>& todo) {
    make_groups(todo);
    const auto is_stopped = [&] { return progress_->stop != nullptr && *progress_->stop; };
    while (!is_stopped()) {
      if (auto given = give_work(); !given) return given;
      if (workers_.empty()) return {};  // nothing runs and nothing is left
      if (auto done = await_replies(); !done) return done;
    }
    return {};
  }

 private:
  void make_groups(const std::vector<std::uint64_t>& todo) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> numbers;
    for (const std::uint64_t point : todo) {
      const PlannedRun& run = plan_->runs[point];
      ++unended_of_trace_[run.trace];
      const auto [place, is_new] = numbers.emplace(std::pair(run.trace, run.input), groups_.size());
      if (is_new) groups_.push_back({.trace = run.trace, .points = {}});
      groups_[place->second].points.push_back(point);
    }
    for (Group& group : groups_) std::reverse(group.points.begin(), group.points.end());
    std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) { return a.trace < b.trace; });
  }

  // The group to go on with: one's own, one that nobody has begun of a trace that the worker has, the fullest of such a
  // trace, one of another trace.
  [[nodiscard]] std::optional<std::size_t> choose(const Worker& worker) const {
    if (worker.group && !groups_[*worker.group].points.empty()) return worker.group;
    std::optional<std::size_t> best;
    const auto rank = [&](const Group& group) {
      return std::tuple(worker.has(group.trace), !group.taken, group.taken ? group.points.size() : 0);
    };
    for (std::size_t i = first_open_; i < groups_.size(); ++i) {
      if (groups_[i].points.empty()) continue;
      if (!best || rank(groups_[i]) > rank(groups_[*best])) best = i;
      if (!groups_[i].taken && worker.has(groups_[i].trace)) break;  // none ranks higher
    }
    return best;
  }

  // Gives every idle worker a run, and starts and ends workers as it needs.
  Result<void> give_work() {
    while (first_open_ < groups_.size() && groups_[first_open_].points.empty()) ++first_open_;
    for (std::size_t i = 0; i < workers_.size();) {
      if (!workers_[i].points.empty() || occupy(workers_[i])) {
        ++i;
      } else {
        retire(i);
      }
    }
    while (workers_.size() < std::max<std::uint64_t>(options_->workers, 1)) {
      const auto group = choose(Worker{});
      if (!group) break;
      const auto read = read_trace_of(groups_[*group]);
      if (!read) return Unexpected{read.error()};
      if (!*read) continue;  // its runs have failed together
      auto started = start();
      if (!started && workers_.empty()) return Unexpected{started.error()};
      if (!started) break;  // fewer then
      workers_.push_back(*started);
      occupy(workers_.back());
    }
    return {};
  }

  // Sends an idle worker a run. False: there is none, or it was started too early to have the trace.
  bool occupy(Worker& worker) {
    const auto chosen = choose(worker);
    if (!chosen || !worker.has(groups_[*chosen].trace)) return false;
    worker.group = chosen;
    worker.begun = Clock::now();
    send_next(worker);
    return true;
  }

  // Sends the next run of the worker's group, which has one.
  void send_next(Worker& worker) {
    Group& group = groups_[*worker.group];
    group.taken = true;
    const std::uint64_t number = group.points.back();
    group.points.pop_back();
    worker.points.push_back(number);
    send_all(worker.socket, &number, sizeof number);  // a worker that is dead is found out when its answer is read
  }

  // Makes the jobs of a group's trace known to workers that start from now on. False: it cannot be read.
  Result<bool> read_trace_of(Group& group) {
    if (traces_.contains(group.trace)) return true;
    const auto point = plan_->sweep.point(group.points.back());
    if (!point) return Unexpected{point.error()};
    const InputRequest request = input_request(point->run);
    auto trace = read_requested_trace(request);
    if (trace) {
      traces_.emplace(group.trace, *std::move(trace));
      return true;
    }
    const SweepResult result{.message = trace.error().to_string()};
    for (Group& other : groups_) {
      while (other.trace == group.trace && !other.points.empty()) {
        const std::uint64_t number = other.points.back();
        other.points.pop_back();
        if (auto told = end_run(number, result); !told) return Unexpected{told.error()};
      }
    }
    return false;
  }

  Result<Worker> start() {
    int sockets[2];
    const auto cannot = [](const char* what) {
      return unexpected(std::string("cannot ") + what + " for a run: " + std::strerror(errno));
    };
    if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return cannot("make a socket");
    const pid_t parent = ::getpid();
    const pid_t process = ::fork();
    if (process < 0) {
      const auto why = cannot("start a process");
      ::close(sockets[0]);
      ::close(sockets[1]);
      return why;
    }
    if (process == 0) {
      // The parent decides what a signal to the group means. Its end is the end of all: nobody stores results any more.
      for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
      Interruption::forget();
#ifdef __linux__
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
      if (::getppid() != parent) ::_exit(0);
      ::close(sockets[0]);
      for (const Worker& other : workers_) ::close(other.socket);
      serve(sockets[1], PointRunner(*plan_, *registry_, traces_, options_->run_folders, options_->begun_marks));
    }
    ::close(sockets[1]);
    Worker worker{.process = process, .socket = sockets[0], .traces = {}, .group = {}, .points = {}};
    for (const auto& [number, trace] : traces_) worker.traces.push_back(number);
    return worker;
  }

  // Waits until a worker answers or dies, a run is over its time, or a signal comes.
  Result<void> await_replies() {
    std::vector<pollfd> sockets;
    for (const Worker& worker : workers_) sockets.push_back({.fd = worker.socket, .events = POLLIN, .revents = 0});
    if (::poll(sockets.data(), sockets.size(), milliseconds_to_wait()) < 0 && errno != EINTR) {
      return unexpected(std::string("cannot wait for runs: ") + std::strerror(errno));
    }
    for (std::size_t i = workers_.size(); i-- > 0;) {
      Result<void> done;
      if (sockets[i].revents != 0) {
        done = take_reply(i);
      } else if (is_over_time(workers_[i])) {
        done = end_worker(i, RunStatus::timeout, "took longer than " + exact_number(options_->time_limit_s) + " s");
      }
      if (!done) return done;
    }
    return {};
  }

  [[nodiscard]] bool is_over_time(const Worker& worker) const {
    return options_->time_limit_s > 0 &&
           std::chrono::duration<double>(Clock::now() - worker.begun).count() >= options_->time_limit_s;
  }

  // A signal that comes just before poll() must not wait long either.
  [[nodiscard]] int milliseconds_to_wait() const {
    double seconds = 0.2;
    for (const Worker& worker : workers_) {
      if (options_->time_limit_s <= 0) break;
      const double passed = std::chrono::duration<double>(Clock::now() - worker.begun).count();
      seconds = std::clamp(options_->time_limit_s - passed, 0.0, seconds);
    }
    return static_cast<int>(seconds * 1000) + 1;
  }

  Result<void> take_reply(std::size_t i) {
    Worker& worker = workers_[i];
    Reply reply;
    std::string text;
    bool whole = receive_all(worker.socket, &reply, sizeof reply);
    if (whole) {
      text.resize(reply.message);
      whole = receive_all(worker.socket, text.data(), text.size());
    }
    if (!whole) return end_worker(i, RunStatus::failed, "");
    const std::uint64_t point = take_first(worker);
    if (reply.fatal) return unexpected(text);
    // The next run begins before this one is stored. After a short one another is sent ahead, so that the worker never
    // waits.
    if (worker.points.empty()) occupy(worker);
    if (worker.points.size() == 1 && may_send_ahead(worker, reply.wall_s)) send_next(worker);
    return end_run(point, {.status = reply.status,
                           .message = std::move(text),
                           .metrics = reply.metrics,
                           .saturation = reply.saturation,
                           .clairvoyant = reply.clairvoyant,
                           .wall_s = reply.wall_s,
                           .cpu_s = reply.cpu_s,
                           .sim_s = reply.sim_s});
  }

  // Not behind a long run, nor towards the end: another worker may become idle.
  [[nodiscard]] bool may_send_ahead(const Worker& worker, double last_run_s) const {
    constexpr double short_run_s = 0.5;
    return last_run_s < short_run_s && groups_[*worker.group].points.size() > 2 * workers_.size();
  }

  // The run that has ended; what was sent ahead begins.
  static std::uint64_t take_first(Worker& worker) {
    const std::uint64_t point = worker.points.front();
    worker.points.erase(worker.points.begin());
    worker.begun = Clock::now();
    return point;
  }

  // Ends a worker whose run gives nothing; what it was sent ahead goes back. `why` is empty where it died by itself.
  Result<void> end_worker(std::size_t i, RunStatus status, const std::string& why) {
    Worker worker = workers_[i];
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
    const int end = kill(worker, why.empty());
    const double wall_s = std::chrono::duration<double>(Clock::now() - worker.begun).count();
    const std::uint64_t point = take_first(worker);
    Group& group = groups_[*worker.group];
    group.taken = false;
    group.points.insert(group.points.end(), worker.points.rbegin(), worker.points.rend());
    first_open_ = std::min(first_open_, *worker.group);
    return end_run(point, {.status = status, .message = why.empty() ? death_text(end) : why, .wall_s = wall_s});
  }

  Result<void> end_run(std::uint64_t point, const SweepResult& result) {
    const std::uint32_t trace = plan_->runs[point].trace;
    if (--unended_of_trace_[trace] == 0) traces_.erase(trace);
    auto told = (*ended_)(point, result);
    ++progress_->ended;
    return told;
  }

  void retire(std::size_t i) {
    kill(workers_[i]);
    workers_.erase(workers_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // Gives the status back with which it ended. One that is dying has closed its socket and is awaited: SIGKILL would
  // hide why.
  static int kill(const Worker& worker, bool is_dying = false) {
    if (!is_dying) ::kill(worker.process, SIGKILL);
    ::close(worker.socket);
    int status = 0;
    while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  const SweepPlan* plan_;
  const PolicyRegistry* registry_;
  const WorkerOptions* options_;
  SweepProgress* progress_;
  const std::function<Result<void>(std::uint64_t, const SweepResult&)>* ended_;
  std::vector<Group> groups_;
  std::size_t first_open_ = 0;  // groups before it have no run left
  std::vector<Worker> workers_;
  std::map<std::uint32_t, Trace> traces_;  // of which runs are left
  std::map<std::uint32_t, std::uint64_t> unended_of_trace_;
};

}  // namespace

Result<void> run_points(const SweepPlan& plan, const PolicyRegistry& registry, std::vector<std::uint64_t> todo,
                        const WorkerOptions& options, SweepProgress& progress,
                        const std::function<Result<void>(std::uint64_t, const SweepResult&)>& ended) {
  return WorkerPool(plan, registry, options, progress, ended).run(todo);
}

}  // namespace gpusched
