// Products of bf16 with fp32 sums, on AVX512_BF16 and AMX. The unit is a pair: two bf16 that are neighbours in k, as 32
// bits, low half first; an odd last k is paired with 0. Sums: one accumulator per element, pairs ascending (with AMX 16
// pairs at a time); so the order is as fixed as in fp32, but the instruction's inner rounding is the processor's.
#pragma once
#include <stdint.h>

namespace petrel {

/**
 * C[m,n] = A·B, or C += A·B. A(i,pair) = a[i·aRow + pair·aK], or with `Bf16Kernels::tiles` tiles of 16 rows by 16
 * pairs, [ceil(m/16)][ceil(pairs/16)][16][16], aRow = 16·ceil(pairs/16). b: panels [ceil(n/16)][pairs][16].
 */
struct GemmPairs {
  int64_t m, n, pairs;
  const uint32_t* a;
  int64_t aRow, aK;
  const uint32_t* b;
  float* c;
  int64_t ldc;
  bool accumulate;
  bool stream = false;  // C may be written past the caches; then c and ldc are multiples of 64 bytes
};

struct Bf16Kernels {
  void (*gemm)(const GemmPairs& block);
  /** ceil(n/2) pairs of one row of fp32. Each 16 of them lie together, `apart` units behind the 16 before. */
  void (*pairsOfRow)(const float* src, int64_t n, uint32_t* dst, int64_t apart);
  /**
   * n pairs (first[j], second[j]), (first[j], 0) when second is null; 0 up to a multiple of 16. They lie as in
   * pairsOfRow.
   */
  void (*interleave)(const float* first, const float* second, int64_t n, uint32_t* dst, int64_t apart);
  /** Panels [ceil(n/16)][ceil(k/2)][16], `apart` units from each other, from src[k][n]; missing columns are 0. */
  void (*panelsFromRows)(const float* src, int64_t ld, int64_t k, int64_t n, uint32_t* dst, int64_t apart);
  /** One panel [ceil(k/2)][16] from up to 16 rows of length k; missing rows are 0. */
  void (*panelFromColumns)(const float* const* rows, int64_t count, int64_t k, uint32_t* dst);
  /**
   * A of GemmPairs in tiles, the transpose of src[k][n]: n rows whose pairs are neighbours in k. What is missing is 0.
   */
  void (*tilesFromColumns)(const float* src, int64_t ld, int64_t k, int64_t n, uint32_t* dst);
  /** Whether A of `gemm` lies in tiles. */
  bool tiles;
  /** Rows of C by which `gemm` is quickest; a block should have a multiple of them. */
  int64_t rowUnit;
};

/** Kernels of avx512_bf16, or of amx. Throws std::runtime_error where isa() is lower. */
const Bf16Kernels& bf16Kernels();

}  // namespace petrel
