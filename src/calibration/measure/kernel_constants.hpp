// SPDX-License-Identifier: Apache-2.0
/// Constants of the kernels that every backend and the reference share.
#pragma once

namespace gpusched {

/// Factor of every multiply-add of the fma kernels, x = x * factor + a: exact in all number formats and contracting.
inline constexpr float fma_factor = 0.5F;
inline constexpr float triad_factor = 3.0F;
inline constexpr float layernorm_epsilon = 1e-5F;

}  // namespace gpusched
