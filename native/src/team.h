// How work is split over the team of threads. None of the splits changes a sum.
#pragma once
#include "crew.h"
#include "kernels.h"
#include "kernels_bf16.h"

namespace petrel {

/** C (+)= A·B over the team: blocks of rows, and of panels where rows are few. Every element belongs to one thread. */
void gemmOnTeam(const GemmBlock& g);
void gemmPairsOnTeam(const GemmPairs& g);

/** f(row) for rows [0, n), in a few contiguous ranges per thread. */
template <class F>
void forEachRow(int64_t n, F&& f) {
  const int64_t ranges = 4 * teamSize();
  shareOut(n, (n + ranges - 1) / ranges, [&](int64_t i, int) { f(i); });
}

/**
 * Sums over rows with one order whatever the number of threads: rows are cut into at most 32 blocks by their count
 * alone, f(row, partial) adds a row into its block's partial [width], and the partials are added to `total` in block
 * order. `partials` holds 32·width floats.
 */
template <class F>
void sumOverRows(int64_t n, int64_t width, float* partials, float* total, F&& f) {
  const int64_t blocks = n < 64 ? 1 : n / 64 < 32 ? n / 64 : 32;
  shareOut(blocks, 1, [&](int64_t b, int) {
    float* partial = partials + b * width;
    for (int64_t i = 0; i < width; ++i) partial[i] = 0;
    for (int64_t row = b * n / blocks; row < (b + 1) * n / blocks; ++row) f(row, partial);
  });
  for (int64_t b = 0; b < blocks; ++b) kernels().addInto(total, partials + b * width, width);
}

}  // namespace petrel
