// The copies of weights that compute reads: made from the masters after every change of them.
#pragma once
#include "model.h"

namespace petrel {

/** Maps the copies that the options call for. */
void allocateCopies(const EngineOptions& options, Linear& linear);

/** Rebuilds them from the masters, on the team of threads. */
void refreshCopies(const Model& model, Linear& linear);

template <class F>
void forEachLinear(Model& model, F&& f) {
  for (Layer& layer : model.layers) {
    f(layer.attention.qkv);
    f(layer.attention.out);
    f(layer.gated.gateUp);
    f(layer.gated.down);
  }
  f(model.head.linear);
}

}  // namespace petrel
