// x[i] = E[token[i]], and back.
#pragma once
#include <cstring>

#include "../batch.h"
#include "../team.h"

namespace petrel {

inline void embeddingForward(const Batch& batch, const float* table, int64_t width, float* x) {
  forEachRow(batch.n,
             [&](int64_t i) { std::memcpy(x + i * width, table + batch.tokens[i] * width, width * sizeof(float)); });
}

/** dE[token[i]] += dx[i], tokens in order; threads own columns, so the order is the same for every team. */
inline void embeddingBackward(const Batch& batch, const float* dx, int64_t width, float* dTable) {
  const int64_t chunk = 64, chunks = (width + chunk - 1) / chunk;
  forEachRow(chunks, [&](int64_t c) {
    const int64_t from = c * chunk, count = width - from < chunk ? width - from : chunk;
    for (int64_t i = 0; i < batch.n; ++i)
      kernels().addInto(dTable + batch.tokens[i] * width + from, dx + i * width + from, count);
  });
}

}  // namespace petrel
