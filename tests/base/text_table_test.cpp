// SPDX-License-Identifier: Apache-2.0
#include "src/base/text_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace gpusched::test {
namespace {

using testing::HasSubstr;
using testing::Not;

TextTable four_columns() {
  TextTable table({"policy", "wait", "jct", "used"});
  table.add({"fifo", "1234", "5678", "50%"});
  table.add({"srtf*", "4", "78", "60%"});
  return table;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(TextTable, AlignsNamesLeftAndNumbersRight) {
  TextTable table({"name", "n"});
  table.add({"é", "10"});
  table.add({"long name", "7"});
  EXPECT_EQ(table.text(),
            "name        n\n"
            "-------------\n"
            "é          10\n"
            "long name   7\n");
}

// policy 6 + 2 + wait 4 + 2 + jct 4 + 2 + used 4 = 24 columns.
TEST(TextTable, FoldsWhereTheStyleIsNarrowerAndNotBefore) {
  EXPECT_EQ(four_columns().text({.columns = 24}),
            "policy  wait   jct  used\n"
            "------------------------\n"
            "fifo    1234  5678   50%\n"
            "srtf*      4    78   60%\n");
  EXPECT_EQ(four_columns().text({.columns = 23}),
            "policy  wait   jct\n"
            "------------------\n"
            "fifo    1234  5678\n"
            "srtf*      4    78\n"
            "\n"
            "policy  used\n"
            "------------\n"
            "fifo     50%\n"
            "srtf*    60%\n");
}

TEST(TextTable, ShowsWhatIsImportantFirstInTheOrderOfColumns) {
  TextTable table = four_columns();
  table.set_important({3, 1});
  EXPECT_EQ(table.text({.columns = 20}),
            "policy  wait  used\n"
            "------------------\n"
            "fifo    1234   50%\n"
            "srtf*      4   60%\n"
            "\n"
            "policy   jct\n"
            "------------\n"
            "fifo    5678\n"
            "srtf*     78\n");
}

// A third of 60 columns is 20.
TEST(TextTable, ALongKeyStandsAboveItsRow) {
  TextTable table({"policy", "service", "a", "b"}, 2);
  table.add({"tiresias{queue_limits_gpu_s=[3250,7200]}", "chat", "1", "2"});
  table.add({"fifo", "chat", "33333333", "4"});
  EXPECT_EQ(table.text({.columns = 60}),
            "policy  service         a  b\n"
            "----------------------------\n"
            "tiresias{queue_limits_gpu_s=[3250,7200]}  chat\n"
            "                        1  2\n"
            "fifo       chat  33333333  4\n");
  // Where it fits, it stays in its row.
  EXPECT_THAT(table.text({.columns = 80}), HasSubstr("7200]}     chat         1  2\n"));
  // A name that is longer than a line is broken behind a comma.
  EXPECT_THAT(table.text({.columns = 40}), HasSubstr("\ntiresias{queue_limits_gpu_s=[3250,\n  7200]}  chat\n"));
}

// Every cell is there once, under its header and beside its key, and no line is too long where a cell and key fit.
TEST(TextTable, KeepsEveryCellOfRandomTables) {
  std::mt19937 random(7);
  const auto up_to = [&](unsigned most) { return static_cast<std::size_t>(random() % most); };
  for (int round = 0; round < 500; ++round) {
    const std::size_t columns = 2 + up_to(9), rows = 1 + up_to(5), width = 40 + up_to(60);
    std::vector<std::string> header{"key"};
    for (std::size_t c = 1; c < columns; ++c) header.push_back("h" + std::to_string(c) + std::string(up_to(9), 'h'));
    TextTable table(header);
    std::map<std::pair<std::string, std::string>, std::string> expected, found;  // by key and header
    for (std::size_t r = 0; r < rows; ++r) {
      std::vector<std::string> cells{"k" + std::to_string(r) + std::string(up_to(60), 'k')};
      for (std::size_t c = 1; c < columns; ++c) {
        cells.push_back("v" + std::to_string(r) + "v" + std::to_string(c) + std::string(up_to(12), 'v'));
        expected[{cells[0], header[c]}] = cells[c];
      }
      table.add(cells);
    }
    std::vector<std::size_t> important;
    for (std::size_t c = 1; c < columns; ++c) {
      if (up_to(3) == 0) important.insert(important.begin(), c);
    }
    table.set_important(important);
    std::vector<std::string> heads;
    std::string key;
    for (const std::string& line : lines_of(table.text({.columns = width}))) {
      EXPECT_LE(line.size(), width);
      std::istringstream stream(line);
      std::vector<std::string> words;
      for (std::string word; stream >> word;) words.push_back(word);
      if (words.empty() || words[0][0] == '-') continue;
      if (words[0] == "key") {
        heads = {words.begin() + 1, words.end()};
        continue;
      }
      if (words[0][0] == 'k') {
        // A name is broken over lines: the second part is indented.
        key = line.front() == ' ' ? key + words[0] : words[0];
        words.erase(words.begin());
      } else if (line.front() == ' ' && words[0][0] != 'v') {
        continue;
      }
      for (std::size_t i = 0; i < words.size(); ++i) {
        EXPECT_TRUE(found.emplace(std::pair(key, heads.at(i)), words[i]).second);
      }
    }
    EXPECT_EQ(found, expected) << table.text({.columns = width});
  }
}

TEST(TextTable, MarksTheBestAndTheWorstCell) {
  TextTable table({"policy", "wait"});
  for (const char* wait : {"3", "1", "2", "2", "9", "-"}) table.add({"p", wait});
  // The third knows true run times, and so does the last but one, which may be the worst all the same.
  const std::vector<Rated> rated{{3, true}, {1, false}, {2, true}, {2, true}, {9, false}, {std::nullopt, true}};
  table.rate(1, Best::least, rated);
  EXPECT_EQ(table.text({.colours = true}),
            "policy  wait\n"
            "------------\n"
            "p          3\n"
            "p          1\n"
            "p          \x1b[1;32m2\x1b[0m\n"
            "p          \x1b[1;32m2\x1b[0m\n"
            "p          \x1b[31m9\x1b[0m\n"
            "p          -\n");
  EXPECT_THAT(table.text(), Not(HasSubstr("\x1b")));
}

TEST(TextTable, MarksNothingWhereNothingDiffers) {
  TextTable table({"policy", "wait"});
  table.add({"a", "1.00"});
  table.add({"b", "1.00"});
  table.rate(1, Best::most, std::vector<Rated>{{1.001, true}, {1.002, true}});
  EXPECT_THAT(table.text({.colours = true}), Not(HasSubstr("\x1b")));
  // Clairvoyant runs alone: there is no best, and no worst beside it.
  TextTable all_know({"policy", "wait"});
  all_know.add({"a*", "1"});
  all_know.add({"b*", "2"});
  all_know.rate(1, Best::least, std::vector<Rated>{{1, false}, {2, false}});
  EXPECT_THAT(all_know.text({.colours = true}), Not(HasSubstr("\x1b")));
}

TEST(TextTable, ACellCannotMoveTheCursorOrBreakALine) {
  TextTable table({"name", "n"});
  table.add({"a\x1b[31m\nb", "1"});
  EXPECT_EQ(lines_of(table.text({.colours = true})).back(), "a\\x1b[31m\\x0ab  1");
}

TEST(TextStyle, OnlyTheThreeMarksPass) {
  const TextStyle colours{.columns = 80, .colours = true};
  EXPECT_EQ(shown("\x1b[31mbad\x1b[0m \x1b[2J\n", colours), "\x1b[31mbad\x1b[0m \\x1b[2J\n");
  EXPECT_EQ(shown("\x1b[31mbad\nnext", colours), "\x1b[31mbad\x1b[0m\nnext");
  EXPECT_EQ(shown("\x1b[31mbad\x1b[0m", {}), "\\x1b[31mbad\\x1b[0m");
}

TEST(TextStyle, WrapsSentencesAndNoTables) {
  const TextStyle narrow{.columns = 20, .colours = false, .wraps = true};
  EXPECT_EQ(shown("a sentence of more than twenty columns\n", narrow), "a sentence of more\nthan twenty columns\n");
  EXPECT_EQ(shown("cell  cell of a row that is wide\n", narrow), "cell  cell of a row that is wide\n");
  EXPECT_EQ(shown("a sentence of more than twenty columns\n", {.columns = 20}),
            "a sentence of more than twenty columns\n");
}

}  // namespace
}  // namespace gpusched::test
