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
  d8 mass{};
  i8 count{};
  for (int j = 0; j < padded; j += 8) {
    const f8 value = *(const f8*)(s + j);
    const i8 inside = (i8)(value < top) & (i8)(value >= bottom);
    count -= inside;
    mass += __builtin_convertvector((f8)(inside & *(const i8*)(w + j)), d8);
  }
  int total = 0;
  for (int i = 0; i < 8; i++) total += count[i];
  return {sumLanes(mass), total};
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

const SamplingKernels samplingKernels = {maximum, scale, weights, blockMasses, below, dropBelow, indexOf};

}  // namespace PETREL_ISA_NAMESPACE
}  // namespace petrel
