// The decoder as a sequence of ops: one layer forward, one layer backward.
#pragma once
#include "trainer.h"

namespace petrel {

/**
 * Fills saved from saved.x on; returns the layer's output [n][hidden]. Of the last layer only the scored rows go on after
 * attention: [scored][hidden].
 */
Loan<float> layerForward(Trainer& t, int index, const Batch& batch, SavedLayer& saved);

/**
 * dx: gradient of the output on entry, of the input [n][hidden] on return. Adds the weights' gradients. Uses up saved.gateUp.
 */
void layerBackward(Trainer& t, int index, const Batch& batch, SavedLayer& saved, Loan<float>& dx);

}  // namespace petrel
