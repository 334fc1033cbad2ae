#include "peak_tile.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

struct Fp32 {
  static v16 multiplyAdd(v16 a, v16 b, v16 sum) { return fma(a, b, sum); }
};

}  // namespace

void peakFp32(const PeakProduct& product) { peakProduct<Fp32>(product); }

float readSum(const float* data, int64_t n) {
  v16 sums[4] = {zero(), zero(), zero(), zero()};
  for (int64_t i = 0; i < n; i += 64) {
#pragma GCC unroll 4
    for (int s = 0; s < 4; ++s) sums[s] = add(sums[s], load(data + i + 16 * s));
  }
  return reduceAdd(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
