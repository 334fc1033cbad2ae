#include "block_digests.h"

#include <cpuid.h>

#include <algorithm>

#include "crew.h"
#include "kernels_sha.h"

namespace petrel {

bool hasSha() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & 1u << 29) != 0;
  }();
  return has;
}

void blockDigests(const uint8_t* data, int64_t bytes, int64_t block, uint8_t* digests) {
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

}  // namespace petrel
