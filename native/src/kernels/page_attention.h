// Causal attention over pages of bf16 keys and values, for generation in bf16 compute. Products of bf16 pairs are
// summed in fp32 by the dot-product instructions; scores, softmax and its sum are fp32; weights are rounded to bf16 for
// the values.
#pragma once
#include <stdint.h>

namespace petrel {

constexpr int kPageAttentionRows = 12;

/** Does what AttentionTile (kernels.h) does, but K pages are [hd/2][16][2] and V pages [8][hd][2] of bf16. */
struct PageAttentionTile {
  int rows;
  int headDim;
  int window;
  float scale;
  float softcap;
  const float* const* q;    // per row: headDim floats, rope applied
  const int32_t* position;  // per row
  float* const* out;        // per row: headDim floats
  const uint16_t* const* kPages;
  const uint16_t* const* vPages;
  float* scratch;  // pageAttentionScratch(...) floats
};

/** Queries as bf16, scores, and weights as bf16. */
inline int64_t pageAttentionScratch(int headDim, int64_t longest) {
  const int64_t padded = (longest + 15) / 16 * 16;
  return kPageAttentionRows * (padded + padded / 2 + headDim);
}

namespace avx512_bf16 {
void pageAttention(const PageAttentionTile& tile);
}

}  // namespace petrel
