// oneDNN for large bf16 products. On processors with tile registers (AMX) it is several times as fast as our own kernels; without
// them the two are equal for many rows and ours win for few, so there it stays out. PETREL_MATMUL=onednn|own overrides.
#pragma once
#include <cstdint>

#include "kernels_bf16.h"

namespace petrel {

/** Whether products should go to oneDNN on this machine. */
bool oneDnnWanted();

/** Whether oneDNN computes the engine's large products with AMX tiles. ONEDNN_MAX_CPU_ISA lowers it. */
bool oneDnnUsesAmx();

/**
 * C[m,n] (+)= A·B with A(i,k) = a[i·aRow + k·aK] in bf16 and B as panels of pairs (kernels_bf16.h), k a multiple of 32.
 * Primitives are cached by shape, so shapes must be few. False, and nothing done, where oneDNN has only its reference code for a
 * shape (as for weight gradients, whose left side is transposed): that is a thousand times slower.
 */
bool oneDnnProduct(int64_t m, int64_t n, int64_t k, const uint16_t* a, int64_t aRow, int64_t aK, const uint32_t* b,
                   float* c, int64_t ldc, bool accumulate);

/** As gemmPairsOnTeam, rows in pieces of 4096, 2048 … 64 by oneDNN where it is wanted and can; the rest by our own kernels. */
void pairsProduct(const GemmPairs& g);

}  // namespace petrel
