// SPDX-License-Identifier: Apache-2.0
/// What a file that no reader recognises may be, and what to export instead.
#pragma once

#include <string>
#include <string_view>

namespace gpusched {

/// Advice for the user, as the end of "format not recognised": the nearest formats and what they lack, or the command
/// that exports a format that is read.
std::string advice_for_unrecognised(std::string_view head);

}  // namespace gpusched
