// Attention of a tile of query rows: scores, softmax and weighted values, each in its one order.
#include "declare.h"
#include "gemm_tile.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

struct Range {
  int64_t from, to;
};  // Positions [from, to) that a row sees.

Range visible(const AttentionTile& t, int r) {
  const int64_t to = static_cast<int64_t>(t.position[r]) + 1;
  return {t.window > 0 && to > t.window ? to - t.window : 0, to};
}

/** Weights exp((s − max)·scale) in place, 0 outside the row's range; gives max and sum. */
void softmaxRow(float* s, Range all, Range row, float scale, float* highest, float* sum) {
  const v16 lowest = set1(-__builtin_inff());
  v16 high = lowest;
  for (int64_t j = row.from / 16 * 16; j < row.to; j += 16) {
    high = max(high, keepLanes(load(s + j), static_cast<int>(row.from > j ? row.from - j : 0),
                               static_cast<int>(row.to - j < 16 ? row.to - j : 16), lowest));
  }
  const float m = reduceMax(high);
  const v16 mv = set1(m), sv = set1(scale);
  v16 total = zero();
  for (int64_t j = all.from / 16 * 16; j < all.to; j += 16) {
    v16 w = zero();
    if (j + 16 > row.from && j < row.to) {
      w = exp(mul(sub(load(s + j), mv), sv));
      w = keepLanes(w, static_cast<int>(row.from > j ? row.from - j : 0),
                    static_cast<int>(row.to - j < 16 ? row.to - j : 16), zero());
      total = add(total, w);
    }
    store(s + j, w);
  }
  *highest = m;
  *sum = reduceAdd(total);
}

template <int R>
void scores(const AttentionTile& t, const float* packedQ, int64_t firstPage, int64_t pages, float* s, int64_t lds) {
  constexpr int P = tilePanels(R);
  int64_t p = firstPage;
  for (; p + P <= pages; p += P)
    tile<R, P, false>(t.headDim, packedQ, 1, kAttentionRows, t.kPages + p, 16, 16, s + 16 * p, lds, Into::replace);
  for (; p < pages; ++p)
    tile<R, 1, false>(t.headDim, packedQ, 1, kAttentionRows, t.kPages + p, 16, 16, s + 16 * p, lds, Into::replace);
}

/**
 * out(r, 16p + j) = Σ s(r, i)·V(i, 16p + j) over runs of adjacent pages; accumulators are stored and loaded between
 * runs.
 */
template <int R, int P, bool Masked>
void values(const AttentionTile& t, Range all, const float* s, int64_t lds, int64_t column, int columns, float* out,
            int64_t ldo) {
  Into into = Into::replace;
  for (int64_t i = all.from; i < all.to;) {
    const int64_t page = i / 16;
    int64_t last = page;
    while (last * 16 + 16 < all.to && t.vPages[last + 1] == t.vPages[last] + 16 * t.headDim) ++last;
    const int64_t end = last * 16 + 16 < all.to ? last * 16 + 16 : all.to;
    const float* b[P];
    for (int p = 0; p < P; ++p) b[p] = t.vPages[page] + (i - page * 16) * t.headDim + column + 16 * p;
    tile<R, P, Masked>(end - i, s + i, lds, 1, b, t.headDim, columns, out + column, ldo, into);
    into = Into::resume;
    i = end;
  }
}

template <int R>
void rowsOf(const AttentionTile& t, int first, float* packedQ, float* s) {
  Range all = visible(t, first);
  for (int r = 0; r < R; ++r) {
    const Range row = visible(t, first + r);
    if (row.from < all.from) all.from = row.from;
    if (row.to > all.to) all.to = row.to;
    for (int d = 0; d < t.headDim; ++d) packedQ[d * kAttentionRows + r] = t.q[first + r][d];
  }
  const int64_t pages = (all.to + 15) / 16, lds = pages * 16;
  scores<R>(t, packedQ, all.from / 16, pages, s, lds);
  float scale = t.scale;
  if (t.softcap > 0) {
    for (int r = 0; r < R; ++r) softcap(s + r * lds + all.from / 16 * 16, lds - all.from / 16 * 16, scale, t.softcap);
    scale = 1.0f;
  }
  float sum[R];
  for (int r = 0; r < R; ++r) {
    float m;
    softmaxRow(s + r * lds, all, visible(t, first + r), scale, &m, &sum[r]);
    if (t.lse != nullptr) t.lse[first + r] = m * scale + fixedLog(sum[r]);
  }
  // packedQ is no longer needed: it holds the sums over values, [R][headDim].
  constexpr int P = tilePanels(R);
  int64_t c = 0;
  for (; c + 16 * P <= t.headDim; c += 16 * P) values<R, P, false>(t, all, s, lds, c, 16, packedQ, t.headDim);
  for (; c + 16 <= t.headDim; c += 16) values<R, 1, false>(t, all, s, lds, c, 16, packedQ, t.headDim);
  if (c < t.headDim) values<R, 1, true>(t, all, s, lds, c, static_cast<int>(t.headDim - c), packedQ, t.headDim);
  for (int r = 0; r < R; ++r) {
    const v16 total = set1(sum[r]);
    for (int64_t d = 0; d < t.headDim; d += 16) {
      const int n = t.headDim - d < 16 ? static_cast<int>(t.headDim - d) : 16;
      storeN(t.out[first + r] + d, div(loadN(packedQ + r * t.headDim + d, n), total), n);
    }
  }
}

using Rows = void (*)(const AttentionTile&, int, float*, float*);
#if defined(__AVX512F__)
constexpr Rows kRows[] = {rowsOf<1>, rowsOf<2>, rowsOf<3>, rowsOf<4>,  rowsOf<5>,  rowsOf<6>,
                          rowsOf<7>, rowsOf<8>, rowsOf<9>, rowsOf<10>, rowsOf<11>, rowsOf<12>};
#else
constexpr Rows kRows[] = {rowsOf<1>, rowsOf<2>, rowsOf<3>, rowsOf<4>, rowsOf<5>, rowsOf<6>};
#endif

}  // namespace

void attention(const AttentionTile& t) {
  float* packedQ = t.scratch;
  float* s = t.scratch + static_cast<int64_t>(kAttentionRows) * t.headDim;
  const int tiles = (t.rows + kTileRows - 1) / kTileRows;
  for (int i = 0, first = 0; i < tiles; ++i) {
    const int rows = (t.rows - first + tiles - i - 1) / (tiles - i);
    kRows[rows - 1](t, first, packedQ, s);
    first += rows;
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
