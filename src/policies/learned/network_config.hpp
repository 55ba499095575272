// SPDX-License-Identifier: Apache-2.0
/// The JSON form of a NetworkSpec, the same in a model and in a training configuration.
#pragma once

#include <utility>

#include "src/base/json_fields.hpp"
#include "src/policies/learned/score_network.hpp"

namespace gpusched {

inline void read_network_spec(JsonFields& fields, NetworkSpec& spec) {
  fields.read_word("kind", spec.kind, network_kind_names);
  fields.read("width", spec.width, 2, 4096);
  fields.read("heads", spec.heads, 1, 64);
  fields.read("critic_width", spec.critic_width, 1, 4096);
  fields.read("alpha", spec.alpha, 0, 100);
  fields.read("hidden", spec.hidden, 0, 4096);
  fields.read("hold_s", spec.hold_s, 0, 1e9);
  fields.read("hold_jobs", spec.hold_jobs, 0, 1e9);
  fields.read("deviation", spec.deviation, 1e-6, 100);
  for (const auto& [key, holds] : {std::pair{"hold_s", spec.hold_s > 0}, std::pair{"hold_jobs", spec.hold_jobs > 0}}) {
    if (holds && spec.kind != NetworkKind::index && spec.kind != NetworkKind::rank) {
      fields.fail(key, "expected 0 unless the kind is index or rank, whose weights can be an action");
    }
  }
  if (spec.hold_s > 0 && spec.hold_jobs > 0) {
    fields.fail("hold_jobs", "expected 0 with a hold_s: an action ends after a time or after submissions");
  }
  if (spec.width % 2 != 0 || spec.width % spec.heads != 0) {
    fields.fail("width", "expected an even multiple of heads");
  }
  if (spec.hidden > 0 && spec.kind != NetworkKind::index && spec.kind != NetworkKind::rank) {
    fields.fail("hidden", "expected 0: only the networks index and rank have a score to correct");
  }
}

}  // namespace gpusched
