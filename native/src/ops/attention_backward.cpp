// Backward of attention, one key head of one tree of segments at a time (one thread owns it, so sums have one order):
// first the segment at the root, then those that continue it, whose gradients of shared keys and values add up. Per
// block of queries: S = QKᵀ and P = exp(S·scale − lse) again, dP = dO·Vᵀ, dS = P∘(dP − rowsum(dO∘O))·scale; dQ = dS·K,
// dK += dSᵀ·Q, dV += Pᵀ·dO.
#include <algorithm>
#include <cstring>

#include "../team.h"
#include "attention.h"

namespace petrel {
namespace {

constexpr int64_t kQueries = 48;

/**
 * Scratch of one thread, for sequences up to `longest`. Rows are those of a path: the parent's positions, then the
 * segment's.
 */
struct Scratch {
  float *kRows, *vRows, *kPanels, *vPanels, *dk, *dv, *s, *dp;
  static int64_t padded(int64_t longest) { return (longest + kPanel - 1) / kPanel * kPanel; }
  static int64_t floats(int64_t hd, int64_t longest) { return padded(longest) * (6 * hd + 2 * kQueries); }
  Scratch(float* at, int64_t hd, int64_t longest) {
    const int64_t n = padded(longest);
    kRows = at, vRows = kRows + n * hd, kPanels = vRows + n * hd, vPanels = kPanels + n * hd, dk = vPanels + n * hd,
    dv = dk + n * hd, s = dv + n * hd, dp = s + kQueries * n;
  }
};

struct Rows {
  const float *qk, *qkv, *out, *lse, *dOut;
  float* dqkv;
  int64_t ldk, ldv, ldo;
};

/** One key head of one segment. Position p lies in row `virtualStart` + p of the batch, for p from `before` on. */
struct KeyHead {
  const Attention& c;
  const Rows& rows;
  const Scratch& x;
  int64_t kvHead, before, end, virtualStart;

  int64_t row(int64_t position) const { return virtualStart + position; }
};

void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t aRow, int64_t aK, const float* b, int64_t bPanel,
             int64_t bRow, float* c, int64_t ldc, bool accumulate) {
  kernels().gemm({m, n, k, a, aRow, aK, b, bPanel, bRow, nullptr, c, ldc, accumulate});
}

/** One block of queries [from, to) of one query head. */
void queryBlock(const KeyHead& h, int64_t head, int64_t from, int64_t to) {
  const Rows& r = h.rows;
  const Scratch& x = h.x;
  const int64_t hd = h.c.headDim, m = to - from, window = h.c.window;
  const float* q = r.qk + h.row(from) * r.ldk + head * hd;
  const float* dOut = r.dOut + h.row(from) * r.ldo + head * hd;
  const int64_t first = (window > 0 && from + 1 > window ? from + 1 - window : 0) / kPanel * kPanel, keys = to - first;
  const int64_t lds = (keys + kPanel - 1) / kPanel * kPanel;
  product(m, keys, hd, q, r.ldk, 1, x.kPanels + first * hd, hd * kPanel, kPanel, x.s, lds, false);
  product(m, keys, hd, dOut, r.ldo, 1, x.vPanels + first * hd, hd * kPanel, kPanel, x.dp, lds, false);
  for (int64_t i = 0; i < m; ++i) {
    const int64_t p = from + i, begin = window > 0 && p + 1 > window ? p + 1 - window : 0;
    const float delta = kernels().dot(dOut + i * r.ldo, r.out + h.row(p) * r.ldo + head * hd, hd);
    kernels().attentionGrad(x.s + i * lds, x.dp + i * lds, keys, begin - first, p + 1 - first, h.c.scale, h.c.softcap,
                            r.lse[h.row(p) * h.c.heads + head], delta);
  }
  product(m, hd, keys, x.dp, lds, 1, x.kRows + first * hd, kPanel, hd, r.dqkv + h.row(from) * r.ldv + head * hd, r.ldv,
          false);
  product(keys, hd, m, x.dp, 1, lds, q, kPanel, r.ldk, x.dk + first * hd, hd, true);
  product(keys, hd, m, x.s, 1, lds, dOut, kPanel, r.ldo, x.dv + first * hd, hd, true);
}

/**
 * The segment's keys and values go behind those of its parent; panels are made from the page of its first position on.
 */
void loadKeys(const KeyHead& h) {
  const Rows& r = h.rows;
  const Scratch& x = h.x;
  const int64_t hd = h.c.headDim, column = h.c.queryWidth() + h.kvHead * hd, length = h.end - h.before;
  for (int64_t p = h.before; p < h.end; ++p) {
    std::memcpy(x.kRows + p * hd, r.qk + h.row(p) * r.ldk + column, hd * sizeof(float));
    std::memcpy(x.vRows + p * hd, r.qkv + h.row(p) * r.ldv + column + h.c.kvWidth(), hd * sizeof(float));
  }
  const int64_t page = h.before / kPanel * kPanel;
  kernels().packColumns(x.kRows + page * hd, hd, hd, h.end - page, x.kPanels + page * hd);
  kernels().packColumns(x.vRows + page * hd, hd, hd, h.end - page, x.vPanels + page * hd);
  std::memset(x.dk + h.before * hd, 0, length * hd * sizeof(float));
  std::memset(x.dv + h.before * hd, 0, length * hd * sizeof(float));
}

void queriesBackward(const KeyHead& h) {
  for (int g = 0; g < h.c.group(); ++g) {
    for (int64_t from = h.before; from < h.end; from += kQueries)
      queryBlock(h, h.kvHead * h.c.group() + g, from, std::min(h.end, from + kQueries));
  }
}

void storeKeyGradients(const KeyHead& h) {
  const int64_t hd = h.c.headDim;
  for (int64_t p = h.before; p < h.end; ++p) {
    float* row = h.rows.dqkv + h.row(p) * h.rows.ldv + h.c.queryWidth() + h.kvHead * hd;
    std::memcpy(row, h.x.dk + p * hd, hd * sizeof(float));
    std::memcpy(row + h.c.kvWidth(), h.x.dv + p * hd, hd * sizeof(float));
  }
}

/** Segments that continue each segment, and the segments that continue none. */
struct Trees {
  std::vector<std::vector<int64_t>> children;
  std::vector<int64_t> roots;
  explicit Trees(const Batch& b) : children(size_t(b.segments)) {
    for (int64_t s = 0; s < b.segments; ++s) {
      if (b.parents[s] < 0) roots.push_back(s);
      else children[size_t(b.parents[s])].push_back(s);
    }
  }
};

}  // namespace

void attentionBackward(const Attention& c, Arena& arena, const Batch& b, const float* qk, const float* qkv,
                       const float* out, const float* lse, const float* dOut, float* dqkv) {
  const int64_t ldk = c.queryWidth() + c.kvWidth();
  const Rows rows{qk, qkv, out, lse, dOut, dqkv, ldk, ldk + c.kvWidth(), c.queryWidth()};
  const Trees trees(b);
  const int64_t scratchFloats = Scratch::floats(c.headDim, b.longest);
  Loan<float> scratch(arena, teamSize() * scratchFloats);
  shareOut(static_cast<int64_t>(trees.roots.size()) * c.kvHeads, 1, [&](int64_t item, int worker) {
    const Scratch x(scratch + worker * scratchFloats, c.headDim, b.longest);
    const auto keyHead = [&](int64_t s) {
      const int64_t before = b.offset(s);
      return KeyHead{c, rows, x, item % c.kvHeads, before, before + b.length(s), b.starts[s] - before};
    };
    const int64_t root = trees.roots[size_t(item / c.kvHeads)];
    const KeyHead head = keyHead(root);
    loadKeys(head);
    queriesBackward(head);
    for (const int64_t child : trees.children[size_t(root)]) {
      const KeyHead continued = keyHead(child);
      loadKeys(continued);
      queriesBackward(continued);
      storeKeyGradients(continued);
    }
    storeKeyGradients(head);
  });
}

}  // namespace petrel
