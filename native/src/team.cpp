#include "team.h"

#include <algorithm>

namespace petrel {
namespace {

constexpr int64_t kRowBlockFloats = 96 * 1024;  // A block of A that stays in the second cache

int64_t rowsPerBlock(const GemmBlock& g, int threads) {
  const int64_t fits = std::clamp<int64_t>(kRowBlockFloats / std::max<int64_t>(g.k, 1) / 12 * 12, 12, 240);
  const int64_t share = (g.m + threads - 1) / threads;
  return std::min(fits, std::max<int64_t>(12, (share + 11) / 12 * 12));
}

}  // namespace

void gemmOnTeam(const GemmBlock& g) {
  const int threads = omp_get_max_threads();
  const int64_t rows = rowsPerBlock(g, threads), rowBlocks = (g.m + rows - 1) / rows;
  const int64_t panels = (g.n + kPanel - 1) / kPanel;
  const int64_t wanted = rowBlocks >= 4 * threads ? 1 : (4 * threads + rowBlocks - 1) / rowBlocks;
  const int64_t perGroup = std::max<int64_t>(8, (panels + wanted - 1) / wanted), groups = (panels + perGroup - 1) / perGroup;
#pragma omp parallel for schedule(dynamic) if (rowBlocks * groups > 1)
  for (int64_t item = 0; item < rowBlocks * groups; ++item) {
    const int64_t i = item / groups * rows, p = item % groups * perGroup;
    GemmBlock part = g;
    part.m = std::min(rows, g.m - i);
    part.n = std::min(perGroup * kPanel, g.n - p * kPanel);
    part.a += i * g.aRow;
    part.b += p * g.bPanel;
    part.c += i * g.ldc + p * kPanel;
    kernels().gemm(part);
  }
}

}  // namespace petrel
