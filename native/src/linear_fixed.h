// The `fixed` back end: fp32, own kernels, one accumulator per output element, k ascending. Bitwise equal for every
// number of rows, number of threads and instruction set.
#pragma once
#include "model.h"

namespace petrel {

void fixedForward(const Linear& linear, const float* x, int64_t ldx, int64_t n, float* y, int64_t ldy, bool accumulate);
void fixedBackwardInput(const Model& model, Arena& arena, const Linear& linear, const float* dy, int64_t ldy, int64_t n,
                        float* dx, int64_t ldx, bool accumulate);
void fixedBackwardWeight(Arena& arena, const Linear& linear, const float* dy, int64_t ldy, const float* x, int64_t ldx,
                         int64_t n, float* grads);

}  // namespace petrel
