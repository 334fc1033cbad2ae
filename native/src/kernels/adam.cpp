// The optimiser's kernels.
#include "../vec.h"
#include "declare.h"

namespace petrel::PETREL_ISA_NAMESPACE {

double sumSquares(const float* g, int64_t n) {
  double lanes[16] = {};
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int j = 0; j < 16; ++j) lanes[j] += static_cast<double>(g[i + j]) * static_cast<double>(g[i + j]);
  }
  for (int j = 0; i + j < n; ++j) lanes[j] += static_cast<double>(g[i + j]) * static_cast<double>(g[i + j]);
  for (int width = 8; width > 0; width /= 2) {
    for (int j = 0; j < width; ++j) lanes[j] += lanes[j + width];
  }
  return lanes[0];
}

void adamw(float* p, float* g, float* m, float* v, int64_t n, const AdamScalars& s) {
  const v16 b1 = set1(s.beta1), b2 = set1(s.beta2), eps = set1(s.eps), decay = set1(s.decay), step = set1(s.stepSize),
            root = set1(s.rootCorrection), scale = set1(s.gradScale), c1 = set1(s.oneMinusBeta1),
            c2 = set1(s.oneMinusBeta2);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = n - i < 16 ? static_cast<int>(n - i) : 16;
    const v16 grad = mul(loadN(g + i, k), scale);
    const v16 mean = fma(b1, loadN(m + i, k), mul(c1, grad));
    const v16 square = fma(b2, loadN(v + i, k), mul(mul(c2, grad), grad));
    const v16 denominator = fma(sqrt(square), root, eps);
    storeN(p + i, fnma(step, div(mean, denominator), mul(loadN(p + i, k), decay)), k);
    storeN(m + i, mean, k);
    storeN(v + i, square, k);
    storeN(g + i, zero(), k);
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
