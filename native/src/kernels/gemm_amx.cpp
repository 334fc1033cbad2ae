// Products of pairs on the tile registers of AMX.
#include "gemm_tiles.h"

namespace petrel::PETREL_ISA_NAMESPACE {

void gemm(const GemmPairs& g) { gemmOnTiles(g); }

}  // namespace petrel::PETREL_ISA_NAMESPACE
