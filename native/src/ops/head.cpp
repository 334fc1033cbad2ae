#include "head.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "../linear.h"
#include "../team.h"

namespace petrel {
namespace {

/**
 * Positions per chunk: at most 64 MiB of logits; decided by the vocabulary alone, since the sums over tokens depend on
 * it.
 */
int64_t chunkRows(int64_t vocab) { return std::clamp<int64_t>((int64_t(16) << 20) / vocab / 64 * 64, 64, 512); }

/** f(first, count, logits[count][vocab]) for every chunk. */
template <class F>
void forEachChunk(const Model& model, Arena& arena, const float* h, int64_t n, F&& f) {
  const int64_t vocab = model.vocab, rows = std::min(n, chunkRows(vocab));
  Loan<float> logits(arena, std::max<int64_t>(rows, 1) * vocab);
  for (int64_t first = 0; first < n; first += rows) {
    const int64_t count = std::min(rows, n - first);
    headLogits(model, arena, h + first * model.hidden, count, logits);
    f(first, count, logits.data());
  }
}

constexpr int64_t kFewLargest = 64;

/** Room that `largest` needs in `found`. */
int64_t roomForLargest(int64_t n, int64_t count) { return count <= kFewLargest ? count : n; }

/** The first `count` of `found`: indices of the largest of z[n], the largest first, of equals the lower index first. */
void largest(const float* z, int64_t n, int64_t count, int32_t* found) {
  if (count > kFewLargest) {
    std::iota(found, found + n, 0);
    std::partial_sort(found, found + count, found + n,
                      [z](int32_t a, int32_t b) { return z[a] > z[b] || (z[a] == z[b] && a < b); });
    return;
  }
  int64_t have = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (have == count && !(z[j] > z[found[have - 1]])) continue;
    int64_t at = have < count ? have++ : have - 1;
    for (; at > 0 && z[j] > z[found[at - 1]]; --at) found[at] = found[at - 1];
    found[at] = static_cast<int32_t>(j);
  }
}

void tokensForward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                   const Outputs& to, Scored* scored) {
  const int64_t vocab = model.vocab, top = to.top, room = to.needTop() ? roomForLargest(vocab, top) : 1;
  Loan<int32_t> found(arena, teamSize() * room);
  forEachChunk(model, arena, h, n, [&](int64_t first, int64_t count, float* logits) {
    shareOut(count, 1, [&](int64_t i, int worker) {
      const float* z = logits + i * vocab;
      if (to.logits != nullptr) std::memcpy(to.logits + (first + i) * vocab, z, vocab * sizeof(float));
      int32_t* best = found + worker * room;
      if (to.needTop()) largest(z, vocab, top, best);
      if (to.topTokens != nullptr) std::copy_n(best, top, to.topTokens + (first + i) * top);
      if (!to.needSoftmax() && scored == nullptr) return;
      const SoftmaxSums sums = kernels().softmaxSums(z, vocab, scale);
      const float logSum = fixedLog(sums.sum), entropy = logSum - sums.weighted / sums.sum;
      if (scored != nullptr) scored[first + i] = {sums.max, logSum, entropy};
      if (to.entropy != nullptr) to.entropy[first + i] = entropy;
      if (to.sumPiSquared != nullptr)
        to.sumPiSquared[first + i] = kernels().softmaxSquares(z, vocab, scale, sums.max) / (sums.sum * sums.sum);
      const auto logProb = [&](int32_t token) { return (z[token] * scale - sums.max) - logSum; };
      if (to.logProbs != nullptr) to.logProbs[first + i] = logProb(targets[first + i]);
      if (to.topLogProbs != nullptr) std::transform(best, best + top, to.topLogProbs + (first + i) * top, logProb);
    });
  });
}

/** The gradient of one row of logits, in place; `capped` has room for a row. */
void logitsGradient(const Model& model, float* z, float* capped, int32_t target, float scale, const Scored& s, float c,
                    float e) {
  const int64_t vocab = model.vocab;
  const float cap = model.head.softcap;
  if (cap > 0) std::memcpy(capped, z, vocab * sizeof(float));
  kernels().softmaxBackward(z, vocab, scale, s.max, s.logSum, s.entropy, c, e);
  z[target] += c * scale;
  if (cap > 0) kernels().softcapBackward(z, capped, vocab, cap);
}

void tokensBackward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                    const Scored* scored, const OutputGradients& d, float* dh, float* grads) {
  const int64_t vocab = model.vocab, hidden = model.hidden;
  Loan<float> capped(arena, model.head.softcap > 0 ? teamSize() * vocab : 1);
  forEachChunk(model, arena, h, n, [&](int64_t first, int64_t count, float* logits) {
    shareOut(count, 1, [&](int64_t i, int worker) {
      logitsGradient(model, logits + i * vocab, model.head.softcap > 0 ? capped + worker * vocab : nullptr,
                     targets[first + i], scale, scored[first + i], d.logProbs == nullptr ? 0.0f : d.logProbs[first + i],
                     d.entropy == nullptr ? 0.0f : d.entropy[first + i]);
    });
    linearBackwardInput(model, arena, model.head.linear, logits, vocab, count, dh + first * hidden, hidden, false);
    linearBackwardWeight(model, arena, model.head.linear, logits, vocab, h + first * hidden, hidden, count, grads);
  });
}

}  // namespace

void headLogits(const Model& model, Arena& arena, const float* h, int64_t n, float* logits) {
  linearForward(model, arena, model.head.linear, h, model.hidden, n, logits, model.vocab, false);
  const float cap = model.head.softcap;
  if (cap > 0) forEachRow(n, [&](int64_t i) { kernels().softcap(logits + i * model.vocab, model.vocab, 1.0f, cap); });
}

void headForward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                 const Outputs& outputs, Scored* scored) {
  const Head& head = model.head;
  if (head.kind == HeadKind::tokens) tokensForward(model, arena, h, n, targets, scale, outputs, scored);
  else if (outputs.rows != nullptr)
    linearForward(model, arena, head.linear, h, model.hidden, n, outputs.rows, head.linear.out, false);
}

void headBackward(const Model& model, Arena& arena, const float* h, int64_t n, const int32_t* targets, float scale,
                  const Scored* scored, const OutputGradients& d, float* dh, float* grads) {
  const Linear& linear = model.head.linear;
  if (model.head.kind == HeadKind::tokens) {
    tokensBackward(model, arena, h, n, targets, scale, scored, d, dh, grads);
    return;
  }
  if (d.rows == nullptr) {
    std::memset(dh, 0, n * model.hidden * sizeof(float));
    return;
  }
  linearBackwardInput(model, arena, linear, d.rows, linear.out, n, dh, model.hidden, false);
  linearBackwardWeight(model, arena, linear, d.rows, linear.out, h, model.hidden, n, grads);
}

}  // namespace petrel
