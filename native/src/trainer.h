// A model with what learning needs: gradients, moments, saved activations, the optimiser.
#pragma once
#include <map>
#include <memory>

#include "batch.h"
#include "executor.h"
#include "ops/head.h"

namespace petrel {

/** What one forward pass keeps. */
struct Saved {
  Batch batch;
  float scale;  // 1 / temperature
  std::vector<SavedLayer> layers;
  Loan<float> last;  // [scored][hidden] residual rows of the scored positions
  std::vector<Scored> scored;
};

struct StepSettings {
  double lr, beta1, beta2, eps, weightDecay, maxGradNorm;
  int64_t step;  // t of AdamW, from 1
};

struct Trainer {
  std::shared_ptr<Model> model;
  bool trainable;
  Mapping grads, m, v;
  Arena arena;
  RopeTables ropes;
  std::map<int64_t, Saved> saved;
  int64_t nextHandle = 1;

  Trainer(Decoder decoder, EngineOptions options, bool trainable);
  ~Trainer();
  /** The outputs at the scored positions; returns a handle, 0 when not kept. */
  int64_t forward(Batch batch, float scale, bool keep, const Outputs& outputs);
  void backward(int64_t handle, const OutputGradients& gradients);
  /** The norm before clipping; when it is not finite only the gradients are zeroed. */
  double step(const StepSettings& settings, bool* taken);
  /** Frees everything but a model that others still hold. */
  void close();
};

}  // namespace petrel
