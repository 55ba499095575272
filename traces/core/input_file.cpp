// SPDX-License-Identifier: Apache-2.0
#include "traces/core/input_file.hpp"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "traces/core/one_time_stream.hpp"

namespace gpusched {
namespace {

constexpr std::size_t block_size = std::size_t{1} << 18;
constexpr std::size_t longest_line = std::size_t{64} << 20;  // bytes; a small archive may hold a line of any length

struct ArchiveCloser {
  void operator()(archive* handle) const { archive_read_free(handle); }
};
struct DigestCloser {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

Unexpected file_error(const std::string& path, const std::string& message) {
  return {Error{.message = message, .file = path}};
}

// The bytes on disk or of a stream, from the first on: read in blocks, each hashed as it passes.
class RawFile {
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
  RawFile(const RawFile&) = delete;
  RawFile& operator=(const RawFile&) = delete;
  ~RawFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  // Empty at the end; a read error counts as the end and sets failed().
  std::string_view next() {
    const std::int64_t count = read_block();
    if (count < 0) failed_ = true;
    if (count <= 0) return {};
    offset_ += static_cast<std::uint64_t>(count);
    EVP_DigestUpdate(digest_.get(), block_.data(), static_cast<std::size_t>(count));
    return {block_.data(), static_cast<std::size_t>(count)};
  }

  [[nodiscard]] bool failed() const { return failed_; }

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

la_ssize_t feed_archive(archive*, void* client, const void** buffer) {
  const std::string_view block = static_cast<RawFile*>(client)->next();
  *buffer = block.data();
  return static_cast<la_ssize_t>(block.size());
}

bool looks_packed(std::string_view head) {
  const auto starts = [&](std::string_view magic) { return head.substr(0, magic.size()) == magic; };
  const bool is_tar = head.size() > 262 && head.substr(257, 5) == "ustar";
  return starts("\x1f\x8b") || starts("\x28\xb5\x2f\xfd") ||
         starts(
             "\xfd"
             "7zXZ") ||
         starts("BZh") || is_tar;
}

bool name_ends_in(archive_entry* entry, std::string_view ending) {
  const char* const name = archive_entry_pathname(entry);
  return std::string_view(name != nullptr ? name : "").ends_with(ending);
}

}  // namespace

struct InputFile::State {
  std::string path;
  std::unique_ptr<RawFile> raw;
  std::unique_ptr<archive, ArchiveCloser> unpacker;  // null: the file is plain
  std::string first_block;                           // plain only: read ahead to look at it
  bool first_block_pending = false;

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

  // Reads `path` through libarchive from here on: its only content, or the first file whose name ends in `entry`.
  Result<void> unpack(const std::string& entry) {
    // Opened anew from the start, since libarchive reads through its own callback.
    auto again = RawFile::open(path);
    if (!again) return Unexpected{again.error()};
    raw = *std::move(again);
    unpacker.reset(archive_read_new());
    archive_read_support_filter_all(unpacker.get());
    archive_read_support_format_tar(unpacker.get());
    archive_read_support_format_empty(unpacker.get());
    archive_read_support_format_raw(unpacker.get());
    if (archive_read_open(unpacker.get(), raw.get(), nullptr, feed_archive, nullptr) != ARCHIVE_OK) {
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
      if (is_raw || (is_file && name_ends_in(found, entry))) return {};
    }
  }

  // The next bytes of the content; empty at the end or after damage.
  std::string_view next_content() {
    if (unpacker == nullptr) {
      if (first_block_pending) {
        first_block_pending = false;
        return first_block;
      }
      const std::string_view block = raw->next();
      if (raw->failed()) failure = Error{.message = "read error", .file = path, .line = line};
      return block;
    }
    const void* data = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    int status = ARCHIVE_OK;
    do {
      status = archive_read_data_block(unpacker.get(), &data, &size, &offset);
    } while (status == ARCHIVE_OK && size == 0);
    if (status == ARCHIVE_EOF) return {};
    if (status != ARCHIVE_OK) {
      failure = damaged();
      return {};
    }
    return {static_cast<const char*>(data), size};
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

bool InputFile::has_entry(const std::string& path, const std::string& entry) {
  const auto raw = RawFile::open(path);
  if (!raw) return false;
  std::unique_ptr<archive, ArchiveCloser> unpacker(archive_read_new());
  archive_read_support_filter_all(unpacker.get());
  archive_read_support_format_tar(unpacker.get());
  if (archive_read_open(unpacker.get(), raw->get(), nullptr, feed_archive, nullptr) != ARCHIVE_OK) return false;
  archive_entry* found = nullptr;
  while (archive_read_next_header(unpacker.get(), &found) == ARCHIVE_OK) {
    if (name_ends_in(found, entry)) return true;
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
std::vector<std::string> InputFile::other_files() {
  std::vector<std::string> names;
  archive* const unpacker = state_->unpacker.get();
  if (unpacker == nullptr || archive_format(unpacker) == ARCHIVE_FORMAT_RAW) return names;
  archive_entry* found = nullptr;
  while (archive_read_next_header(unpacker, &found) == ARCHIVE_OK) {
    const char* const name = archive_entry_pathname(found);
    if (archive_entry_filetype(found) == AE_IFREG) names.emplace_back(name != nullptr ? name : "");
  }
  return names;
}

std::string InputFile::sha256() { return state_->raw->finish_digest(); }

}  // namespace gpusched
