// Walks the layers of a decoder. One forward for scoring, training, prefill and decoding, and one backward. What
// differs between them is where attention finds keys and values, which rows go on after the last attention, and what is
// kept.
#pragma once
#include <vector>

#include "batch.h"
#include "model.h"

namespace petrel {

/**
 * What one layer keeps for its backward pass; n tokens. In the last layer everything after attention has only the
 * wanted rows.
 */
struct SavedLayer {
  Loan<float> x;                 // [n][hidden] input of the layer
  Loan<float> qkv;               // [n][q | k | v] as projected, before norms and rope
  Loan<float> att;               // [n][queryWidth]
  Loan<float> lse;               // [n][heads]
  Loan<float> mixed;             // [n][hidden] output of the attention block, where a norm follows it
  Loan<float> middle;            // [n][hidden] after attention
  Loan<float> gateUp;            // [n][gate | up], where products are in fp32
  Loan<uint16_t> gateUpRounded;  // [n][gate | up] in bf16, where products are in bf16
  Loan<float> fed;               // [n][hidden] output of the gated block, where a norm follows it
};

/** Attention over the keys and values of a pass: packed side by side, or in the pages of generation. */
class KeyView {
 public:
  virtual ~KeyView() = default;
  /**
   * att[n][queryWidth], and lse[n][heads] unless null, from qkv[n][q | k | v] as projected. When lse is null, qkv may
   * be overwritten.
   */
  virtual void attend(int layer, float* qkv, float* att, float* lse) = 0;
};

/**
 * Rows of the batch whose result is wanted, in any order; a row may be wanted several times. What follows the last
 * layer's attention is computed for no others. `at` null: every row once, in order.
 */
struct WantedRows {
  int64_t count;
  const int32_t* at;
  WantedRows(const std::vector<int32_t>& rows, int64_t n);
};

/** The rows of a pass: n of them, and the memory that they use. */
struct Pass {
  const Model& model;
  Arena& arena;
  int64_t n;
  WantedRows wanted;
};

/**
 * The residual stream [wanted][hidden] after all layers, from x[n][hidden]. Keeps every layer in `saved` unless it is
 * null.
 */
Loan<float> forwardLayers(const Pass& pass, Loan<float> x, KeyView& keys, std::vector<SavedLayer>* saved);

/** The hidden states [wanted][hidden] that the head reads: the last norm of forwardLayers' result. */
Loan<float> finalNormed(const Pass& pass, const float* stream);

/**
 * dx: gradient of forwardLayers' result on entry, of its input [n][hidden] on return. Adds the weights' gradients and
 * uses up `saved`. The rows are those of the batch.
 */
void backwardLayers(const Pass& pass, const Batch& batch, const RopeTables& ropes, std::vector<SavedLayer>& saved,
                    Loan<float>& dx, float* grads);

}  // namespace petrel
