// The eight tile registers of AMX. A tile has up to 16 rows of up to 64 bytes: 16 sums in fp32, or 16 pairs of bf16.
// Instructions name a tile by a literal number, so these are macros. With PETREL_EMULATED_TILES the tiles lie in memory
// (emulated_tiles.h).
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace petrel::PETREL_ISA_NAMESPACE {

/** What the processor reads for TILE_CONFIGURE. */
struct alignas(64) TileConfig {
  uint8_t palette = 1, startRow = 0, reserved[14] = {};
  uint16_t rowBytes[16] = {};
  uint8_t rows[16] = {};

  /** The tiles from `first` to `last` have `height` rows of `width` units of 32 bits. */
  void set(int first, int last, int64_t height, int64_t width) {
    for (int t = first; t <= last; ++t) {
      rows[t] = static_cast<uint8_t>(height);
      rowBytes[t] = static_cast<uint16_t>(4 * width);
    }
  }
};

}  // namespace petrel::PETREL_ISA_NAMESPACE

#ifdef PETREL_EMULATED_TILES
#include "emulated_tiles.h"
#else

// g++ believes that a load of a tile or of its configuration reads no memory (one of the latter: 8 bytes), and may
// remove or move the stores before it. The empty statement tells it that all memory is read.
#define TILES_READ_MEMORY __asm__ volatile("" ::: "memory")

#define TILE_CONFIGURE(config) \
  do {                         \
    TILES_READ_MEMORY;         \
    _tile_loadconfig(config);  \
  } while (false)
#define TILE_RELEASE() _tile_release()
#define TILE_ZERO(t) _tile_zero(t)
/** `stride` in bytes. */
#define TILE_LOAD(t, from, stride) \
  do {                             \
    TILES_READ_MEMORY;             \
    _tile_loadd(t, from, stride);  \
  } while (false)
#define TILE_STORE(t, to, stride) _tile_stored(t, to, stride)
/** sums += a · b, two bf16 products for each pair. */
#define TILE_DOT(sums, a, b) _tile_dpbf16ps(sums, a, b)

#endif
