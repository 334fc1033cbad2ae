// The decoder as a sequence of ops: one layer forward, one layer backward.
#pragma once
#include "trainer.h"

namespace petrel {

/** Fills saved from saved.x on; writes the layer's output [n][hidden]. */
void layerForward(Trainer& t, int index, const Batch& batch, SavedLayer& saved, float* output);

/** dx [n][hidden]: gradient of the output on entry, of the input on return. Adds the weights' gradients. Uses up saved.gateUp. */
void layerBackward(Trainer& t, int index, const Batch& batch, SavedLayer& saved, float* dx);

}  // namespace petrel
