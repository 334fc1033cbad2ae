#include "sampling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "isa.h"
#include "kernels.h"
#include "kernels/sampling.h"
#include "scalar.h"

namespace petrel {

namespace {

const SamplingKernels& passes() { return pick(avx2::samplingKernels, avx512::samplingKernels); }

// A bracket this small is sorted instead of halved again.
constexpr int kSortable = 256;

// log softmax(logits / temperature)[token], as the trainer's head computes it.
float tokenLogProb(const float* logits, int vocab, double temperature, int token, SoftmaxSums* sums) {
  const float scale = float(1 / temperature);
  *sums = kernels().softmaxSums(logits, vocab, scale);
  return logits[token] * scale - sums->max - fixedLog(sums->sum);
}

}  // namespace

RowStatistics rowStatistics(const float* logits, int vocab, double temperature, int token) {
  SoftmaxSums sums;
  const float logProb = tokenLogProb(logits, vocab, temperature, token, &sums);
  const double scale = double(float(1 / temperature)), total = double(sums.sum);
  double squares = 0;
  for (int j = 0; j < vocab; j++) {
    const double p = exponential(double(logits[j]) * scale - double(sums.max)) / total;
    squares += p * p;
  }
  const float entropy = fixedLog(sums.sum) - sums.weighted / sums.sum;
  return {logProb, entropy, float(squares), passes().indexOf(logits, vocab, passes().maximum(logits, vocab))};
}

// The logits after the repetition penalty: negative ones multiplied, others divided, each token once.
const float* RowSampler::penalize(const float* logits, int vocab, double penalty, const int* seen, size_t seenCount) {
  if (penalty == 1 || seenCount == 0) return logits;
  penalized_.assign(logits, logits + vocab);
  const float factor = float(penalty);
  for (size_t i = 0; i < seenCount; i++) {
    const float x = logits[seen[i]];
    penalized_[size_t(seen[i])] = x < 0 ? x * factor : x / factor;
  }
  return penalized_.data();
}

bool RowSampler::process(const float* logits, int vocab, const SamplingSettings& settings, const int* seen,
                         size_t seenCount) {
  padded_ = (vocab + 15) / 16 * 16;
  scores_.resize(size_t(padded_));
  weights_.resize(size_t(padded_));
  blocks_.resize(size_t(padded_ / kMassBlock + 1));
  const float* penalized = penalize(logits, vocab, settings.repetitionPenalty, seen, seenCount);
  passes().scale(penalized, vocab, float(1 / settings.temperature), scores_.data(), padded_);
  max_ = passes().maximum(scores_.data(), padded_);
  passes().weights(scores_.data(), padded_, max_, weights_.data());
  total_ = passes().blockMasses(weights_.data(), padded_, blocks_.data());
  if (!std::isfinite(total_) || !(total_ > 0)) return false;
  if (settings.topK > 0 && settings.topK < vocab) keepTopK(settings.topK);
  if (settings.topP < 1) keepTopP(settings.topP);
  if (settings.minP > 0)
    passes().dropBelow(weights_.data(), float(settings.minP), scores_.data(), weights_.data(), padded_);
  return true;
}

void RowSampler::Candidates::reserve(int padded) {
  const size_t room = size_t(padded) + 16;
  if (ids.size() >= room) return;
  scores.resize(room);
  weights.resize(room);
  ids.resize(room);
}

// A border `low` such that everything below it may be dropped, and the tokens among which the true border lies.
// mayDrop(Below) must be true for nothing and false for everything, and go over once as the limit rises. Halving, over
// ever fewer tokens: when few of those looked at are left in the bracket, they are copied together.
template <class MayDrop>
RowSampler::Bracket RowSampler::bracket(MayDrop mayDrop) {
  const float *scores = scores_.data(), *weights = weights_.data();
  const int* ids = nullptr;
  int size = padded_, spare = 0;
  Below before{0, 0};  // below all that is looked at
  const auto below = [&](float limit) {
    const Below here = passes().below(scores, weights, size, limit);
    return Below{before.mass + here.mass, before.count + here.count};
  };
  float high = std::nextafter(max_, std::numeric_limits<float>::infinity()), low = max_;
  Below atHigh = below(high), atLow = atHigh;
  const auto copyTogether = [&] {
    Candidates& to = candidates_[spare];
    to.reserve(size);
    const int count =
        passes().select(scores, weights, ids, size, low, high, to.scores.data(), to.weights.data(), to.ids.data());
    scores = to.scores.data(), weights = to.weights.data(), ids = to.ids.data();
    size = (count + 15) / 16 * 16;
    spare = 1 - spare;
    before = atLow;
    return count;
  };
  for (float step = 1;; step *= 2) {
    low = std::max(max_ - step, std::numeric_limits<float>::lowest());
    atLow = below(low);
    if (mayDrop(atLow)) break;
    high = low;
    atHigh = atLow;
  }
  while (atHigh.count - atLow.count > kSortable) {
    if (atHigh.count - atLow.count < size / 4) copyTogether();
    const float middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) break;
    const Below atMiddle = below(middle);
    (mayDrop(atMiddle) ? low : high) = middle;
    (mayDrop(atMiddle) ? atLow : atHigh) = atMiddle;
  }
  const int count = copyTogether();
  Bracket result{low, atLow.mass, atLow.count, std::vector<int>(ids, ids + count)};
  std::sort(result.inside.begin(), result.inside.end(), [&](int a, int b) {
    const float x = scores_[size_t(a)], y = scores_[size_t(b)];
    return x != y ? x < y : a < b;
  });
  return result;
}

void RowSampler::keepTopK(int k) {
  const float infinity = std::numeric_limits<float>::infinity();
  const int surplus = passes().below(scores_.data(), weights_.data(), padded_, infinity).count - k;
  if (surplus <= 0) return;
  const Bracket found = bracket([&](const Below& below) { return below.count <= surplus; });
  const float kth = scores_[size_t(found.inside[size_t(surplus - found.countBelow)])];
  passes().dropBelow(scores_.data(), kth, scores_.data(), weights_.data(), padded_);
}

void RowSampler::keepTopP(double p) {
  const double total =
      passes().below(scores_.data(), weights_.data(), padded_, std::numeric_limits<float>::infinity()).mass;
  const double budget = (1 - p) * total;
  // When even all of it may go, only the last of the greatest is left: a border just below the greatest score.
  const bool all = budget >= total;
  const Bracket found = bracket([&](const Below& below) { return all ? below.mass < total : below.mass <= budget; });
  passes().dropBelow(scores_.data(), found.low, scores_.data(), weights_.data(), padded_);
  double mass = found.massBelow;
  for (size_t i = 0; i + 1 < found.inside.size(); i++) {
    const size_t token = size_t(found.inside[i]);
    mass += double(weights_[token]);
    if (mass > budget) break;
    scores_[token] = -std::numeric_limits<float>::infinity();
    weights_[token] = 0;
  }
}

// First token whose cumulative weight exceeds u · total: block by block, then token by token inside one block. Where
// rounding lets no token pass the target, the last token that has weight is taken.
int RowSampler::draw(double u) {
  total_ = passes().blockMasses(weights_.data(), padded_, blocks_.data());
  double target = u * total_, mass = 0;
  int chosen = -1;
  bool crossed = false;
  for (int block = 0; block * kMassBlock < padded_ && !crossed; block++) {
    const double more = blocks_[size_t(block)];
    if (more == 0) continue;
    chosen = block;
    crossed = mass + more > target;
    if (!crossed) mass += more;
  }
  if (!crossed) target = std::numeric_limits<double>::infinity();
  int token = -1;
  for (int j = chosen * kMassBlock; j < std::min(padded_, (chosen + 1) * kMassBlock); j++) {
    if (weights_[size_t(j)] == 0) continue;
    token = j;
    mass += double(weights_[size_t(j)]);
    if (mass > target) break;
  }
  return token;
}

SampledToken RowSampler::sample(const float* logits, int vocab, const SamplingSettings& settings, const int* seen,
                                size_t seenCount, double u) {
  SoftmaxSums sums;
  if (settings.temperature == 0) {
    const float* penalized = penalize(logits, vocab, settings.repetitionPenalty, seen, seenCount);
    const int token = passes().indexOf(penalized, vocab, passes().maximum(penalized, vocab));
    if (token < 0) return {-1, 0, 0};
    const float logProb = tokenLogProb(logits, vocab, 1, token, &sums);
    return std::isfinite(sums.sum) ? SampledToken{token, logProb, 0} : SampledToken{-1, 0, 0};
  }
  if (!process(logits, vocab, settings, seen, seenCount)) return {-1, 0, 0};
  const int token = draw(u);
  const float logProb = tokenLogProb(logits, vocab, settings.temperature, token, &sums);
  if (!settings.filters()) return {token, logProb, logProb};
  const double score = double(scores_[size_t(token)]) - double(max_);
  return {token, logProb, float(score - double(fixedLog(float(total_))))};
}

}  // namespace petrel
