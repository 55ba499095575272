// SPDX-License-Identifier: Apache-2.0
/// Errors after training has begun.
#pragma once

#include "gpusched/core/result.hpp"

namespace gpusched {

/// The error as a whole in its message: a run that fails as its files cannot be written (a full disk) is no bad input,
/// which is what an error with a file or a field stands for.
inline Unexpected failed_run(const Error& error) { return Unexpected{Error{.message = error.to_string()}}; }

}  // namespace gpusched
