// Softmax over a row of logits, its backward, and the backward of attention's softmax.
#include "../vec.h"
#include "declare.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

int lanesAt(int64_t i, int64_t n) { return n - i < 16 ? static_cast<int>(n - i) : 16; }

}  // namespace

SoftmaxSums softmaxSums(const float* z, int64_t n, float scale) {
  const v16 s = set1(scale), lowest = set1(-__builtin_inff());
  v16 high = lowest;
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    high = max(high, keepLanes(mul(loadN(z + i, k), s), 0, k, lowest));
  }
  const float m = reduceMax(high);
  const v16 mv = set1(m);
  v16 sum = zero(), weighted = zero();
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 x = sub(mul(loadN(z + i, k), s), mv);
    const v16 e = keepLanes(exp(x), 0, k, zero());
    sum = add(sum, e);
    weighted = fma(e, x, weighted);
  }
  return {m, reduceAdd(sum), reduceAdd(weighted)};
}

float softmaxSquares(const float* z, int64_t n, float scale, float max) {
  const v16 s = set1(scale), mv = set1(max);
  v16 squares = zero();
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 e = keepLanes(exp(sub(mul(loadN(z + i, k), s), mv)), 0, k, zero());
    squares = fma(e, e, squares);
  }
  return reduceAdd(squares);
}

void softmaxBackward(float* z, int64_t n, float scale, float max, float logSum, float entropy, float c, float e) {
  const v16 s = set1(scale), mv = set1(max), ls = set1(logSum), h = set1(entropy), cv = set1(c), ev = set1(e),
            neg = set1(-scale);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 logp = sub(sub(mul(loadN(z + i, k), s), mv), ls);
    const v16 inner = fma(ev, add(logp, h), cv);
    storeN(z + i, mul(mul(exp(logp), inner), neg), k);
  }
}

void attentionGrad(float* s, float* dp, int64_t n, int64_t from, int64_t to, float scale, float softcap, float lse,
                   float delta) {
  const v16 sc = set1(scale), l = set1(lse), d = set1(delta), one = set1(1.0f), cap = set1(softcap);
  const v16 inner = set1(softcap > 0 ? scale / softcap : 0.0f);
  for (int64_t j = 0; j < n; j += 16) {
    const int k = lanesAt(j, n);
    if (j + 16 <= from || j >= to) {
      storeN(s + j, zero(), k);
      storeN(dp + j, zero(), k);
      continue;
    }
    v16 score = mul(loadN(s + j, k), sc), slope = sc;
    if (softcap > 0) {
      const v16 t = tanh(mul(loadN(s + j, k), inner));
      score = mul(cap, t);
      slope = mul(fnma(t, t, one), sc);
    }
    v16 p = exp(sub(score, l));
    p = keepLanes(p, static_cast<int>(from > j ? from - j : 0), static_cast<int>(to - j < k ? to - j : k), zero());
    const v16 g = mul(mul(p, sub(loadN(dp + j, k), d)), slope);
    storeN(s + j, p, k);
    storeN(dp + j, g, k);
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
