// Passes over one row of a vocabulary. V is padded to a multiple of 16: scores with −∞, weights with 0.
// Masses are summed in double, by lanes and then pairwise: one order on every instruction set.
#pragma once

namespace petrel {

struct Below {
  double mass;
  int count;
};

constexpr int kMassBlock = 256;

struct SamplingKernels {
  /** max_j x[j] over n values; −∞ when there is none. */
  float (*maximum)(const float* x, int n);
  /** s[j] = x[j] · scale for j < n, −∞ for n ≤ j < padded. */
  void (*scale)(const float* x, int n, float scale, float* s, int padded);
  /** w[j] = exp(s[j] − max). */
  void (*weights)(const float* s, int padded, float max, float* w);
  /** blocks[b] = Σ w over block b of 256 indices; returns Σ blocks, ascending. */
  double (*blockMasses)(const float* w, int padded, double* blocks);
  /** Mass and number of the j with −∞ < s[j] < limit. */
  Below (*below)(const float* s, const float* w, int padded, float limit);
  /**
   * Copies the entries with low ≤ s[j] < high, in order, and their ids (j itself where ids is null); returns how many.
   * The copies are padded like a row; they have room for `padded` entries.
   */
  int (*select)(const float* s, const float* w, const int* ids, int padded, float low, float high, float* toS,
                float* toW, int* toIds);
  /** s[j] = −∞ and w[j] = 0 where by[j] < limit; `by` is s or w. */
  void (*dropBelow)(const float* by, float limit, float* s, float* w, int padded);
  /** Lowest j with x[j] == value, −1 when there is none. */
  int (*indexOf)(const float* x, int n, float value);
};

namespace avx2 {
extern const SamplingKernels samplingKernels;
}
namespace avx512 {
extern const SamplingKernels samplingKernels;
}

}  // namespace petrel
