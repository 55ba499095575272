// SPDX-License-Identifier: Apache-2.0
#include "traces/core/input_file.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "traces/core/one_time_stream.hpp"

namespace gpusched {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 18;
constexpr std::size_t longest_line = std::size_t{64} << 20;  // bytes; a small archive may hold a line of any length

// What an archive may unpack to: logs shrink to a hundredth at best, and a small file may hold any number of blank
// lines.
constexpr std::uint64_t unpacked_at_least = std::uint64_t{1} << 30;
constexpr std::uint64_t unpacked_for_a_byte = 250;

bool unpacks_too_much(std::uint64_t unpacked, std::uint64_t packed) {
  return unpacked > unpacked_at_least && (unpacked - unpacked_at_least) / unpacked_for_a_byte > packed;
}

constexpr const char* too_much_text =
    "unpacks to more than 1 GiB and 250 times its own size, which no log does; unpack it and read what is in it";

struct ArchiveCloser {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
struct DigestCloser {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

Unexpected file_error(const std::string& path, const std::string& message) {
  return {Error{.message = message, .file = path}};
}

// Bytes from the first to the last, block by block. A view lives until the next call.
class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  // Empty at the end and after a failure.
  virtual std::string_view next() = 0;
  // Why there is no more, if that is no end; else empty.
  [[nodiscard]] virtual std::string failure() const = 0;
};

// The bytes on disk or of a stream, from the first on: read in blocks, each hashed as it passes.
class RawFile : public ByteSource {
 public:
  static Result<std::unique_ptr<RawFile>> open(const std::string& path) {
    auto stream = OneTimeStream::find(path);
    if (!stream) return Unexpected{stream.error()};
    if (*stream != nullptr) return std::make_unique<RawFile>(-1, *std::move(stream));
    struct stat info {};
    const std::string name = path == "-" ? "/dev/stdin" : path;
    const int descriptor = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return file_error(path, std::string("cannot open: ") + std::strerror(errno));
    auto file = std::make_unique<RawFile>(descriptor, nullptr);
    if (fstat(descriptor, &info) == 0 && S_ISDIR(info.st_mode)) {
      return file_error(path, "is a folder; expected a file");
    }
    return file;
  }

  RawFile(int descriptor, std::shared_ptr<OneTimeStream> stream)
      : descriptor_(descriptor), stream_(std::move(stream)), digest_(EVP_MD_CTX_new()), block_(block_size) {
    EVP_DigestInit_ex(digest_.get(), EVP_sha256(), nullptr);
  }
  ~RawFile() override {
    if (descriptor_ >= 0) close(descriptor_);
  }

  std::string_view next() override {
    const std::int64_t count = read_block();
    if (count < 0) failed_ = true;
    if (count <= 0) return {};
    offset_ += static_cast<std::uint64_t>(count);
    EVP_DigestUpdate(digest_.get(), block_.data(), static_cast<std::size_t>(count));
    return {block_.data(), static_cast<std::size_t>(count)};
  }

  [[nodiscard]] std::string failure() const override { return failed_ ? "read error" : ""; }
  // Bytes given so far.
  [[nodiscard]] std::uint64_t offset() const { return offset_; }

  std::string finish_digest() {
    while (!next().empty()) {
    }
    std::array<unsigned char, 32> bytes{};
    EVP_DigestFinal_ex(digest_.get(), bytes.data(), nullptr);
    std::string text;
    for (const unsigned char byte : bytes) {
      text += "0123456789abcdef"[byte >> 4];
      text += "0123456789abcdef"[byte & 15];
    }
    return text;
  }

 private:
  std::int64_t read_block() {
    if (stream_ != nullptr) return stream_->read_at(offset_, block_);
    std::int64_t count = 0;
    do {
      count = read(descriptor_, block_.data(), block_.size());
    } while (count < 0 && errno == EINTR);
    return count;
  }

  int descriptor_;  // -1: a stream
  std::shared_ptr<OneTimeStream> stream_;
  std::uint64_t offset_ = 0;
  bool failed_ = false;
  std::unique_ptr<EVP_MD_CTX, DigestCloser> digest_;
  std::vector<char> block_;
};

// What the members of a gzip file (RFC 1952) unpack to. zlib compares the checksum and the length of each.
class GzipFile : public ByteSource {
 public:
  explicit GzipFile(RawFile& packed) : packed_(packed), block_(block_size) {
    constexpr int gzip_alone = 15 + 16;
    begun_ = inflateInit2(&stream_, gzip_alone) == Z_OK;
    if (!begun_) failure_ = "cannot unpack";
  }
  ~GzipFile() override {
    if (begun_) inflateEnd(&stream_);
  }

  std::string_view next() override {
    while (failure_.empty() && !at_end_) {
      if (stream_.avail_in == 0 && !refill()) break;
      if (between_members_ && !begin_member()) break;
      stream_.next_out = reinterpret_cast<Bytef*>(block_.data());
      stream_.avail_out = static_cast<uInt>(block_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        failure_ = std::string("damaged archive: ") + (stream_.msg != nullptr ? stream_.msg : "cannot unpack");
        break;
      }
      between_members_ = status == Z_STREAM_END;
      const std::size_t count = block_.size() - stream_.avail_out;
      unpacked_ += count;
      if (unpacks_too_much(unpacked_, packed_.offset())) failure_ = too_much_text;
      if (count > 0 && failure_.empty()) return {block_.data(), count};
    }
    return {};
  }

  [[nodiscard]] std::string failure() const override { return failure_; }

 private:
  // False at the end, which is no end within a member.
  bool refill() {
    const std::string_view block = packed_.next();
    if (block.empty()) {
      at_end_ = true;
      failure_ = packed_.failure();
      if (failure_.empty() && !between_members_) failure_ = "damaged archive: truncated gzip input";
      return false;
    }
    // zlib only reads; it wants a pointer to mutable bytes.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(block.data()));
    stream_.avail_in = static_cast<uInt>(block.size());
    return true;
  }

  // Another member may follow, or zeros that fill a block of a tape.
  bool begin_member() {
    while (stream_.avail_in > 0 && any_member_ && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
      padded_ = true;
    }
    if (stream_.avail_in == 0) return true;
    if (padded_ || (any_member_ && *stream_.next_in != 0x1f)) {
      failure_ = "damaged archive: bytes behind the end of the gzip data";
      return false;
    }
    inflateReset(&stream_);
    any_member_ = true;
    between_members_ = false;
    return true;
  }

  RawFile& packed_;
  std::vector<char> block_;
  z_stream stream_{};
  bool begun_ = false, at_end_ = false, between_members_ = true, any_member_ = false, padded_ = false;
  std::uint64_t unpacked_ = 0;
  std::string failure_;
};

la_ssize_t feed_archive(archive*, void* client, const void** buffer) {
  const std::string_view block = static_cast<ByteSource*>(client)->next();
  *buffer = block.data();
  return static_cast<la_ssize_t>(block.size());
}

bool is_gzip(std::string_view head) { return head.starts_with("\x1f\x8b"); }

bool looks_packed(std::string_view head) {
  const auto starts = [&](std::string_view magic) { return head.substr(0, magic.size()) == magic; };
  const bool is_tar = head.size() > 262 && head.substr(257, 5) == "ustar";
  return starts("\x1f\x8b") || starts("\x28\xb5\x2f\xfd") ||
         starts(
             "\xfd"
             "7zXZ") ||
         starts("BZh") || is_tar;
}

// Frames of zstd and xz may carry no checksum (RFC 8878, 3.1.1.1.1; the .xz format, 2.1.1.2).
bool has_no_checksum(std::string_view head) {
  const bool is_zstd = head.starts_with("\x28\xb5\x2f\xfd") && head.size() > 4;
  const bool is_xz = head.starts_with(std::string_view("\xfd"
                                                       "7zXZ\0",
                                                       6)) &&
                     head.size() > 7;
  return (is_zstd && (head[4] & 4) == 0) || (is_xz && (head[7] & 15) == 0);
}

// What people have that is no log, by its first bytes.
const char* other_kind(std::string_view head) {
  const auto starts = [&](std::string_view magic) { return head.starts_with(magic); };
  if (starts("PAR1"))
    return "is a Parquet file; read it with pandas or polars and give its columns to trace_from_columns";
  if (starts("PK\x03\x04")) return "is a zip archive (or a spreadsheet); unpack it, or save it as csv";
  if (starts("SQLite format 3")) return "is an SQLite database; export the table of jobs as csv";
  if (starts("\x89HDF\r\n")) return "is an HDF5 file; export the table of jobs as csv";
  if (starts("ARROW1")) return "is an Arrow file; read it with pandas and give its columns to trace_from_columns";
  if (starts("7z\xbc\xaf")) return "is a 7z archive; unpack it";
  return nullptr;
}

bool name_ends_in(archive_entry* entry, std::string_view ending) {
  const char* const name = archive_entry_pathname(entry);
  return std::string_view(name != nullptr ? name : "").ends_with(ending);
}

}  // namespace

struct InputFile::State {
  std::string path;
  std::unique_ptr<RawFile> raw;
  std::unique_ptr<GzipFile> gzip;                    // null: not packed by gzip
  std::unique_ptr<archive, ArchiveCloser> unpacker;  // null: neither a tar archive nor packed by anything else
  std::string first_block;                           // without unpacker: read ahead to look at it
  bool first_block_pending = false;
  std::uint64_t unpacked = 0;  // bytes that the unpacker gave
  std::string entry_name;      // of a tar archive
  bool without_checksum = false;

  std::vector<char> text;  // [begin, end) is unread
  std::size_t begin = 0;
  std::size_t end = 0;
  bool at_end = false;
  std::uint64_t line = 0;
  std::optional<Error> failure;

  [[nodiscard]] Error damaged() const {
    const char* const reason = archive_error_string(unpacker.get());
    return {.message = std::string("damaged archive: ") + (reason != nullptr ? reason : "cannot unpack"),
            .file = path,
            .line = line};
  }

  [[nodiscard]] ByteSource& source() {
    return gzip != nullptr ? static_cast<ByteSource&>(*gzip) : static_cast<ByteSource&>(*raw);
  }

  // Begins anew at the first byte.
  Result<void> rewind(bool with_gzip) {
    auto again = RawFile::open(path);
    if (!again) return Unexpected{again.error()};
    gzip.reset();
    raw = *std::move(again);
    if (with_gzip) gzip = std::make_unique<GzipFile>(*raw);
    return {};
  }

  // Reads `path` through libarchive from here on: its only content, or the first file whose name ends in `entry`.
  Result<void> unpack(const std::string& entry) {
    if (auto again = rewind(gzip != nullptr); !again) return again;
    unpacker.reset(archive_read_new());
    archive_read_support_filter_all(unpacker.get());
    archive_read_support_format_tar(unpacker.get());
    archive_read_support_format_empty(unpacker.get());
    archive_read_support_format_raw(unpacker.get());
    // So that what stands behind the last file of a tar archive is unpacked too, and its checksum compared.
    archive_read_set_format_option(unpacker.get(), "tar", "read_concatenated_archives", "1");
    if (archive_read_open(unpacker.get(), &source(), nullptr, feed_archive, nullptr) != ARCHIVE_OK) {
      return Unexpected{damaged()};
    }
    archive_entry* found = nullptr;
    for (;;) {
      const int status = archive_read_next_header(unpacker.get(), &found);
      if (status == ARCHIVE_EOF && archive_format(unpacker.get()) == ARCHIVE_FORMAT_EMPTY) {
        return file_error(path, "is empty; expected a trace");
      }
      if (status == ARCHIVE_EOF) {
        return file_error(path, entry.empty() ? "archive holds no file" : "archive holds no file named " + entry);
      }
      if (status != ARCHIVE_OK) return Unexpected{damaged()};
      const bool is_raw = archive_format(unpacker.get()) == ARCHIVE_FORMAT_RAW;
      const bool is_file = archive_entry_filetype(found) == AE_IFREG;
      if (is_raw) return {};
      if (is_file && name_ends_in(found, entry)) {
        const char* const name = archive_entry_pathname(found);
        entry_name = name != nullptr ? name : "";
        return {};
      }
      if (skips_too_much(found)) return file_error(path, too_much_text);
    }
  }

  // A file of a tar archive is unpacked to be passed over.
  [[nodiscard]] bool skips_too_much(archive_entry* found) const {
    const la_int64_t size = archive_entry_size(found);
    return size > 0 && unpacks_too_much(static_cast<std::uint64_t>(size), raw->offset());
  }

  void fail(std::string message) { failure = Error{.message = std::move(message), .file = path, .line = line}; }

  // The next bytes of the content; empty at the end or after damage.
  std::string_view next_content() {
    if (unpacker == nullptr) {
      if (first_block_pending) {
        first_block_pending = false;
        return first_block;
      }
      const std::string_view block = source().next();
      if (block.empty() && !source().failure().empty()) fail(source().failure());
      return block;
    }
    const void* data = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    int status = ARCHIVE_OK;
    do {
      status = archive_read_data_block(unpacker.get(), &data, &size, &offset);
    } while (status == ARCHIVE_OK && size == 0);
    const std::string of_source = gzip != nullptr ? gzip->failure() : raw->failure();
    if (!of_source.empty()) {
      fail(of_source);
      return {};
    }
    if (status == ARCHIVE_EOF) {
      if (archive_format(unpacker.get()) == ARCHIVE_FORMAT_RAW) check_behind_bzip2();
      return {};
    }
    if (status != ARCHIVE_OK) {
      failure = damaged();
      return {};
    }
    unpacked += size;
    if (unpacks_too_much(unpacked, raw->offset())) {
      fail(too_much_text);
      return {};
    }
    return {static_cast<const char*>(data), size};
  }

  // libarchive takes what stands behind a stream of bzip2 and is none for the end of the file: the rest of a log whose
  // second stream is damaged.
  void check_behind_bzip2() {
    if (gzip != nullptr || unpacker == nullptr || archive_filter_code(unpacker.get(), 0) != ARCHIVE_FILTER_BZIP2)
      return;
    const auto read = static_cast<std::uint64_t>(archive_filter_bytes(unpacker.get(), -1));
    while (!raw->next().empty()) {
    }
    if (read < raw->offset()) fail("damaged archive: bytes behind the end of the bzip2 data");
  }

  // Appends content behind the unread part; false when there is no more.
  bool refill() {
    if (at_end) return false;
    const std::string_view block = next_content();
    if (block.empty()) {
      at_end = true;
      return false;
    }
    if (begin > 0) {
      std::memmove(text.data(), text.data() + begin, end - begin);
      end -= begin;
      begin = 0;
    }
    if (text.size() < end + block.size()) text.resize(end + block.size());
    std::memcpy(text.data() + end, block.data(), block.size());
    end += block.size();
    return true;
  }
};

InputFile::InputFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
InputFile::InputFile(InputFile&&) noexcept = default;
InputFile& InputFile::operator=(InputFile&&) noexcept = default;
InputFile::~InputFile() = default;

Result<InputFile> InputFile::open(const std::string& path, const std::string& entry) {
  auto raw = RawFile::open(path);
  if (!raw) return Unexpected{raw.error()};
  auto state = std::make_unique<State>();
  state->path = path;
  state->raw = *std::move(raw);
  state->first_block = state->raw->next();
  if (state->first_block.empty()) return file_error(path, "is empty; expected a trace");
  if (const char* const kind = other_kind(state->first_block)) return file_error(path, kind);
  state->without_checksum = has_no_checksum(state->first_block);
  if (is_gzip(state->first_block)) {
    if (auto again = state->rewind(true); !again) return Unexpected{again.error()};
    state->first_block = state->gzip->next();
    if (!state->gzip->failure().empty()) return file_error(path, state->gzip->failure());
  }
  if (!looks_packed(state->first_block)) {
    state->first_block_pending = true;
  } else if (auto found = state->unpack(entry); !found) {
    return Unexpected{found.error()};
  }
  while (state->end - state->begin < (std::size_t{1} << 16) && state->refill()) {
  }
  if (state->failure) return Unexpected{*state->failure};
  if (state->begin == state->end) return file_error(path, "is empty; expected a trace");
  InputFile file(std::move(state));
  if (file.head().starts_with("\xEF\xBB\xBF")) file.state_->begin += 3;
  return file;
}

// A folder, or what cannot be read, has no entry.
bool InputFile::has_entry(const std::string& path, const std::string& entry) {
  State state;
  state.path = path;
  auto raw = RawFile::open(path);
  if (!raw) return false;
  const bool packed = is_gzip((*raw)->next());
  if (!state.rewind(packed)) return false;
  std::unique_ptr<archive, ArchiveCloser> unpacker(archive_read_new());
  archive_read_support_filter_all(unpacker.get());
  archive_read_support_format_tar(unpacker.get());
  if (archive_read_open(unpacker.get(), &state.source(), nullptr, feed_archive, nullptr) != ARCHIVE_OK) return false;
  archive_entry* found = nullptr;
  while (archive_read_next_header(unpacker.get(), &found) == ARCHIVE_OK) {
    if (name_ends_in(found, entry)) return true;
    if (state.skips_too_much(found)) return false;
  }
  return false;
}

bool InputFile::next_line(std::string_view& line) {
  State& state = *state_;
  std::size_t searched = 0;  // bytes behind begin that hold no line end
  for (;;) {
    const char* const from = state.text.data() + state.begin + searched;
    const std::size_t rest = state.end - state.begin - searched;
    const auto* found = rest == 0 ? nullptr : static_cast<const char*>(std::memchr(from, '\n', rest));
    if (found == nullptr && state.end - state.begin > longest_line) {
      state.failure = Error{.message = "a line is longer than 64 MiB", .file = state.path, .line = state.line + 1};
      return false;
    }
    if (found == nullptr && state.refill()) {
      searched += rest;
      continue;
    }
    if (state.failure || state.begin == state.end) return false;
    const char* const first = state.text.data() + state.begin;
    const char* const last = found != nullptr ? found : state.text.data() + state.end;
    state.begin = static_cast<std::size_t>(last - state.text.data()) + (found != nullptr ? 1 : 0);
    line = {first, static_cast<std::size_t>(last - first)};
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++state.line;
    return true;
  }
}

std::string_view InputFile::next_block() {
  State& state = *state_;
  if (state.begin == state.end && !state.refill()) return {};
  const std::string_view block(state.text.data() + state.begin, state.end - state.begin);
  state.begin = state.end;
  return block;
}

std::string_view InputFile::head() const {
  return std::string_view(state_->text.data() + state_->begin, state_->end - state_->begin).substr(0, 1 << 16);
}

std::uint64_t InputFile::line_number() const { return state_->line; }
const std::optional<Error>& InputFile::failure() const { return state_->failure; }
const std::string& InputFile::path() const { return state_->path; }
const std::string& InputFile::entry_name() const { return state_->entry_name; }
bool InputFile::without_checksum() const { return state_->without_checksum; }

std::vector<std::string> InputFile::other_files() {
  std::vector<std::string> names;
  archive* const unpacker = state_->unpacker.get();
  if (unpacker == nullptr || archive_format(unpacker) == ARCHIVE_FORMAT_RAW) return names;
  archive_entry* found = nullptr;
  int status = ARCHIVE_OK;
  while ((status = archive_read_next_header(unpacker, &found)) == ARCHIVE_OK) {
    const char* const name = archive_entry_pathname(found);
    if (archive_entry_filetype(found) == AE_IFREG) names.emplace_back(name != nullptr ? name : "");
    if (!state_->skips_too_much(found)) continue;
    state_->fail(too_much_text);
    return names;
  }
  if (status != ARCHIVE_EOF) state_->failure = state_->damaged();
  return names;
}

Result<void> InputFile::check_rest() {
  if (!state_->failure) state_->check_behind_bzip2();
  ByteSource& source = state_->source();
  while (!source.next().empty()) {
  }
  if (!state_->failure && !source.failure().empty()) state_->fail(source.failure());
  if (state_->failure) return Unexpected{*state_->failure};
  return {};
}

std::string InputFile::sha256() { return state_->raw->finish_digest(); }

}  // namespace gpusched
