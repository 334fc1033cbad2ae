// RMSNorm of rows: y = x / sqrt(mean(x²) + eps) · w. Nothing is kept for the backward pass but x.
#pragma once
#include "../memory.h"
#include "../team.h"

namespace petrel {

inline void normForward(const float* x, const float* w, int64_t n, int64_t width, float eps, float* y) {
  forEachRow(n, [&](int64_t i) { kernels().rmsNorm(x + i * width, w, width, eps, y + i * width); });
}

/** dx += …, dw += …; see Kernels::rmsNormBackward. */
inline void normBackward(Arena& arena, const float* x, const float* w, int64_t n, int64_t width, float eps,
                         const float* dy, float* dx, float* dw) {
  Loan<float> partials(arena, 32 * width);
  sumOverRows(n, width, partials, dw, [&](int64_t i, float* partial) {
    const float* row = x + i * width;
    const float rstd = 1.0f / __builtin_sqrtf(kernels().dot(row, row, width) / static_cast<float>(width) + eps);
    kernels().rmsNormBackward(row, w, rstd, dy + i * width, width, dx + i * width, partial);
  });
}

}  // namespace petrel
