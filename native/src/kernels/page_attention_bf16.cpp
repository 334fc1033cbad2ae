#include "page_attention.h"

#include "../vec.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

constexpr int kPairs = 8;  // pairs of positions in a page

struct Range {
  int64_t from, to;
};  // Positions [from, to) that a row sees.

Range visible(const PageAttentionTile& t, int r) {
  const int64_t to = static_cast<int64_t>(t.position[r]) + 1;
  return {t.window > 0 && to > t.window ? to - t.window : 0, to};
}

__m512bh pairsAt(const uint16_t* p) { return (__m512bh)_mm512_loadu_si512(p); }
__m512bh broadcastPair(const uint16_t* p) { return (__m512bh)_mm512_set1_epi32(*reinterpret_cast<const int32_t*>(p)); }

/** Products per score: enough independent sums to hide the latency of one. */
constexpr int pagesAtOnce(int rows) { return rows == 1 ? 8 : rows <= 3 ? 4 : 2; }
constexpr int kRowsAtOnce = 6;

/** s(r, position) for R rows and P pages. */
template <int R, int P>
void scoreBlock(int headDim, const uint16_t* q, const uint16_t* const* k, float* s, int64_t lds) {
  __m512 sum[R][P];
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) sum[r][p] = _mm512_setzero_ps();
  }
  for (int d = 0; d < headDim; d += 2) {
    __m512bh keys[P];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) keys[p] = pairsAt(k[p] + d * 16);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m512bh query = broadcastPair(q + r * headDim + d);
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) sum[r][p] = _mm512_dpbf16_ps(sum[r][p], keys[p], query);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int p = 0; p < P; ++p) _mm512_storeu_ps(s + r * lds + 16 * p, sum[r][p]);
  }
}

/** s = cap·tanh(s·scale / cap) for positions [from, to), multiples of 16. */
void capScores(float* s, int64_t from, int64_t to, float scale, float cap) {
  const v16 c = set1(cap), factor = set1(scale / cap);
  for (int64_t j = from; j < to; j += 16) store(s + j, mul(c, tanh(mul(load(s + j), factor))));
}

/** Weights exp((s − max)·scale) as bf16, 0 outside the row's range; returns their sum before rounding. */
float softmaxRow(const float* s, uint16_t* weights, Range all, Range row, float scale) {
  const v16 lowest = set1(-__builtin_inff());
  v16 high = lowest;
  for (int64_t j = row.from / 16 * 16; j < row.to; j += 16)
    high = max(high, keepLanes(load(s + j), int(row.from - j), int(row.to - j), lowest));
  const v16 highest = set1(reduceMax(high)), factor = set1(scale);
  v16 total = zero();
  for (int64_t j = all.from / 16 * 16; j < all.to; j += 16) {
    v16 w = zero();
    if (j + 16 > row.from && j < row.to) {
      w = keepLanes(exp(mul(sub(load(s + j), highest), factor)), int(row.from - j), int(row.to - j), zero());
      total = add(total, w);
    }
    _mm256_storeu_si256((__m256i*)(weights + j), (__m256i)_mm512_cvtneps_pbh(w.x));
  }
  return reduceAdd(total);
}

/** out(r, column + i) = Σ weights(r, position)·V(position, column + i) / sum(r), for R rows and C·16 columns. */
template <int R, int C>
void valueBlock(const PageAttentionTile& t, int first, Range all, const uint16_t* weights, int64_t ldw,
                const float* sum, int column) {
  constexpr int kChains = 2;  // even and odd pairs apart: one order of sums for every R, and enough sums where R is 1
  __m512 acc[kChains][R][C];
  for (int chain = 0; chain < kChains; ++chain) {
    for (int r = 0; r < R; ++r) {
      for (int c = 0; c < C; ++c) acc[chain][r][c] = _mm512_setzero_ps();
    }
  }
  const int rest = t.headDim - column;
  __mmask16 mask[C];
  for (int c = 0; c < C; ++c) mask[c] = firstLanes(rest - 16 * c);
  for (int64_t page = all.from / 16; page * 16 < all.to; ++page) {
    const uint16_t* v = t.vPages[page] + column * 2;
    for (int pair = 0; pair < kPairs; pair += kChains) {
#pragma GCC unroll 2
      for (int chain = 0; chain < kChains; ++chain) {
        const uint16_t* from = v + int64_t(pair + chain) * t.headDim * 2;
        __m512bh values[C];
#pragma GCC unroll 4
        for (int c = 0; c < C; ++c) values[c] = (__m512bh)_mm512_maskz_loadu_epi32(mask[c], from + 32 * c);
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          const __m512bh w = broadcastPair(weights + r * ldw + page * 16 + 2 * (pair + chain));
#pragma GCC unroll 4
          for (int c = 0; c < C; ++c) acc[chain][r][c] = _mm512_dpbf16_ps(acc[chain][r][c], values[c], w);
        }
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    const __m512 scale = _mm512_set1_ps(1.0f / sum[r]);
    for (int c = 0; c < C; ++c) {
      const __m512 total = _mm512_add_ps(acc[0][r][c], acc[1][r][c]);
      _mm512_mask_storeu_ps(t.out[first + r] + column + 16 * c, mask[c], _mm512_mul_ps(total, scale));
    }
  }
}

template <int R>
void rowsOf(const PageAttentionTile& t, int first) {
  constexpr int P = pagesAtOnce(R), C = R <= 3 ? 4 : 2;
  Range all = visible(t, first);
  for (int r = 1; r < R; ++r) {
    const Range row = visible(t, first + r);
    all = {row.from < all.from ? row.from : all.from, row.to > all.to ? row.to : all.to};
  }
  const int64_t pages = (all.to + 15) / 16, lds = pages * 16;
  float* s = t.scratch;
  uint16_t* weights = reinterpret_cast<uint16_t*>(s + kPageAttentionRows * lds);
  uint16_t* q = weights + kPageAttentionRows * lds;
  for (int r = 0; r < R; ++r) {
    for (int d = 0; d < t.headDim; d += 16) {
      const __m256i rounded = (__m256i)_mm512_cvtneps_pbh(loadN(t.q[first + r] + d, t.headDim - d).x);
      _mm256_mask_storeu_epi16(q + r * t.headDim + d, firstLanes(t.headDim - d), rounded);
    }
  }
  int64_t p = all.from / 16;
  for (; p + P <= pages; p += P) scoreBlock<R, P>(t.headDim, q, t.kPages + p, s + 16 * p, lds);
  for (; p < pages; ++p) scoreBlock<R, 1>(t.headDim, q, t.kPages + p, s + 16 * p, lds);
  float scale = t.scale;
  if (t.softcap > 0) {
    for (int r = 0; r < R; ++r) capScores(s + r * lds, all.from / 16 * 16, lds, scale, t.softcap);
    scale = 1.0f;
  }
  float sum[R];
  for (int r = 0; r < R; ++r) sum[r] = softmaxRow(s + r * lds, weights + r * lds, all, visible(t, first + r), scale);
  for (int column = 0; column < t.headDim; column += 16 * C) valueBlock<R, C>(t, first, all, weights, lds, sum, column);
}

using Rows = void (*)(const PageAttentionTile&, int);
constexpr Rows kRows[kRowsAtOnce] = {rowsOf<1>, rowsOf<2>, rowsOf<3>, rowsOf<4>, rowsOf<5>, rowsOf<6>};

}  // namespace

void pageAttention(const PageAttentionTile& t) {
  const int tiles = (t.rows + kRowsAtOnce - 1) / kRowsAtOnce;
  for (int i = 0, first = 0; i < tiles; ++i) {
    const int rows = (t.rows - first + tiles - i - 1) / (tiles - i);
    kRows[rows - 1](t, first);
    first += rows;
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
