// Compiled for the SHA extensions. State words lie as the instructions want them: [a b e f] and [c d g h].
#include <immintrin.h>

#include "../kernels_sha.h"

namespace petrel::sha {
namespace {

constexpr int kBlock = 64;

alignas(16) const uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/** a b c d e f g h, big-endian words of the digest in this order. */
const uint32_t kInitial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                              0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

struct State {
  __m128i abef, cdgh;
};

State initial() {
  const uint32_t* i = kInitial;
  return {_mm_set_epi32(int(i[0]), int(i[1]), int(i[4]), int(i[5])),
          _mm_set_epi32(int(i[2]), int(i[3]), int(i[6]), int(i[7]))};
}

/** Words are big-endian in the message. */
__m128i words(const uint8_t* p) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  return _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), swap);
}

/** One block of N messages. */
template <int N>
void compress(State* states, const uint8_t* const* blocks) {
  State s[N];
  __m128i w[N][4];
  for (int n = 0; n < N; ++n) {
    s[n] = states[n];
    for (int i = 0; i < 4; ++i) w[n][i] = words(blocks[n] + 16 * i);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i*>(kRounds + 4 * i));
#pragma GCC unroll 2
    for (int n = 0; n < N; ++n) {
      __m128i* v = w[n];
      if (i >= 4) {
        const __m128i last = v[(i + 3) % 4], before = v[(i + 2) % 4];
        const __m128i sum =
            _mm_add_epi32(_mm_sha256msg1_epu32(v[i % 4], v[(i + 1) % 4]), _mm_alignr_epi8(last, before, 4));
        v[i % 4] = _mm_sha256msg2_epu32(sum, last);
      }
      const __m128i wk = _mm_add_epi32(v[i % 4], k);
      s[n].cdgh = _mm_sha256rnds2_epu32(s[n].cdgh, s[n].abef, wk);
      s[n].abef = _mm_sha256rnds2_epu32(s[n].abef, s[n].cdgh, _mm_shuffle_epi32(wk, 0x0e));
    }
  }
  for (int n = 0; n < N; ++n) {
    states[n].abef = _mm_add_epi32(states[n].abef, s[n].abef);
    states[n].cdgh = _mm_add_epi32(states[n].cdgh, s[n].cdgh);
  }
}

void storeWord(uint8_t* to, uint32_t word) {
  for (int i = 0; i < 4; ++i) to[i] = uint8_t(word >> (24 - 8 * i));
}

void store(const State& s, uint8_t* digest) {
  alignas(16) uint32_t abef[4], cdgh[4];
  _mm_store_si128(reinterpret_cast<__m128i*>(abef), s.abef);
  _mm_store_si128(reinterpret_cast<__m128i*>(cdgh), s.cdgh);
  const uint32_t order[8] = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
  for (int i = 0; i < 8; ++i) storeWord(digest + 4 * i, order[i]);
}

/** The rest of a message with its padding: one or two blocks. */
int pad(const uint8_t* rest, int64_t count, int64_t bytes, uint8_t* to) {
  const int blocks = count + 9 <= kBlock ? 1 : 2;
  for (int i = 0; i < blocks * kBlock; ++i) to[i] = i < count ? rest[i] : i == count ? 0x80 : 0;
  const uint64_t bits = uint64_t(bytes) * 8;
  for (int i = 0; i < 8; ++i) to[blocks * kBlock - 8 + i] = uint8_t(bits >> (56 - 8 * i));
  return blocks;
}

template <int N>
void hashOf(const uint8_t* const* messages, int64_t bytes, uint8_t* digests) {
  State states[N];
  for (int n = 0; n < N; ++n) states[n] = initial();
  const int64_t whole = bytes / kBlock;
  const uint8_t* at[N];
  for (int64_t b = 0; b < whole; ++b) {
    for (int n = 0; n < N; ++n) at[n] = messages[n] + b * kBlock;
    compress<N>(states, at);
  }
  for (int n = 0; n < N; ++n) {
    uint8_t last[2 * kBlock];
    const int blocks = pad(messages[n] + whole * kBlock, bytes - whole * kBlock, bytes, last);
    for (int b = 0; b < blocks; ++b) {
      const uint8_t* const block = last + b * kBlock;
      compress<1>(states + n, &block);
    }
    store(states[n], digests + 32 * n);
  }
}

}  // namespace

void hash(const uint8_t* const* messages, int count, int64_t bytes, uint8_t* digests) {
  if (count == kShaAtOnce) hashOf<kShaAtOnce>(messages, bytes, digests);
  else hashOf<1>(messages, bytes, digests);
}

}  // namespace petrel::sha
