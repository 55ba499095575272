// SPDX-License-Identifier: Apache-2.0
/// Where the weights of a dense layer lie.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpusched {

/// A dense layer: outputs x inputs weights, row by row, then the biases, from `offset` on in the flat vector.
struct DenseLayer {
  std::uint32_t inputs = 0, outputs = 0;
  std::size_t offset = 0;
  [[nodiscard]] std::size_t bias() const { return offset + std::size_t{inputs} * outputs; }
  [[nodiscard]] std::size_t end() const { return bias() + outputs; }
};

}  // namespace gpusched
