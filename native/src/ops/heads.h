// From the output of the q/k/v projection to what attention reads: norms of q and k where there are some, rope; and
// back. Legend: a row of qkv is [q: heads·hd | k: kvHeads·hd | v: kvHeads·hd].
#pragma once
#include "../batch.h"
#include "../memory.h"
#include "../model.h"

namespace petrel {

/** One head: `from` [hd] normed (where the norm is present) and rotated into `to` [hd]. */
void prepareHead(const Model& model, const Norm& norm, int headDim, const RopeTable& rope, int64_t position,
                 const float* from, float* to);

/** q and k of all rows, rotated: dst[n][queryWidth + kvWidth]. */
void headsForward(const Model& model, const Attention& attention, const RopeTable& rope, const Batch& batch,
                  const float* qkv, float* dst);

/**
 * dqkv holds the gradients of the rotated q and k (and of v, which passes through); turns them in place into those of
 * the projection's output, and adds the gradients of the norms' weights into grads.
 */
void headsBackward(const Model& model, Arena& arena, const Attention& attention, const RopeTable& rope,
                   const Batch& batch, const float* qkv, float* dqkv, float* grads);

}  // namespace petrel
