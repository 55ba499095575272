// SPDX-License-Identifier: Apache-2.0
#include "tests/support/files.hpp"

namespace gpusched::test {

std::string source_dir() { return GPUSCHED_SOURCE_DIR; }

}  // namespace gpusched::test
