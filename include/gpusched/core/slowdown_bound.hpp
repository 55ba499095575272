// SPDX-License-Identifier: Apache-2.0
/// The bound of the bounded slowdown.
#pragma once

#include "gpusched/core/types.hpp"

namespace gpusched {

/// Shorter jobs count as this long, so that seconds of waiting do not weigh thousandfold (Feitelson and Rudolph, JSSPP
/// 1998).
inline constexpr Time slowdown_bound = whole_seconds(10);

}  // namespace gpusched
