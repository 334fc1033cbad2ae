// Vectors of 32-bit words for hashing: 16 with AVX-512, 8 with AVX2. Word i of each vector belongs to message i.
// Only for files under kernels/: everything here has internal linkage.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace petrel::PETREL_ISA_NAMESPACE {

#if defined(__AVX512F__)

constexpr int kWords = 16;
struct words {
  __m512i x;
};

static inline words broadcast(uint32_t a) { return {_mm512_set1_epi32(int(a))}; }
static inline words add(words a, words b) { return {_mm512_add_epi32(a.x, b.x)}; }
static inline words bitXor(words a, words b) { return {_mm512_xor_si512(a.x, b.x)}; }
template <int n>
static inline words rotateRight(words a) {
  return {_mm512_ror_epi32(a.x, n)};
}
static inline words loadWords(const void* p) { return {_mm512_loadu_si512(p)}; }
static inline void storeWords(void* p, words a) { _mm512_storeu_si512(p, a.x); }

/** Row i becomes column i. */
static inline void transpose(words (&r)[kWords]) {
  words t[kWords];
  for (int i = 0; i < 16; i += 2) {
    t[i] = {_mm512_unpacklo_epi32(r[i].x, r[i + 1].x)};
    t[i + 1] = {_mm512_unpackhi_epi32(r[i].x, r[i + 1].x)};
  }
  for (int i = 0; i < 16; i += 4) {
    for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = {_mm512_unpacklo_epi64(t[i + j].x, t[i + j + 2].x)};
      r[i + 2 * j + 1] = {_mm512_unpackhi_epi64(t[i + j].x, t[i + j + 2].x)};
    }
  }
  // r[4g + j] holds, in its 128-bit lane l, column 4l + j of rows 4g … 4g+3.
  for (int j = 0; j < 4; ++j) {
    const words low = {_mm512_shuffle_i32x4(r[j].x, r[4 + j].x, 0x88)};
    const words high = {_mm512_shuffle_i32x4(r[j].x, r[4 + j].x, 0xdd)};
    const words low2 = {_mm512_shuffle_i32x4(r[8 + j].x, r[12 + j].x, 0x88)};
    const words high2 = {_mm512_shuffle_i32x4(r[8 + j].x, r[12 + j].x, 0xdd)};
    t[j] = {_mm512_shuffle_i32x4(low.x, low2.x, 0x88)};
    t[8 + j] = {_mm512_shuffle_i32x4(low.x, low2.x, 0xdd)};
    t[4 + j] = {_mm512_shuffle_i32x4(high.x, high2.x, 0x88)};
    t[12 + j] = {_mm512_shuffle_i32x4(high.x, high2.x, 0xdd)};
  }
  for (int i = 0; i < 16; ++i) r[i] = t[i];
}

#else

constexpr int kWords = 8;
struct words {
  __m256i x;
};

static inline words broadcast(uint32_t a) { return {_mm256_set1_epi32(int(a))}; }
static inline words add(words a, words b) { return {_mm256_add_epi32(a.x, b.x)}; }
static inline words bitXor(words a, words b) { return {_mm256_xor_si256(a.x, b.x)}; }
template <int n>
static inline words rotateRight(words a) {
  if constexpr (n == 16) {
    const __m256i order = _mm256_setr_epi8(2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13, 2, 3, 0, 1, 6, 7, 4, 5,
                                           10, 11, 8, 9, 14, 15, 12, 13);
    return {_mm256_shuffle_epi8(a.x, order)};
  } else if constexpr (n == 8) {
    const __m256i order = _mm256_setr_epi8(1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12, 1, 2, 3, 0, 5, 6, 7, 4,
                                           9, 10, 11, 8, 13, 14, 15, 12);
    return {_mm256_shuffle_epi8(a.x, order)};
  } else {
    return {_mm256_or_si256(_mm256_srli_epi32(a.x, n), _mm256_slli_epi32(a.x, 32 - n))};
  }
}
static inline words loadWords(const void* p) { return {_mm256_loadu_si256((const __m256i*)p)}; }
static inline void storeWords(void* p, words a) { _mm256_storeu_si256((__m256i*)p, a.x); }

/** Row i becomes column i. */
static inline void transpose(words (&r)[kWords]) {
  words t[kWords];
  for (int i = 0; i < 8; i += 2) {
    t[i] = {_mm256_unpacklo_epi32(r[i].x, r[i + 1].x)};
    t[i + 1] = {_mm256_unpackhi_epi32(r[i].x, r[i + 1].x)};
  }
  for (int i = 0; i < 8; i += 4) {
    for (int j = 0; j < 2; ++j) {
      r[i + 2 * j] = {_mm256_unpacklo_epi64(t[i + j].x, t[i + j + 2].x)};
      r[i + 2 * j + 1] = {_mm256_unpackhi_epi64(t[i + j].x, t[i + j + 2].x)};
    }
  }
  for (int j = 0; j < 4; ++j) {
    t[j] = {_mm256_permute2x128_si256(r[j].x, r[4 + j].x, 0x20)};
    t[4 + j] = {_mm256_permute2x128_si256(r[j].x, r[4 + j].x, 0x31)};
  }
  for (int i = 0; i < 8; ++i) r[i] = t[i];
}

#endif

}  // namespace petrel::PETREL_ISA_NAMESPACE
