// Which instruction set the kernels use: probed once per process, lowered by PETREL_ISA=avx2|avx512|avx512_bf16|amx.
#pragma once
#include <string>

namespace petrel {

enum class Isa { avx2 = 0, avx512 = 1, avx512_bf16 = 2, amx = 3 };

/**
 * The path in use. Throws std::runtime_error when the processor lacks AVX2, FMA and F16C, or PETREL_ISA asks for more
 * than there is.
 */
Isa isa();

const char* isaName(Isa isa);

/**
 * Whether the tiles of amx lie in memory: PETREL_TILES=emulated with PETREL_ISA=amx, for tests on processors without
 * tiles.
 */
bool tilesAreEmulated();

/** One of two tables of kernels (a kernel file is compiled for both). */
template <class Table>
const Table& pick(const Table& avx2, const Table& avx512) {
  return isa() == Isa::avx2 ? avx2 : avx512;
}

}  // namespace petrel
