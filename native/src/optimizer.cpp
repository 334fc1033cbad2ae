#include "optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "scalar.h"
#include "team.h"

namespace petrel {
namespace {

constexpr int64_t kBlock = 1 << 16;

template <class F>
void forEachBlock(int64_t n, F&& f) {
  forEachRow((n + kBlock - 1) / kBlock, [&](int64_t b) { f(b, b * kBlock, std::min(kBlock, n - b * kBlock)); });
}

}  // namespace

double gradientNorm(const float* g, int64_t n) {
  std::vector<double> sums((n + kBlock - 1) / kBlock);
  forEachBlock(n, [&](int64_t b, int64_t at, int64_t count) { sums[b] = kernels().sumSquares(g + at, count); });
  double total = 0;
  for (double s : sums) total += s;
  return std::sqrt(total);
}

double clipCoefficient(double norm, double maxNorm) {
  return maxNorm > 0 ? std::min(1.0, maxNorm / (norm + 1e-6)) : 1.0;
}

double adamStep(const StepSettings& s, float* p, float* g, float* m, float* v, int64_t n, bool* taken) {
  const double norm = gradientNorm(g, n);
  *taken = std::isfinite(norm);
  if (!*taken) {
    forEachBlock(n, [&](int64_t, int64_t at, int64_t count) { std::memset(g + at, 0, count * sizeof(float)); });
    return norm;
  }
  const double c1 = 1 - power(s.beta1, s.step), c2 = 1 - power(s.beta2, s.step);
  AdamScalars k;
  k.beta1 = static_cast<float>(s.beta1);
  k.beta2 = static_cast<float>(s.beta2);
  k.oneMinusBeta1 = static_cast<float>(1 - s.beta1);
  k.oneMinusBeta2 = static_cast<float>(1 - s.beta2);
  k.eps = static_cast<float>(s.eps);
  k.decay = static_cast<float>(1 - s.lr * s.weightDecay);
  k.stepSize = static_cast<float>(s.lr / c1);
  k.rootCorrection = static_cast<float>(1 / std::sqrt(c2));
  k.gradScale = static_cast<float>(clipCoefficient(norm, s.maxGradNorm));
  forEachBlock(n,
               [&](int64_t, int64_t at, int64_t count) { kernels().adamw(p + at, g + at, m + at, v + at, count, k); });
  return norm;
}

}  // namespace petrel
