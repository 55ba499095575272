// SPDX-License-Identifier: Apache-2.0
#include "traces/core/csv_splitter.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "src/base/field_parser.hpp"

namespace gpusched {
namespace {

using Fields = std::vector<std::string>;

std::optional<Fields> split(const std::string& line, char separator = ',') {
  CsvSplitter splitter(separator);
  if (!splitter.split(line)) return std::nullopt;
  return Fields(splitter.fields().begin(), splitter.fields().end());
}

// RFC 4180 one character at a time.
std::optional<Fields> split_slowly(const std::string& line) {
  enum class In { start, plain, quoted, closed };
  Fields fields(1);
  In in = In::start;
  for (const char c : line) {
    if (in == In::quoted && c == '"') {
      in = In::closed;
    } else if (in == In::quoted) {
      fields.back() += c;
    } else if (c == ',') {
      fields.emplace_back();
      in = In::start;
    } else if (c == '"' && in == In::start) {
      in = In::quoted;
    } else if (c == '"' && in == In::closed) {
      fields.back() += c;
      in = In::quoted;
    } else if (in == In::closed) {
      return std::nullopt;
    } else {
      fields.back() += c;
      in = In::plain;
    }
  }
  if (in == In::quoted) return std::nullopt;
  return fields;
}

TEST(CsvSplitter, SplitsPlainAndQuotedFields) {
  EXPECT_EQ(split(""), Fields({""}));
  EXPECT_EQ(split(","), Fields({"", ""}));
  EXPECT_EQ(split("a,b,,d"), Fields({"a", "b", "", "d"}));
  EXPECT_EQ(split(R"("a,b","say ""hi""",c)"), Fields({"a,b", "say \"hi\"", "c"}));
  EXPECT_EQ(split(R"(a"b,c)"), Fields({"a\"b", "c"}));
  EXPECT_EQ(split("a|b,c", '|'), Fields({"a", "b,c"}));
  EXPECT_EQ(split(R"("a)"), std::nullopt);
  EXPECT_EQ(split(R"("a"b,c)"), std::nullopt);
}

RC_GTEST_PROP(CsvSplitter, AgreesWithTheSlowOne, ()) {
  const auto line = *rc::gen::container<std::string>(rc::gen::element(',', '"', 'a', ' ', '\t', '0'));
  RC_ASSERT(split(line) == split_slowly(line));
}

// A row of two lines, split at once, and as it is read: line by line.
RC_GTEST_PROP(CsvSplitter, KnowsWhetherAnOpenRowGoesOn, ()) {
  const auto letters = rc::gen::container<std::string>(rc::gen::element(',', '"', 'a', ' '));
  const std::string first = "\"" + *letters, second = *letters;
  CsvSplitter splitter;
  (void)splitter.split(first);
  RC_PRE(splitter.open());
  const bool stays_open = splitter.stays_open(second);
  (void)splitter.split(first + "\n" + second);
  RC_ASSERT(splitter.open() == stays_open);
}

RC_GTEST_PROP(CsvSplitter, GivesBackWhatWasQuoted, (const std::vector<std::string>& texts)) {
  RC_PRE(!texts.empty());
  std::string line;
  for (const std::string& text : texts) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : text) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  RC_ASSERT(split(line) == texts);
}

TEST(FieldParser, SecondsAreExactToTheMicrosecond) {
  EXPECT_EQ(parse_seconds("12"), Time{12'000'000});
  EXPECT_EQ(parse_seconds(" -0.5 "), Time{-500'000});
  EXPECT_EQ(parse_seconds("1.0000005"), Time{1'000'001});
  EXPECT_EQ(parse_seconds("0.1234564999"), Time{123'456});
  EXPECT_EQ(parse_seconds("1e3"), Time{1'000'000'000});
  EXPECT_EQ(parse_seconds("4599999999999"), whole_seconds(4'599'999'999'999));
  for (const char* bad : {"", "-", "--1", "nan", "inf", "1,5", "12s", "4600000000000", "1e300", "0x10", ". 5"}) {
    EXPECT_EQ(parse_seconds(bad), std::nullopt) << bad;
  }
}

RC_GTEST_PROP(FieldParser, SecondsReadBackWhatWasWritten, ()) {
  const auto us = *rc::gen::inRange<std::int64_t>(-4'000'000'000'000'000, 4'000'000'000'000'000);
  const std::int64_t magnitude = us < 0 ? -us : us;
  std::string fraction = std::to_string(magnitude % 1'000'000);
  fraction.insert(0, 6 - fraction.size(), '0');
  const std::string text = (us < 0 ? "-" : "") + std::to_string(magnitude / 1'000'000) + "." + fraction;
  RC_ASSERT(parse_seconds(text) == Time{us});
}

TEST(FieldParser, CalendarTimesKnowLeapYearsAndZones) {
  EXPECT_EQ(parse_calendar("1970-01-01 00:00:00"), Time{});
  EXPECT_EQ(parse_calendar("2020-02-29T12:00:00Z"), whole_seconds(1582977600));
  EXPECT_EQ(parse_calendar("2023-05-17 19:28:42+08:00"), whole_seconds(1684322922));
  EXPECT_EQ(parse_calendar("2023-05-17 11:28:42.25"), Time{1684322922250000});
  EXPECT_EQ(parse_calendar("2023-05-17 06:28:42-0500"), whole_seconds(1684322922));
  for (const char* bad : {"", "2021-02-29 00:00:00", "2020-13-01 00:00:00", "2020-01-01", "2020-01-01 24:00:00",
                          "2020-01-01 00:00:00 PST", "2020-01-01 00:00:00+8"}) {
    EXPECT_EQ(parse_calendar(bad), std::nullopt) << bad;
  }
}

TEST(FieldParser, DatesStandInTheOrderThatIsSaid) {
  const Time time = parse_calendar("2023-11-06 18:15:46").value();
  EXPECT_EQ(parse_calendar_time("11/06/2023 18:15:46", DateOrder::mdy)->time, time);
  EXPECT_EQ(parse_calendar_time("11/6/2023 6:15:46 PM", DateOrder::mdy)->time, time);
  EXPECT_EQ(parse_calendar_time("06.11.2023 18:15:46", DateOrder::dmy)->time, time);
  EXPECT_EQ(parse_calendar_time("06-11-2023T18:15:46,0", DateOrder::dmy)->time, time);
  EXPECT_EQ(parse_calendar_time("2023/11/06 18:15:46")->time, time);
  EXPECT_EQ(parse_calendar_time("2023-11-06 18:15")->time, time - whole_seconds(46));
  EXPECT_FALSE(parse_calendar_time("2023-11-06 18:15:46")->zoned);
  EXPECT_TRUE(parse_calendar_time("2023-11-06 18:15:46 UTC")->zoned);
  EXPECT_TRUE(parse_calendar_time("2023-11-06 18:15:46+00:00")->zoned);
  for (const char* bad : {"16/11/2023 18:15:46", "11/06-2023 18:15:46", "11/06/23 18:15:46", "11/06/2023",
                          "11/06/2023 13:15:46 PM", "11/06/2023 0:15:46 AM"}) {
    EXPECT_EQ(parse_calendar_time(bad, DateOrder::mdy), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_calendar_time("12/01/2023 12:00:00 AM", DateOrder::mdy)->time,
            parse_calendar("2023-12-01 00:00:00").value());
}

TEST(FieldParser, SpansThatSayTheirUnits) {
  EXPECT_EQ(parse_span("16:00:00"), whole_seconds(57600));
  EXPECT_EQ(parse_span("1 day, 6:00:16"), whole_seconds(108016));
  EXPECT_EQ(parse_span("2 days, 0:00:01.5"), Time{172801500000});
  EXPECT_EQ(parse_span("0 days 00:03:00"), whole_seconds(180));
  EXPECT_EQ(parse_span("1-06:00:16"), whole_seconds(108016));
  EXPECT_EQ(parse_span("P1DT6H"), whole_seconds(108000));
  EXPECT_EQ(parse_span("PT1H30M5.5S"), Time{5405500000});
  EXPECT_EQ(parse_span("P2W"), whole_seconds(1209600));
  EXPECT_EQ(parse_span("1h30m"), whole_seconds(5400));
  EXPECT_EQ(parse_span("90 min"), whole_seconds(5400));
  EXPECT_EQ(parse_span("1 hour, 30 minutes"), whole_seconds(5400));
  EXPECT_EQ(parse_span("1000000:00:00"), whole_seconds(3'600'000'000));
  for (const char* bad : {"", "5", "1.5", "16:00", "1:60:00", "P1M", "P1Y", "PT", "1 month", "-1:00:00", "1h30", "h",
                          "999999999999:00:00"}) {
    EXPECT_EQ(parse_span(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_span("1 day"), whole_seconds(86400));
}

TEST(FieldParser, SlurmSpans) {
  EXPECT_EQ(parse_slurm_span("1-02:03:04"), whole_seconds(93784));
  EXPECT_EQ(parse_slurm_span("02:03:04"), whole_seconds(7384));
  EXPECT_EQ(parse_slurm_span("03:04"), whole_seconds(184));
  EXPECT_EQ(parse_slurm_span("00:00:01.500"), whole_seconds(1));
  EXPECT_EQ(parse_slurm_span("2-00"), whole_seconds(172800));
  for (const char* bad : {"", "UNLIMITED", "1:2:3:4", "-1:00", "1-"})
    EXPECT_EQ(parse_slurm_span(bad), std::nullopt) << bad;
}

TEST(FieldParser, CountsMayBeWrittenAsFloats) {
  EXPECT_EQ(parse_integer("8.0"), 8);
  EXPECT_EQ(parse_integer("+3"), 3);
  for (const char* bad : {"", "8.5", "eight", "99999999999999999999"}) {
    EXPECT_EQ(parse_integer(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace gpusched
