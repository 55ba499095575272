// SPDX-License-Identifier: Apache-2.0
// program:COMMAND, a policy that is a program of its own (docs/process-boundary.md).
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/base/subprocess.hpp"
#include "src/policies/programs/line_program.hpp"
#include "src/policies/programs/process_messages.hpp"
#include "src/policies/seam/policy_failure.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {
namespace {

constexpr std::string_view prefix = "program:";
// How often a program may be called in that span of a run in which nothing runs or happens.
constexpr std::uint32_t most_calls_for_nothing = 100'000;
constexpr Time span_of_calls = whole_seconds(10);

// A command of the program, by position in its answer.
struct ProgramCommand {
  OnlineAction action = OnlineAction::start;
  std::string id;
  std::optional<std::vector<NodeTasks>> nodes;
};

class ProgramPolicy {
 public:
  ProgramPolicy(std::string name, std::vector<std::string> command, Json hello, bool durations, Time time_limit)
      : name_(std::move(name)),
        command_(std::move(command)),
        hello_(std::move(hello)),
        durations_(durations),
        time_limit_(time_limit) {}
  // What a program knows cannot be copied: a copy starts one of its own, which only a run from the beginning may use.
  ProgramPolicy(const ProgramPolicy& other)
      : name_(other.name_),
        command_(other.command_),
        hello_(other.hello_),
        durations_(other.durations_),
        time_limit_(other.time_limit_),
        is_late_(other.is_late_ || other.program_ != nullptr) {}
  ProgramPolicy(ProgramPolicy&&) = default;
  ProgramPolicy& operator=(ProgramPolicy other) noexcept {
    std::swap(name_, other.name_);
    std::swap(command_, other.command_);
    std::swap(hello_, other.hello_);
    std::swap(durations_, other.durations_);
    std::swap(time_limit_, other.time_limit_);
    std::swap(is_late_, other.is_late_);
    std::swap(program_, other.program_);
    std::swap(jobs_, other.jobs_);
    std::swap(refused_, other.refused_);
    std::swap(calls_for_nothing_, other.calls_for_nothing_);
    std::swap(calls_since_, other.calls_since_);
    std::swap(lines_, other.lines_);
    return *this;
  }
  ~ProgramPolicy() {
    if (program_ != nullptr) static_cast<void>(program_->write(message_line({{"type", "end"}})));
  }

  [[nodiscard]] std::string_view name() const { return name_; }
  [[nodiscard]] bool clairvoyant() const { return durations_; }

  void decide(const OracleView& view, Decision& decision) {
    now_ = view.now();
    if (program_ == nullptr) start(view);
    watch_calls(view);
    send(events_message(view));
    const Json answer = receive();
    for (const ProgramCommand& command : commands_of(answer, decision)) carry_out(command, view, decision);
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw PolicyFailure(now_, why); }
  [[noreturn]] void fail(Error error) const {
    error.file = "its output";
    error.line = lines_;
    fail(error.to_string());
  }

  // Programs that know no "nodes_out" work as before where every node is in service.
  void start(const View& view) {
    if (is_late_) fail("a program cannot be copied in the middle of a run");
    auto program = LineProgram::start(command_);
    if (!program) fail(program.error().to_string());
    program_ = std::make_unique<LineProgram>(*std::move(program));
    Json hello = hello_;
    if (Json out = nodes_out_json(view); !out.empty()) hello["nodes_out"] = std::move(out);
    send(hello);
    JsonFields fields(receive(), "");
    read_greeting(fields);
    std::string ignored;
    fields.read("name", ignored);
    if (auto read = fields.finish(); !read) fail(read.error());
  }

  // A clock of microseconds would bring a program that waits for nothing to no end.
  void watch_calls(const OracleView& view) {
    const auto events = view.events();
    const bool rests = view.running().empty() && std::all_of(events.begin(), events.end(), [](const Event& event) {
                         return event.kind == EventKind::wake;
                       });
    if (!rests) calls_for_nothing_ = 0;
    if (!rests || calls_for_nothing_++ == 0) calls_since_ = now_;
    if (calls_for_nothing_ < most_calls_for_nothing) return;
    if (now_ - calls_since_ > span_of_calls) {
      calls_for_nothing_ = 0;
      return;
    }
    fail("the program asked " + std::to_string(calls_for_nothing_) +
         " times in a row to be called, while nothing ran or happened");
  }

  void send(const Json& message) {
    if (auto sent = program_->write(message_line(message)); !sent) fail(sent.error().to_string());
  }

  // The answer stays where it is until the next one: fields borrow it.
  const Json& receive() {
    auto line = program_->read(time_limit_);
    if (!line) fail(line.error().to_string());
    ++lines_;
    auto parsed = parse_json_strictly(*line, "");
    if (!parsed) fail(Error{.message = parsed.error().message});
    return answer_ = *std::move(parsed);
  }

  Json events_message(const OracleView& view) {
    Json events = std::exchange(refused_, Json::array());
    for (const Event& event : view.events()) {
      if (event.kind == EventKind::submit) {
        jobs_.emplace(view.jobs().external_id(event.job), event.job);
        events.push_back({{"event", "job_submitted"},
                          {"job", job_json(view, event.job, durations_)},
                          {"place", view.queue_place(event.job).number}});
      } else if (enters_queue(event.kind)) {
        events.push_back({{"event", "job_requeued"}, {"id", view.jobs().external_id(event.job)}});
      } else if (event.kind == EventKind::finish) {
        events.push_back({{"event", "job_finished"}, {"id", view.jobs().external_id(event.job)}});
      } else if (event.kind == EventKind::withdraw || is_told_refusal(view, event)) {
        events.push_back({{"event", "job_cancelled"},
                          {"id", view.jobs().external_id(event.job)},
                          {"reason", reason_of(view, event.job)}});
      } else if (event.kind == EventKind::reprioritize) {
        events.push_back({{"event", "job_reprioritized"},
                          {"id", view.jobs().external_id(event.job)},
                          {"priority", view.priority(event.job)}});
      } else if (event.kind == EventKind::node_down) {
        events.push_back({{"event", "node_down"}, {"node", index(event.node)}});
        if (Json jobs = jobs_on(view, event.node); !jobs.empty()) events.back()["jobs"] = std::move(jobs);
      } else if (event.kind == EventKind::node_up) {
        events.push_back({{"event", "node_up"}, {"node", index(event.node)}});
      }
    }
    return {{"type", "events"}, {"time_us", view.now().us}, {"events", std::move(events)}};
  }

  // A job that the program was told of is cancelled while a limit holds it back.
  [[nodiscard]] bool is_told_refusal(const OracleView& view, const Event& event) const {
    return event.kind == EventKind::refuse && jobs_.contains(view.jobs().external_id(event.job));
  }

  // Why a job is in no queue. One that was withdrawn is submitted again at this instant (another size), or later.
  static const char* reason_of(const OracleView& view, JobId job) {
    if (view.phase(job) == JobPhase::done) return "cancelled";
    return view.is_held_back(job) ? "held" : "withdrawn";
  }

  // What runs on a node that was drained.
  static Json jobs_on(const OracleView& view, NodeId node) {
    Json jobs = Json::array();
    for (const JobId job : view.running()) {
      std::uint32_t tasks = 0;
      view.for_each_grant(job, [&](const Grant& grant) { tasks += grant.node == node ? grant.tasks : 0; });
      if (tasks > 0) jobs.push_back({{"id", view.jobs().external_id(job)}, {"tasks", tasks}});
    }
    return jobs;
  }

  std::vector<ProgramCommand> commands_of(const Json& answer, Decision& decision) {
    if (!answer.is_object()) fail(Error{.message = "expected an object"});
    Json rest = answer;
    const Json list = rest.contains("decisions") ? rest["decisions"] : Json();
    const Json call = rest.contains("call_us") ? rest["call_us"] : Json();
    rest.erase("decisions");
    if (call.is_null()) rest.erase("call_us");
    JsonFields fields(rest, "");
    std::string type;
    Time time = now_, wake;
    for (const char* key : {"type", "time_us"}) fields.require(key);
    fields.read("type", type);
    if (type != "decisions") fields.fail("type", "expected \"decisions\"");
    fields.read("time_us", time.us, -9e15);
    if (time != now_) fields.fail("time_us", "expected " + std::to_string(now_.us) + ", the time of the events");
    fields.read("call_us", wake.us, -9e15);
    if (auto read = fields.finish(); !read) fail(read.error());
    if (!list.is_array()) fail(Error{.message = "expected an array", .field = "/decisions"});
    if (!call.is_null() && decision.wake(wake) != Verdict::ok) {
      fail(Error{.message = "expected an instant after " + std::to_string(now_.us), .field = "/call_us"});
    }
    std::vector<ProgramCommand> commands;
    for (std::size_t i = 0; i < list.size(); ++i) {
      commands.push_back(command_of(list[i], "/decisions/" + std::to_string(i)));
    }
    return commands;
  }

  ProgramCommand command_of(const Json& entry, const std::string& path) {
    Json rest = entry;
    ProgramCommand command;
    if (entry.is_object() && entry.contains("nodes")) {
      command.nodes = nodes_of(entry["nodes"], path + "/nodes");
      rest.erase("nodes");
    }
    JsonFields fields(rest, "", path);
    std::string word;
    for (const char* key : {"decision", "id"}) fields.require(key);
    fields.read("decision", word);
    fields.read("id", command.id);
    for (const OnlineAction action : {OnlineAction::preempt, OnlineAction::cancel}) {
      if (word != action_word(action)) continue;
      command.action = action;
      if (command.nodes) fields.fail("nodes", "a job that is to stop has no nodes");
    }
    if (command.action == OnlineAction::start && word != action_word(command.action)) {
      fields.fail("decision", "expected start|preempt|cancel");
    }
    if (auto read = fields.finish(); !read) fail(read.error());
    return command;
  }

  std::vector<NodeTasks> nodes_of(const Json& list, const std::string& path) {
    if (!list.is_array()) fail(Error{.message = "expected an array", .field = path});
    std::vector<NodeTasks> nodes;
    for (std::size_t i = 0; i < list.size(); ++i) {
      JsonFields fields(list[i], "", path + "/" + std::to_string(i));
      std::uint32_t node = 0;
      NodeTasks part;
      for (const char* key : {"node", "tasks"}) fields.require(key);
      fields.read("node", node);
      fields.read("tasks", part.tasks, 1);
      if (auto read = fields.finish(); !read) fail(read.error());
      part.node = NodeId{node};
      nodes.push_back(part);
    }
    return nodes;
  }

  void carry_out(const ProgramCommand& command, const OracleView& view, Decision& decision) {
    const auto job = jobs_.find(command.id);
    const std::string what = std::string(action_word(command.action)) + " of job '" + command.id + "': ";
    if (job == jobs_.end()) fail(what + "no such job was submitted");
    Verdict verdict = Verdict::ok;
    if (command.action == OnlineAction::preempt) {
      verdict = decision.preempt(job->second);
    } else if (command.action == OnlineAction::cancel) {
      verdict = decision.cancel(job->second);
    } else if (command.nodes) {
      for (const NodeTasks& part : *command.nodes) {
        if (index(part.node) >= view.cluster().node_count()) fail(what + "no node " + std::to_string(index(part.node)));
      }
      verdict = decision.start_on(job->second, *command.nodes);
    } else {
      verdict = decision.start(job->second);
    }
    if (verdict == Verdict::over_limit || verdict == Verdict::no_power) {
      const char* const reason = verdict == Verdict::over_limit ? "limit" : "power";
      refused_.push_back({{"event", "start_refused"}, {"id", command.id}, {"reason", reason}});
    }
    if (verdict == Verdict::does_not_fit) fail(what + "it does not fit");
    if (verdict == Verdict::wrong_phase && command.action == OnlineAction::cancel) {
      fail(what + "it is over, or a replica or a task of a study");
    }
    if (verdict == Verdict::wrong_phase) {
      fail(what + (command.action == OnlineAction::preempt ? "it does not run" : "it does not wait"));
    }
  }

  std::string name_;
  std::vector<std::string> command_;
  Json hello_, answer_;
  bool durations_ = false;
  Time time_limit_{};     // of an answer; 0: none
  bool is_late_ = false;  // a copy of one that has begun
  std::unique_ptr<LineProgram> program_;
  std::unordered_map<std::string, JobId> jobs_;  // submitted ones by id; looked up, never iterated
  Json refused_ = Json::array();                 // events of the next message: starts of the last answer
  std::uint32_t calls_for_nothing_ = 0;          // in a row
  Time calls_since_{};                           // the first of them
  std::uint64_t lines_ = 0;                      // of its output
  Time now_{};
};

Result<std::vector<std::string>> command_words(const std::string& spec_name) {
  auto words = split_words(spec_name.substr(prefix.size()));
  if (words && words->empty()) return unexpected("policy " + spec_name + ": expected a command behind program:");
  return words;
}

}  // namespace

PolicyInfo program_policy_info() {
  return {
      .name = std::string(prefix),
      .summary = "a program of its own, which gets events and answers with decisions, a JSON line each",
      .source = "docs/process-boundary.md",
      .complexity = "an exchange of lines over a socket",
      .parameters =
          {{.name = "durations", .fallback = false, .meaning = "tell the program how long jobs will run"},
           {.name = "time_limit_s", .fallback = 0.0, .meaning = "longest time of an answer; 0: none", .most = 1e6}},
      .make = [](const PolicyParameters& parameters, const PolicyContext& context) -> Result<AnyPolicy> {
        auto words = command_words(context.spec_name);
        if (!words) return Unexpected{words.error()};
        Json hello = greeting();
        hello["cluster"] = machines_json(*context.cluster);
        hello["seed"] = context.seed;
        return AnyPolicy(ProgramPolicy(context.spec_name, *std::move(words), std::move(hello),
                                       parameters.flag("durations"), from_seconds(parameters.number("time_limit_s"))));
      },
      .preemptive = true,
      .files = [](const PolicySpec& spec) -> std::vector<std::string> {
        const auto words = command_words(spec.name);
        return words ? *words : std::vector<std::string>{};
      },
      .is_process = true};
}

}  // namespace gpusched
