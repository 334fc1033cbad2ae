#include "head.h"

#include <algorithm>

#include "../linear.h"
#include "../team.h"

namespace petrel {
namespace {

/** Positions per chunk: at most 64 MiB of logits; decided by the vocabulary alone, since the sums over tokens depend on it. */
int64_t chunkRows(int64_t vocab) { return std::clamp<int64_t>((int64_t(16) << 20) / vocab / 64 * 64, 64, 512); }

/** f(first, count, logits[count][vocab]) for every chunk. */
template <class F>
void forEachChunk(const Model& model, Arena& arena, const float* h, int64_t n, F&& f) {
  const int64_t vocab = model.config.vocab, hidden = model.config.hidden, rows = std::min(n, chunkRows(vocab));
  Loan<float> logits(arena, std::max<int64_t>(rows, 1) * vocab);
  for (int64_t first = 0; first < n; first += rows) {
    const int64_t count = std::min(rows, n - first);
    linearForward(model, arena, model.head, h + first * hidden, hidden, count, logits, vocab, false);
    f(first, count, logits.data());
  }
}

}  // namespace

void headScores(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                float* logProbs, Scored* scored) {
  const int64_t vocab = model.config.vocab;
  forEachChunk(model, arena, h, n, [&](int64_t first, int64_t count, float* logits) {
    forEachRow(count, [&](int64_t i) {
      const float* z = logits + i * vocab;
      const SoftmaxSums sums = kernels().softmaxSums(z, vocab, scale);
      const float logSum = fixedLog(sums.sum);
      scored[first + i] = {sums.max, logSum, logSum - sums.weighted / sums.sum};
      logProbs[first + i] = (z[targets[first + i]] * scale - sums.max) - logSum;
    });
  });
}

void headScoresBackward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets,
                        float scale, const Scored* scored, const float* c, const float* e, float* dh, float* grads) {
  const int64_t vocab = model.config.vocab, hidden = model.config.hidden;
  forEachChunk(model, arena, h, n, [&](int64_t first, int64_t count, float* logits) {
    forEachRow(count, [&](int64_t i) {
      float* z = logits + i * vocab;
      const Scored& s = scored[first + i];
      const float coefficient = c[first + i];
      kernels().softmaxBackward(z, vocab, scale, s.max, s.logSum, s.entropy, coefficient,
                                e == nullptr ? 0.0f : e[first + i]);
      z[targets[first + i]] += coefficient * scale;
    });
    linearBackwardInput(model, arena, model.head, logits, vocab, count, dh + first * hidden, hidden, false);
    linearBackwardWeight(model, arena, model.head, logits, vocab, h + first * hidden, hidden, count, grads);
  });
}

}  // namespace petrel
