// Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011): a bijection of 128-bit counters under a 64-bit key. No state: the same (key, counter) gives the
// same bits on every machine, in any order.
#pragma once

#include <array>
#include <cstdint>

namespace petrel {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline PhiloxCounter philox4x32(PhiloxCounter c, PhiloxKey k) {
  for (int round = 0; round < 10; round++) {
    const uint64_t a = uint64_t(0xD2511F53u) * c[0];
    const uint64_t b = uint64_t(0xCD9E8D57u) * c[2];
    c = {uint32_t(b >> 32) ^ c[1] ^ k[0], uint32_t(b), uint32_t(a >> 32) ^ c[3] ^ k[1], uint32_t(a)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

// A double in [0, 1) with 53 random bits: the first word gives the high 27, the second the low 26.
inline double philoxUniform(const PhiloxCounter& bits) {
  return (double(bits[0] >> 5) * 67108864.0 + double(bits[1] >> 6)) * 0x1p-53;
}

}  // namespace petrel
