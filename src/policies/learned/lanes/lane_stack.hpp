// SPDX-License-Identifier: Apache-2.0
/// Dense layers one behind the other, forwards and backwards, on the sheets of lane_kernels.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "src/policies/learned/lanes/dense_layer.hpp"
#include "src/policies/learned/lanes/lane_kernels.hpp"

namespace gpusched {

/// Columns of a sheet that holds so many.
constexpr std::size_t whole_lanes(std::size_t count) { return (count + lanes - 1) / lanes * lanes; }

/// Makes what lies behind the first `used` columns of a sheet zero.
inline void clear_columns(float* sheet, std::size_t rows, std::size_t used, std::size_t columns) {
  for (std::size_t row = 0; row < rows; ++row)
    std::fill(sheet + row * columns + used, sheet + (row + 1) * columns, 0.0f);
}

/// Floats that begin on a cache line; their values are lost when there must be room for more.
class LaneBuffer {
 public:
  /// Room for `count` floats.
  float* room(std::size_t count) {
    if (count > size_) {
      floats_.reset(static_cast<float*>(::operator new[](count * sizeof(float), alignment)));
      size_ = count;
    }
    return floats_.get();
  }
  /// What room() gave last.
  [[nodiscard]] float* data() const { return floats_.get(); }

 private:
  static constexpr std::align_val_t alignment{64};
  struct Free {
    void operator()(float* floats) const { ::operator delete[](floats, alignment); }
  };
  std::unique_ptr<float[], Free> floats_;
  std::size_t size_ = 0;
};

/// The layers and what they made of the last inputs.
class LaneStack {
 public:
  struct Layer {
    DenseLayer shape;
    Activation activation;
  };

  LaneStack(const LaneKernels& kernels, std::vector<Layer> layers) : kernels_(&kernels), layers_(std::move(layers)) {}

  /// Room for the inputs of `columns` columns, a multiple of `lanes`: a sheet to fill before forward().
  [[nodiscard]] float* inputs(std::size_t columns);
  /// The sheet of the last layer's outputs. `parameters` is the flat vector.
  const float* forward(std::span<const float> parameters);
  /// Adds the gradient by the parameters of the columns of the last forward(), given the sheet of that by its outputs,
  /// to sums[parameters][lanes].
  void backward(std::span<const float> parameters, const float* gradient, float* sums);

 private:
  [[nodiscard]] static LaneWeights weights(std::span<const float> parameters, const DenseLayer& layer) {
    return {parameters.data() + layer.offset, layer.inputs, 1, layer.outputs, layer.inputs};
  }

  const LaneKernels* kernels_;
  std::vector<Layer> layers_;
  std::size_t columns_ = 0;
  LaneBuffer values_;     // the inputs, then each layer's outputs
  LaneBuffer gradients_;  // of two layers in turn
};

}  // namespace gpusched
