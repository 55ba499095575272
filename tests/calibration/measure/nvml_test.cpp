// SPDX-License-Identifier: Apache-2.0
// A scripted management library: the answers of a device whose energy counter moves in steps of 100 ms.
#include "src/calibration/measure/nvml.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace gpusched {
namespace {

unsigned long long script_ms = 0;
bool has_counter = true;

NvmlTable scripted() {
  NvmlTable table;
  table.init = [] { return 0; };
  table.device_by_index = [](unsigned index, void** device) {
    static int only_device = 0;
    *device = &only_device;
    return index == 0 ? 0 : 2;
  };
  table.device_by_bus = [](const char* bus, void** device) {
    static int only_device = 0;
    *device = &only_device;
    return std::strcmp(bus, "0000:17:00.0") == 0 ? 0 : 6;  // 6: not found
  };
  // 300 W: 300 mJ a millisecond, shown at every full tenth of a second.
  table.total_energy_mj = [](void*, unsigned long long* mj) {
    *mj = script_ms / 100 * 100 * 300;
    return has_counter ? 0 : 3;  // 3: not supported
  };
  table.power_limit_mw = [](void*, unsigned* mw) {
    *mw = 700000;
    return 0;
  };
  table.driver_version = [](char* text, unsigned size) {
    std::strncpy(text, "580.1", size);
    return 0;
  };
  table.clock_reasons = [](void*, unsigned long long* bits) {
    *bits = 0x4 | 0x20;
    return 0;
  };
  return table;
}

TEST(Nvml, EnergyOverALongWindowIsThePower) {
  const auto device = Nvml::open(scripted(), 0);
  ASSERT_TRUE(device);
  script_ms = 1030;
  const double before = *device->energy_j();
  script_ms += 5000;
  EXPECT_NEAR((*device->energy_j() - before) / 5.0, 300, 300 * 0.02);
  // Over 50 ms the same counter says nothing: why windows under two seconds are not trusted.
  const double short_before = *device->energy_j();
  script_ms += 50;
  EXPECT_EQ(*device->energy_j(), short_before);
}

TEST(Nvml, WhatIsNotToldIsUnavailableNeverZero) {
  const auto device = Nvml::open(scripted(), 0);
  ASSERT_TRUE(device);
  const auto facts = device->facts();
  EXPECT_EQ(facts.at("driver"), "580.1");
  EXPECT_EQ(facts.at("power_limit_w"), "700");
  EXPECT_EQ(facts.at("clock_event_reasons"), "software power cap, software thermal slowdown");
  EXPECT_EQ(facts.at("mig"), "unavailable");
  EXPECT_EQ(facts.at("temperature_c"), "unavailable");
  has_counter = false;
  EXPECT_FALSE(device->energy_j());
  has_counter = true;
}

TEST(Nvml, NoSuchDeviceOrLibrary) {
  EXPECT_FALSE(Nvml::open(scripted(), 1));
  EXPECT_FALSE(Nvml::open(NvmlTable{}, 0));
  EXPECT_TRUE(Nvml::open_by_bus(scripted(), "0000:17:00.0"));
  EXPECT_FALSE(Nvml::open_by_bus(scripted(), "0000:18:00.0"));
  EXPECT_FALSE(Nvml::open_by_bus(NvmlTable{}, "0000:17:00.0"));
}

}  // namespace
}  // namespace gpusched
