// The same on tiles in memory: tests run the products of AMX on processors without it (PETREL_TILES=emulated).
#define PETREL_EMULATED_TILES
#include "gemm_tiles.h"

namespace petrel::PETREL_ISA_NAMESPACE {

void gemmOnEmulatedTiles(const GemmPairs& g) { gemmOnTiles(g); }

}  // namespace petrel::PETREL_ISA_NAMESPACE
