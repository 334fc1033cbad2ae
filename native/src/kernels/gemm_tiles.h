// Products of pairs on tile registers: blocks of 2 × 2 tiles of C, or 1 × 4 for the last 1 to 16 rows. A row of pairs is a row of
// an A tile, and 16 rows of a panel are a B tile, both as they lie. Every sum takes up its pairs 16 at a time, ascending, whatever
// the block; so the bits of a row of C do not depend on the other rows.
#pragma once
#include "../kernels_bf16.h"
#include "../vec.h"
#include "tiles.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

constexpr int64_t kSide = 16;         // rows, pairs and columns of a tile
constexpr int64_t kPanelStride = 64;  // bytes of a row of a panel

/** Where a tile of C lies. The last panel may have fewer than 16 columns. */
struct Place {
  float* c;
  int64_t ldc;
  int64_t rows;
  int columns;
};

template <int T>
void zeroTile() {
  static_assert(T >= 0 && T < 4);
  if constexpr (T == 0) TILE_ZERO(0);
  if constexpr (T == 1) TILE_ZERO(1);
  if constexpr (T == 2) TILE_ZERO(2);
  if constexpr (T == 3) TILE_ZERO(3);
}

template <int T>
void loadTile(const float* from, int64_t stride) {
  if constexpr (T == 0) TILE_LOAD(0, from, stride);
  if constexpr (T == 1) TILE_LOAD(1, from, stride);
  if constexpr (T == 2) TILE_LOAD(2, from, stride);
  if constexpr (T == 3) TILE_LOAD(3, from, stride);
}

template <int T>
void storeTile(float* to, int64_t stride) {
  if constexpr (T == 0) TILE_STORE(0, to, stride);
  if constexpr (T == 1) TILE_STORE(1, to, stride);
  if constexpr (T == 2) TILE_STORE(2, to, stride);
  if constexpr (T == 3) TILE_STORE(3, to, stride);
}

/** Tile T of C becomes 0, or what is there. */
template <int T>
void begin(const Place& p, bool accumulate) {
  if (!accumulate) return zeroTile<T>();
  if (p.columns == kSide) return loadTile<T>(p.c, p.ldc * 4);
  alignas(64) float whole[kSide * kSide];
  for (int64_t r = 0; r < p.rows; ++r) store(whole + r * kSide, loadN(p.c + r * p.ldc, p.columns));
  loadTile<T>(whole, kPanelStride);
}

template <int T>
void end(const Place& p) {
  if (p.columns == kSide) return storeTile<T>(p.c, p.ldc * 4);
  alignas(64) float whole[kSide * kSide];
  storeTile<T>(whole, kPanelStride);
  for (int64_t r = 0; r < p.rows; ++r) storeN(p.c + r * p.ldc, load(whole + r * kSide), p.columns);
}

/** Some pairs of a product: a multiple of 16, or the last 1 to 15. */
struct Pass {
  const GemmPairs& g;
  int64_t from, pairs;
  bool accumulate;

  const uint32_t* row(int64_t i) const { return g.a + i * g.aRow + from; }
  const uint32_t* panel(int64_t p) const { return g.b + (p * g.pairs + from) * kSide; }
  Place place(int64_t i, int64_t rows, int64_t p) const {
    const int64_t columns = g.n - p * kSide;
    return {g.c + i * g.ldc + p * kSide, g.ldc, rows, static_cast<int>(columns < kSide ? columns : kSide)};
  }
  /** Pairs that a tile of A or B has. */
  int64_t depth() const { return pairs < kSide ? pairs : kSide; }
};

/** 16 rows from i on and `below` more, by one or two panels. Tiles 0 1 over 2 3 are C, 4 over 5 is A, 6 beside 7 is B. */
template <int Panels>
void block(const Pass& s, int64_t i, int64_t below, int64_t p) {
  const Place upper = s.place(i, kSide, p), lower = s.place(i + kSide, below, p);
  begin<0>(upper, s.accumulate);
  begin<2>(lower, s.accumulate);
  Place upperRight{}, lowerRight{};
  if constexpr (Panels > 1) {
    upperRight = s.place(i, kSide, p + 1);
    lowerRight = s.place(i + kSide, below, p + 1);
    begin<1>(upperRight, s.accumulate);
    begin<3>(lowerRight, s.accumulate);
  }
  const uint32_t *a = s.row(i), *aBelow = s.row(i + kSide), *b = s.panel(p), *bRight = s.panel(p + Panels - 1);
  const int64_t aStride = s.g.aRow * 4;
  for (int64_t k = 0; k < s.pairs; k += kSide) {
    TILE_LOAD(4, a + k, aStride);
    TILE_LOAD(6, b + k * kSide, kPanelStride);
    TILE_DOT(0, 4, 6);
    if constexpr (Panels > 1) {
      TILE_LOAD(7, bRight + k * kSide, kPanelStride);
      TILE_DOT(1, 4, 7);
    }
    TILE_LOAD(5, aBelow + k, aStride);
    TILE_DOT(2, 5, 6);
    if constexpr (Panels > 1) TILE_DOT(3, 5, 7);
  }
  end<0>(upper);
  end<2>(lower);
  if constexpr (Panels > 1) {
    end<1>(upperRight);
    end<3>(lowerRight);
  }
}

/** 1 to 16 rows by one to four panels. Tiles 0 to 3 are C, 4 is A, 5 to 7 are B. Four sums hide the latency of one. */
template <int Panels>
void lowBlock(const Pass& s, int64_t i, int64_t rows, int64_t p) {
  begin<0>(s.place(i, rows, p), s.accumulate);
  if constexpr (Panels > 1) begin<1>(s.place(i, rows, p + 1), s.accumulate);
  if constexpr (Panels > 2) begin<2>(s.place(i, rows, p + 2), s.accumulate);
  if constexpr (Panels > 3) begin<3>(s.place(i, rows, p + 3), s.accumulate);
  const uint32_t *a = s.row(i), *b = s.panel(p);
  const int64_t aStride = s.g.aRow * 4, apart = s.g.pairs * kSide;
  for (int64_t k = 0; k < s.pairs; k += kSide, b += kSide * kSide) {
    TILE_LOAD(4, a + k, aStride);
    TILE_LOAD(5, b, kPanelStride);
    TILE_DOT(0, 4, 5);
    if constexpr (Panels > 1) {
      TILE_LOAD(6, b + apart, kPanelStride);
      TILE_DOT(1, 4, 6);
    }
    if constexpr (Panels > 2) {
      TILE_LOAD(7, b + 2 * apart, kPanelStride);
      TILE_DOT(2, 4, 7);
    }
    if constexpr (Panels > 3) {
      TILE_LOAD(5, b + 3 * apart, kPanelStride);
      TILE_DOT(3, 4, 5);
    }
  }
  end<0>(s.place(i, rows, p));
  if constexpr (Panels > 1) end<1>(s.place(i, rows, p + 1));
  if constexpr (Panels > 2) end<2>(s.place(i, rows, p + 2));
  if constexpr (Panels > 3) end<3>(s.place(i, rows, p + 3));
}

/** Rows [i, end) in blocks of 16 + below. Two panels of B stay in the first cache while A comes from the second. */
void tallRows(const Pass& s, int64_t i, int64_t end, int64_t below) {
  TileConfig config;
  config.set(0, 1, kSide, kSide);
  config.set(2, 3, below, kSide);
  config.set(4, 4, kSide, s.depth());
  config.set(5, 5, below, s.depth());
  config.set(6, 7, s.depth(), kSide);
  TILE_CONFIGURE(&config);
  const int64_t panels = (s.g.n + kSide - 1) / kSide;
  int64_t p = 0;
  for (; p + 2 <= panels; p += 2)
    for (int64_t r = i; r < end; r += kSide + below) block<2>(s, r, below, p);
  if (p < panels)
    for (int64_t r = i; r < end; r += kSide + below) block<1>(s, r, below, p);
}

void lowRows(const Pass& s, int64_t i, int64_t rows) {
  TileConfig config;
  config.set(0, 3, rows, kSide);
  config.set(4, 4, rows, s.depth());
  config.set(5, 7, s.depth(), kSide);
  TILE_CONFIGURE(&config);
  const int64_t panels = (s.g.n + kSide - 1) / kSide;
  int64_t p = 0;
  for (; p + 4 <= panels; p += 4) lowBlock<4>(s, i, rows, p);
  if (panels - p == 3) lowBlock<3>(s, i, rows, p);
  if (panels - p == 2) lowBlock<2>(s, i, rows, p);
  if (panels - p == 1) lowBlock<1>(s, i, rows, p);
}

void allRows(const Pass& s) {
  const int64_t tall = s.g.m / (2 * kSide) * 2 * kSide, rest = s.g.m - tall;
  if (tall > 0) tallRows(s, 0, tall, kSide);
  if (rest > kSide) tallRows(s, tall, s.g.m, rest - kSide);
  else if (rest > 0) lowRows(s, tall, rest);
}

/** Needs aK = 1. The pairs after the last multiple of 16 are added in a pass of their own, since tiles have another shape there. */
void gemmOnTiles(const GemmPairs& g) {
  const int64_t whole = g.pairs / kSide * kSide;
  if (whole > 0) allRows({g, 0, whole, g.accumulate});
  if (whole < g.pairs) allRows({g, whole, g.pairs - whole, g.accumulate || whole > 0});
  TILE_RELEASE();
}

}  // namespace
}  // namespace petrel::PETREL_ISA_NAMESPACE
