#include "peak_tile.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

__m512bh pairs(v16 units) { return (__m512bh)_mm512_castps_si512(units.x); }

struct Bf16Pairs {
  static v16 multiplyAdd(v16 a, v16 b, v16 sum) { return {_mm512_dpbf16_ps(sum.x, pairs(a), pairs(b))}; }
};

}  // namespace

void peakBf16(const PeakProduct& product) { peakProduct<Bf16Pairs>(product); }

}  // namespace petrel::PETREL_ISA_NAMESPACE
