// Backward of attention, one key head of one sequence at a time (one thread owns it, so sums have one order). Per block of
// queries: S = QKᵀ and P = exp(S·scale − lse) again, dP = dO·Vᵀ, dS = P∘(dP − rowsum(dO∘O))·scale; dQ = dS·K, dK += dSᵀ·Q, dV += Pᵀ·dO.
#include <algorithm>
#include <cstring>

#include "../team.h"
#include "attention.h"

namespace petrel {
namespace {

constexpr int64_t kQueries = 48;

/** Scratch of one thread, for sequences up to `longest`. */
struct Scratch {
  float *kPanels, *vPanels, *dk, *dv, *s, *dp;
  static int64_t padded(int64_t longest) { return (longest + kPanel - 1) / kPanel * kPanel; }
  static int64_t floats(int64_t hd, int64_t longest) { return padded(longest) * (4 * hd + 2 * kQueries); }
  Scratch(float* at, int64_t hd, int64_t longest) {
    const int64_t n = padded(longest);
    kPanels = at, vPanels = kPanels + n * hd, dk = vPanels + n * hd, dv = dk + n * hd, s = dv + n * hd,
    dp = s + kQueries * n;
  }
};

struct KeyHead {  // One key head of one sequence
  const Attention& c;
  int64_t length, ldk, ldv;
  const float *k, *v;  // [length], leading dimensions ldk, ldv
};

void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t aRow, int64_t aK, const float* b, int64_t bPanel,
             int64_t bRow, float* c, int64_t ldc, bool accumulate) {
  kernels().gemm({m, n, k, a, aRow, aK, b, bPanel, bRow, nullptr, c, ldc, accumulate});
}

/** One block of queries [from, to) of one query head. */
void queryBlock(const KeyHead& h, const Scratch& x, int64_t from, int64_t to, const float* q, const float* dOut,
                const float* out, const float* lse, float* dq) {
  const int64_t hd = h.c.headDim, m = to - from, ldo = h.c.queryWidth(), ldd = h.ldv;
  const int64_t first = (h.c.window > 0 && from + 1 > h.c.window ? from + 1 - h.c.window : 0) / kPanel * kPanel,
                keys = to - first;
  const int64_t lds = (keys + kPanel - 1) / kPanel * kPanel;
  product(m, keys, hd, q + from * h.ldk, h.ldk, 1, x.kPanels + first * hd, hd * kPanel, kPanel, x.s, lds, false);
  product(m, keys, hd, dOut + from * ldo, ldo, 1, x.vPanels + first * hd, hd * kPanel, kPanel, x.dp, lds, false);
  for (int64_t i = 0; i < m; ++i) {
    const int64_t p = from + i, begin = h.c.window > 0 && p + 1 > h.c.window ? p + 1 - h.c.window : 0;
    const float delta = kernels().dot(dOut + p * ldo, out + p * ldo, hd);
    kernels().attentionGrad(x.s + i * lds, x.dp + i * lds, keys, begin - first, p + 1 - first, h.c.scale, h.c.softcap,
                            lse[p * h.c.heads], delta);
  }
  product(m, hd, keys, x.dp, lds, 1, h.k + first * h.ldk, kPanel, h.ldk, dq + from * ldd, ldd, false);
  product(keys, hd, m, x.dp, 1, lds, q + from * h.ldk, kPanel, h.ldk, x.dk + first * hd, hd, true);
  product(keys, hd, m, x.s, 1, lds, dOut + from * ldo, kPanel, ldo, x.dv + first * hd, hd, true);
}

}  // namespace

void attentionBackward(const Attention& c, Arena& arena, const Batch& b, const float* qk, const float* qkv,
                       const float* out, const float* lse, const float* dOut, float* dqkv) {
  const int group = c.group();
  const int64_t hd = c.headDim, ldk = c.queryWidth() + c.kvWidth(), ldv = ldk + c.kvWidth();
  const int64_t scratchFloats = Scratch::floats(hd, b.longest);
  Loan<float> scratch(arena, teamSize() * scratchFloats);
  shareOut(b.sequences * c.kvHeads, 1, [&](int64_t item, int worker) {
    const int64_t s = item / c.kvHeads, kvHead = item % c.kvHeads, start = b.starts[s], length = b.length(s);
    const Scratch x(scratch + worker * scratchFloats, hd, b.longest);
    const KeyHead h{c,
                 length,
                 ldk,
                 ldv,
                 qk + start * ldk + c.queryWidth() + kvHead * hd,
                 qkv + start * ldv + ldk + kvHead * hd};
    kernels().packColumns(h.k, ldk, hd, length, x.kPanels);
    kernels().packColumns(h.v, ldv, hd, length, x.vPanels);
    std::memset(x.dk, 0, length * hd * sizeof(float));
    std::memset(x.dv, 0, length * hd * sizeof(float));
    for (int g = 0; g < group; ++g) {
      const int64_t head = kvHead * group + g, row = start * c.queryWidth() + head * hd;
      for (int64_t from = 0; from < length; from += kQueries) {
        queryBlock(h, x, from, std::min(length, from + kQueries), qk + start * ldk + head * hd, dOut + row, out + row,
                   lse + start * c.heads + head, dqkv + start * ldv + head * hd);
      }
    }
    for (int64_t t = 0; t < length; ++t) {
      float* row = dqkv + (start + t) * ldv + c.queryWidth() + kvHead * hd;
      std::memcpy(row, x.dk + t * hd, hd * sizeof(float));
      std::memcpy(row + c.kvWidth(), x.dv + t * hd, hd * sizeof(float));
    }
  });
}

}  // namespace petrel
