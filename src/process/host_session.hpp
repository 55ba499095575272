// SPDX-License-Identifier: Apache-2.0
/// HostSession: one conversation with a host (docs/process-boundary.md), line by line.
/// Compiled parts only: it shows a JSON library's type.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gpusched/online/online_scheduler.hpp"
#include "src/base/field_table.hpp"
#include "src/base/json_fields.hpp"
#include "src/conditions/condition_options.hpp"
#include "src/policies/seam/registry.hpp"

namespace gpusched {

/// How gpusched decides for the host.
struct ServeOptions {
  std::string policy;                ///< one, as --policy takes it
  ConditionOptions conditions = {};  ///< those that `serve` takes
  std::uint64_t seed = 0;
};

/// Every field of `options`. The pointers live as long as it.
FieldTable serve_fields(ServeOptions& options);

/// The JSON Schema (draft 2020-12) of `gpusched serve --config FILE`; docs/serve.schema.json is this text.
std::string serve_schema();

/// A value of lines in, lines out; it knows no pipe.
class HostSession {
 public:
  /// Errors: the policy or placement is unknown.
  static Result<HostSession> create(const ServeOptions& options);

  /// The answer to one line of the host, with its line end. Errors, with the number of the line: no JSON, an unknown or
  /// missing key, what OnlineScheduler refuses. After an error no line is answered any more. A PolicyFailure
  /// passes through.
  Result<std::string> answer(const std::string& line);

  /// The error of a next line of more than `most` bytes.
  [[nodiscard]] Error too_long(std::size_t most);
  /// True once the host said "end".
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  explicit HostSession(ServeOptions options) : options_(std::move(options)) {}

  Result<std::string> answer_hello(const Json& message);
  Result<std::string> answer_events(const Json& message);
  Result<void> take_event(const Json& event, const std::string& path);
  Result<void> take_nodes_out(const std::vector<std::int64_t>& nodes);
  Result<void> announce_jobs(const Json& jobs);
  [[nodiscard]] Error placed(Error error) const;
  [[nodiscard]] Unexpected wrong(std::string message, std::string field = {}) const;

  ServeOptions options_;
  std::optional<OnlineScheduler> scheduler_;
  std::uint64_t line_ = 0;
  bool ended_ = false;
};

}  // namespace gpusched
