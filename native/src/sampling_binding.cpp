// Sampling on plain arrays: what the generator does to one row of logits, for reference data and tests.
#include <cmath>

#include "addon.h"
#include "kernels.h"
#include "philox.h"
#include "sampling_binding.h"

namespace petrel {
namespace {

// One row of logits, and tokens of its vocabulary.
struct RowArguments {
  View<float> logits;
  std::vector<int> seen;
  int vocab() const { return int(logits.length); }
};

View<float> logitsOf(const Napi::CallbackInfo& info) {
  const Argument a(info, 0, "logits");
  const View<float> logits = floatsOf(a);
  constexpr size_t most = size_t(1) << 30;
  if (logits.length == 0 || logits.length > most)
    refuseRange(a, "1 to " + std::to_string(most) + " values", std::to_string(logits.length));
  return logits;
}

RowArguments rowOf(const Napi::CallbackInfo& info) {
  const Argument seen(info, 2, "seen");
  RowArguments row{logitsOf(info), integersOf(seen).copy()};
  checkWithin(seen, row.seen, 0, row.vocab() - 1);
  return row;
}

// processLogits(logits [V], settings, seen) → processed [V], −∞ where dropped; undefined when logits are not finite
Napi::Value processLogits(const Napi::CallbackInfo& info) {
  const RowArguments row = rowOf(info);
  const SamplingSettings settings = samplingSettings({info, 1, "settings"});
  RowSampler sampler;
  if (!sampler.process(row.logits.data, row.vocab(), settings, row.seen.data(), row.seen.size()))
    return info.Env().Undefined();
  auto result = Napi::Float32Array::New(info.Env(), row.logits.length);
  std::copy(sampler.scores(), sampler.scores() + row.logits.length, result.Data());
  return result;
}

// sampleToken(logits [V], settings, seen, [seed 0, seed 1, draw, sample, turn, position])
Napi::Value sampleToken(const Napi::CallbackInfo& info) {
  const RowArguments row = rowOf(info);
  const Argument random(info, 3, "random");
  const uint32_t* r = ofLength(random, wordsOf(random), 6).data;
  const double u = philoxUniform(philox4x32({r[2], r[3], r[4], r[5]}, {r[0], r[1]}));
  RowSampler sampler;
  const SampledToken sampled = sampler.sample(row.logits.data, row.vocab(), samplingSettings({info, 1, "settings"}),
                                              row.seen.data(), row.seen.size(), u);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("token", sampled.token);
  result.Set("logProb", sampled.logProb);
  result.Set("samplingLogProb", sampled.samplingLogProb);
  return result;
}

// logProbEntropy(logits [V], label, temperature) → log-prob of the label, entropy, Σp², argmax
Napi::Value logProbEntropy(const Napi::CallbackInfo& info) {
  const View<float> logits = logitsOf(info);
  const int vocab = int(logits.length), label = int(integerOf({info, 1, "label"}, 0, vocab - 1));
  const RowStatistics row = rowStatistics(logits.data, vocab, finiteOf({info, 2, "temperature"}), label);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("logProb", row.logProb);
  result.Set("entropy", row.entropy);
  result.Set("sumPiSquared", row.sumPiSquared);
  result.Set("greedy", row.greedy);
  return result;
}

// philox(counter [4], key [2]) → 4 words
Napi::Value philox(const Napi::CallbackInfo& info) {
  const Argument counter(info, 0, "counter"), key(info, 1, "key");
  const uint32_t* c = ofLength(counter, wordsOf(counter), 4).data;
  const uint32_t* k = ofLength(key, wordsOf(key), 2).data;
  const PhiloxCounter bits = philox4x32({c[0], c[1], c[2], c[3]}, {k[0], k[1]});
  auto result = Napi::Uint32Array::New(info.Env(), 4);
  std::copy(bits.begin(), bits.end(), result.Data());
  return result;
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<processLogits>(env, exports, "processLogits");
  expose<sampleToken>(env, exports, "sampleToken");
  expose<logProbEntropy>(env, exports, "logProbEntropy");
  expose<philox>(env, exports, "philox");
});

}  // namespace
}  // namespace petrel
