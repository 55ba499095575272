// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/processor_use.hpp"

#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "src/base/number_text.hpp"

namespace gpusched {
namespace {

std::string share_text(double part_s, double all_s) {
  return percent_text(all_s > 0 ? std::max(0.0, part_s) / all_s : 0.0);
}

}  // namespace

std::optional<ProcessorUse> processor_use() {
  // proc(5): user, nice, system, idle, iowait, irq, softirq, steal; guest time is in user time already.
  std::ifstream in("/proc/stat");
  std::string word;
  std::array<double, 8> ticks{};
  if (!(in >> word) || word != "cpu") return std::nullopt;
  for (double& tick : ticks) {
    if (!(in >> tick)) return std::nullopt;
  }
  tms own{};
  if (::times(&own) == static_cast<clock_t>(-1)) return std::nullopt;
  const auto per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
  ProcessorUse use;
  for (const double tick : ticks) use.all_s += tick / per_s;
  use.stolen_s = ticks[7] / per_s;
  use.busy_s = use.all_s - (ticks[3] + ticks[4]) / per_s - use.stolen_s;
  use.own_s = static_cast<double>(own.tms_utime + own.tms_stime + own.tms_cutime + own.tms_cstime) / per_s;
  return use;
}

std::string others_share(const ProcessorUse& begin, const ProcessorUse& end) {
  return share_text(end.busy_s - begin.busy_s - (end.own_s - begin.own_s), end.all_s - begin.all_s);
}

std::string stolen_share(const ProcessorUse& begin, const ProcessorUse& end) {
  return share_text(end.stolen_s - begin.stolen_s, end.all_s - begin.all_s);
}

}  // namespace gpusched
