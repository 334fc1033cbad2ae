// The generator as flat functions over a handle. Arguments are validated in native/generate.ts.
#include "addon.h"
#include "generate.h"
#include "sampling_binding.h"

namespace petrel {
namespace {

using Handle = Napi::External<std::unique_ptr<Generator>>;

Generator& generatorOf(const Napi::CallbackInfo& info) {
  std::unique_ptr<Generator>& generator = *info[0].As<Handle>().Data();
  if (!generator) throw Napi::Error::New(info.Env(), "this generator is closed");
  return *generator;
}

template <class Array, class T>
Napi::Value toArray(Napi::Env env, const std::vector<T>& values) {
  Array array = Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

std::vector<int> integers(const Napi::Value& value, size_t from = 0, size_t to = SIZE_MAX) {
  const auto array = value.As<Napi::Int32Array>();
  return {array.Data() + from, array.Data() + std::min(to, array.ElementLength())};
}

// generatorOpen(trainer, maxSeqs, maxModelLen, kvPages) → handle
Napi::Value open(const Napi::CallbackInfo& info) {
  const auto number = [&](size_t i) { return info[i].As<Napi::Number>().Int32Value(); };
  try {
    auto generator = std::make_unique<Generator>(modelOf(info[0]), number(1), number(2), number(3));
    return Handle::New(info.Env(), new std::unique_ptr<Generator>(std::move(generator)),
                       [](Napi::Env, std::unique_ptr<Generator>* data) { delete data; });
  } catch (const std::exception& error) {
    throw Napi::Error::New(info.Env(), error.what());
  }
}

// generatorSubmit(handle, prompt, keys [n], random [n][seed 0, seed 1, draw, sample, turn], prefixes, prefix offsets [n + 1],
//                 settings, maxNewTokens, stopTokens) → '' or why it can't be served
Napi::Value submit(const Napi::CallbackInfo& info) {
  RequestSpec request;
  request.prompt = integers(info[1]);
  const std::vector<int> keys = integers(info[2]), offsets = integers(info[5]);
  const uint32_t* random = info[3].As<Napi::Uint32Array>().Data();
  for (size_t i = 0; i < keys.size(); i++) {
    const uint32_t* r = random + 5 * i;
    request.samples.push_back(
        {keys[i], {r[0], r[1]}, r[2], r[3], r[4], integers(info[4], size_t(offsets[i]), size_t(offsets[i + 1]))});
  }
  request.sampling = samplingSettings(info[6]);
  request.maxNewTokens = info[7].As<Napi::Number>().Int32Value();
  request.stopTokens = integers(info[8]);
  return Napi::String::New(info.Env(), generatorOf(info).submit(std::move(request)));
}

Napi::Value step(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  DecodedTokens decoded;
  try {
    decoded = generatorOf(info).step();
  } catch (const std::runtime_error& error) {
    throw Napi::Error::New(env, error.what());
  }
  Napi::Object result = Napi::Object::New(env);
  result.Set("keys", toArray<Napi::Int32Array>(env, decoded.keys));
  result.Set("tokens", toArray<Napi::Int32Array>(env, decoded.tokens));
  result.Set("logProbs", toArray<Napi::Float32Array>(env, decoded.logProbs));
  result.Set("samplingLogProbs", toArray<Napi::Float32Array>(env, decoded.samplingLogProbs));
  result.Set("finish", toArray<Napi::Uint8Array>(env, decoded.finish));
  return result;
}

void abort(const Napi::CallbackInfo& info) { generatorOf(info).abort(info[1].As<Napi::Number>().Int32Value()); }
void reset(const Napi::CallbackInfo& info) { generatorOf(info).reset(); }
void close(const Napi::CallbackInfo& info) { info[0].As<Handle>().Data()->reset(); }

Napi::Value stats(const Napi::CallbackInfo& info) {
  const Generator& generator = generatorOf(info);
  const Schedule& schedule = generator.schedule();
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("live", schedule.live());
  result.Set("waiting", schedule.waiting());
  result.Set("freeSlots", schedule.maxSeqs() - schedule.live());
  result.Set("kvPagesUsed", schedule.pool().total() - schedule.pool().free());
  result.Set("kvPagesTotal", schedule.pool().total());
  result.Set("decodedTokens", double(generator.decodedTokens()));
  result.Set("prefilledTokens", double(generator.prefilledTokens()));
  return result;
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  exports.Set("generatorOpen", Napi::Function::New(env, open));
  exports.Set("generatorSubmit", Napi::Function::New(env, submit));
  exports.Set("generatorStep", Napi::Function::New(env, step));
  exports.Set("generatorAbort", Napi::Function::New(env, abort));
  exports.Set("generatorReset", Napi::Function::New(env, reset));
  exports.Set("generatorStats", Napi::Function::New(env, stats));
  exports.Set("generatorClose", Napi::Function::New(env, close));
});

}  // namespace
}  // namespace petrel
