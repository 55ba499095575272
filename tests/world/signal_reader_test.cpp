// SPDX-License-Identifier: Apache-2.0
#include "src/world/signal_reader.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/files.hpp"

namespace gpusched {
namespace {

constexpr Time hour = whole_seconds(3600);

SignalFile read(const std::string& text, SignalOptions options = {}) {
  const auto file = signal_from_csv(text, "s.csv", options);
  EXPECT_TRUE(file) << file.error().to_string();
  return file ? *file : SignalFile{};
}

std::string error_of(const std::string& text, SignalOptions options = {}) {
  const auto file = signal_from_csv(text, "s.csv", options);
  return file ? "read" : file.error().to_string();
}

// Seconds since 1970 of 2023-01-01.
constexpr Time year_2023 = whole_seconds(1'672'531'200);

TEST(SignalReader, TakesDatesInUtc) {
  for (const char* rows : {"2023-01-01 00:00:00,1\n2023-01-01 01:00:00,2\n", "2023-01-01,1\n2023-01-01T01:00Z,2\n",
                           "2023-01-01T00:00:00.000Z,1\n2023-01-01 02:00+01:00,2\n",
                           "2023/01/01 00:00,1\n2023/01/01 01:00 UTC,2\n", "01.01.2023 00:00,1\n01.01.2023 01:00,2\n",
                           "\"2023-01-01 00:00:00+00:00\",1\n2023-01-01 01:00:00+0000,2\r\n"}) {
    const SignalFile file = read(std::string("\xEF\xBB\xBF utc ,gco2_per_kwh\n") + rows);
    EXPECT_TRUE(file.is_utc);
    ASSERT_EQ(file.signal.steps().size(), 2u) << rows;
    EXPECT_EQ(file.signal.steps()[0].time, year_2023) << rows;
    EXPECT_EQ(file.signal.steps()[1].time, year_2023 + hour) << rows;
    EXPECT_EQ(file.signal.at(year_2023 + hour), 2) << rows;
    EXPECT_EQ(file.step, hour);
    EXPECT_EQ(file.end, year_2023 + hour + hour);
    EXPECT_TRUE(file.notes.empty());
  }
}

TEST(SignalReader, TakesNumbersByTheNameOfTheirColumn) {
  const auto second_step = [](const std::string& column) {
    return read(column + ",gco2_per_kwh\n0,5\n2.5,6\n").signal.steps()[1].time;
  };
  EXPECT_EQ(second_step("time"), from_seconds(2.5));
  EXPECT_EQ(second_step("time_s"), from_seconds(2.5));
  EXPECT_EQ(second_step("submit_min"), from_seconds(150));
  EXPECT_EQ(second_step("hour"), from_seconds(9000));
  EXPECT_EQ(second_step("hour_of_2023"), year_2023 + from_seconds(9000));
  EXPECT_FALSE(read("time,gco2_per_kwh\n0,5\n").is_utc);
  EXPECT_TRUE(read("hour_of_2023,gco2_per_kwh\n0,5\n").is_utc);
  EXPECT_EQ(read("timestamp,gco2_per_kwh\n1672531200,5\n").signal.steps()[0].time, year_2023);
}

TEST(SignalReader, ConvertsUnits) {
  const auto first = [](const std::string& column, SignalKind kind, const std::string& unit = "") {
    return read("time," + column + "\n0,30\n", {.kind = kind, .unit = unit}).signal.at(Time{});
  };
  EXPECT_EQ(first("Carbon Intensity gCO\xE2\x82\x82"
                  "eq/kWh (direct)",
                  SignalKind::carbon),
            30);
  EXPECT_EQ(first("de_tCO2_per_MWh", SignalKind::carbon), 30'000);
  EXPECT_EQ(first("x", SignalKind::carbon, "lb/MWh"), 13.607771);
  EXPECT_EQ(first("usd_per_kwh", SignalKind::price), 30'000);
  EXPECT_EQ(first("cap_kW", SignalKind::power), 30'000);
  EXPECT_EQ(first("cap_w", SignalKind::power), 30);
  EXPECT_EQ(first("requests_per_min", SignalKind::rate), 0.5);
  EXPECT_EQ(first("usd_per_mwh", SignalKind::price, "USD/kWh"), 30'000);  // the option is above the name
}

TEST(SignalReader, ChoosesTheColumn) {
  const std::string text = "time,usd_per_mwh,gco2_direct,gco2_lca\n0,-7,1,2\n";
  const SignalFile first = read(text);
  EXPECT_EQ(first.column, "gco2_direct");
  ASSERT_EQ(first.notes.size(), 1u);
  EXPECT_EQ(first.notes[0], "s.csv: of the columns usd_per_mwh|gco2_direct|gco2_lca the first, gco2_direct, is taken");
  EXPECT_EQ(read(text, {.column = "gco2_lca"}).signal.at(Time{}), 2);
  EXPECT_EQ(read(text, {.kind = SignalKind::price}).signal.at(Time{}), -7);  // prices may be negative
}

TEST(SignalReader, SaysWhichValuesAreMissing) {
  const SignalFile file = read(
      "utc,gco2_per_kwh\n2023-01-01 00:00,1\n2023-01-01 01:00,\n2023-01-01 02:00,3\n2023-01-01 03:00,4\n"
      "2023-01-01 06:00,7\n2023-01-01 07:00,NaN\n2023-01-01 08:00,9\n2023-01-01 09:00,10\n");
  ASSERT_EQ(file.notes.size(), 1u);
  EXPECT_EQ(file.notes[0], "s.csv: 4 values are missing, the first at 2023-01-01 01:00; the value before holds");
  EXPECT_EQ(file.signal.at(year_2023 + hour), 1);
  EXPECT_EQ(file.signal.at(year_2023 + whole_seconds(5 * 3600)), 4);
  EXPECT_EQ(file.signal.at(year_2023 + whole_seconds(7 * 3600)), 7);
  // No span is the usual one: a step function by its changes, nothing is missing.
  EXPECT_TRUE(read("time,cap_w\n0,1\n10,2\n500,3\n", {.kind = SignalKind::power}).notes.empty());
  EXPECT_EQ(read("time,cap_w\n0,\n10,2\n20,3\n", {.kind = SignalKind::power}).notes[0],
            "s.csv: 1 value is missing, the first at 0 s; the value before holds");
}

TEST(SignalReader, BeginsWithTheJobs) {
  const std::string text = "utc,gco2_per_kwh\n2023-01-01 00:00,1\n2023-01-01 01:00,2\n2023-01-01 02:00,3\n";
  const SignalFile file = read(text, {.begins_at = whole_seconds(50), .from = hour});
  EXPECT_EQ(file.signal.at(whole_seconds(49)), 1);  // what was before stays known
  EXPECT_EQ(file.signal.at(whole_seconds(50)), 2);
  EXPECT_EQ(file.signal.at(whole_seconds(3650)), 3);
  EXPECT_EQ(file.end, whole_seconds(50 + 2 * 3600));
  EXPECT_EQ(error_of(text, {.begins_at = Time{}, .from = whole_seconds(7201)}),
            "s.csv: from_h: expected hours after the first row, at most the 2 of the last, not 2.000277777777778");
}

TEST(SignalReader, RefusesInOneLine) {
  const std::string head = "utc,gco2_per_kwh\n";
  EXPECT_EQ(error_of(head + "2023-01-01 01:00,1\n2023-01-01 00:00,2\n"),
            "s.csv:3: utc: expected a time after that of the row before, 2023-01-01 01:00");
  EXPECT_EQ(error_of("time,gco2_per_kwh\n3,1\n3,1\n"),
            "s.csv:3: time: expected a time after that of the row before, 3 s");
  EXPECT_EQ(error_of(head + "2023-02-30,1\n"), "s.csv:2: utc: expected a date as 2023-01-31 13:00, not '2023-02-30'");
  EXPECT_EQ(error_of(head + "2023-01-01,1\n7,1\n"), "s.csv:3: utc: expected a date as 2023-01-31 13:00, not '7'");
  EXPECT_EQ(error_of("time,gco2_per_kwh\n3,1\n2023-01-01,1\n"), "s.csv:3: time: expected a number, not '2023-01-01'");
  EXPECT_EQ(error_of(head + "2023-01-01,x\n"), "s.csv:2: gco2_per_kwh: expected a number, not 'x'");
  EXPECT_EQ(error_of(head + "2023-01-01,1e300\n"), "s.csv:2: gco2_per_kwh: expected a number, not '1e300'");
  EXPECT_EQ(error_of(head + "2023-01-01,-1\n"), "s.csv:2: gco2_per_kwh: expected a number of 0 or more, not '-1'");
  EXPECT_EQ(error_of(head + "2023-01-01,1,2\n"), "s.csv:2: expected 2 fields, not 3");
  EXPECT_EQ(error_of(head), "s.csv: gco2_per_kwh: expected values below a header");
  EXPECT_EQ(error_of(head + "2023-01-01,\n"), "s.csv: gco2_per_kwh: expected values below a header");
  EXPECT_EQ(error_of(""), "s.csv: expected values below a header");
  EXPECT_EQ(error_of("2023-01-01,5\n"),
            "s.csv:1: 2023-01-01: expected a header: the names of a column of times and of one of values");
  EXPECT_EQ(error_of("utc\n"), "s.csv:1: utc: expected a column of values after that of times");
  EXPECT_EQ(
      error_of("utc,value\n"),
      "s.csv:1: value: expected a column of carbon intensity, or the unit of one: g/kWh|kg/MWh|kg/kWh|t/MWh|lb/MWh");
  EXPECT_EQ(error_of("utc,usd_per_mwh\n", {.column = "usd_per_mwh"}),
            "s.csv:1: usd_per_mwh: expected a name that says a unit of carbon intensity, or that unit: "
            "g/kWh|kg/MWh|kg/kWh|t/MWh|lb/MWh");
  EXPECT_EQ(error_of(head, {.column = "lca"}),
            "s.csv:1: lca: the header lacks this column; expected one of gco2_per_kwh");
  EXPECT_EQ(error_of(head, {.unit = "USD/MWh"}),
            "s.csv:1: expected a unit of carbon intensity, g/kWh|kg/MWh|kg/kWh|t/MWh|lb/MWh, not 'USD/MWh'");
  EXPECT_EQ(read_signal("no_such_file.csv", {}).error().to_string(), "no_such_file.csv: cannot be opened");
}

// A log whose second 0 is at 02:00: hours count from midnight, seconds are those of the log.
TEST(Signals, HoursAreThoseOfTheDay) {
  const SignalOptions at_two{.midnight_to_zero = whole_seconds(7200)};
  const Signal hours = read("hour,gco2_per_kwh\n0,1\n2,900\n3,5\n", at_two).signal;
  EXPECT_EQ(hours.at(Time{}), 900);
  EXPECT_EQ(hours.at(whole_seconds(3600)), 5);
  EXPECT_EQ(read("time_s,gco2_per_kwh\n0,1\n7200,900\n", at_two).signal.at(Time{}), 1);
}

TEST(Signals, AreSampled) {
  const Signal signal = read("time,gco2_per_kwh\n0,1\n90,2\n120,3\n").signal;
  const Signal minutes = sampled(signal, Time{}, whole_seconds(180), whole_seconds(60));
  ASSERT_EQ(minutes.steps().size(), 3u);
  EXPECT_EQ(minutes.at(whole_seconds(119)), 1);
  EXPECT_EQ(minutes.at(whole_seconds(120)), 3);
  EXPECT_EQ(moved(signal, whole_seconds(10)).at(whole_seconds(99)), 1);
}

// Values by hand from the files.
TEST(SignalReader, ReadsTheSharedTraces) {
  struct Case {
    const char* name;
    SignalKind kind;
    const char* column;
    std::size_t steps;
    double first, last;
    std::size_t notes;
  };
  for (const Case& c : {Case{"carbon/em_2022_AU-SA.csv", SignalKind::carbon, "", 8759, 144.64, 62.42, 0},
                        Case{"carbon/em_2022_DE.csv", SignalKind::carbon, "", 8759, 216.56, 200.06, 0},
                        Case{"carbon/em_2023_DE-LU.csv", SignalKind::carbon, "gco2_lca", 8760, 185.8, 178.79, 0},
                        Case{"carbon/em_2023_US-CAL-CISO.csv", SignalKind::carbon, "", 8760, 238.69, 243.22, 1},
                        Case{"carbon/em_2023_US-TEX-ERCO.csv", SignalKind::carbon, "", 8760, 269.79, 362.86, 1},
                        Case{"carbon/lwa_2020_ger.csv", SignalKind::carbon, "", 37147, 218.290031, 508.090652, 1},
                        Case{"prices/usd_2023_DE-LU.csv", SignalKind::price, "", 8760, -3.362237, 0, 0},
                        Case{"prices/usd_2023_US-CAL-CISO.csv", SignalKind::price, "", 8760, 114.9452, 0, 0}}) {
    const std::string path = test::real_trace(c.name);
    GPUSCHED_NEEDS_TRACE(path, c.name);
    const auto file = read_signal(path, {.kind = c.kind, .column = c.column});
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_EQ(file->signal.steps().size(), c.steps) << c.name;
    EXPECT_EQ(file->signal.at(Time{}), c.first) << c.name;
    EXPECT_TRUE(c.last == 0 || file->signal.at(file->end) == c.last) << c.name;
    EXPECT_EQ(file->notes.size(), c.notes) << c.name;
    EXPECT_TRUE(file->is_utc) << c.name;
  }
}

}  // namespace
}  // namespace gpusched
