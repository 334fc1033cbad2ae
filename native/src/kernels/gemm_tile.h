// The register tile of every fp32 product: R rows by P panels of 16 columns, one accumulator per element, fma over k
// ascending.
#pragma once
#include "../vec.h"

namespace petrel::PETREL_ISA_NAMESPACE {

#if defined(__AVX512F__)
constexpr int kTileRows = 12;
constexpr int tilePanels(int rows) { return rows == 1 ? 8 : rows == 2 ? 6 : rows == 3 ? 4 : 2; }
#else
constexpr int kTileRows = 6;
constexpr int tilePanels(int rows) { return rows == 1 ? 4 : rows == 2 ? 3 : rows == 3 ? 2 : 1; }
#endif

/** R rows of A addressed from three pointers, so that they stay in registers. Strides in elements. */
template <int R>
struct RowsOfA {
  const float* group[(R + 3) / 4];
  int64_t one, step;
  RowsOfA(const float* a, int64_t row, int64_t k) : one(row), step(k) {
    for (int g = 0; g < (R + 3) / 4; ++g) group[g] = a + 4 * g * row;
  }
  float at(int r) const { return group[r / 4][(r % 4) * one]; }
  void next() {
    for (int g = 0; g < (R + 3) / 4; ++g) group[g] += step;
  }
};

/** What a tile does with the C that is there: overwrite it, go on summing from it, or add its own sum to it. */
enum class Into { replace, resume, add };

/**
 * C(r, 16p + j) for R rows and P panels; `b[p]` points at panel p's first row, rows are bRow apart. Masked: the last
 * panel has only `columns` columns (P = 1).
 */
template <int R, int P, bool Masked>
static inline void tile(int64_t k, const float* a, int64_t aRow, int64_t aK, const float* const* b, int64_t bRow,
                        int columns, float* c, int64_t ldc, Into into) {
  v16 acc[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      const float* from = c + r * ldc + 16 * p;
      acc[r][p] = into != Into::resume ? zero() : Masked ? loadN(from, columns) : load(from);
    }
  }
  const float* panel[P];
#pragma GCC unroll 16
  for (int p = 0; p < P; ++p) panel[p] = b[p];
  RowsOfA<R> rows(a, aRow, aK);
  for (int64_t i = 0; i < k; ++i) {
    v16 bv[P];
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      bv[p] = Masked ? loadN(panel[p], columns) : load(panel[p]);
      panel[p] += bRow;
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const v16 av = set1(rows.at(r));
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) acc[r][p] = fma(av, bv[p], acc[r][p]);
    }
    rows.next();
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) {
      float* to = c + r * ldc + 16 * p;
      v16 sum = acc[r][p];
      if (into == Into::add) sum = add(Masked ? loadN(to, columns) : load(to), sum);
      if (Masked) storeN(to, sum, columns);
      else store(to, sum);
    }
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
