// Digests of the blocks of a part of a state: the leaves of its digest (log/objects/digest.ts).
#pragma once
#include <cstdint>

namespace petrel {

constexpr int64_t kDigestBytes = 32;

enum class BlockHash { sha256, blake3 };

/**
 * digests[blocks][32] of each `block` bytes of data, on the team of threads. The last block may be shorter. SHA-256
 * only where hasSha().
 */
void blockDigests(BlockHash hash, const uint8_t* data, int64_t bytes, int64_t block, uint8_t* digests);

}  // namespace petrel
