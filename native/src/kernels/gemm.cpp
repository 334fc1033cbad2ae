// Single-threaded products out of register tiles, and the packing of their right sides.
#include "declare.h"
#include "gemm_tile.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

const float* panelAt(const GemmBlock& g, int64_t p) { return g.panels != nullptr ? g.panels[p] : g.b + p * g.bPanel; }

/** All columns of R rows that begin at row i: full panels P at a time, then singly, then the masked rest. */
template <int R>
void stripe(const GemmBlock& g, int64_t i, int64_t firstPanel, int64_t panels) {
  constexpr int P = tilePanels(R);
  const float* a = g.a + i * g.aRow;
  float* c = g.c + i * g.ldc;
  const Into into = g.accumulate ? Into::add : Into::replace;
  int64_t p = firstPanel;
  const int64_t full = g.n / 16 < firstPanel + panels ? g.n / 16 : firstPanel + panels;
  const float* b[P];
  for (; p + P <= full; p += P) {
    for (int j = 0; j < P; ++j) b[j] = panelAt(g, p + j);
    tile<R, P, false>(g.k, a, g.aRow, g.aK, b, g.bRow, 16, c + 16 * p, g.ldc, into);
  }
  for (; p < full; ++p) {
    b[0] = panelAt(g, p);
    tile<R, 1, false>(g.k, a, g.aRow, g.aK, b, g.bRow, 16, c + 16 * p, g.ldc, into);
  }
  if (p < firstPanel + panels && p * 16 < g.n) {
    b[0] = panelAt(g, p);
    tile<R, 1, true>(g.k, a, g.aRow, g.aK, b, g.bRow, static_cast<int>(g.n - 16 * p), c + 16 * p, g.ldc, into);
  }
}

/**
 * to[i][j] = from[j][i] for i < depth ≤ 8 and 8 columns j, 0 where j ≥ rows; rows of `from` are ld apart, of `to` 16.
 */
void transpose8(const float* from, int64_t ld, int rows, int depth, float* to) {
  const __m256i inside = _mm256_cmpgt_epi32(_mm256_set1_epi32(depth), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  __m256 r[8], s[8];
#pragma GCC unroll 8
  for (int j = 0; j < 8; ++j)
    r[j] = j >= rows   ? _mm256_setzero_ps()
           : depth < 8 ? _mm256_maskload_ps(from + j * ld, inside)
                       : _mm256_loadu_ps(from + j * ld);
#pragma GCC unroll 4
  for (int j = 0; j < 8; j += 2) {
    s[j] = _mm256_unpacklo_ps(r[j], r[j + 1]);
    s[j + 1] = _mm256_unpackhi_ps(r[j], r[j + 1]);
  }
#pragma GCC unroll 2
  for (int j = 0; j < 8; j += 4) {
    r[j] = _mm256_shuffle_ps(s[j], s[j + 2], 0x44);
    r[j + 1] = _mm256_shuffle_ps(s[j], s[j + 2], 0xee);
    r[j + 2] = _mm256_shuffle_ps(s[j + 1], s[j + 3], 0x44);
    r[j + 3] = _mm256_shuffle_ps(s[j + 1], s[j + 3], 0xee);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if (i >= depth) continue;
    // clang wants a constant where the instruction has one, before it unrolls the loop.
    const __m256 a = r[i % 4], b = r[i % 4 + 4];
    _mm256_storeu_ps(to + i * 16, i < 4 ? _mm256_permute2f128_ps(a, b, 0x20) : _mm256_permute2f128_ps(a, b, 0x31));
  }
}

using Stripe = void (*)(const GemmBlock&, int64_t, int64_t, int64_t);
#if defined(__AVX512F__)
constexpr Stripe kStripes[] = {stripe<1>, stripe<2>, stripe<3>, stripe<4>,  stripe<5>,  stripe<6>,
                               stripe<7>, stripe<8>, stripe<9>, stripe<10>, stripe<11>, stripe<12>};
#else
constexpr Stripe kStripes[] = {stripe<1>, stripe<2>, stripe<3>, stripe<4>, stripe<5>, stripe<6>};
#endif

}  // namespace

/**
 * Panel groups outside, row tiles inside: a group of panels stays in the first caches while the rows pass by. Long sums
 * are made in blocks of kDepth, each from zero, and the blocks are added in order: one order for every m, and the
 * rounding error of a block instead of the whole length.
 */
void gemm(const GemmBlock& g) {
  constexpr int64_t kDepth = 128;
  const int64_t panels = (g.n + 15) / 16;
  const int64_t tiles = (g.m + kTileRows - 1) / kTileRows;
  const int64_t group = g.m < kTileRows ? panels : 2;
  const int64_t depth = g.panels != nullptr ? g.k : kDepth;
  for (int64_t p = 0; p < panels; p += group) {
    const int64_t count = p + group <= panels ? group : panels - p;
    GemmBlock block = g;
    for (int64_t k = 0; k == 0 || k < g.k; k += depth) {
      block.k = g.k - k < depth ? g.k - k : depth;
      block.a = g.a + k * g.aK;
      if (g.panels == nullptr) block.b = g.b + k * g.bRow;
      block.accumulate = k > 0 || g.accumulate;
      for (int64_t t = 0, i = 0; t < tiles; ++t) {
        const int64_t rows = (g.m - i + tiles - t - 1) / (tiles - t);
        kStripes[rows - 1](block, i, p, count);
        i += rows;
      }
    }
  }
}

void packRows(const float* src, int64_t ld, int64_t k, int64_t n, float* dst) {
  for (int64_t p = 0; p < n; p += 16) {
    const int columns = n - p < 16 ? static_cast<int>(n - p) : 16;
    for (int64_t i = 0; i < k; ++i, dst += 16) store(dst, loadN(src + i * ld + p, columns));
  }
}

void packColumns(const float* src, int64_t ld, int64_t k, int64_t n, float* dst) {
  for (int64_t p = 0; p < n; p += 16, dst += k * 16) {
    const int columns = n - p < 16 ? static_cast<int>(n - p) : 16;
    for (int64_t i = 0; i < k; i += 8) {
      const int depth = k - i < 8 ? static_cast<int>(k - i) : 8;
      for (int half = 0; half < 16; half += 8)
        transpose8(src + (p + half) * ld + i, ld, columns - half, depth, dst + i * 16 + half);
    }
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
