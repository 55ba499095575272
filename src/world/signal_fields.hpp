// SPDX-License-Identifier: Apache-2.0
/// Signals as fields of JSON files: a number, the name of a csv, or an object that says what to take from it.
/// Compiled part.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpusched/data/job_table.hpp"
#include "src/base/json_fields.hpp"
#include "src/world/signal_reader.hpp"

namespace gpusched {

/// Which signal stands there.
struct SignalField {
  const char* key = "";
  SignalKind kind = SignalKind::carbon;
  double least = 0, most = 0;  ///< values
};

/// Nothing where the key is absent or wrong: the error is that of `fields`, or of the signal's file, in `failed` unless
/// that holds one. `file`: the JSON's, beside which the signal's lies. `jobs`: for "begins": "with_jobs". What readers
/// should know is added to `notes`.
std::optional<Signal> read_signal_field(JsonFields& fields, const SignalField& field, const std::string& file,
                                        const JobTable& jobs, std::vector<std::string>& notes,
                                        std::optional<Error>& failed);

}  // namespace gpusched
