// The gated unit between its two products: activation(gate)·up, and back.
#pragma once
#include "../model.h"
#include "../team.h"

namespace petrel {

/** y[n][width] from gateUp[n][gate | up]. */
inline void gateForward(const GatedUnit& unit, const float* gateUp, int64_t n, float* y) {
  const auto kernel = unit.activation == Activation::silu ? kernels().swiglu : kernels().geglu;
  const int64_t width = unit.width;
  forEachRow(n,
             [&](int64_t i) { kernel(gateUp + i * 2 * width, gateUp + i * 2 * width + width, width, y + i * width); });
}

/** Turns gateUp into its gradient, in place, given dy[n][width]; writes the forward's y too. */
inline void gateBackward(const GatedUnit& unit, float* gateUp, const float* dy, int64_t n, float* y) {
  const auto kernel = unit.activation == Activation::silu ? kernels().swigluBackward : kernels().gegluBackward;
  const int64_t width = unit.width;
  forEachRow(n, [&](int64_t i) {
    float* gate = gateUp + i * 2 * width;
    kernel(gate, gate + width, dy + i * width, width, gate, gate + width, y + i * width);
  });
}

}  // namespace petrel
