// Loops that show what the processor itself reaches: register tiles whose operands stay in the first-level cache, and
// reading of memory. They compute nothing that anybody needs. The unit of an operand is 32 bits: one fp32, or a pair of
// bf16.
#pragma once
#include <stdint.h>

namespace petrel {

constexpr int64_t kPeakSteps = 16;          // units of k whose operands are used again and again
constexpr int64_t kPeakOperand = 4 * 1024;  // units of an operand buffer, the same in every place
constexpr int64_t kPeakResult = 1024;       // floats of the place where every tile is stored

/** A product [m, n] over `steps` units of k, tile by tile. Every tile is stored to the same place c. */
struct PeakProduct {
  int64_t m, n, steps;
  const float *a, *b;  // kPeakOperand units each
  float* c;            // kPeakResult floats; the first 16 belong to the first row of the last tile
};

// peakFp32: fused multiply-adds. peakBf16: dot products of pairs, where isa() is avx512_bf16 or amx.
// peakAmx: tiles of pairs, where peakClass() is amx. readSum: the sum of n floats, n a multiple of 64.
namespace avx2 {
void peakFp32(const PeakProduct& product);
float readSum(const float* data, int64_t n);
}  // namespace avx2
namespace avx512 {
void peakFp32(const PeakProduct& product);
float readSum(const float* data, int64_t n);
}  // namespace avx512
namespace avx512_bf16 {
void peakBf16(const PeakProduct& product);
}
namespace amx {
void peakAmx(const PeakProduct& product);
}

}  // namespace petrel
