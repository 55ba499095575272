// SPDX-License-Identifier: Apache-2.0
// Packed files: what damage is found, how much they may unpack to, and which file of an archive is read.
#include "traces/core/input_file.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include "gpusched/core/rng.hpp"
#include "tests/traces/core/reading.hpp"
#include "traces/tools/trace_validate.hpp"

namespace gpusched {
namespace {

using test::error_of;
using test::has_note;
using test::TempFolder;
using test::trace_of;

// `files`, by name and content, packed by one filter of libarchive: one file alone, or a tar archive.
std::string packed_files(const std::vector<std::pair<std::string, std::string>>& files, int filter,
                         bool as_tar = false) {
  std::size_t most = 1 << 20;
  for (const auto& file : files) most += file.second.size();
  std::string out(most, '\0');
  std::size_t used = 0;
  archive* const writer = archive_write_new();
  archive_write_add_filter(writer, filter);
  as_tar ? archive_write_set_format_pax_restricted(writer) : archive_write_set_format_raw(writer);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  for (const auto& [name, bytes] : files) {
    archive_entry* const entry = archive_entry_new();
    archive_entry_set_pathname(entry, name.c_str());
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
    archive_write_header(writer, entry);
    archive_write_data(writer, bytes.data(), bytes.size());
    archive_entry_free(entry);
  }
  archive_write_close(writer);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

// Everything in a file of these bytes; nothing where it is refused.
std::optional<std::string> content(const TempFolder& folder, const std::string& bytes) {
  auto file = InputFile::open(folder.write("file", bytes));
  if (!file) return std::nullopt;
  std::string text;
  for (std::string_view block = file->next_block(); !block.empty(); block = file->next_block()) text += block;
  if (file->failure() || !file->check_rest()) return std::nullopt;
  return text;
}

std::string jobs_text(int jobs) {
  std::string text = "job_id,submit_s,work_s,tasks,gpu_milli_per_task\n";
  for (int i = 0; i < jobs; ++i) {
    text +=
        std::to_string(i) + "," + std::to_string(i * 37 % 1000) + "," + std::to_string(60 + i * i % 977) + ",1,1000\n";
  }
  return text;
}

// Of every bit (of every 41st of tar archives): what is read is what was packed, or nothing is.
TEST(PackedFiles, NoBitFlipChangesWhatIsRead) {
  const TempFolder folder;
  const std::string text = jobs_text(12);
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_BZIP2}) {
    for (const bool as_tar : {false, true}) {
      const std::string whole = packed_files({{"jobs.csv", text}}, filter, as_tar);
      ASSERT_EQ(content(folder, whole), text);
      std::size_t changed = 0, refused = 0;
      for (std::size_t bit = 0; bit < whole.size() * 8; bit += as_tar ? 41 : 1) {
        std::string broken = whole;
        broken[bit / 8] = static_cast<char>(broken[bit / 8] ^ (1 << bit % 8));
        const auto read = content(folder, broken);
        refused += read ? 0 : 1;
        // The first bytes may say that the file is no archive; it is then another text.
        changed += read && *read != text && *read != broken ? 1 : 0;
      }
      EXPECT_EQ(changed, 0u) << filter << as_tar;
      EXPECT_GT(refused, 0u);
    }
  }
}

TEST(PackedFiles, AreRefusedWhereverTheyBreakOff) {
  const TempFolder folder;
  const std::string text = jobs_text(12);
  for (const int filter : {ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_BZIP2, ARCHIVE_FILTER_ZSTD}) {
    const std::string whole = packed_files({{"jobs.csv", text}}, filter);
    for (std::size_t kept = 16; kept < whole.size(); ++kept) {
      EXPECT_EQ(content(folder, whole.substr(0, kept)), std::nullopt)
          << filter << " " << kept << " of " << whole.size();
    }
  }
}

TEST(PackedFiles, OfGzipHaveTheirChecksumAndLengthCompared) {
  const std::string whole = packed_files({{"jobs.csv", jobs_text(5)}}, ARCHIVE_FILTER_GZIP);
  std::string checksum = whole, length = whole;
  checksum[whole.size() - 8] = static_cast<char>(checksum[whole.size() - 8] ^ 1);
  length[whole.size() - 4] = static_cast<char>(length[whole.size() - 4] ^ 1);
  EXPECT_NE(error_of(trace_of(checksum)).find("damaged archive: incorrect data check"), std::string::npos);
  EXPECT_NE(error_of(trace_of(length)).find("damaged archive: incorrect length check"), std::string::npos);
  EXPECT_NE(error_of(trace_of(whole + "more")).find("bytes behind the end of the gzip data"), std::string::npos);
}

TEST(PackedFiles, OfGzipMayHaveSeveralMembers) {
  const TempFolder folder;
  const auto member = [](const std::string& text) { return packed_files({{"x", text}}, ARCHIVE_FILTER_GZIP); };
  EXPECT_EQ(content(folder, member("one\n") + member("two\n")), "one\ntwo\n");
  EXPECT_EQ(content(folder, member("one\n") + member("") + member("two\n") + std::string(512, '\0')), "one\ntwo\n");
  std::string broken = member("one\n") + member("two\n");
  broken[member("one\n").size() - 8] ^= 1;
  EXPECT_EQ(content(folder, broken), std::nullopt);
}

// libarchive ends at what is no stream, and a log of two would have lost the half.
TEST(PackedFiles, OfBzip2HaveNothingElseBehindTheirStreams) {
  const TempFolder folder;
  const auto stream = [](const std::string& text) { return packed_files({{"x", text}}, ARCHIVE_FILTER_BZIP2); };
  const std::string one = stream("one\n"), two = stream("two\n");
  EXPECT_EQ(content(folder, one + two), "one\ntwo\n");
  for (const std::size_t damaged : {0, 2, 3, 5}) {
    std::string broken = one + two;
    broken[one.size() + damaged] ^= 4;
    EXPECT_EQ(content(folder, broken), std::nullopt) << damaged;
  }
  EXPECT_EQ(content(folder, one + two.substr(0, 5)), std::nullopt);
  EXPECT_NE(error_of(trace_of(stream(jobs_text(5)) + "more")).find("bytes behind the end of the bzip2 data"),
            std::string::npos);
  const std::string tar = packed_files({{"jobs.csv", jobs_text(5)}}, ARCHIVE_FILTER_BZIP2, true);
  EXPECT_TRUE(trace_of(tar));
  EXPECT_FALSE(trace_of(tar + "more"));
}

TEST(PackedFiles, WithoutAChecksumAreNoted) {
  // What `zstd` writes has one; what libarchive writes has none.
  EXPECT_TRUE(
      has_note(trace_of(packed_files({{"x", jobs_text(5)}}, ARCHIVE_FILTER_ZSTD)), "packed without a checksum"));
  EXPECT_FALSE(has_note(trace_of(packed_files({{"x", jobs_text(5)}}, ARCHIVE_FILTER_XZ)), "packed without a checksum"));
}

// 2 GiB of blank lines are a few megabytes of gz and some hundred bytes of bz2.
TEST(PackedFiles, MayNotUnpackWithoutBound) {
  std::string blank(std::size_t{64} << 20, ' ');  // lines of 4 KiB: few rows, much to unpack
  for (std::size_t end = 4095; end < blank.size(); end += 4096) blank[end] = '\n';
  std::string bomb = packed_files({{"x", jobs_text(5)}}, ARCHIVE_FILTER_GZIP);
  const std::string member = packed_files({{"x", blank}}, ARCHIVE_FILTER_GZIP);
  for (int i = 0; i < 32; ++i) bomb += member;
  const std::string error = error_of(trace_of(bomb));
  EXPECT_NE(error.find("unpacks to more than 1 GiB and 250 times its own size"), std::string::npos) << error;
}

TEST(Archives, SayWhichFileIsRead) {
  const std::string tar = packed_files({{"a/jobs.csv", jobs_text(5)}, {"a/more.csv", jobs_text(2)}, {"README", "x"}},
                                       ARCHIVE_FILTER_GZIP, true);
  const auto trace = trace_of(tar);
  ASSERT_TRUE(trace) << error_of(trace);
  EXPECT_EQ(trace->jobs.size(), 5u);
  const std::string note =
      "read a/jobs.csv, the first file of the archive; 2 further files not read: a/more.csv, README";
  EXPECT_TRUE(has_note(trace, note));
  const TempFolder folder;
  const auto validation = validate_trace(folder.write("jobs.tar.gz", tar));
  ASSERT_TRUE(validation);
  EXPECT_NE(validation_text(*validation).find(note), std::string::npos) << validation_text(*validation);
}

TEST(OtherFiles, AreNamed) {
  EXPECT_NE(error_of(trace_of(std::string("PAR1\x15\x04", 6))).find("Parquet file; read it with pandas"),
            std::string::npos);
  EXPECT_NE(error_of(trace_of(std::string("PK\x03\x04\x14", 5))).find("zip archive"), std::string::npos);
  EXPECT_NE(error_of(trace_of("SQLite format 3")).find("SQLite database"), std::string::npos);
}

}  // namespace
}  // namespace gpusched
