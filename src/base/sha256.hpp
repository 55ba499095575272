// SPDX-License-Identifier: Apache-2.0
/// SHA-256 of a text.
#pragma once

#include <string>
#include <string_view>

namespace gpusched {

/// FIPS 180-4, in 64 hexadecimal digits.
std::string sha256_text(std::string_view text);

}  // namespace gpusched
