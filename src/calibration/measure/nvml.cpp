// SPDX-License-Identifier: Apache-2.0
#include "src/calibration/measure/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdio>

namespace gpusched {
namespace {

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
}

/// Bits of nvmlDeviceGetCurrentClocksThrottleReasons that lower the clocks (NVML API reference).
std::string reasons_text(unsigned long long bits) {
  std::string text;
  const auto add = [&](unsigned long long bit, const char* word) {
    if ((bits & bit) != 0) text += (text.empty() ? "" : ", ") + std::string(word);
  };
  add(0x4, "software power cap");
  add(0x8, "hardware slowdown");
  add(0x20, "software thermal slowdown");
  add(0x40, "hardware thermal slowdown");
  add(0x80, "power brake");
  return text.empty() ? "none" : text;
}

std::string on_off(unsigned mode) { return mode == 0 ? "off" : "on"; }

}  // namespace

std::optional<NvmlTable> load_nvml() {
  void* library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::nullopt;
  NvmlTable table;
  find(library, "nvmlInit_v2", table.init);
  find(library, "nvmlDeviceGetHandleByIndex_v2", table.device_by_index);
  find(library, "nvmlDeviceGetHandleByPciBusId_v2", table.device_by_bus);
  find(library, "nvmlDeviceGetTotalEnergyConsumption", table.total_energy_mj);
  find(library, "nvmlDeviceGetEnforcedPowerLimit", table.power_limit_mw);
  find(library, "nvmlDeviceGetTemperature", table.temperature_c);
  find(library, "nvmlSystemGetDriverVersion", table.driver_version);
  find(library, "nvmlDeviceGetCurrentClocksThrottleReasons", table.clock_reasons);
  find(library, "nvmlDeviceGetEccMode", table.ecc_mode);
  find(library, "nvmlDeviceGetMigMode", table.mig_mode);
  return table;
}

std::optional<Nvml> Nvml::open(const NvmlTable& table, unsigned index) {
  if (table.init == nullptr || table.device_by_index == nullptr || table.init() != 0) return std::nullopt;
  void* device = nullptr;
  if (table.device_by_index(index, &device) != 0) return std::nullopt;
  return Nvml(table, device);
}

std::optional<Nvml> Nvml::open_by_bus(const NvmlTable& table, const char* bus) {
  if (table.init == nullptr || table.device_by_bus == nullptr || table.init() != 0) return std::nullopt;
  void* device = nullptr;
  if (table.device_by_bus(bus, &device) != 0) return std::nullopt;
  return Nvml(table, device);
}

std::optional<double> Nvml::energy_j() const {
  unsigned long long millijoules = 0;
  if (table_.total_energy_mj == nullptr || table_.total_energy_mj(device_, &millijoules) != 0) return std::nullopt;
  return static_cast<double>(millijoules) / 1e3;
}

std::map<std::string, std::string> Nvml::facts() const {
  std::map<std::string, std::string> facts;
  for (const char* key : {"driver", "power_limit_w", "temperature_c", "clock_event_reasons", "ecc", "mig"}) {
    facts[key] = "unavailable";
  }
  std::array<char, 96> driver{};
  if (table_.driver_version != nullptr && table_.driver_version(driver.data(), driver.size()) == 0) {
    facts["driver"] = driver.data();
  }
  unsigned first = 0;
  unsigned second = 0;
  unsigned long long bits = 0;
  if (table_.power_limit_mw != nullptr && table_.power_limit_mw(device_, &first) == 0) {
    facts["power_limit_w"] = std::to_string(first / 1000);
  }
  if (table_.temperature_c != nullptr && table_.temperature_c(device_, 0, &first) == 0) {
    facts["temperature_c"] = std::to_string(first);
  }
  if (table_.clock_reasons != nullptr && table_.clock_reasons(device_, &bits) == 0) {
    facts["clock_event_reasons"] = reasons_text(bits);
  }
  if (table_.ecc_mode != nullptr && table_.ecc_mode(device_, &first, &second) == 0) facts["ecc"] = on_off(first);
  if (table_.mig_mode != nullptr && table_.mig_mode(device_, &first, &second) == 0) facts["mig"] = on_off(first);
  return facts;
}

}  // namespace gpusched
