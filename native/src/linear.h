// Products with weights, on the back end that the options choose: `fixed` (own kernels, fp32, one order of every sum)
// when deterministic, own bf16 kernels otherwise. All calls split their work over the team of `useThreads`.
#pragma once
#include "model.h"

namespace petrel {

/**
 * y[n, out] (+)= x[n, in]·W^T + b. Leading dimensions ldx ≥ in, ldy ≥ out. x and y in fp32 whatever the compute type.
 */
void linearForward(const Model& model, Arena& arena, const Linear& linear, const float* x, int64_t ldx, int64_t n,
                   float* y, int64_t ldy, bool accumulate);

/** dx[n, in] (+)= dy[n, out]·W. */
void linearBackwardInput(const Model& model, Arena& arena, const Linear& linear, const float* dy, int64_t ldy,
                         int64_t n, float* dx, int64_t ldx, bool accumulate);

/** grads(W) += dy^T·x and grads(b) += column sums of dy; `grads` is the flat buffer. */
void linearBackwardWeight(const Model& model, Arena& arena, const Linear& linear, const float* dy, int64_t ldy,
                          const float* x, int64_t ldx, int64_t n, float* grads);

}  // namespace petrel
