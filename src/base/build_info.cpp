// SPDX-License-Identifier: Apache-2.0
#include "src/base/build_info.hpp"

#include "gpusched/core/config.hpp"

namespace gpusched {

BuildInfo build_info() {
  BuildInfo info;
  info.version = GPUSCHED_VERSION;
  info.git_commit = GPUSCHED_GIT_COMMIT;
  info.date = GPUSCHED_DATE;
  info.compiler = GPUSCHED_COMPILER;
  info.build_type = GPUSCHED_BUILD_TYPE;
  info.with_torch = GPUSCHED_HAS_TORCH != 0;
  info.with_cuda = GPUSCHED_HAS_CUDA != 0;
  return info;
}

}  // namespace gpusched
