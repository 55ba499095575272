// SPDX-License-Identifier: Apache-2.0
/// Limits of users, accounts, queues and QOS as an option gives them.
#pragma once

#include <string_view>
#include <vector>

#include "gpusched/core/result.hpp"
#include "gpusched/data/limit_rules.hpp"

namespace gpusched {

/// "user{gpus=16,jobs=4},all{qos=[low,scavenge],gpus=32}": each limit is what read_limit() takes as `per`, with its
/// other keys in braces. Names hold no commas, brackets or braces. Errors name the limit that cannot be read.
Result<std::vector<LimitRule>> parse_limits(std::string_view text);

}  // namespace gpusched
