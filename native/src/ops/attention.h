// Causal attention over packed segments, grouped heads, optional window and soft cap. Legend: qk rows are [q | k]
// rotated, qkv rows are [q | k | v] as projected (only v is read here), out rows are [queryWidth].
#pragma once
#include "../batch.h"
#include "../memory.h"
#include "../model.h"

namespace petrel {

/** out, and lse[n][heads] unless null, from rotated q and k, and v. */
void attentionForward(const Attention& attention, Arena& arena, const Batch& batch, const float* qk, const float* qkv,
                      float* out, float* lse);

/** dqkv = gradients of rotated q, rotated k and v, from dOut. Overwrites dqkv. */
void attentionBackward(const Attention& attention, Arena& arena, const Batch& batch, const float* qk, const float* qkv,
                       const float* out, const float* lse, const float* dOut, float* dqkv);

}  // namespace petrel
