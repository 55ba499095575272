// SPDX-License-Identifier: Apache-2.0
/// The project's one random generator: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11), counter-based, so that a stream is a pure function of its key. Streams are derived by `split`: first by
/// purpose, then by index; adding a consumer never disturbs the others. Distributions are written here because the
/// output of std::*_distribution differs between standard libraries.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "gpusched/core/config.hpp"

namespace gpusched {

/// One block of Philox4x32-10: 128 random bits for a 128-bit counter under a 64-bit key.
constexpr std::array<std::uint32_t, 4> philox4x32_10(std::array<std::uint32_t, 4> counter,
                                                     std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

/// A stream of random numbers. A value: a copy continues independently from the same place.
class Rng {
 public:
  /// The stream of `seed`, from its beginning.
  explicit constexpr Rng(std::uint64_t seed = 0) : key_(seed) {}

  /// An independent stream for item `index` of this one; does not advance this one.
  [[nodiscard]] constexpr Rng split(std::uint64_t index) const {
    const auto block = philox4x32_10({lo(index), hi(index), 0x73706C69u, 0x74u}, {lo(key_), hi(key_)});
    return Rng(join(block[0], block[1]));
  }

  /// An independent stream for a named purpose ("placement", "arrivals").
  [[nodiscard]] constexpr Rng split(std::string_view purpose) const {
    std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a, 64 bits
    for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
    return split(hash);
  }

  /// 64 uniform bits.
  constexpr std::uint64_t next() {
    const std::uint64_t counter = position_ / 2;
    if (position_ % 2 == 0) {
      block_ = philox4x32_10({lo(counter), hi(counter), 0, 0}, {lo(key_), hi(key_)});
      ++position_;
      return join(block_[0], block_[1]);
    }
    ++position_;
    return join(block_[2], block_[3]);
  }

  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  /// Uniform in {0, ..., n - 1} without bias. Precondition: n > 0.
  constexpr std::uint64_t below(std::uint64_t n) {
    const std::uint64_t reject_from = ~std::uint64_t{0} - (~std::uint64_t{0} % n + 1) % n;
    std::uint64_t x = next();
    while (x > reject_from) x = next();
    return x % n;
  }

  /// Exponential with the given mean.
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

  /// Standard normal (Box-Muller, one of the pair, so that every draw takes two uniforms).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }

  /// Log-normal: exp of a normal with mean `mu` and standard deviation `sigma`.
  double lognormal(double mu, double sigma) { return std::exp(mu + sigma * normal()); }

  /// Shuffles [first, first + n) in place (Fisher-Yates from the back).
  template <class T>
  constexpr void shuffle(T* first, std::uint64_t n) {
    for (std::uint64_t i = n; i > 1; --i) {
      const std::uint64_t j = below(i);
      T kept = first[i - 1];
      first[i - 1] = first[j];
      first[j] = kept;
    }
  }

  /// Key and position, which are the whole state.
  [[nodiscard]] constexpr std::array<std::uint64_t, 2> state() const { return {key_, position_}; }
  /// The stream whose state() was `state`.
  [[nodiscard]] static constexpr Rng restore(std::array<std::uint64_t, 2> state) {
    Rng rng(state[0]);
    rng.position_ = state[1];
    if (rng.position_ % 2 == 1) {
      --rng.position_;
      rng.next();
    }
    return rng;
  }

 private:
  static constexpr std::uint32_t lo(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
  static constexpr std::uint32_t hi(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }
  static constexpr std::uint64_t join(std::uint32_t a, std::uint32_t b) {
    return std::uint64_t{a} | std::uint64_t{b} << 32;
  }

  std::uint64_t key_;
  std::uint64_t position_ = 0;  ///< 64-bit draws taken so far
  std::array<std::uint32_t, 4> block_{};
};

}  // namespace gpusched
