// SPDX-License-Identifier: Apache-2.0
/// ClusterMirror: a copy of a cluster that is brought up to date by what changed, for policies that play the future at
/// every event.
#pragma once

#include "gpusched/engine/cluster_state.hpp"

namespace gpusched {

/// A value.
class ClusterMirror {
 public:
  /// Makes the copy as free as `cluster`, whatever was done to it meanwhile. O(nodes that changed in either since the
  /// last call); O(nodes) the first time, for another cluster, and after many changes. Precondition: every grant list
  /// that was placed on the copy is free.
  void follow(const ClusterState& cluster) {
    const detail::ChangedNodes &theirs = cluster.changes(), &own = state_.changes();
    if (theirs.remembers(theirs_) && own.remembers(own_)) {
      state_.copy_changes(cluster, theirs_, own_);
    } else {
      state_ = cluster;
    }
    theirs_ = theirs.mark();
    own_ = own.mark();
  }

  /// The copy. Grants of the cluster have no numbers here (Capacity::release_same).
  [[nodiscard]] ClusterState& state() { return state_; }

 private:
  ClusterState state_;
  detail::ChangedNodes::Mark theirs_, own_;  // of the last follow()
};

}  // namespace gpusched
