// x[i] = E[token[i]]·scale, and back.
#pragma once
#include <cstring>

#include "../batch.h"
#include "../model.h"
#include "../team.h"

namespace petrel {

/** One row of the embedding. */
inline void embed(const Model& model, int64_t token, float* x) {
  const float* row = model.at(model.embedding) + token * model.hidden;
  if (model.embeddingScale == 1.0f) {
    std::memcpy(x, row, model.hidden * sizeof(float));
    return;
  }
  for (int64_t i = 0; i < model.hidden; ++i) x[i] = row[i] * model.embeddingScale;
}

/** dE[token[i]] += scale·dx[i], tokens in order; threads own columns, so the order is the same for every team. */
inline void embeddingBackward(const Model& model, const Batch& batch, const float* dx, float* grads) {
  const int64_t chunk = 64, width = model.hidden, chunks = (width + chunk - 1) / chunk;
  float* const dTable = grads + model.embedding;
  forEachRow(chunks, [&](int64_t c) {
    const int64_t from = c * chunk, count = width - from < chunk ? width - from : chunk;
    for (int64_t i = 0; i < batch.n; ++i) {
      kernels().axpy(dTable + batch.tokens[i] * width + from, model.embeddingScale, dx + i * width + from, count);
    }
  });
}

}  // namespace petrel
