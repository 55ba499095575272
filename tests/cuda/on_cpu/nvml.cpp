// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml as src/calibration/measure/nvml.cpp opens it. The device draws 20 W, and 60 W more while it works.
#include <chrono>
#include <cstdio>
#include <cstring>

#include "tests/cuda/on_cpu/emulation.hpp"

extern "C" {

int nvmlInit_v2() { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  static int only_device = 0;
  *device = &only_device;
  return std::strcmp(bus, "0000:01:00.0") == 0 ? 0 : 6;  // 6: not found
}

int nvmlDeviceGetTotalEnergyConsumption(void*, unsigned long long* millijoules) {
  if (!cuda_on_cpu::settings().has_energy_counter) return 3;  // 3: not supported
  const double now_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  *millijoules = static_cast<unsigned long long>(20e3 * now_s + 60e3 * cuda_on_cpu::busy_s());
  return 0;
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.1");
  return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void*, unsigned* milliwatts) {
  *milliwatts = 80000;
  return 0;
}

}  // extern "C"
