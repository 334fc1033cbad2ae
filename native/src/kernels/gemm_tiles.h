// Products of pairs on tile registers: blocks of 2 × 2 tiles of C, or 1 × 4 for the last 1 to 16 rows. A tile of A lies
// as it is loaded (1 KiB), and 16 rows of a panel are a B tile. Every sum takes up its pairs 16 at a time, ascending,
// whatever the block and wherever the sums are kept in between; so the bits of a row of C do not depend on the other
// rows.
#pragma once
#include "../kernels_bf16.h"
#include "../vec.h"
#include "tiles.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

constexpr int64_t kSide = 16;  // rows, pairs and columns of a tile
constexpr int64_t kTile = kSide * kSide;
constexpr int64_t kTileStride = 64;  // bytes of a row of a tile, or of a panel
constexpr int64_t kNearPairs = 128;  // pairs of two panels of B that stay in the first cache while rows of A pass by
constexpr int64_t kFarPairs = 1024;  // pairs of a stripe of A that stay in the second cache while panels of B pass by
constexpr int64_t kStripe = 256;     // rows of A

/** The place of a tile of C. The last panel may have fewer than 16 columns. */
struct Place {
  float* c;
  int64_t ldc;
  int64_t rows;
  int columns;
  bool stream = false;  // past the caches: it is read only after the whole product
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

/** Loads tile T from its place. */
template <int T>
void begin(const Place& p) {
  if (p.columns == kSide) return loadTile<T>(p.c, p.ldc * 4);
  alignas(64) float whole[kTile];
  for (int64_t r = 0; r < p.rows; ++r) store(whole + r * kSide, loadN(p.c + r * p.ldc, p.columns));
  loadTile<T>(whole, kTileStride);
}

template <int T>
void end(const Place& p) {
  if (p.columns == kSide && !p.stream) return storeTile<T>(p.c, p.ldc * 4);
  alignas(64) float whole[kTile];
  storeTile<T>(whole, kTileStride);
  for (int64_t r = 0; r < p.rows; ++r) {
    if (p.stream) _mm512_stream_ps(p.c + r * p.ldc, load(whole + r * kSide).x);
    else storeN(p.c + r * p.ldc, load(whole + r * kSide), p.columns);
  }
}

/** Some pairs of a product: a multiple of 16, or the last 1 to 15. */
struct Pass {
  const GemmPairs& g;
  int64_t from, pairs;
  bool accumulate, complete;  // whether C is added to, and whether the sums are complete afterwards

  int64_t panels() const { return (g.n + kSide - 1) / kSide; }
  /** The tile of A with row i and this pass's pair k; both are multiples of 16. */
  const uint32_t* tile(int64_t i, int64_t k) const { return g.a + i * g.aRow + (from + k) * kSide; }
  const uint32_t* panel(int64_t p, int64_t k) const { return g.b + (p * g.pairs + from + k) * kSide; }
  Place place(int64_t i, int64_t rows, int64_t p) const {
    const int64_t columns = g.n - p * kSide;
    const int width = static_cast<int>(columns < kSide ? columns : kSide);
    return {g.c + i * g.ldc + p * kSide, g.ldc, rows, width, complete && g.stream && width == kSide};
  }
  /** Pairs that a tile of A or B has. */
  int64_t depth() const { return pairs < kSide ? pairs : kSide; }
};

/** The pairs [k, end) of a pass for 16 rows from i on and `below` more. `kept` has the sums of the pairs before k. */
struct Step {
  const Pass& s;
  int64_t k, end, i, below;
  float* kept;
};

template <int Panels>
void beginBlock(const Step& x, int64_t p) {
  const Pass& s = x.s;
  const bool again = x.k > 0;
  if (!again && s.accumulate) {
    begin<0>(s.place(x.i, kSide, p));
    begin<2>(s.place(x.i + kSide, x.below, p));
    if constexpr (Panels > 1) begin<1>(s.place(x.i, kSide, p + 1)), begin<3>(s.place(x.i + kSide, x.below, p + 1));
    return;
  }
  if (again) loadTile<0>(x.kept, kTileStride), loadTile<2>(x.kept + 2 * kTile, kTileStride);
  else zeroTile<0>(), zeroTile<2>();
  if constexpr (Panels > 1) {
    if (again) loadTile<1>(x.kept + kTile, kTileStride), loadTile<3>(x.kept + 3 * kTile, kTileStride);
    else zeroTile<1>(), zeroTile<3>();
  }
}

template <int Panels>
void endBlock(const Step& x, int64_t p) {
  const Pass& s = x.s;
  if (x.end < s.pairs) {
    storeTile<0>(x.kept, kTileStride), storeTile<2>(x.kept + 2 * kTile, kTileStride);
    if constexpr (Panels > 1) storeTile<1>(x.kept + kTile, kTileStride), storeTile<3>(x.kept + 3 * kTile, kTileStride);
    return;
  }
  end<0>(s.place(x.i, kSide, p));
  if constexpr (Panels > 1) end<1>(s.place(x.i, kSide, p + 1));
  end<2>(s.place(x.i + kSide, x.below, p));
  if constexpr (Panels > 1) end<3>(s.place(x.i + kSide, x.below, p + 1));
}

/** Some rows by one or two panels. Tiles 0 1 over 2 3 are C, 4 over 5 is A, 6 beside 7 is B. */
template <int Panels>
void block(const Step& x, int64_t p) {
  const Pass& s = x.s;
  beginBlock<Panels>(x, p);
  const uint32_t *a = s.tile(x.i, x.k), *aBelow = s.tile(x.i + kSide, x.k);
  const uint32_t *b = s.panel(p, x.k), *bRight = s.panel(p + Panels - 1, x.k);
  for (int64_t k = x.k; k < x.end; k += kSide, a += kTile, aBelow += kTile, b += kTile, bRight += kTile) {
    TILE_LOAD(4, a, kTileStride);
    TILE_LOAD(6, b, kTileStride);
    TILE_DOT(0, 4, 6);
    if constexpr (Panels > 1) {
      TILE_LOAD(7, bRight, kTileStride);
      TILE_DOT(1, 4, 7);
    }
    TILE_LOAD(5, aBelow, kTileStride);
    TILE_DOT(2, 5, 6);
    if constexpr (Panels > 1) TILE_DOT(3, 5, 7);
  }
  endBlock<Panels>(x, p);
}

/** 1 to 16 rows by one to four panels. Tiles 0 to 3 are C, 4 is A, 5 to 7 are B. Four sums hide the latency of one. */
template <int Panels>
void lowBlock(const Pass& s, int64_t i, int64_t rows, int64_t p) {
  if (s.accumulate) {
    begin<0>(s.place(i, rows, p));
    if constexpr (Panels > 1) begin<1>(s.place(i, rows, p + 1));
    if constexpr (Panels > 2) begin<2>(s.place(i, rows, p + 2));
    if constexpr (Panels > 3) begin<3>(s.place(i, rows, p + 3));
  } else {
    zeroTile<0>(), zeroTile<1>(), zeroTile<2>(), zeroTile<3>();
  }
  const uint32_t *a = s.tile(i, 0), *b = s.panel(p, 0);
  const int64_t apart = s.g.pairs * kSide;
  for (int64_t k = 0; k < s.pairs; k += kSide, a += kTile, b += kTile) {
    TILE_LOAD(4, a, kTileStride);
    TILE_LOAD(5, b, kTileStride);
    TILE_DOT(0, 4, 5);
    if constexpr (Panels > 1) {
      TILE_LOAD(6, b + apart, kTileStride);
      TILE_DOT(1, 4, 6);
    }
    if constexpr (Panels > 2) {
      TILE_LOAD(7, b + 2 * apart, kTileStride);
      TILE_DOT(2, 4, 7);
    }
    if constexpr (Panels > 3) {
      TILE_LOAD(5, b + 3 * apart, kTileStride);
      TILE_DOT(3, 4, 5);
    }
  }
  end<0>(s.place(i, rows, p));
  if constexpr (Panels > 1) end<1>(s.place(i, rows, p + 1));
  if constexpr (Panels > 2) end<2>(s.place(i, rows, p + 2));
  if constexpr (Panels > 3) end<3>(s.place(i, rows, p + 3));
}

/** Multiplies at most kStripe rows [i, end) in blocks of 16 + below. */
void tallRows(const Pass& s, int64_t i, int64_t end, int64_t below) {
  TileConfig config;
  config.set(0, 1, kSide, kSide);
  config.set(2, 3, below, kSide);
  config.set(4, 4, kSide, s.depth());
  config.set(5, 5, below, s.depth());
  config.set(6, 7, s.depth(), kSide);
  TILE_CONFIGURE(&config);
  alignas(64) float kept[kStripe * 2 * kSide];
  const int64_t panels = s.panels();
  for (int64_t p = 0; p < panels; p += 2) {
    for (int64_t k = 0; k < s.pairs; k += kNearPairs) {
      const int64_t last = k + kNearPairs < s.pairs ? k + kNearPairs : s.pairs;
      for (int64_t r = i; r < end; r += kSide + below) {
        const Step step{s, k, last, r, below, kept + (r - i) * 2 * kSide};
        if (p + 1 < panels) block<2>(step, p);
        else block<1>(step, p);
      }
    }
  }
}

void lowRows(const Pass& s, int64_t i, int64_t rows) {
  TileConfig config;
  config.set(0, 3, rows, kSide);
  config.set(4, 4, rows, s.depth());
  config.set(5, 7, s.depth(), kSide);
  TILE_CONFIGURE(&config);
  const int64_t panels = s.panels();
  int64_t p = 0;
  for (; p + 4 <= panels; p += 4) lowBlock<4>(s, i, rows, p);
  if (panels - p == 3) lowBlock<3>(s, i, rows, p);
  if (panels - p == 2) lowBlock<2>(s, i, rows, p);
  if (panels - p == 1) lowBlock<1>(s, i, rows, p);
}

void allRows(const Pass& s) {
  const int64_t tall = s.g.m / (2 * kSide) * 2 * kSide, rest = s.g.m - tall;
  for (int64_t i = 0; i < tall; i += kStripe) tallRows(s, i, i + kStripe < tall ? i + kStripe : tall, kSide);
  if (rest > kSide) tallRows(s, tall, s.g.m, rest - kSide);
  else if (rest > 0) lowRows(s, tall, rest);
}

/** The pairs after the last multiple of 16 are added in a pass of their own, since tiles have another shape there. */
void gemmOnTiles(const GemmPairs& g) {
  const int64_t whole = g.pairs / kSide * kSide;
  for (int64_t k = 0; k < whole; k += kFarPairs) {
    const int64_t end = k + kFarPairs < whole ? k + kFarPairs : whole;
    allRows({g, k, end - k, g.accumulate || k > 0, end == g.pairs});
  }
  if (whole < g.pairs) allRows({g, whole, g.pairs - whole, g.accumulate || whole > 0, true});
  TILE_RELEASE();
  if (g.stream) _mm_sfence();  // so that the next thread that reads C sees the streamed rows
}

}  // namespace
}  // namespace petrel::PETREL_ISA_NAMESPACE
