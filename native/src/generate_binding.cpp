// The generator as flat functions over a handle, for native/generate.ts.
#include "addon.h"
#include "generate.h"
#include "sampling_binding.h"

namespace petrel {
namespace {

using Handle = Napi::External<std::unique_ptr<Generator>>;
constexpr napi_type_tag kTag = {0x70657472656c0002, 0x67656e6572617465};

std::unique_ptr<Generator>& handleOf(const Napi::CallbackInfo& info) {
  const Argument a(info, 0, "handle");
  if (!a.value.IsExternal() || !a.value.As<Handle>().CheckTypeTag(&kTag)) refuseType(a, "a handle of a generator");
  return *a.value.As<Handle>().Data();
}

Generator& generatorOf(const Napi::CallbackInfo& info) {
  const std::unique_ptr<Generator>& generator = handleOf(info);
  if (!generator) throw Napi::Error::New(info.Env(), Argument(info, 0, "handle").name + ": this generator is closed");
  return *generator;
}

template <class Array, class T>
Napi::Value toArray(Napi::Env env, const std::vector<T>& values) {
  Array array = Array::New(env, values.size());
  std::copy(values.begin(), values.end(), array.Data());
  return array;
}

int count(const Napi::CallbackInfo& info, size_t index, const char* name) {
  return static_cast<int>(integerOf({info, index, name}, 1, kLargestInt));
}

std::vector<int> tokensOf(const Argument& a, int64_t vocab) {
  std::vector<int> tokens = integersOf(a).copy();
  checkWithin(a, tokens, 0, vocab - 1);
  return tokens;
}

// generatorOpen(trainer, maxSeqs, maxModelLen, kvPages) → handle
Napi::Value open(const Napi::CallbackInfo& info) {
  const Argument trainer(info, 0, "trainer");
  const std::shared_ptr<Model> model = modelOf(trainer);
  if (model->head.kind != HeadKind::tokens)
    refuseRange(trainer, "a model with a head of tokens", "one with another head");
  auto generator = std::make_unique<Generator>(model, count(info, 1, "maxSeqs"), count(info, 2, "maxModelLen"),
                                               count(info, 3, "kvPages"));
  auto handle = Handle::New(info.Env(), new std::unique_ptr<Generator>(std::move(generator)),
                            [](Napi::Env, std::unique_ptr<Generator>* data) { delete data; });
  handle.TypeTag(&kTag);
  return handle;
}

constexpr size_t kRandomWords = 5;  // seed 0, seed 1, draw, sample, turn

// The samples of one request. Their arrays are copied before they are checked: another thread could change them in
// between.
std::vector<SampleSpec> samplesOf(const Napi::CallbackInfo& info, int64_t vocab) {
  const Argument keysAt(info, 2, "keys"), randomAt(info, 3, "random"), offsetsAt(info, 5, "prefixOffsets");
  const std::vector<int> keys = integersOf(keysAt).copy();
  if (keys.empty()) refuseRange(keysAt, "one key or more", "none");
  checkWithin(keysAt, keys, 1, kLargestInt);
  const std::vector<uint32_t> random = ofLength(randomAt, wordsOf(randomAt), kRandomWords * keys.size()).copy();
  const std::vector<int> prefixes = tokensOf({info, 4, "prefixes"}, vocab);
  const std::vector<int> offsets = ofLength(offsetsAt, integersOf(offsetsAt), keys.size() + 1).copy();
  checkWithin(offsetsAt, offsets, 0, static_cast<int64_t>(prefixes.size()));
  std::vector<SampleSpec> samples;
  for (size_t i = 0; i < keys.size(); i++) {
    if (offsets[i] > offsets[i + 1])
      refuseRange(offsetsAt, "ascending", std::to_string(offsets[i]) + " before a smaller one");
    const uint32_t* r = random.data() + kRandomWords * i;
    samples.push_back(
        {keys[i], {r[0], r[1]}, r[2], r[3], r[4], {prefixes.begin() + offsets[i], prefixes.begin() + offsets[i + 1]}});
  }
  return samples;
}

// generatorSubmit(handle, prompt, keys [n], random [n][seed 0, seed 1, draw, sample, turn], prefixes, prefix offsets [n
// + 1],
//                 settings, maxNewTokens, stopTokens) → '' or why it can't be served
Napi::Value submit(const Napi::CallbackInfo& info) {
  Generator& generator = generatorOf(info);
  const Argument prompt(info, 1, "prompt");
  RequestSpec request;
  request.prompt = tokensOf(prompt, generator.vocab());
  if (request.prompt.empty()) refuseRange(prompt, "one token or more", "none");
  request.samples = samplesOf(info, generator.vocab());
  request.sampling = samplingSettings({info, 6, "sampling"});
  request.maxNewTokens = count(info, 7, "maxNewTokens");
  request.stopTokens = integersOf({info, 8, "stopTokens"}).copy();
  return Napi::String::New(info.Env(), generator.submit(std::move(request)));
}

Napi::Value step(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  const DecodedTokens decoded = generatorOf(info).step();
  Napi::Object result = Napi::Object::New(env);
  result.Set("keys", toArray<Napi::Int32Array>(env, decoded.keys));
  result.Set("tokens", toArray<Napi::Int32Array>(env, decoded.tokens));
  result.Set("logProbs", toArray<Napi::Float32Array>(env, decoded.logProbs));
  result.Set("samplingLogProbs", toArray<Napi::Float32Array>(env, decoded.samplingLogProbs));
  result.Set("finish", toArray<Napi::Uint8Array>(env, decoded.finish));
  return result;
}

void abort(const Napi::CallbackInfo& info) {
  generatorOf(info).abort(static_cast<int>(integerOf({info, 1, "key"}, INT32_MIN, kLargestInt)));
}
void reset(const Napi::CallbackInfo& info) { generatorOf(info).reset(); }
void close(const Napi::CallbackInfo& info) { handleOf(info).reset(); }

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
  expose<open>(env, exports, "generatorOpen");
  expose<submit>(env, exports, "generatorSubmit");
  expose<step>(env, exports, "generatorStep");
  expose<abort>(env, exports, "generatorAbort");
  expose<reset>(env, exports, "generatorReset");
  expose<stats>(env, exports, "generatorStats");
  expose<close>(env, exports, "generatorClose");
});

}  // namespace
}  // namespace petrel
