// SPDX-License-Identifier: Apache-2.0
#include "src/policies/learned/lanes/lane_stack.hpp"

#include <algorithm>

namespace gpusched {

float* LaneStack::inputs(std::size_t columns) {
  columns_ = columns;
  std::size_t rows = layers_.front().shape.inputs;
  for (const Layer& layer : layers_) rows += layer.shape.outputs;
  return values_.room(rows * columns);
}

const float* LaneStack::forward(std::span<const float> parameters) {
  float* x = values_.data();
  for (const auto& [shape, activation] : layers_) {
    float* const out = x + shape.inputs * columns_;
    kernels_->dense(weights(parameters, shape), parameters.data() + shape.bias(), x, columns_, activation, out);
    x = out;
  }
  return x;
}

void LaneStack::backward(std::span<const float> parameters, const float* gradient, float* sums) {
  std::size_t widest = 0, rows = 0;
  for (const Layer& layer : layers_) {
    widest = std::max<std::size_t>(widest, layer.shape.inputs);
    rows += layer.shape.inputs;
  }
  float* const turns = gradients_.room(2 * widest * columns_);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const DenseLayer& shape = layers_[i].shape;
    rows -= shape.inputs;
    const float* const x = values_.data() + rows * columns_;
    kernels_->outer(gradient, shape.outputs, x, shape.inputs, columns_, sums + shape.offset * lanes,
                    sums + shape.bias() * lanes);
    if (i == 0) return;
    float* const out = turns + (i % 2) * widest * columns_;
    LaneWeights transposed = weights(parameters, shape);
    std::swap(transposed.output_step, transposed.input_step);
    std::swap(transposed.outputs, transposed.inputs);
    kernels_->dense_back(transposed, gradient, x, columns_, layers_[i - 1].activation, out);
    gradient = out;
  }
}

}  // namespace gpusched
