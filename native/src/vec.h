// A vector of 16 floats with one meaning on every instruction set: lane i of an AVX-512 register, or lane i % 8 of
// the (i / 8)-th of two AVX2 registers. Sums over lanes use one fixed tree, multiply-add is always fused, and nothing
// else is contracted (-ffp-contract=off), so a kernel written with these gives the same bits on both.
//
// Only for files under kernels/, which are compiled once per instruction set: everything here has internal linkage.
#pragma once
#include <immintrin.h>
#include <stdint.h>

namespace petrel::PETREL_ISA_NAMESPACE {

constexpr int kLanes = 16;

#if defined(__AVX512F__)

struct v16 {
  __m512 x;
};

/** The first n lanes; none for n <= 0. */
static inline __mmask16 firstLanes(int n) {
  return n >= 16 ? (__mmask16)0xffff : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1);
}
static inline v16 zero() { return {_mm512_setzero_ps()}; }
static inline v16 set1(float a) { return {_mm512_set1_ps(a)}; }
static inline v16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
static inline v16 loadN(const float* p, int n) { return {_mm512_maskz_loadu_ps(firstLanes(n), p)}; }
static inline void store(float* p, v16 a) { _mm512_storeu_ps(p, a.x); }
static inline void storeN(float* p, v16 a, int n) { _mm512_mask_storeu_ps(p, firstLanes(n), a.x); }
static inline v16 add(v16 a, v16 b) { return {_mm512_add_ps(a.x, b.x)}; }
static inline v16 sub(v16 a, v16 b) { return {_mm512_sub_ps(a.x, b.x)}; }
static inline v16 mul(v16 a, v16 b) { return {_mm512_mul_ps(a.x, b.x)}; }
static inline v16 div(v16 a, v16 b) { return {_mm512_div_ps(a.x, b.x)}; }
static inline v16 sqrt(v16 a) { return {_mm512_sqrt_ps(a.x)}; }
/** a·b + c, rounded once. */
static inline v16 fma(v16 a, v16 b, v16 c) { return {_mm512_fmadd_ps(a.x, b.x, c.x)}; }
/** c − a·b, rounded once. */
static inline v16 fnma(v16 a, v16 b, v16 c) { return {_mm512_fnmadd_ps(a.x, b.x, c.x)}; }
/** A NaN in b comes through; one in a does not. */
static inline v16 max(v16 a, v16 b) { return {_mm512_max_ps(a.x, b.x)}; }
static inline v16 min(v16 a, v16 b) { return {_mm512_min_ps(a.x, b.x)}; }
/** Nearest integer, ties to even. */
static inline v16 round(v16 a) { return {_mm512_roundscale_ps(a.x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
/** 2^n for integral n in [−126, 127]. */
static inline v16 exp2i(v16 n) {
  return {
      _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n.x), _mm512_set1_epi32(127)), 23))};
}
/** a where the lane index is in [from, to), fill elsewhere. */
static inline v16 keepLanes(v16 a, int from, int to, v16 fill) {
  __mmask16 m = (__mmask16)(firstLanes(to) & ~firstLanes(from));
  return {_mm512_mask_mov_ps(fill.x, m, a.x)};
}
/** 0 where x < limit, a elsewhere (also where x is NaN). */
static inline v16 zeroBelow(v16 a, v16 x, v16 limit) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.x, limit.x, _CMP_NLT_UQ), a.x)};
}
/** a where x < limit, b elsewhere (also where x is NaN). */
static inline v16 whereBelow(v16 x, v16 limit, v16 a, v16 b) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.x, limit.x, _CMP_LT_OQ), b.x, a.x)};
}
static inline v16 abs(v16 a) { return {_mm512_abs_ps(a.x)}; }
/** The magnitude of a, which is not negative, with the sign of s. */
static inline v16 withSign(v16 a, v16 s) {
  const __m512i sign = _mm512_and_si512(_mm512_castps_si512(s.x), _mm512_set1_epi32(INT32_MIN));
  return {_mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(a.x), sign))};
}
static inline __m256 low(v16 a) { return _mm512_castps512_ps256(a.x); }
static inline __m256 high(v16 a) { return _mm512_extractf32x8_ps(a.x, 1); }
static inline v16 loadBf16(const uint16_t* p) {
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16))};
}
/** Nearest even; a NaN stays a (quiet) NaN. */
static inline void storeBf16(uint16_t* p, v16 a) {
  __m512i u = _mm512_castps_si512(a.x);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  __m512i r = _mm512_srli_epi32(_mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  __mmask16 nan = _mm512_cmp_ps_mask(a.x, a.x, _CMP_UNORD_Q);
  r = _mm512_mask_mov_epi32(r, nan, _mm512_or_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(0x40)));
  _mm256_storeu_si256((__m256i*)p, _mm512_cvtepi32_epi16(r));
}

#else

struct v16 {
  __m256 a, b;
};

alignas(32) static const int32_t kFirstLanes[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
static inline __m256i firstLanes(int n, int half) {
  const int k = n >= 16 ? 16 : n <= 0 ? 0 : n;
  return _mm256_loadu_si256((const __m256i*)(kFirstLanes + 16 - k + 8 * half));
}
static inline v16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
static inline v16 set1(float a) {
  __m256 v = _mm256_set1_ps(a);
  return {v, v};
}
static inline v16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
static inline v16 loadN(const float* p, int n) {
  return {_mm256_maskload_ps(p, firstLanes(n, 0)), _mm256_maskload_ps(p + 8, firstLanes(n, 1))};
}
static inline void store(float* p, v16 v) {
  _mm256_storeu_ps(p, v.a);
  _mm256_storeu_ps(p + 8, v.b);
}
static inline void storeN(float* p, v16 v, int n) {
  _mm256_maskstore_ps(p, firstLanes(n, 0), v.a);
  _mm256_maskstore_ps(p + 8, firstLanes(n, 1), v.b);
}
static inline v16 add(v16 x, v16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
static inline v16 sub(v16 x, v16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
static inline v16 mul(v16 x, v16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
static inline v16 div(v16 x, v16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
static inline v16 sqrt(v16 x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
static inline v16 fma(v16 x, v16 y, v16 z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
static inline v16 fnma(v16 x, v16 y, v16 z) {
  return {_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}
static inline v16 max(v16 x, v16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
static inline v16 min(v16 x, v16 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
static inline v16 round(v16 x) {
  return {_mm256_round_ps(x.a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC),
          _mm256_round_ps(x.b, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
static inline __m256 exp2Half(__m256 n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
static inline v16 exp2i(v16 n) { return {exp2Half(n.a), exp2Half(n.b)}; }
static inline __m256 keepHalf(__m256 x, int from, int to, __m256 fill) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  __m256i keep = _mm256_and_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(to), lane),
                                  _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(from - 1)));
  return _mm256_blendv_ps(fill, x, _mm256_castsi256_ps(keep));
}
static inline v16 keepLanes(v16 x, int from, int to, v16 fill) {
  return {keepHalf(x.a, from, to, fill.a), keepHalf(x.b, from - 8, to - 8, fill.b)};
}
static inline v16 zeroBelow(v16 r, v16 x, v16 limit) {
  return {_mm256_and_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_NLT_UQ), r.a),
          _mm256_and_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_NLT_UQ), r.b)};
}
static inline v16 whereBelow(v16 x, v16 limit, v16 a, v16 b) {
  return {_mm256_blendv_ps(b.a, a.a, _mm256_cmp_ps(x.a, limit.a, _CMP_LT_OQ)),
          _mm256_blendv_ps(b.b, a.b, _mm256_cmp_ps(x.b, limit.b, _CMP_LT_OQ))};
}
static inline v16 abs(v16 x) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
static inline v16 withSign(v16 x, v16 s) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(x.a, _mm256_and_ps(sign, s.a)), _mm256_or_ps(x.b, _mm256_and_ps(sign, s.b))};
}
static inline __m256 low(v16 x) { return x.a; }
static inline __m256 high(v16 x) { return x.b; }
static inline v16 loadBf16(const uint16_t* p) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)(p + 8))), 16))};
}
static inline __m256i roundBf16Half(__m256 a) {
  __m256i u = _mm256_castps_si256(a);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  __m256i r = _mm256_srli_epi32(_mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
  __m256i quiet = _mm256_or_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(0x40));
  return _mm256_blendv_epi8(r, quiet, _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q)));
}
static inline void storeBf16(uint16_t* p, v16 v) {
  __m256i packed = _mm256_packus_epi32(roundBf16Half(v.a), roundBf16Half(v.b));
  _mm256_storeu_si256((__m256i*)p, _mm256_permute4x64_epi64(packed, 0xd8));
}

#endif

static inline __m128 fold(v16 v, bool maximum) {
  __m256 h = maximum ? _mm256_max_ps(low(v), high(v)) : _mm256_add_ps(low(v), high(v));
  __m128 a = _mm256_castps256_ps128(h), b = _mm256_extractf128_ps(h, 1);
  return maximum ? _mm_max_ps(a, b) : _mm_add_ps(a, b);
}
/** Lanes i and i + 8, then i and i + 4, i + 2, i + 1: the only order in which lanes are ever summed. */
static inline float reduceAdd(v16 v) {
  __m128 q = fold(v, false);
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
static inline float reduceMax(v16 v) {
  __m128 q = fold(v, true);
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

/** exp with about 1e-7 relative error. Below −87.3 it is 0 (also for −∞), above 88.3 it saturates, NaN stays NaN. */
static inline v16 exp(v16 x) {
  const v16 limit = set1(-87.3f);
  v16 c = min(set1(88.3f), max(limit, x));
  v16 n = round(mul(c, set1(1.44269504f)));
  v16 r = fnma(n, set1(0.693359375f), c);
  r = fnma(n, set1(-2.12194440e-4f), r);
  v16 p = set1(1.9875691500e-4f);
  p = fma(p, r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  p = fma(p, mul(r, r), add(r, set1(1.0f)));
  return zeroBelow(mul(p, exp2i(n)), x, limit);
}

/** tanh with about 1e-7 relative error (polynomial below 0.625: Cephes, tanhf). NaN stays NaN. */
static inline v16 tanh(v16 x) {
  const v16 a = abs(x), one = set1(1.0f), two = set1(2.0f), z = mul(x, x);
  v16 p = set1(-5.70498872745e-3f);
  p = fma(p, z, set1(2.06390887954e-2f));
  p = fma(p, z, set1(-5.37397155531e-2f));
  p = fma(p, z, set1(1.33314422036e-1f));
  p = fma(p, z, set1(-3.33332819422e-1f));
  const v16 small = fma(mul(p, z), x, x);
  const v16 large = withSign(sub(one, div(two, add(exp(mul(two, a)), one))), x);
  return whereBelow(a, set1(0.625f), small, large);
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
