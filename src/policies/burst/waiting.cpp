// SPDX-License-Identifier: Apache-2.0
#include "src/policies/burst/waiting.hpp"

namespace gpusched {

double burst_wait_h(const BurstPolicy& policy, double runtime_h, double gpus) {
  switch (policy.wait) {
    case BurstWait::no_wait: return 0;
    case BurstWait::constant: return policy.factor;
    case BurstWait::linear_runtime: return policy.factor * runtime_h;
    case BurstWait::linear_cost: return policy.factor * gpus * runtime_h;
    case BurstWait::linear_capacity: return policy.factor * gpus;
  }
  return 0;
}

}  // namespace gpusched
