// SPDX-License-Identifier: Apache-2.0
/// NotesLog: the file of what a policy noted itself.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "src/policies/seam/policy_log.hpp"

namespace gpusched {

/// Holds AnyPolicy::notes() when the run is over.
class NotesLog final : public PolicyLog {
 public:
  explicit NotesLog(std::string file) : file_(std::move(file)) {}
  void observe(const View&, std::span<const Event>) override {}
  void end(const AnyPolicy& policy) override { notes_ = policy.notes(); }
  [[nodiscard]] std::string file_name() const override { return file_; }
  [[nodiscard]] std::string text() const override { return notes_; }

 private:
  std::string file_, notes_;
};

}  // namespace gpusched
