// SPDX-License-Identifier: Apache-2.0
#include "src/sim/build_info.hpp"

#include "gpusched/config.hpp"

namespace gpusched {

BuildInfo build_info() {
  return {.version = GPUSCHED_VERSION,
          .git_commit = GPUSCHED_GIT_COMMIT,
          .compiler = GPUSCHED_COMPILER,
          .build_type = GPUSCHED_BUILD_TYPE,
          .with_torch = GPUSCHED_HAS_TORCH != 0,
          .with_cuda = GPUSCHED_HAS_CUDA != 0};
}

}  // namespace gpusched
