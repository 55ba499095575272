// SPDX-License-Identifier: Apache-2.0
#include "src/rl/initial_parameters.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace gpusched {
namespace {

using WeightMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void initialise(std::vector<float>& parameters, const DenseLayer& layer, double gain, Rng rng) {
  if (layer.outputs == 0) return;
  const auto rows = static_cast<Eigen::Index>(layer.outputs);
  const auto columns = static_cast<Eigen::Index>(layer.inputs);
  const Eigen::Index most = std::max(rows, columns);
  Eigen::MatrixXd gaussian(most, std::min(rows, columns));
  for (Eigen::Index i = 0; i < gaussian.size(); ++i) gaussian.data()[i] = rng.normal();
  const Eigen::HouseholderQR<Eigen::MatrixXd> qr(gaussian);
  Eigen::MatrixXd orthogonal = qr.householderQ() * Eigen::MatrixXd::Identity(gaussian.rows(), gaussian.cols());
  for (Eigen::Index column = 0; column < orthogonal.cols(); ++column) {
    if (qr.matrixQR()(column, column) < 0) orthogonal.col(column) *= -1;  // makes the distribution uniform
  }
  if (rows < columns) orthogonal.transposeInPlace();
  Eigen::Map<WeightMatrix>(parameters.data() + layer.offset, rows, columns) = (gain * orthogonal).cast<float>();
}

}  // namespace

std::vector<float> initial_parameters(const NetworkSpec& spec, Rng rng) {
  const NetworkLayout layout = layout_of(spec);
  std::vector<float> parameters(layout.size, 0.0f);
  parameters[layout.alpha] = static_cast<float>(spec.alpha);
  const double hidden = std::sqrt(2.0);
  std::uint64_t number = 0;
  for (const DenseLayer* layer :
       {&layout.encode1, &layout.encode2, &layout.query, &layout.key, &layout.value, &layout.mix, &layout.group,
        &layout.context, &layout.score1, &layout.critic1, &layout.critic2}) {
    initialise(parameters, *layer, hidden, rng.split(number++));
  }
  initialise(parameters, layout.critic3, 1.0, rng.split(number++));
  initialise(parameters, layout.correct1, hidden, rng.split(number++));
  initialise(parameters, layout.steer1, hidden, rng.split(number++));
  std::fill_n(parameters.begin() + static_cast<std::ptrdiff_t>(layout.log_deviation), layout.steered,
              static_cast<float>(std::log(spec.deviation)));
  return parameters;
}

}  // namespace gpusched
