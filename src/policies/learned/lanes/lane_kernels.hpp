// SPDX-License-Identifier: Apache-2.0
/// The inner loops of small networks over many inputs at once, in single precision, forwards and backwards, for the
/// instruction set of the processor.
///
/// A sheet is a matrix with one row for each feature and one column for each input (a token or a state); rows follow
/// each other without gaps, and the number of columns is a multiple of `lanes`. Sums over columns have `lanes` partial
/// sums, whatever the width of the processor's vectors, and nothing is contracted to a fused multiply-add: every
/// instruction set gives the same bits.
#pragma once

// Nothing else: lane_kernels_isa.cpp, which is compiled for instruction sets that not every processor has, includes
// this file, and the linker may keep any of the inline functions that it would define.
#include <cstddef>
#include <cstdint>

namespace gpusched {

/// Columns come in multiples of it.
inline constexpr std::size_t lanes = 16;

/// What a layer makes of its sums.
enum class Activation : std::uint8_t { none, relu, tanh };

/// A matrix of weights: that of output o and input i is first[o * output_step + i * input_step].
struct LaneWeights {
  const float* first;
  std::size_t output_step, input_step, outputs, inputs;
};

/// The gradient steps of Adam (Kingma & Ba, 2015).
struct AdamStep {
  float clip = 1;  ///< factor on the gradient
  float beta1 = 0, beta2 = 0, epsilon = 0;
  float correction1 = 1, correction2 = 1;  ///< 1 - beta^steps
  float rate = 0;
};

/// What softmax() tells of a row of logits.
struct RowSums {
  float power = 0;     ///< sum of exp(logit - greatest)
  float weighted = 0;  ///< sum of exp(logit - greatest) (logit - greatest)
};

/// One implementation of the loops. Pointers need no alignment; multiples of 64 bytes are fastest.
struct LaneKernels {
  /// out[o] = activation(bias[o] + sum over i of weight(o, i) x[i]), for every column; no bias where it is null.
  void (*dense)(const LaneWeights& weights, const float* bias, const float* x, std::size_t columns,
                Activation activation, float* out);
  /// The gradient by a layer's inputs from that by its outputs: `weights` transposed, and the derivative of the
  /// activation that gave the inputs `x`.
  void (*dense_back)(const LaneWeights& transposed, const float* gradient, const float* x, std::size_t columns,
                     Activation activation, float* out);
  /// Adds the products of gradient and inputs to sums[outputs][inputs][lanes], and the gradient itself to
  /// bias_sums[outputs][lanes].
  void (*outer)(const float* gradient, std::size_t outputs, const float* x, std::size_t inputs, std::size_t columns,
                float* sums, float* bias_sums);
  /// out[i] = the sum of sums[i][lanes].
  void (*fold)(const float* sums, std::size_t count, float* out);
  /// Columns of features from rows of them, each less its mean and times its scale; a null mean changes nothing.
  void (*transpose)(const float* rows, std::size_t row_length, std::size_t count, std::size_t features,
                    const float* mean, const float* scale, std::size_t columns, float* out);
  /// Replaces logits by logit - greatest and writes the exponentials of these; `count` is a multiple of `lanes`. A
  /// masked logit gives exactly 0.
  RowSums (*softmax)(float* logits, float* powers, std::size_t count);
  /// out[i] = powers[i] * (entropy * (shifted[i] + shift) + chosen).
  void (*softmax_back)(const float* shifted, const float* powers, std::size_t count, float entropy, float shift,
                       float chosen, float* out);
  /// One step.
  void (*adam)(const AdamStep& step, const float* gradient, std::size_t count, float* parameters, float* first,
               float* second);
  /// The sum of the squares.
  double (*square_sum)(const float* values, std::size_t count);
};

/// Those of the best instruction set that this processor has.
const LaneKernels& lane_kernels();

/// The instruction sets of this build, from the plainest to the best.
inline constexpr std::size_t most_lane_sets = 3;
/// Those of set `number`, below most_lane_sets; null where the build or the processor lacks it. 0 is always there.
const LaneKernels* lane_kernels_of(std::size_t number);

}  // namespace gpusched
