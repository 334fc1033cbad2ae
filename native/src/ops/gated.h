// The gated unit between its two products: activation(gate)·up, and back.
#pragma once
#include "../model.h"
#include "../team.h"

namespace petrel {

/** y[n][width] from gateUp[n][gate | up]. Unless `rounded` is null, it gets gateUp in bf16. */
inline void gateForward(const GatedUnit& unit, const float* gateUp, int64_t n, float* y, uint16_t* rounded) {
  const auto kernel = unit.activation == Activation::silu ? kernels().swiglu : kernels().geglu;
  const int64_t width = unit.width;
  forEachRow(n, [&](int64_t i) {
    const float* gate = gateUp + i * 2 * width;
    kernel(gate, gate + width, width, y + i * width);
    if (rounded != nullptr) kernels().toBf16(gate, 2 * width, rounded + i * 2 * width);
  });
}

/**
 * Turns gateUp into its gradient, in place, given dy[n][width]; writes the forward's y too. Unless `rounded` is null,
 * gateUp is read from there.
 */
inline void gateBackward(const GatedUnit& unit, const uint16_t* rounded, float* gateUp, const float* dy, int64_t n,
                         float* y) {
  const auto kernel = unit.activation == Activation::silu ? kernels().swigluBackward : kernels().gegluBackward;
  const int64_t width = unit.width;
  forEachRow(n, [&](int64_t i) {
    float* gate = gateUp + i * 2 * width;
    if (rounded != nullptr) kernels().fromBf16(rounded + i * 2 * width, 2 * width, gate);
    kernel(gate, gate + width, dy + i * width, width, gate, gate + width, y + i * width);
  });
}

}  // namespace petrel
