// SPDX-License-Identifier: Apache-2.0
// The public headers as a release build has them. That it compiles is the test: a name that only an assertion reads is
// unused here.
#include "gpusched/gpusched.hpp"
#include "gpusched/learn/vector_env.hpp"
#include "gpusched/online/online_scheduler.hpp"
