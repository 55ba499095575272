// SPDX-License-Identifier: Apache-2.0
#include "src/base/sha256.hpp"

#include <openssl/evp.h>

#include <array>

namespace gpusched {

std::string sha256_text(std::string_view text) {
  std::array<unsigned char, 32> bytes{};
  EVP_Digest(text.data(), text.size(), bytes.data(), nullptr, EVP_sha256(), nullptr);
  std::string digits;
  for (const unsigned char byte : bytes) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

}  // namespace gpusched
