// SPDX-License-Identifier: Apache-2.0
#include "src/sim/atomic_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gpusched {

Result<void> replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  const auto fail = [&](const char* doing) {
    const std::string reason = std::strerror(errno);
    std::remove(temporary.c_str());
    return Unexpected{Error{.message = std::string("cannot ") + doing + ": " + reason, .file = path}};
  };
  errno = 0;
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return fail("create");
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0 &&
                       ::fsync(::fileno(file)) == 0;
  const int write_error = errno;
  const bool closed = std::fclose(file) == 0;
  if (!written) errno = write_error;
  if (!written || !closed) return fail("write");
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail("replace");
  return {};
}

}  // namespace gpusched
