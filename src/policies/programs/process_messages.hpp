// SPDX-License-Identifier: Apache-2.0
/// The messages between a host, which has the jobs, and a scheduler, which decides: one JSON object a line
/// (docs/process-boundary.md). gpusched is either of them.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/cluster.hpp"
#include "gpusched/engine/view.hpp"
#include "gpusched/online/online_scheduler.hpp"
#include "src/base/json_fields.hpp"

namespace gpusched {

/// Bytes of a line of the protocol, at most, in either direction.
inline constexpr std::size_t most_line = std::size_t{256} << 20;

inline constexpr std::string_view process_protocol = "gpusched";
inline constexpr std::int64_t process_protocol_version = 1;

/// On one line, with its end.
std::string message_line(const Json& message);

/// Reads the keys "type" (which must be `type`), "protocol" and "version" of a greeting.
void read_greeting(JsonFields& fields);
/// The keys "protocol" and "version" of a greeting, to send.
Json greeting();

/// Reads a job's fields; a key "submit_us" where `submit` is given. Which are missing or out of range is an error of
/// `fields`.
OnlineJob read_job(JsonFields& fields, Time* submit = nullptr);
/// A job in that form, with its duration if asked for.
Json job_json(const OracleView& view, JobId job, bool with_duration);

/// The commands of a decision, and when the scheduler wants to be called; Time::max(): no wish. `job_id` gives ids.
template <class JobName>
Json decisions_json(Time now, const std::vector<OnlineCommand>& commands, Time call, JobName job_id);

/// The machines in the form of a cluster file, each node by itself.
Json machines_json(const Cluster& cluster);

/// The nodes that were out of service before the events of this instant.
Json nodes_out_json(const View& view);

/// "start", "preempt", "move", "cancel".
std::string_view action_word(OnlineAction action);
/// The nodes of a command.
Json nodes_json(const std::vector<OnlinePart>& nodes);

template <class JobName>
Json decisions_json(Time now, const std::vector<OnlineCommand>& commands, Time call, JobName job_id) {
  Json list = Json::array();
  for (const OnlineCommand& command : commands) {
    Json entry = {{"decision", action_word(command.action)}, {"id", job_id(command.job)}};
    const bool has_nodes = command.action == OnlineAction::start || command.action == OnlineAction::move;
    if (has_nodes) entry["nodes"] = nodes_json(command.nodes);
    list.push_back(std::move(entry));
  }
  return {{"type", "decisions"},
          {"time_us", now.us},
          {"decisions", std::move(list)},
          {"call_us", call == Time::max() ? Json() : Json(call.us)}};
}

}  // namespace gpusched
