// The bf16 back end: inputs of every product rounded to bf16, sums in fp32.
#pragma once
#include "model.h"

namespace petrel {

void bf16Forward(Arena& arena, const Linear& linear, const float* x, int64_t ldx, int64_t n, float* y, int64_t ldy,
                 bool accumulate);
void bf16BackwardInput(const Model& model, Arena& arena, const Linear& linear, const float* dy, int64_t ldy, int64_t n,
                       float* dx, int64_t ldx, bool accumulate);
void bf16BackwardWeight(Arena& arena, const Linear& linear, const float* dy, int64_t ldy, const float* x, int64_t ldx,
                        int64_t n, float* grads);

}  // namespace petrel
