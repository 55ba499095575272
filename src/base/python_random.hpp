// SPDX-License-Identifier: Apache-2.0
/// The part of Python's `random` that published programs draw their samples with, bit for bit.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace gpusched {

/// random.seed(n), random.getrandbits(k), random.random() and random.shuffle(list) of CPython 3 for non-negative n
/// below 2^64. The generator is MT19937, started by init_by_array (Matsumoto and Nishimura, mt19937ar.c) from the
/// 32-bit words of the seed, least significant first.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed) : generator_(start(seed)) {}

  /// The upper `bits` bits of the next word. Precondition: 1 <= bits <= 32.
  std::uint32_t bits(int bits) { return static_cast<std::uint32_t>(generator_()) >> (32 - bits); }

  /// Uniform below `limit` by rejection, as _randbelow_with_getrandbits does. Precondition: limit > 0.
  std::uint32_t below(std::uint32_t limit) {
    const int width = std::bit_width(limit);
    std::uint32_t draw = bits(width);
    while (draw >= limit) draw = bits(width);
    return draw;
  }

  /// Uniform in [0, 1) with 53 bits, as random.random().
  double real() {
    const std::uint32_t high = bits(27), low = bits(26);
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

  /// Precondition: fewer than 2^32 items.
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t last = items.size(); last-- > 1;) {
      std::swap(items[last], items[below(static_cast<std::uint32_t>(last + 1))]);
    }
  }

 private:
  static constexpr std::size_t words = 624;

  // The state after init_by_array, handed to std::mt19937 as a seed sequence: it takes 624 words as they are.
  struct State {
    using result_type = std::uint32_t;
    std::array<std::uint32_t, words> word{};
    template <class Iterator>
    void generate(Iterator begin, Iterator end) const {
      for (std::size_t i = 0; begin != end; ++begin, ++i) *begin = word[i];
    }
  };

  static std::mt19937 start(std::uint64_t seed) {
    const std::array<std::uint32_t, 2> key{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
    const std::size_t key_words = key[1] == 0 ? 1 : 2;
    State state;
    auto& x = state.word;
    const auto mixed = [&](std::size_t i) { return x[i - 1] ^ (x[i - 1] >> 30); };
    x[0] = 19650218u;
    for (std::size_t i = 1; i < words; ++i) x[i] = 1812433253u * mixed(i) + static_cast<std::uint32_t>(i);
    std::size_t i = 1;
    const auto next = [&] {
      if (++i < words) return;
      x[0] = x[words - 1];
      i = 1;
    };
    for (std::size_t round = 0; round < words; ++round, next()) {
      const std::size_t j = round % key_words;
      x[i] = (x[i] ^ (mixed(i) * 1664525u)) + key[j] + static_cast<std::uint32_t>(j);
    }
    for (std::size_t round = 1; round < words; ++round, next()) {
      x[i] = (x[i] ^ (mixed(i) * 1566083941u)) - static_cast<std::uint32_t>(i);
    }
    x[0] = 0x80000000u;
    return std::mt19937(state);
  }

  std::mt19937 generator_;
};

}  // namespace gpusched
