#include "sampling.h"

#include <limits>

#include "../vec.h"

namespace petrel {
namespace PETREL_ISA_NAMESPACE {
namespace {

typedef float f8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int i8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double d8 __attribute__((vector_size(64)));

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

double sumLanes(const d8& a) { return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])); }

float maximum(const float* x, int n) {
  v16 m = set1(kMinusInfinity);
  int j = 0;
  for (; j + 16 <= n; j += 16) m = max(m, load(x + j));
  if (j < n) m = max(m, keepLanes(loadN(x + j, n - j), 0, n - j, set1(kMinusInfinity)));
  return reduceMax(m);
}

void scale(const float* x, int n, float factor, float* s, int padded) {
  const v16 f = set1(factor);
  int j = 0;
  for (; j + 16 <= n; j += 16) store(s + j, mul(load(x + j), f));
  if (j < padded) store(s + j, keepLanes(mul(loadN(x + j, n - j), f), 0, n - j, set1(kMinusInfinity)));
}

void weights(const float* s, int padded, float maximum, float* w) {
  const v16 m = set1(maximum);
  for (int j = 0; j < padded; j += 16) store(w + j, exp(sub(load(s + j), m)));
}

double blockMasses(const float* w, int padded, double* blocks) {
  double total = 0;
  for (int b = 0; b * kMassBlock < padded; b++) {
    const int end = padded < (b + 1) * kMassBlock ? padded : (b + 1) * kMassBlock;
    d8 sum{};
    for (int j = b * kMassBlock; j < end; j += 8) sum += __builtin_convertvector(*(const f8*)(w + j), d8);
    blocks[b] = sumLanes(sum);
    total += blocks[b];
  }
  return total;
}

Below below(const float* s, const float* w, int padded, float limit) {
  const f8 top = f8{} + limit, bottom = f8{} + std::numeric_limits<float>::lowest();
  d8 mass[2]{};
  i8 count[2]{};
  for (int j = 0; j < padded; j += 16) {
    for (int half = 0; half < 2; half++) {
      const f8 value = *(const f8*)(s + j + 8 * half);
      const i8 inside = (i8)(value < top) & (i8)(value >= bottom);
      count[half] -= inside;
      mass[half] += __builtin_convertvector((f8)(inside & *(const i8*)(w + j + 8 * half)), d8);
    }
  }
  int total = 0;
  for (int i = 0; i < 8; i++) total += count[0][i] + count[1][i];
  return {sumLanes(mass[0] + mass[1]), total};
}

// Appends the lanes of s[j…j+15] with low ≤ s < high; returns how many.
#if defined(__AVX512F__)
int append16(const float* s, const float* w, const int* ids, int j, float low, float high, float* toS, float* toW,
             int* toIds) {
  const __m512 value = _mm512_loadu_ps(s + j);
  const __mmask16 inside = _mm512_cmp_ps_mask(value, _mm512_set1_ps(low), _CMP_GE_OQ) &
                           _mm512_cmp_ps_mask(value, _mm512_set1_ps(high), _CMP_LT_OQ);
  if (inside == 0) return 0;
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i id = ids == nullptr ? _mm512_add_epi32(lane, _mm512_set1_epi32(j)) : _mm512_loadu_si512(ids + j);
  // Whole vectors are stored; the next ones overwrite what is too much.
  _mm512_storeu_ps(toS, _mm512_maskz_compress_ps(inside, value));
  _mm512_storeu_ps(toW, _mm512_maskz_compress_ps(inside, _mm512_loadu_ps(w + j)));
  _mm512_storeu_si512(toIds, _mm512_maskz_compress_epi32(inside, id));
  return __builtin_popcount(inside);
}
#else
int append16(const float* s, const float* w, const int* ids, int j, float low, float high, float* toS, float* toW,
             int* toIds) {
  const f8 l = f8{} + low, h = f8{} + high, a = *(const f8*)(s + j), b = *(const f8*)(s + j + 8);
  const i8 inside = ((i8)(a >= l) & (i8)(a < h)) | ((i8)(b >= l) & (i8)(b < h));
  if (_mm256_testz_si256((__m256i)inside, (__m256i)inside)) return 0;
  int count = 0;
  for (int i = j; i < j + 16; i++) {
    toS[count] = s[i];
    toW[count] = w[i];
    toIds[count] = ids == nullptr ? i : ids[i];
    count += s[i] >= low && s[i] < high;
  }
  return count;
}
#endif

int select(const float* s, const float* w, const int* ids, int padded, float low, float high, float* toS, float* toW,
           int* toIds) {
  int count = 0;
  for (int j = 0; j < padded; j += 16)
    count += append16(s, w, ids, j, low, high, toS + count, toW + count, toIds + count);
  for (int j = count; j % 16 != 0; j++) {
    toS[j] = kMinusInfinity;
    toW[j] = 0;
  }
  return count;
}

void dropBelow(const float* by, float limit, float* s, float* w, int padded) {
  const f8 top = f8{} + limit, nothing = f8{} + kMinusInfinity;
  for (int j = 0; j < padded; j += 8) {
    const i8 drop = (i8)(*(const f8*)(by + j) < top);
    f8& score = *(f8*)(s + j);
    f8& weight = *(f8*)(w + j);
    score = drop ? nothing : score;
    weight = drop ? f8{} : weight;
  }
}

int indexOf(const float* x, int n, float value) {
  for (int j = 0; j < n; j += kMassBlock) {
    const int end = n < j + kMassBlock ? n : j + kMassBlock;
    bool found = false;
    for (int i = j; i < end; i++) found |= x[i] == value;
    for (int i = j; found && i < end; i++)
      if (x[i] == value) return i;
  }
  return -1;
}

}  // namespace

const SamplingKernels samplingKernels = {maximum, scale, weights, blockMasses, below, select, dropBelow, indexOf};

}  // namespace PETREL_ISA_NAMESPACE
}  // namespace petrel
