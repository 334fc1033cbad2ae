// Tile registers in memory, as Intel's manual describes them, for tests on processors that have none. Denormal numbers
// are not made 0, which the processor does.
#pragma once
#include "../vec.h"
#include "tiles.h"

namespace petrel::PETREL_ISA_NAMESPACE {

struct EmulatedTiles {
  TileConfig config;
  alignas(64) uint32_t tiles[8][16][16];

  int rows(int t) const { return config.rows[t]; }
  int width(int t) const { return config.rowBytes[t] / 4; }

  void configure(const TileConfig* wanted) {
    config = *wanted;
    for (int t = 0; t < 8; ++t) zero(t);
  }
  void zero(int t) {
    for (int r = 0; r < 16; ++r) _mm512_store_si512(tiles[t][r], _mm512_setzero_si512());
  }
  void load(int t, const void* from, int64_t stride) {
    zero(t);
    for (int r = 0; r < rows(t); ++r) {
      const void* row = static_cast<const char*>(from) + r * stride;
      _mm512_store_si512(tiles[t][r], _mm512_maskz_loadu_epi32(firstLanes(width(t)), row));
    }
  }
  void store(int t, void* to, int64_t stride) const {
    for (int r = 0; r < rows(t); ++r) {
      void* row = static_cast<char*>(to) + r * stride;
      _mm512_mask_storeu_epi32(row, firstLanes(width(t)), _mm512_load_si512(tiles[t][r]));
    }
  }
  /** TDPBF16PS: the lower and the upper halves of the pairs are summed apart, then together, then into the tile. */
  void dot(int sums, int a, int b) {
    const __m512i upper = _mm512_set1_epi32(static_cast<int>(0xffff0000));
    for (int r = 0; r < rows(sums); ++r) {
      __m512 low = _mm512_setzero_ps(), high = _mm512_setzero_ps();
      for (int k = 0; k < width(a); ++k) {
        const __m512i left = _mm512_set1_epi32(static_cast<int>(tiles[a][r][k]));
        const __m512i right = _mm512_load_si512(tiles[b][k]);
        low = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(left, 16)),
                              _mm512_castsi512_ps(_mm512_slli_epi32(right, 16)), low);
        high = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(left, upper)),
                               _mm512_castsi512_ps(_mm512_and_si512(right, upper)), high);
      }
      auto* row = reinterpret_cast<float*>(tiles[sums][r]);
      _mm512_store_ps(row, _mm512_add_ps(_mm512_load_ps(row), _mm512_add_ps(low, high)));
    }
  }
};

static thread_local EmulatedTiles emulated;

}  // namespace petrel::PETREL_ISA_NAMESPACE

#define TILE_CONFIGURE(config) emulated.configure(config)
#define TILE_RELEASE() static_cast<void>(0)
#define TILE_ZERO(t) emulated.zero(t)
#define TILE_LOAD(t, from, stride) emulated.load(t, from, stride)
#define TILE_STORE(t, to, stride) emulated.store(t, to, stride)
#define TILE_DOT(sums, a, b) emulated.dot(sums, a, b)
