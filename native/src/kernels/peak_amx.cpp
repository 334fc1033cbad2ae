// AMX: blocks of 2 × 2 tiles of C, or 1 × 4 where rows are few; 16 pairs of k at a time.
#include "../kernels_peak.h"
#include "tiles.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

constexpr int kTile = 256;    // floats of a tile
constexpr int kTilesOfK = 4;  // tiles of each operand that are used again and again
static_assert(4 * kTilesOfK * kTile <= kPeakOperand && 4 * kTile <= kPeakResult);

/** The rows of tiles 0 to 7. */
void configure(const int64_t (&rows)[8]) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) config.set(t, t, rows[t], 16);
  TILE_CONFIGURE(&config);
}

/** Offset of the tiles of the next 16 pairs in an operand's panel or rows. */
int64_t tileOfK(int64_t k) { return k / 16 % kTilesOfK * kTile; }
constexpr int64_t kApart = kTilesOfK * kTile;

/** Two tiles of rows by `Columns` panels: 0 to 3 are C, 4 and 5 rows of A, 6 and 7 panels of B. */
template <int Columns>
void block(const PeakProduct& g) {
  _tile_zero(0);
  _tile_zero(2);
  if constexpr (Columns > 1) {
    _tile_zero(1);
    _tile_zero(3);
  }
  for (int64_t k = 0; k < g.steps; k += 16) {
    const float *a = g.a + tileOfK(k), *b = g.b + tileOfK(k);
    _tile_loadd(4, a, 64);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, a + kApart, 64);
    _tile_dpbf16ps(2, 5, 6);
    if constexpr (Columns > 1) {
      _tile_loadd(7, b + kApart, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, g.c, 64);
  _tile_stored(2, g.c + 2 * kTile, 64);
  if constexpr (Columns > 1) {
    _tile_stored(1, g.c + kTile, 64);
    _tile_stored(3, g.c + 3 * kTile, 64);
  }
}

/** One tile of rows by `Columns` panels: 0 to 3 are C, 4 rows of A, 5 to 7 panels of B. */
template <int Columns>
void wideBlock(const PeakProduct& g) {
  _tile_zero(0);
  if constexpr (Columns > 1) _tile_zero(1);
  if constexpr (Columns > 2) _tile_zero(2);
  if constexpr (Columns > 3) _tile_zero(3);
  for (int64_t k = 0; k < g.steps; k += 16) {
    const float* b = g.b + tileOfK(k);
    _tile_loadd(4, g.a + tileOfK(k), 64);
    _tile_loadd(5, b, 64);
    _tile_dpbf16ps(0, 4, 5);
    if constexpr (Columns > 1) {
      _tile_loadd(6, b + kApart, 64);
      _tile_dpbf16ps(1, 4, 6);
    }
    if constexpr (Columns > 2) {
      _tile_loadd(7, b + 2 * kApart, 64);
      _tile_dpbf16ps(2, 4, 7);
    }
    if constexpr (Columns > 3) {
      _tile_loadd(5, b + 3 * kApart, 64);
      _tile_dpbf16ps(3, 4, 5);
    }
  }
  _tile_stored(0, g.c, 64);
  if constexpr (Columns > 1) _tile_stored(1, g.c + kTile, 64);
  if constexpr (Columns > 2) _tile_stored(2, g.c + 2 * kTile, 64);
  if constexpr (Columns > 3) _tile_stored(3, g.c + 3 * kTile, 64);
}

/** 17 to 32 rows of C. */
void stripe(const PeakProduct& g, int64_t rows) {
  configure({16, 16, rows - 16, rows - 16, 16, rows - 16, 16, 16});
  int64_t panels = (g.n + 15) / 16;
  for (; panels >= 2; panels -= 2) block<2>(g);
  if (panels > 0) block<1>(g);
}

/** 1 to 16 rows of C. Four sums at a time hide the latency of an instruction. */
void lowStripe(const PeakProduct& g, int64_t rows) {
  configure({rows, rows, rows, rows, rows, 16, 16, 16});
  int64_t panels = (g.n + 15) / 16;
  for (; panels >= 4; panels -= 4) wideBlock<4>(g);
  if (panels == 3) wideBlock<3>(g);
  if (panels == 2) wideBlock<2>(g);
  if (panels == 1) wideBlock<1>(g);
}

}  // namespace

void peakAmx(const PeakProduct& g) {
  int64_t rows = g.m;
  for (; rows > 16; rows -= rows < 32 ? rows : 32) stripe(g, rows < 32 ? rows : 32);
  if (rows > 0) lowStripe(g, rows);
  _tile_release();
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
