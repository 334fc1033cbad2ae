#include "block_digests.h"

#include <cpuid.h>

#include <algorithm>

#include "crew.h"
#include "kernels.h"
#include "kernels_sha.h"

namespace petrel {

bool hasSha() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & 1u << 29) != 0;
  }();
  return has;
}

namespace {

void sha256Digests(const uint8_t* data, int64_t bytes, int64_t block, uint8_t* digests) {
  const int64_t blocks = (bytes + block - 1) / block, items = (blocks + kShaAtOnce - 1) / kShaAtOnce;
  shareOut(items, 1, [&](int64_t item, int) {
    for (int64_t i = item * kShaAtOnce; i < std::min(blocks, (item + 1) * kShaAtOnce);) {
      const int64_t length = std::min(block, bytes - i * block);
      const bool pair = i % kShaAtOnce == 0 && (i + 2) * block <= bytes;
      const uint8_t* const messages[kShaAtOnce] = {data + i * block, data + (pair ? i + 1 : i) * block};
      sha::hash(messages, pair ? kShaAtOnce : 1, length, digests + i * kDigestBytes);
      i += pair ? kShaAtOnce : 1;
    }
  });
}

}  // namespace

void blockDigests(BlockHash hash, const uint8_t* data, int64_t bytes, int64_t block, uint8_t* digests) {
  if (hash == BlockHash::sha256) return sha256Digests(data, bytes, block, digests);
  const Kernels& k = kernels();
  shareOut((bytes + block - 1) / block, 1, [&](int64_t i, int) {
    k.blake3(data + i * block, std::min(block, bytes - i * block), digests + i * kDigestBytes);
  });
}

}  // namespace petrel
