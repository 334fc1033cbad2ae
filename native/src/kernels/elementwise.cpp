// Norms, rope, the gated unit and small vector helpers: one row at a time.
#include "../vec.h"
#include "declare.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

int lanesAt(int64_t i, int64_t n) { return n - i < 16 ? static_cast<int>(n - i) : 16; }

v16 sigmoid(v16 x) { return div(set1(1.0f), add(set1(1.0f), exp(sub(zero(), x)))); }

const float kGeluScale = 0.7978845608028654f, kGeluCube = 0.044715f;  // √(2/π)

/** tanh(√(2/π)·(x + 0.044715·x³)). */
v16 geluTanh(v16 x) { return tanh(mul(set1(kGeluScale), fma(mul(set1(kGeluCube), mul(x, x)), x, x))); }

}  // namespace

float dot(const float* x, const float* y, int64_t n) {
  v16 sum = zero();
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    sum = fma(loadN(x + i, k), loadN(y + i, k), sum);
  }
  return reduceAdd(sum);
}

float rmsNorm(const float* x, const float* w, float offset, int64_t n, float eps, float* y) {
  const float rstd = 1.0f / __builtin_sqrtf(dot(x, x, n) / static_cast<float>(n) + eps);
  const v16 r = set1(rstd), o = set1(offset);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    storeN(y + i, mul(mul(loadN(x + i, k), r), add(loadN(w + i, k), o)), k);
  }
  return rstd;
}

void rmsNormBackward(const float* x, const float* w, float offset, float rstd, const float* dy, int64_t n, float* dx,
                     float* dw) {
  const v16 r = set1(rstd), o = set1(offset);
  v16 sum = zero();
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 xhat = mul(loadN(x + i, k), r), g = loadN(dy + i, k);
    sum = fma(mul(g, add(loadN(w + i, k), o)), xhat, sum);
    if (dw != nullptr) storeN(dw + i, fma(g, xhat, loadN(dw + i, k)), k);
  }
  const v16 mean = set1(reduceAdd(sum) / static_cast<float>(n));
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 xhat = mul(loadN(x + i, k), r), g = mul(loadN(dy + i, k), add(loadN(w + i, k), o));
    storeN(dx + i, fma(r, fnma(xhat, mean, g), loadN(dx + i, k)), k);
  }
}

void rope(float* head, int64_t headDim, const float* cosine, const float* sine, float sign) {
  const int64_t half = headDim / 2;
  const v16 s = set1(sign);
  for (int64_t i = 0; i < half; i += 16) {
    const int k = lanesAt(i, half);
    const v16 a = loadN(head + i, k), b = loadN(head + half + i, k), c = loadN(cosine + i, k),
              t = mul(loadN(sine + i, k), s);
    storeN(head + i, fnma(b, t, mul(a, c)), k);
    storeN(head + half + i, fma(a, t, mul(b, c)), k);
  }
}

void swiglu(const float* gate, const float* up, int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 g = loadN(gate + i, k);
    storeN(y + i, mul(mul(g, sigmoid(g)), loadN(up + i, k)), k);
  }
}

void swigluBackward(const float* gate, const float* up, const float* dy, int64_t n, float* dGate, float* dUp,
                    float* y) {
  const v16 one = set1(1.0f);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 g = loadN(gate + i, k), u = loadN(up + i, k), d = loadN(dy + i, k), s = sigmoid(g), silu = mul(g, s);
    // d silu / dg = s·(1 + g·(1 − s))
    storeN(dGate + i, mul(mul(d, u), mul(s, fma(g, sub(one, s), one))), k);
    storeN(dUp + i, mul(d, silu), k);
    if (y != nullptr) storeN(y + i, mul(silu, u), k);
  }
}

void geglu(const float* gate, const float* up, int64_t n, float* y) {
  const v16 one = set1(1.0f), half = set1(0.5f);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 g = loadN(gate + i, k);
    storeN(y + i, mul(mul(mul(half, g), add(one, geluTanh(g))), loadN(up + i, k)), k);
  }
}

void gegluBackward(const float* gate, const float* up, const float* dy, int64_t n, float* dGate, float* dUp, float* y) {
  const v16 one = set1(1.0f), half = set1(0.5f), scale = set1(kGeluScale), cube = set1(3.0f * kGeluCube);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 g = loadN(gate + i, k), u = loadN(up + i, k), d = loadN(dy + i, k), t = geluTanh(g);
    const v16 middle = mul(half, add(one, t)), gelu = mul(g, middle);
    // d gelu / dg = (1 + t) / 2 + g·(1 − t²)·√(2/π)·(1 + 3·0.044715·g²) / 2
    const v16 inner = mul(scale, fma(mul(cube, g), g, one));
    const v16 slope = fma(mul(mul(half, g), fnma(t, t, one)), inner, middle);
    storeN(dGate + i, mul(mul(d, u), slope), k);
    storeN(dUp + i, mul(d, gelu), k);
    if (y != nullptr) storeN(y + i, mul(gelu, u), k);
  }
}

void softcap(float* z, int64_t n, float scale, float cap) {
  const v16 c = set1(cap), factor = set1(scale / cap);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    storeN(z + i, mul(c, tanh(mul(loadN(z + i, k), factor))), k);
  }
}

void softcapBackward(float* dz, const float* capped, int64_t n, float cap) {
  const v16 one = set1(1.0f), factor = set1(1.0f / cap);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    const v16 t = mul(loadN(capped + i, k), factor);
    storeN(dz + i, mul(loadN(dz + i, k), fnma(t, t, one)), k);
  }
}

void addInto(float* y, const float* x, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    storeN(y + i, add(loadN(y + i, k), loadN(x + i, k)), k);
  }
}

void axpy(float* y, float a, const float* x, int64_t n) {
  const v16 av = set1(a);
  for (int64_t i = 0; i < n; i += 16) {
    const int k = lanesAt(i, n);
    storeN(y + i, fma(av, loadN(x + i, k), loadN(y + i, k)), k);
  }
}

void toBf16(const float* src, int64_t n, uint16_t* dst) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) storeBf16(dst + i, load(src + i));
  if (i < n) {
    uint16_t rest[16];
    storeBf16(rest, loadN(src + i, lanesAt(i, n)));
    for (int64_t j = i; j < n; ++j) dst[j] = rest[j - i];
  }
}

void fromBf16(const uint16_t* src, int64_t n, float* dst) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(dst + i, loadBf16(src + i));
  if (i < n) {
    uint16_t rest[16] = {};
    for (int64_t j = i; j < n; ++j) rest[j - i] = src[j];
    storeN(dst + i, loadBf16(rest), lanesAt(i, n));
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
