// Sampling on plain arrays: what the generator does to one row of logits, for reference data and tests.
#include <cmath>

#include "addon.h"
#include "kernels.h"
#include "philox.h"
#include "sampling_binding.h"

namespace petrel {
namespace {

// processLogits(logits [V], settings, seen) → processed [V], −∞ where dropped; undefined when logits are not finite
Napi::Value processLogits(const Napi::CallbackInfo& info) {
  const auto logits = info[0].As<Napi::Float32Array>();
  const auto seen = info[2].As<Napi::Int32Array>();
  RowSampler sampler;
  if (!sampler.process(logits.Data(), int(logits.ElementLength()), samplingSettings(info[1]), seen.Data(), seen.ElementLength()))
    return info.Env().Undefined();
  auto result = Napi::Float32Array::New(info.Env(), logits.ElementLength());
  std::copy(sampler.scores(), sampler.scores() + logits.ElementLength(), result.Data());
  return result;
}

// sampleToken(logits [V], settings, seen, [seed 0, seed 1, draw, sample, turn, position])
Napi::Value sampleToken(const Napi::CallbackInfo& info) {
  const auto logits = info[0].As<Napi::Float32Array>();
  const auto seen = info[2].As<Napi::Int32Array>();
  const uint32_t* r = info[3].As<Napi::Uint32Array>().Data();
  const double u = philoxUniform(philox4x32({r[2], r[3], r[4], r[5]}, {r[0], r[1]}));
  RowSampler sampler;
  const SampledToken sampled =
      sampler.sample(logits.Data(), int(logits.ElementLength()), samplingSettings(info[1]), seen.Data(), seen.ElementLength(), u);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("token", sampled.token);
  result.Set("logProb", sampled.logProb);
  result.Set("samplingLogProb", sampled.samplingLogProb);
  return result;
}

// logProbEntropy(logits [V], label, temperature) → log-prob of the label, entropy, Σp², argmax
Napi::Value logProbEntropy(const Napi::CallbackInfo& info) {
  const auto logits = info[0].As<Napi::Float32Array>();
  const int label = info[1].As<Napi::Number>().Int32Value();
  const RowStatistics row =
      rowStatistics(logits.Data(), int(logits.ElementLength()), info[2].As<Napi::Number>().DoubleValue(), label);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("logProb", row.logProb);
  result.Set("entropy", row.entropy);
  result.Set("sumPiSquared", row.sumPiSquared);
  result.Set("greedy", row.greedy);
  return result;
}

// philox(counter [4], key [2]) → 4 words
Napi::Value philox(const Napi::CallbackInfo& info) {
  const uint32_t* c = info[0].As<Napi::Uint32Array>().Data();
  const uint32_t* k = info[1].As<Napi::Uint32Array>().Data();
  const PhiloxCounter bits = philox4x32({c[0], c[1], c[2], c[3]}, {k[0], k[1]});
  auto result = Napi::Uint32Array::New(info.Env(), 4);
  std::copy(bits.begin(), bits.end(), result.Data());
  return result;
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  exports.Set("processLogits", Napi::Function::New(env, processLogits));
  exports.Set("sampleToken", Napi::Function::New(env, sampleToken));
  exports.Set("logProbEntropy", Napi::Function::New(env, logProbEntropy));
  exports.Set("philox", Napi::Function::New(env, philox));
});

}  // namespace
}  // namespace petrel
