// SPDX-License-Identifier: Apache-2.0
/// The decision process of learned schedulers under a fixed order: what an agent is compared with, choice for choice.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "gpusched/agenda.hpp"
#include "src/policies/registry.hpp"

namespace gpusched {

/// Takes, at every choice that an Agenda offers, the one that its heuristic prefers. O(waiting jobs) a choice.
class AgendaPolicy {
 public:
  /// `true_runs`: as Agenda.
  AgendaPolicy(const AgendaOptions& options, std::span<const Time> true_runs) : agenda_(options, true_runs) {}

  [[nodiscard]] std::string_view name() const { return "agenda"; }
  [[nodiscard]] bool clairvoyant() const { return agenda_.options().knowledge == RuntimeKnowledge::oracle; }

  void decide(const View& view, Decision& decision) {
    agenda_.observe(view);
    while (agenda_.open(view, decision)) agenda_.act(agenda_.options().heuristic, view, decision);
  }

 private:
  Agenda agenda_;
};

PolicyInfo agenda_info();

}  // namespace gpusched
