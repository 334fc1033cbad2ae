#include "team.h"

#include <algorithm>

namespace petrel {
namespace {

constexpr int64_t kRowBlockFloats = 96 * 1024;  // A block of A that stays in the second cache
constexpr int64_t kFp32Rows = 12;               // a multiple of the rows of every register tile
constexpr int64_t kTileRows = 256;              // kStripe of gemm_tiles.h, which cuts k by itself
constexpr int64_t kStreamed = 1 << 20;          // floats of C that no cache keeps until they are read

/** Rows of A, a multiple of `unit` and at most 20, that stay in the second cache. */
int64_t fittingRows(int64_t k, int64_t unit) {
  return std::clamp<int64_t>(kRowBlockFloats / std::max<int64_t>(k, 1) / unit * unit, unit, 20 * unit);
}

/** How C is cut: blocks of at most `fits` rows (a multiple of `unit`), and of panels where rows are few. */
struct Cut {
  int64_t rows, rowBlocks, panels, groups;
  Cut(int64_t m, int64_t n, int64_t fits, int64_t unit) {
    const int64_t threads = teamSize();
    const int64_t share = (m + threads - 1) / threads;
    rows = std::min(fits, std::max<int64_t>(unit, (share + unit - 1) / unit * unit));
    rowBlocks = (m + rows - 1) / rows;
    const int64_t all = (n + kPanel - 1) / kPanel;
    const int64_t wanted = rowBlocks >= 4 * threads ? 1 : (4 * threads + rowBlocks - 1) / rowBlocks;
    panels = std::max<int64_t>(8, (all + wanted - 1) / wanted);
    groups = (all + panels - 1) / panels;
  }
};

/** f(row, rows, panel, columns) for every block. */
template <class F>
void forEachBlock(int64_t m, int64_t n, int64_t fits, int64_t unit, F&& f) {
  const Cut cut(m, n, fits, unit);
  const int64_t items = cut.rowBlocks * cut.groups;
  shareOut(items, 1, [&](int64_t item, int) {
    const int64_t i = item / cut.groups * cut.rows, p = item % cut.groups * cut.panels;
    f(i, std::min(cut.rows, m - i), p, std::min(cut.panels * kPanel, n - p * kPanel));
  });
}

}  // namespace

void gemmOnTeam(const GemmBlock& g) {
  forEachBlock(g.m, g.n, fittingRows(g.k, kFp32Rows), kFp32Rows,
               [&](int64_t i, int64_t rows, int64_t p, int64_t columns) {
                 GemmBlock part = g;
                 part.m = rows;
                 part.n = columns;
                 part.a += i * g.aRow;
                 part.b += p * g.bPanel;
                 part.c += i * g.ldc + p * kPanel;
                 kernels().gemm(part);
               });
}

void gemmPairsOnTeam(const GemmPairs& g) {
  const Bf16Kernels& k = bf16Kernels();
  const int64_t fits = k.tiles ? kTileRows : fittingRows(g.pairs, k.rowUnit);
  const bool aligned = reinterpret_cast<uintptr_t>(g.c) % 64 == 0 && g.ldc % kPanel == 0;
  const bool stream = k.tiles && aligned && !g.accumulate && g.m * g.n >= kStreamed;
  forEachBlock(g.m, g.n, fits, k.rowUnit, [&](int64_t i, int64_t rows, int64_t p, int64_t columns) {
    GemmPairs part = g;
    part.stream = stream;
    part.m = rows;
    part.n = columns;
    part.a += i * g.aRow;
    part.b += p * g.pairs * kPanel;
    part.c += i * g.ldc + p * kPanel;
    k.gemm(part);
  });
}

}  // namespace petrel
