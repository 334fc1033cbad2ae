// RMSNorm of rows: y = x / sqrt(mean(x²) + eps) · (w + offset). Nothing is kept for the backward pass but x.
#pragma once
#include "../memory.h"
#include "../model.h"
#include "../team.h"

namespace petrel {

inline void normForward(const Model& model, const Norm& norm, const float* x, int64_t n, int64_t width, float* y) {
  const float* w = model.at(norm.weight);
  forEachRow(n, [&](int64_t i) { kernels().rmsNorm(x + i * width, w, norm.offset, width, norm.eps, y + i * width); });
}

/** y += norm(x). */
inline void normAdded(const Model& model, Arena& arena, const Norm& norm, const float* x, int64_t n, int64_t width,
                      float* y) {
  Loan<float> normed(arena, n * width);
  normForward(model, norm, x, n, width, normed);
  forEachRow(n, [&](int64_t i) { kernels().addInto(y + i * width, normed + i * width, width); });
}

/** dx += …, and the weight's gradient into grads; see Kernels::rmsNormBackward. */
inline void normBackward(const Model& model, Arena& arena, const Norm& norm, const float* x, int64_t n, int64_t width,
                         const float* dy, float* dx, float* grads) {
  Loan<float> partials(arena, 32 * width);
  const float* w = model.at(norm.weight);
  sumOverRows(n, width, partials, grads + norm.weight, [&](int64_t i, float* partial) {
    const float* row = x + i * width;
    const float rstd = 1.0f / __builtin_sqrtf(kernels().dot(row, row, width) / static_cast<float>(width) + norm.eps);
    kernels().rmsNormBackward(row, w, norm.offset, rstd, dy + i * width, width, dx + i * width, partial);
  });
}

}  // namespace petrel
