#include "kernels_bf16.h"

#include <stdexcept>

#include "isa.h"

namespace petrel {
namespace avx512_bf16 {
extern const Bf16Kernels table;
void gemmOnEmulatedTiles(const GemmPairs& g);
}  // namespace avx512_bf16
namespace amx {
void gemm(const GemmPairs& g);
}

namespace {

Bf16Kernels choose() {
  Bf16Kernels chosen = avx512_bf16::table;
  if (isa() < Isa::amx) return chosen;
  chosen.tiles = true;
  chosen.rowUnit = 32;
  chosen.gemm = avx512_bf16::gemmOnEmulatedTiles;
#ifdef PETREL_AMX_KERNELS
  if (!tilesAreEmulated()) chosen.gemm = amx::gemm;
#endif
  return chosen;
}

}  // namespace

const Bf16Kernels& bf16Kernels() {
  if (isa() < Isa::avx512_bf16)
    throw std::runtime_error("compute bf16 needs AVX512_BF16; the path in use is " + std::string(isaName(isa())));
  static const Bf16Kernels chosen = choose();
  return chosen;
}

}  // namespace petrel
