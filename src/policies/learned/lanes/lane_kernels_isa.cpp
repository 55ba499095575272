// SPDX-License-Identifier: Apache-2.0
// The loops of lane_kernels.hpp, compiled once for each instruction set: GPUSCHED_LANE_WIDTH is the number of floats of
// its vectors, GPUSCHED_LANE_SET the name of the set. Nothing here runs before lane_kernels.cpp has asked the
// processor.
#include "src/policies/learned/lanes/lane_kernels.hpp"

namespace gpusched {
namespace {

constexpr std::size_t width = GPUSCHED_LANE_WIDTH;
static_assert(lanes % width == 0);
using Vector __attribute__((vector_size(width * sizeof(float)))) = float;
using Bits __attribute__((vector_size(width * sizeof(float)))) = std::int32_t;

// Register tiles: what the sums, one row of inputs and a weight need must fit the registers, 32 of the widest vectors
// and 16 of the others.
constexpr std::size_t tile_rows = 4;
constexpr std::size_t tile_columns = width == 16 ? 4 : 2;

Vector load(const float* from) {
  Vector value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
void store(float* to, Vector value) { __builtin_memcpy(to, &value, sizeof value); }
Vector all(float value) { return value - Vector{}; }
Vector larger(Vector a, Vector b) { return a > b ? a : b; }

// Within 2 units in the last place; exactly 0 below -87. The polynomial is that of Cephes (Moshier, 1992).
Vector exponential(Vector x) {
  constexpr float least = -87.0f;
  constexpr float most = 88.0f;
  const Vector inside = x < all(least) ? all(least) : x > all(most) ? all(most) : x;
  constexpr float to_integer = 12582912.0f;  // 1.5 x 2^23: adding and subtracting it rounds
  const Vector shifted = inside * 1.44269504f + to_integer;
  const Vector n = shifted - to_integer;
  const Vector r = inside - n * 0.693359375f - n * -2.12194440e-4f;
  Vector p = all(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const Bits power = ((Bits)shifted - (Bits)all(to_integer) + 127) << 23;
  const Vector value = p * (Vector)power;
  return x < all(least) ? Vector{} : value;
}

// Within 1e-7.
Vector hyperbolic_tangent(Vector x) { return 1.0f - 2.0f / (exponential(x + x) + 1.0f); }

Vector activated(Vector sum, Activation activation) {
  if (activation == Activation::relu) return sum < Vector{} ? Vector{} : sum;  // keeps what is not a number
  if (activation == Activation::tanh) return hyperbolic_tangent(sum);
  return sum;
}

// By the activation's value, which for these tells its derivative.
Vector differentiated(Vector gradient, Vector value, Activation activation) {
  if (activation == Activation::relu) return value > Vector{} ? gradient : Vector{};
  if (activation == Activation::tanh) return gradient * (1.0f - value * value);
  return gradient;
}

// Calls finish(row, column, sum) for each vector of weights x inputs.
template <std::size_t rows, std::size_t vectors, class Finish>
inline __attribute__((always_inline)) void product_tile(const LaneWeights& weights, const float* bias, const float* x,
                                                        std::size_t columns, std::size_t row, std::size_t column,
                                                        const Finish& finish) {
  Vector sum[rows][vectors];
  for (std::size_t r = 0; r < rows; ++r) {
    const Vector start = all(bias == nullptr ? 0.0f : bias[row + r]);
    for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = start;
  }
  const float* weight = weights.first + row * weights.output_step;
  const float* input = x + column;
  for (std::size_t i = 0; i < weights.inputs; ++i, input += columns, weight += weights.input_step) {
    Vector inputs[vectors];
    for (std::size_t v = 0; v < vectors; ++v) inputs[v] = load(input + v * width);
    for (std::size_t r = 0; r < rows; ++r) {
      const Vector own = all(weight[r * weights.output_step]);
      for (std::size_t v = 0; v < vectors; ++v) sum[r][v] += own * inputs[v];
    }
  }
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t v = 0; v < vectors; ++v) finish(row + r, column + v * width, sum[r][v]);
  }
}

template <std::size_t vectors, class Finish>
inline __attribute__((always_inline)) void product_rows(const LaneWeights& weights, const float* bias, const float* x,
                                                        std::size_t columns, std::size_t column, const Finish& finish) {
  std::size_t row = 0;
  for (; row + tile_rows <= weights.outputs; row += tile_rows) {
    product_tile<tile_rows, vectors>(weights, bias, x, columns, row, column, finish);
  }
  for (; row < weights.outputs; ++row) product_tile<1, vectors>(weights, bias, x, columns, row, column, finish);
}

template <class Finish>
inline __attribute__((always_inline)) void product(const LaneWeights& weights, const float* bias, const float* x,
                                                   std::size_t columns, const Finish& finish) {
  std::size_t column = 0;
  for (; column + tile_columns * width <= columns; column += tile_columns * width) {
    product_rows<tile_columns>(weights, bias, x, columns, column, finish);
  }
  for (; column < columns; column += width) product_rows<1>(weights, bias, x, columns, column, finish);
}

void dense(const LaneWeights& weights, const float* bias, const float* x, std::size_t columns, Activation activation,
           float* out) {
  const auto write = [&](auto function) {
    product(weights, bias, x, columns, [&](std::size_t row, std::size_t column, Vector sum) {
      store(out + row * columns + column, activated(sum, function()));
    });
  };
  switch (activation) {
    case Activation::none: return write([] { return Activation::none; });
    case Activation::relu: return write([] { return Activation::relu; });
    case Activation::tanh: return write([] { return Activation::tanh; });
  }
}

void dense_back(const LaneWeights& transposed, const float* gradient, const float* x, std::size_t columns,
                Activation activation, float* out) {
  const auto write = [&](auto function) {
    product(transposed, nullptr, gradient, columns, [&](std::size_t row, std::size_t column, Vector sum) {
      const std::size_t at = row * columns + column;
      store(out + at, differentiated(sum, load(x + at), function()));
    });
  };
  switch (activation) {
    case Activation::none: return write([] { return Activation::none; });
    case Activation::relu: return write([] { return Activation::relu; });
    case Activation::tanh: return write([] { return Activation::tanh; });
  }
}

template <std::size_t rows, std::size_t inputs>
inline __attribute__((always_inline)) void outer_tile(const float* gradient, const float* x, std::size_t all_inputs,
                                                      std::size_t columns, std::size_t row, std::size_t input,
                                                      float* sums) {
  for (std::size_t lane = 0; lane < lanes; lane += width) {
    const auto place = [&](std::size_t r, std::size_t i) {
      return sums + ((row + r) * all_inputs + input + i) * lanes + lane;
    };
    Vector sum[rows][inputs];
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < inputs; ++i) sum[r][i] = load(place(r, i));
    }
    for (std::size_t column = lane; column < columns; column += lanes) {
      Vector from[inputs];
      for (std::size_t i = 0; i < inputs; ++i) from[i] = load(x + (input + i) * columns + column);
      for (std::size_t r = 0; r < rows; ++r) {
        const Vector own = load(gradient + (row + r) * columns + column);
        for (std::size_t i = 0; i < inputs; ++i) sum[r][i] += own * from[i];
      }
    }
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < inputs; ++i) store(place(r, i), sum[r][i]);
    }
  }
}

template <std::size_t rows>
inline __attribute__((always_inline)) void outer_rows(const float* gradient, const float* x, std::size_t inputs,
                                                      std::size_t columns, std::size_t row, float* sums) {
  std::size_t input = 0;
  for (; input + tile_columns <= inputs; input += tile_columns) {
    outer_tile<rows, tile_columns>(gradient, x, inputs, columns, row, input, sums);
  }
  for (; input < inputs; ++input) outer_tile<rows, 1>(gradient, x, inputs, columns, row, input, sums);
}

void outer(const float* gradient, std::size_t outputs, const float* x, std::size_t inputs, std::size_t columns,
           float* sums, float* bias_sums) {
  std::size_t row = 0;
  for (; row + tile_rows <= outputs; row += tile_rows) {
    outer_rows<tile_rows>(gradient, x, inputs, columns, row, sums);
  }
  for (; row < outputs; ++row) outer_rows<1>(gradient, x, inputs, columns, row, sums);
  for (row = 0; row < outputs; ++row) {
    for (std::size_t lane = 0; lane < lanes; lane += width) {
      Vector sum = load(bias_sums + row * lanes + lane);
      for (std::size_t column = lane; column < columns; column += lanes) sum += load(gradient + row * columns + column);
      store(bias_sums + row * lanes + lane, sum);
    }
  }
}

using Four __attribute__((vector_size(4 * sizeof(float)))) = float;
using FourBits __attribute__((vector_size(4 * sizeof(float)))) = std::int32_t;

// What pair(a, b), of two Fours and of two floats, makes of the lanes: of halves, then of halves of these, so that the
// order is the same whatever the width.
template <class Pair>
inline __attribute__((always_inline)) float of_lanes(const float* from, const Pair& pair) {
  static_assert(lanes == 16);
  Four quarter[4];
  for (std::size_t i = 0; i < 4; ++i) __builtin_memcpy(&quarter[i], from + 4 * i, sizeof quarter[i]);
  const Four rest = pair(pair(quarter[0], quarter[2]), pair(quarter[1], quarter[3]));
  return pair(pair(rest[0], rest[2]), pair(rest[1], rest[3]));
}

float sum_of_lanes(const float* from) {
  return of_lanes(from, [](auto a, auto b) { return a + b; });
}

struct LargerOf {
  float operator()(float a, float b) const { return a > b ? a : b; }
  Four operator()(Four a, Four b) const {
    const FourBits mask = a > b;
    return (Four)(((FourBits)a & mask) | ((FourBits)b & ~mask));
  }
};

void fold(const float* sums, std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = sum_of_lanes(sums + i * lanes);
}

// Four rows by four features at a time.
void transpose(const float* rows, std::size_t row_length, std::size_t count, std::size_t features, const float* mean,
               const float* scale, std::size_t columns, float* out) {
  const auto in_units = [&](float value, std::size_t feature) {
    return mean == nullptr ? value : (value - mean[feature]) * scale[feature];
  };
  const std::size_t whole = count / 4 * 4;
  std::size_t feature = 0;
  for (; feature + 4 <= features; feature += 4) {
    for (std::size_t c = 0; c < whole; c += 4) {
      Four row[4];
      for (std::size_t i = 0; i < 4; ++i) {
        __builtin_memcpy(&row[i], rows + (c + i) * row_length + feature, sizeof row[i]);
      }
      const Four a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
      const Four b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
      const Four d = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
      const Four e = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
      Four column[4] = {__builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
                        __builtin_shufflevector(d, e, 0, 1, 4, 5), __builtin_shufflevector(d, e, 2, 3, 6, 7)};
      for (std::size_t i = 0; i < 4; ++i) {
        if (mean != nullptr) column[i] = (column[i] - mean[feature + i]) * scale[feature + i];
        __builtin_memcpy(out + (feature + i) * columns + c, &column[i], sizeof column[i]);
      }
    }
    for (std::size_t c = whole; c < count; ++c) {
      for (std::size_t f = feature; f < feature + 4; ++f) {
        out[f * columns + c] = in_units(rows[c * row_length + f], f);
      }
    }
  }
  for (; feature < features; ++feature) {
    for (std::size_t c = 0; c < count; ++c) {
      out[feature * columns + c] = in_units(rows[c * row_length + feature], feature);
    }
  }
}

RowSums softmax(float* logits, float* powers, std::size_t count) {
  float partial[lanes], weighted[lanes];
  for (std::size_t lane = 0; lane < lanes; lane += width) {
    Vector most = load(logits + lane);
    for (std::size_t i = lane + lanes; i < count; i += lanes) most = larger(load(logits + i), most);
    store(partial + lane, most);
  }
  const float greatest = of_lanes(partial, LargerOf{});
  for (std::size_t lane = 0; lane < lanes; lane += width) {
    Vector sum{}, products{};
    for (std::size_t i = lane; i < count; i += lanes) {
      const Vector shifted = load(logits + i) - greatest;
      const Vector power = exponential(shifted);
      store(logits + i, shifted);
      store(powers + i, power);
      sum += power;
      products += power * shifted;
    }
    store(partial + lane, sum);
    store(weighted + lane, products);
  }
  return {sum_of_lanes(partial), sum_of_lanes(weighted)};
}

void softmax_back(const float* shifted, const float* powers, std::size_t count, float entropy, float shift,
                  float chosen, float* out) {
  for (std::size_t i = 0; i < count; i += width) {
    store(out + i, load(powers + i) * (entropy * (load(shifted + i) + shift) + chosen));
  }
}

void adam(const AdamStep& step, const float* gradient, std::size_t count, float* __restrict parameters,
          float* __restrict first, float* __restrict second) {
  const float clip = step.clip, keep1 = step.beta1, keep2 = step.beta2;
  const float take1 = 1 - step.beta1, take2 = 1 - step.beta2;
  for (std::size_t i = 0; i < count; ++i) {
    const float own = gradient[i] * clip;
    first[i] = first[i] * keep1 + own * take1;
    second[i] = second[i] * keep2 + own * own * take2;
    const float deviation = __builtin_sqrtf(second[i] / step.correction2) + step.epsilon;
    parameters[i] -= first[i] / step.correction1 / deviation * step.rate;
  }
}

double square_sum(const float* values, std::size_t count) {
  constexpr std::size_t sums = 8;
  double sum[sums] = {};
  const std::size_t whole = count / sums * sums;
  for (std::size_t i = 0; i < whole; i += sums) {
    for (std::size_t k = 0; k < sums; ++k) {
      const auto value = static_cast<double>(values[i + k]);
      sum[k] += value * value;
    }
  }
  for (std::size_t i = whole; i < count; ++i) {
    sum[i - whole] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  double total = 0;
  for (const double own : sum) total += own;
  return total;
}

}  // namespace

#define GPUSCHED_JOINED(a, b) a##b
#define GPUSCHED_TABLE(set) GPUSCHED_JOINED(lane_kernels_, set)
extern const LaneKernels GPUSCHED_TABLE(GPUSCHED_LANE_SET);
const LaneKernels GPUSCHED_TABLE(GPUSCHED_LANE_SET) = {.dense = dense,
                                                       .dense_back = dense_back,
                                                       .outer = outer,
                                                       .fold = fold,
                                                       .transpose = transpose,
                                                       .softmax = softmax,
                                                       .softmax_back = softmax_back,
                                                       .adam = adam,
                                                       .square_sum = square_sum};

}  // namespace gpusched
