// SPDX-License-Identifier: Apache-2.0
/// How much other programs and the host used the processors during a measurement.
#pragma once

#include <optional>
#include <string>

namespace gpusched {

/// Seconds since the machine started, summed over its processors (/proc/stat), and of this process.
struct ProcessorUse {
  double all_s = 0;     ///< busy or idle
  double busy_s = 0;    ///< running anything
  double stolen_s = 0;  ///< the host of this virtual machine ran something else; counted in steps of 0.01 s
  double own_s = 0;     ///< running this process and the children that it has waited for
};

/// nullopt where the system does not provide it.
std::optional<ProcessorUse> processor_use();

/// "12.3 %": the part of the processors' time between the two that other programs took.
std::string others_share(const ProcessorUse& begin, const ProcessorUse& end);
/// "12.3 %": the part of the processors' time between the two that the host of a virtual machine took away.
std::string stolen_share(const ProcessorUse& begin, const ProcessorUse& end);

}  // namespace gpusched
