// AdamW as torch's, with clipping by the global norm, over flat arrays.
#pragma once
#include "trainer.h"

namespace petrel {

/** L2 norm in double over blocks of fixed size, summed in order: the same for every team. */
double gradientNorm(const float* g, int64_t n);

/** min(1, maxNorm / (norm + 1e-6)); 1 when maxNorm is 0. */
double clipCoefficient(double norm, double maxNorm);

/**
 * One step over [0, n); gradients become 0. A norm that is not finite: taken is false and only the gradients change.
 */
double adamStep(const StepSettings& s, float* p, float* g, float* m, float* v, int64_t n, bool* taken);

}  // namespace petrel
