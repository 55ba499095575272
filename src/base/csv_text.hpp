// SPDX-License-Identifier: Apache-2.0
/// Fields of csv files that this project writes.
#pragma once

#include <string>
#include <string_view>

namespace gpusched {

/// Appends a field, quoted where it must be (RFC 4180).
void append_csv_field(std::string& text, std::string_view field);

}  // namespace gpusched
