// The output head: log-probs and entropies of chosen tokens under softmax(logits·scale), and back. Logits exist only for
// one chunk of scored positions at a time.
#pragma once
#include "../memory.h"
#include "../model.h"

namespace petrel {

/** Per scored position: what the backward pass needs of its softmax. */
struct Scored {
  float max, logSum, entropy;
};

/** h[n][hidden] (normed) → logProbs[n], scored[n]. */
void headScores(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                float* logProbs, Scored* scored);

/**
 * dh[n][hidden] = d/dh of Σ c_i·logProb_i + e_i·entropy_i (e may be null), and the head's weight gradient into grads:
 * d/dlogits = (c·(onehot − p) − e·p·(log p + entropy))·scale.
 */
void headScoresBackward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets,
                        float scale, const Scored* scored, const float* c, const float* e, float* dh, float* grads);

}  // namespace petrel
