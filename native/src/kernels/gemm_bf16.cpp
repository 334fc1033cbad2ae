#include "../kernels_bf16.h"
#include "../vec.h"
#include "gemm_tile.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

/**
 * Pairs (first[j], second[j]), rounded to nearest even. The instruction makes denormals 0, as the dot product does
 * anyway.
 */
__m512i paired(v16 first, v16 second) {
  const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(second.x, first.x);  // first in the lower 16 places
  const __m512i zipped = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                          21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(zipped, halves);
}

template <int R, int P>
void pairTile(const GemmPairs& g, int64_t i, int64_t p, int columns) {
  float* c = g.c + i * g.ldc + 16 * p;
  __m512 acc[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int j = 0; j < P; ++j) {
      acc[r][j] = g.accumulate ? loadN(c + r * g.ldc + 16 * j, j + 1 < P ? 16 : columns).x : _mm512_setzero_ps();
    }
  }
  const uint32_t* panel = g.b + p * g.pairs * 16;
  const int64_t apart = g.pairs * 16;
  RowsOfA<R> rows(reinterpret_cast<const float*>(g.a + i * g.aRow), g.aRow, g.aK);
  for (int64_t k = 0; k < g.pairs; ++k) {
    __m512bh bv[P];
#pragma GCC unroll 16
    for (int j = 0; j < P; ++j) bv[j] = (__m512bh)_mm512_loadu_si512(panel + j * apart);
    panel += 16;
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const __m512bh av = (__m512bh)_mm512_castps_si512(_mm512_set1_ps(rows.at(r)));
#pragma GCC unroll 16
      for (int j = 0; j < P; ++j) acc[r][j] = _mm512_dpbf16_ps(acc[r][j], av, bv[j]);
    }
    rows.next();
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int j = 0; j < P; ++j) storeN(c + r * g.ldc + 16 * j, {acc[r][j]}, j + 1 < P ? 16 : columns);
  }
}

template <int R>
void pairStripe(const GemmPairs& g, int64_t i, int64_t p, int64_t end) {
  constexpr int P = tilePanels(R);
  auto columns = [&](int64_t last) { return g.n - 16 * last < 16 ? static_cast<int>(g.n - 16 * last) : 16; };
  for (; p + P <= end; p += P) pairTile<R, P>(g, i, p, columns(p + P - 1));
  for (; p < end; ++p) pairTile<R, 1>(g, i, p, columns(p));
}

using Stripe = void (*)(const GemmPairs&, int64_t, int64_t, int64_t);
constexpr Stripe kStripes[] = {pairStripe<1>, pairStripe<2>,  pairStripe<3>,  pairStripe<4>,
                               pairStripe<5>, pairStripe<6>,  pairStripe<7>,  pairStripe<8>,
                               pairStripe<9>, pairStripe<10>, pairStripe<11>, pairStripe<12>};

void gemm(const GemmPairs& g) {
  const int64_t panels = (g.n + 15) / 16, tiles = (g.m + 11) / 12, group = g.m < 12 ? panels : 2;
  for (int64_t p = 0; p < panels; p += group) {
    const int64_t end = p + group < panels ? p + group : panels;
    for (int64_t t = 0, i = 0; t < tiles; ++t) {
      const int64_t rows = (g.m - i + tiles - t - 1) / (tiles - t);
      kStripes[rows - 1](g, i, p, end);
      i += rows;
    }
  }
}

void interleave(const float* first, const float* second, int64_t n, uint32_t* dst, int64_t apart) {
  for (int64_t j = 0; j < n; j += 16, dst += apart) {
    const int k = n - j < 16 ? static_cast<int>(n - j) : 16;
    const v16 b = second == nullptr ? zero() : loadN(second + j, k);
    _mm512_storeu_si512(dst, paired(loadN(first + j, k), b));
  }
}

void pairsOfRow(const float* src, int64_t n, uint32_t* dst, int64_t apart) {
  int64_t i = 0;
  for (; i + 32 <= n; i += 32, dst += apart)
    _mm512_storeu_si512(dst, (__m512i)_mm512_cvtne2ps_pbh(load(src + i + 16).x, load(src + i).x));
  if (i == n) return;
  const int rest = static_cast<int>(n - i);
  const v16 second = rest > 16 ? loadN(src + i + 16, rest - 16) : zero();
  _mm512_mask_storeu_epi32(dst, firstLanes((rest + 1) / 2),
                           (__m512i)_mm512_cvtne2ps_pbh(second.x, loadN(src + i, rest).x));
}

void panelsFromRows(const float* src, int64_t ld, int64_t k, int64_t n, uint32_t* dst, int64_t apart) {
  for (int64_t p = 0; p < n; p += 16, dst += apart) {
    const int columns = n - p < 16 ? static_cast<int>(n - p) : 16;
    for (int64_t i = 0; i < k; i += 2) {
      const v16 second = i + 1 < k ? loadN(src + (i + 1) * ld + p, columns) : zero();
      _mm512_storeu_si512(dst + i / 2 * 16, paired(loadN(src + i * ld + p, columns), second));
    }
  }
}

void panelFromColumns(const float* const* rows, int64_t count, int64_t k, uint32_t* dst) {
  uint32_t row[16];
  for (int64_t i = 0; i < k; i += 32) {
    const int64_t elements = k - i < 32 ? k - i : 32, pairs = (elements + 1) / 2;
    uint32_t* block = dst + i / 2 * 16;
    for (int64_t j = 0; j < 16; ++j) {
      if (j < count) pairsOfRow(rows[j] + i, elements, row, 16);
      for (int64_t q = 0; q < pairs; ++q) block[q * 16 + j] = j < count ? row[q] : 0;
    }
  }
}

/** out[c][r] = in[r][c] of 16 × 16: within lanes of 128 bits, then the lanes themselves. */
void transpose16(const __m512i (&in)[16], __m512i (&out)[16]) {
  __m512i pairs[16], fours[16];
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(in[i], in[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(in[i], in[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm512_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm512_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
  // Lane L of fours[4·g + j] holds column 4·L + j of rows 4·g to 4·g + 3.
  for (int j = 0; j < 4; ++j) {
    const __m512i even = _mm512_shuffle_i32x4(fours[j], fours[4 + j], 0x88);
    const __m512i odd = _mm512_shuffle_i32x4(fours[j], fours[4 + j], 0xdd);
    const __m512i evenBelow = _mm512_shuffle_i32x4(fours[8 + j], fours[12 + j], 0x88);
    const __m512i oddBelow = _mm512_shuffle_i32x4(fours[8 + j], fours[12 + j], 0xdd);
    out[j] = _mm512_shuffle_i32x4(even, evenBelow, 0x88);
    out[4 + j] = _mm512_shuffle_i32x4(odd, oddBelow, 0x88);
    out[8 + j] = _mm512_shuffle_i32x4(even, evenBelow, 0xdd);
    out[12 + j] = _mm512_shuffle_i32x4(odd, oddBelow, 0xdd);
  }
}

void tilesFromColumns(const float* src, int64_t ld, int64_t k, int64_t n, uint32_t* dst) {
  const int64_t apart = (k + 31) / 32 * 256;
  for (int64_t i = 0; i < k; i += 32) {
    for (int64_t j = 0; j < n; j += 16) {
      const int columns = n - j < 16 ? static_cast<int>(n - j) : 16;
      __m512i in[16], out[16];
      for (int64_t q = 0; q < 16; ++q) {
        const int64_t first = i + 2 * q;
        const float* row = src + first * ld + j;
        in[q] = first < k ? paired(loadN(row, columns), first + 1 < k ? loadN(row + ld, columns) : zero())
                          : _mm512_setzero_si512();
      }
      transpose16(in, out);
      uint32_t* tile = dst + j / 16 * apart + i / 32 * 256;
      for (int c = 0; c < 16; ++c) _mm512_storeu_si512(tile + 16 * c, out[c]);
    }
  }
}

}  // namespace

extern const Bf16Kernels table;
const Bf16Kernels table = {gemm, pairsOfRow, interleave, panelsFromRows, panelFromColumns, tilesFromColumns, false, 12};

}  // namespace petrel::PETREL_ISA_NAMESPACE
