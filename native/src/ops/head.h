// The output heads. `tokens`: log-probs and entropies of chosen tokens under softmax(logits·scale), and back; logits
// exist only for one chunk of positions at a time, unless whole rows of them are wanted. `rows`: the product as it is
// (values, scores).
#pragma once
#include "../memory.h"
#include "../model.h"

namespace petrel {

/** What the backward pass needs of a scored position's softmax. */
struct Scored {
  float max, logSum, entropy;
};

/** The arrays into which a forward pass writes what was asked for; null: not wanted. P scored positions. */
struct Outputs {
  float* logProbs = nullptr;      // [P]
  float* entropy = nullptr;       // [P]
  float* sumPiSquared = nullptr;  // [P], Σ p² over the vocabulary
  float* logits = nullptr;        // [P][vocab], after the soft cap, before the temperature
  float* rows = nullptr;          // [P][rows of the head]
  // The `top` most likely tokens, the most likely first, of equals the one with the lower id.
  int64_t top = 0;
  int32_t* topTokens = nullptr;  // [P][top]
  float* topLogProbs = nullptr;  // [P][top]
  bool needSoftmax() const {
    return logProbs != nullptr || entropy != nullptr || sumPiSquared != nullptr || topLogProbs != nullptr;
  }
  bool needTop() const { return topTokens != nullptr || topLogProbs != nullptr; }
};

/** Gradients of the loss by output; null: 0. */
struct OutputGradients {
  const float* logProbs = nullptr;
  const float* entropy = nullptr;
  const float* rows = nullptr;
};

/** logits[n][vocab] of h[n][hidden] (normed). */
void headLogits(const Model& model, Arena& arena, const float* h, int64_t n, float* logits);

/** Every wanted output of h[n][hidden] (normed), and scored[n], which may be null, for a head of tokens. */
void headForward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                 const Outputs& outputs, Scored* scored);

/**
 * dh[n][hidden] and the head's weight gradient into grads. For tokens it is that of Σ c_i·logProb_i + e_i·entropy_i:
 * d/dlogits = (c·(onehot − p) − e·p·(log p + entropy))·scale.
 */
void headBackward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                  const Scored* scored, const OutputGradients& gradients, float* dh, float* grads);

}  // namespace petrel
