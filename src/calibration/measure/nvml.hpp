// SPDX-License-Identifier: Apache-2.0
/// What NVIDIA's management library tells about a device. The library is opened at run time: no header, no stub and no
/// driver is needed to build, and its absence means "unavailable", never 0.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace gpusched {

/// The entry points in use, with the library's own calling convention: 0 is success, a device is an opaque pointer.
/// Tests fill it with scripted functions.
struct NvmlTable {
  int (*init)() = nullptr;                                       // nvmlInit_v2
  int (*device_by_index)(unsigned, void**) = nullptr;            // nvmlDeviceGetHandleByIndex_v2
  int (*device_by_bus)(const char*, void**) = nullptr;           // nvmlDeviceGetHandleByPciBusId_v2
  int (*total_energy_mj)(void*, unsigned long long*) = nullptr;  // nvmlDeviceGetTotalEnergyConsumption
  int (*power_limit_mw)(void*, unsigned*) = nullptr;             // nvmlDeviceGetEnforcedPowerLimit
  int (*temperature_c)(void*, int, unsigned*) = nullptr;         // nvmlDeviceGetTemperature
  int (*driver_version)(char*, unsigned) = nullptr;              // nvmlSystemGetDriverVersion
  int (*clock_reasons)(void*, unsigned long long*) = nullptr;    // nvmlDeviceGetCurrentClocksThrottleReasons
  int (*ecc_mode)(void*, unsigned*, unsigned*) = nullptr;        // nvmlDeviceGetEccMode
  int (*mig_mode)(void*, unsigned*, unsigned*) = nullptr;        // nvmlDeviceGetMigMode
};

/// Opens libnvidia-ml.so.1; nullopt when it is not there.
std::optional<NvmlTable> load_nvml();

/// One device. Every answer is nullopt where the library or the device does not give it.
class Nvml {
 public:
  /// nullopt when the library cannot be started or has no such device.
  static std::optional<Nvml> open(const NvmlTable& table, unsigned index);

  /// The device at a PCI address such as "0000:17:00.0", which names the same one whatever a program may see.
  static std::optional<Nvml> open_by_bus(const NvmlTable& table, const char* bus);

  /// Energy since the driver was loaded, in joules; the counter moves every 20 to 100 ms (Volta and later).
  [[nodiscard]] std::optional<double> energy_j() const;

  /// Driver, ECC, MIG, power limit, temperature and reasons for lowered clocks, as text; "unavailable" where not given.
  [[nodiscard]] std::map<std::string, std::string> facts() const;

 private:
  Nvml(const NvmlTable& table, void* device) : table_(table), device_(device) {}
  NvmlTable table_;
  void* device_;
};

}  // namespace gpusched
