// From one row of logits to one token.
//
// Filters run in the order of Hugging Face's generate(): repetition penalty, temperature, top-k (ties with the k-th
// value kept), top-p (tokens dropped in ascending order of (score, id) while their cumulative probability is ≤ 1 − p,
// one always kept), min-p (against the top probability that is left). The draw is an inverse CDF in token order: the
// first token whose cumulative weight exceeds u · total, so that the token is a function of logits, settings and u
// alone.
#pragma once

#include <cstddef>
#include <vector>

#include "memory.h"

namespace petrel {

struct SamplingSettings {
  double temperature;        // 0 = greedy
  int topK;                  // 0 = off
  double topP;               // >= 1 = off
  double minP;               // 0 = off
  double repetitionPenalty;  // 1 = off

  bool filters() const { return topK > 0 || topP < 1 || minP > 0 || repetitionPenalty != 1; }
};

struct SampledToken {
  int token;              // −1: the logits are not finite
  float logProb;          // under softmax(logits / temperature); greedy: temperature 1
  float samplingLogProb;  // under the filtered distribution; greedy: 0
};

// Of softmax(logits / temperature), as training sees it.
struct RowStatistics {
  float logProb, entropy, sumPiSquared;
  int greedy;  // lowest id on ties
};
RowStatistics rowStatistics(const float* logits, int vocab, double temperature, int token);

// Scratch for one thread.
class RowSampler {
 public:
  // seen: prompt and response so far, for the repetition penalty. u in [0, 1).
  SampledToken sample(const float* logits, int vocab, const SamplingSettings& settings, const int* seen,
                      size_t seenCount, double u);
  // Fills scores() with the processed logits (−∞ = dropped). Temperature > 0. False: the logits are not finite.
  bool process(const float* logits, int vocab, const SamplingSettings& settings, const int* seen, size_t seenCount);
  const float* scores() const { return scores_.data(); }

 private:
  const float* penalize(const float* logits, int vocab, double penalty, const int* seen, size_t seenCount);
  void keepTopK(int k);
  void keepTopP(double p);
  int draw(double u);

  // Scores around a border, ascending by (score, id), and what lies below them.
  struct Bracket {
    float low;
    double massBelow;
    int countBelow;
    std::vector<int> inside;  // ids
  };
  template <class MayDrop>
  Bracket bracket(MayDrop mayDrop);

  // Entries of the row, copied together.
  struct Candidates {
    KernelVector<float> scores, weights;
    KernelVector<int> ids;
    void reserve(int padded);
  };

  int padded_ = 0;
  float max_ = 0;
  double total_ = 0;
  KernelVector<float> scores_, weights_, penalized_;
  KernelVector<double> blocks_;
  Candidates candidates_[2];
};

}  // namespace petrel
