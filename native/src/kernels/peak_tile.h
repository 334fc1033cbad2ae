// The loop of peak.cpp and peak_bf16.cpp: register tiles over operands that never leave the first-level cache. A tile
// has enough accumulators to hide the latency of an instruction, whatever its height.
#pragma once
#include "../kernels_peak.h"
#include "../vec.h"

namespace petrel::PETREL_ISA_NAMESPACE {

#if defined(__AVX512F__)
constexpr int kTallest = 12;
constexpr int widest(int rows) {
  return rows == 1 ? 16 : rows == 2 ? 8 : rows == 3 ? 6 : rows <= 6 ? 4 : rows <= 8 ? 3 : 2;
}
#else
constexpr int kTallest = 6;
constexpr int widest(int rows) { return rows == 1 ? 6 : rows == 2 ? 3 : rows == 3 ? 2 : 1; }
#endif

/** How the rest of a length is cut: into as few parts as possible, of about the same size. */
static inline int64_t nextPart(int64_t rest, int64_t most) {
  const int64_t parts = (rest + most - 1) / most;
  return (rest + parts - 1) / parts;
}

/** R rows by P panels of 16 columns. `Unit` says how 16 sums take up the product of two units of k. */
template <class Unit, int R, int P>
static void peakTile(const PeakProduct& g) {
  v16 acc[R][P];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) acc[r][p] = zero();
  }
  for (int64_t left = g.steps; left > 0; left -= kPeakSteps) {
    const int64_t end = left < kPeakSteps ? left : kPeakSteps;
    for (int64_t k = 0; k < end; ++k) {
      v16 bv[P];
#pragma GCC unroll 16
      for (int p = 0; p < P; ++p) bv[p] = load(g.b + (p * kPeakSteps + k) * 16);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        const v16 av = set1(g.a[k * kTallest + r]);
#pragma GCC unroll 16
        for (int p = 0; p < P; ++p) acc[r][p] = Unit::multiplyAdd(av, bv[p], acc[r][p]);
      }
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < P; ++p) store(g.c + (r * P + p) * 16, acc[r][p]);
  }
}

/** A tile of R rows and `panels` panels, 1 … P. */
template <class Unit, int R, int P>
static void peakPanels(const PeakProduct& g, int64_t panels) {
  if constexpr (P > 1) {
    if (panels < P) return peakPanels<Unit, R, P - 1>(g, panels);
  }
  peakTile<Unit, R, P>(g);
}

/** All tiles of `rows` rows, 1 … R. */
template <class Unit, int R>
static void peakRows(const PeakProduct& g, int64_t rows) {
  if constexpr (R > 1) {
    if (rows < R) return peakRows<Unit, R - 1>(g, rows);
  }
  for (int64_t rest = (g.n + 15) / 16, part; rest > 0; rest -= part) {
    part = nextPart(rest, widest(R));
    peakPanels<Unit, R, widest(R)>(g, part);
  }
}

template <class Unit>
static void peakProduct(const PeakProduct& g) {
  for (int64_t rest = g.m, part; rest > 0; rest -= part) {
    part = nextPart(rest, kTallest);
    peakRows<Unit, kTallest>(g, part);
  }
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
