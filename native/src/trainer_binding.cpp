// Flat functions over a trainer's handle. Arguments were validated in TypeScript (native/trainer.ts).
#include <cstring>

#include "addon.h"
#include "trainer.h"

namespace petrel {
namespace {

struct Handle {
  std::shared_ptr<Trainer> trainer;
};
constexpr napi_type_tag kTag = {0x70657472656c0001, 0x747261696e657231};

Handle& handleOf(const Napi::Value& value) {
  if (!value.IsExternal() || !value.As<Napi::External<Handle>>().CheckTypeTag(&kTag)) {
    throw Napi::TypeError::New(value.Env(), "not a handle of a native model");
  }
  return *value.As<Napi::External<Handle>>().Data();
}

int64_t integer(const Napi::Object& o, const char* key) { return o.Get(key).As<Napi::Number>().Int64Value(); }
bool flag(const Napi::Object& o, const char* key) { return o.Get(key).As<Napi::Boolean>().Value(); }

template <class T>
std::vector<T> numbers(const Napi::Object& o, const char* key) {
  const Napi::Array array = o.Get(key).As<Napi::Array>();
  std::vector<T> values;
  for (uint32_t i = 0; i < array.Length(); ++i) values.push_back(static_cast<T>(array.Get(i).As<Napi::Number>().DoubleValue()));
  return values;
}

DecoderConfig configOf(const Napi::Object& o) {
  DecoderConfig c;
  c.layers = static_cast<int>(integer(o, "layers"));
  c.hidden = static_cast<int>(integer(o, "hidden"));
  c.heads = static_cast<int>(integer(o, "heads"));
  c.kvHeads = static_cast<int>(integer(o, "kvHeads"));
  c.headDim = static_cast<int>(integer(o, "headDim"));
  c.ffn = static_cast<int>(integer(o, "ffn"));
  c.vocab = static_cast<int>(integer(o, "vocab"));
  c.normEps = o.Get("normEps").As<Napi::Number>().FloatValue();
  c.tied = flag(o, "tied");
  c.qkvBias = flag(o, "qkvBias");
  c.outBias = flag(o, "outBias");
  c.mlpBias = flag(o, "mlpBias");
  c.qkNorm = flag(o, "qkNorm");
  c.ropeInvFreq = numbers<double>(o, "ropeInvFreq");
  c.windows = numbers<int>(o, "windows");
  c.maxPositions = integer(o, "maxPositions");
  return c;
}

EngineOptions optionsOf(const Napi::Object& o) {
  return {o.Get("compute").As<Napi::String>().Utf8Value() == "bf16" ? ComputeType::bf16 : ComputeType::fp32, flag(o, "deterministic"),
          static_cast<int>(integer(o, "threads"))};
}

/** Runs f; a C++ exception becomes a JavaScript error. */
template <Napi::Value (*f)(const Napi::CallbackInfo&)>
Napi::Value guarded(const Napi::CallbackInfo& info) {
  try {
    return f(info);
  } catch (const Napi::Error&) {
    throw;
  } catch (const std::exception& error) {
    throw Napi::Error::New(info.Env(), error.what());
  }
}

Napi::Value create(const Napi::CallbackInfo& info) {
  const Napi::Object options = info[1].As<Napi::Object>();
  auto trainer = std::make_shared<Trainer>(configOf(info[0].As<Napi::Object>()), optionsOf(options), flag(options, "trainable"));
  auto external = Napi::External<Handle>::New(info.Env(), new Handle{std::move(trainer)}, [](Napi::Env, Handle* h) { delete h; });
  external.TypeTag(&kTag);
  return external;
}

Napi::Value parameters(const Napi::CallbackInfo& info) {
  const auto trainer = trainerOf(info[0]);
  const std::vector<Parameter>& all = trainer->model->parameters;
  Napi::Array result = Napi::Array::New(info.Env(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Napi::Object p = Napi::Object::New(info.Env());
    Napi::Array shape = Napi::Array::New(info.Env(), all[i].shape.size());
    for (size_t d = 0; d < all[i].shape.size(); ++d) shape.Set(static_cast<uint32_t>(d), static_cast<double>(all[i].shape[d]));
    p.Set("name", all[i].name);
    p.Set("shape", shape);
    p.Set("offset", static_cast<double>(all[i].offset));
    p.Set("size", static_cast<double>(all[i].size));
    result.Set(static_cast<uint32_t>(i), p);
  }
  return result;
}

/** A view of a mapping that keeps the trainer alive. */
Napi::Value view(Napi::Env env, const std::shared_ptr<Trainer>& trainer, const Mapping& mapping) {
  if (mapping.data() == nullptr) return Napi::Float32Array::New(env, 0);
  const size_t bytes = static_cast<size_t>(trainer->model->size) * sizeof(float);
  auto* keep = new std::shared_ptr<Trainer>(trainer);
  auto buffer = Napi::ArrayBuffer::New(env, mapping.data(), bytes,
                                       [](Napi::Env, void*, std::shared_ptr<Trainer>* kept) { delete kept; }, keep);
  return Napi::Float32Array::New(env, bytes / sizeof(float), buffer, 0);
}

/** [weights, grads, m, v]; call once per trainer. */
Napi::Value buffers(const Napi::CallbackInfo& info) {
  const auto t = trainerOf(info[0]);
  Napi::Array result = Napi::Array::New(info.Env(), 4);
  result.Set(0u, view(info.Env(), t, t->model->weights));
  result.Set(1u, view(info.Env(), t, t->grads));
  result.Set(2u, view(info.Env(), t, t->m));
  result.Set(3u, view(info.Env(), t, t->v));
  return result;
}

Napi::Value refresh(const Napi::CallbackInfo& info) {
  const auto t = trainerOf(info[0]);
  useThreads(t->model->options.threads);
  t->model->refresh();
  return info.Env().Undefined();
}

std::vector<int32_t> copyOf(const Napi::Value& value) {
  const auto array = value.As<Napi::Int32Array>();
  return {array.Data(), array.Data() + array.ElementLength()};
}

float* floats(const Napi::Value& value) { return value.IsTypedArray() ? value.As<Napi::Float32Array>().Data() : nullptr; }

/** (handle, tokens, cuSeqlens, positions, targets, scale, keep, logProbs, entropy or undefined) → handle of what was kept */
Napi::Value forward(const Napi::CallbackInfo& info) {
  const auto t = trainerOf(info[0]);
  Batch batch;
  batch.tokens = copyOf(info[1]);
  batch.starts = copyOf(info[2]);
  batch.scoredAt = copyOf(info[3]);
  batch.targets = copyOf(info[4]);
  batch.finish();
  const int64_t kept = t->forward(std::move(batch), info[5].As<Napi::Number>().FloatValue(), info[6].As<Napi::Boolean>().Value(),
                                  floats(info[7]), floats(info[8]));
  return Napi::Number::New(info.Env(), static_cast<double>(kept));
}

/** (handle, kept, dLogProbs, dEntropy or undefined) */
Napi::Value backward(const Napi::CallbackInfo& info) {
  trainerOf(info[0])->backward(info[1].As<Napi::Number>().Int64Value(), floats(info[2]), floats(info[3]));
  return info.Env().Undefined();
}

Napi::Value discard(const Napi::CallbackInfo& info) {
  trainerOf(info[0])->saved.erase(info[1].As<Napi::Number>().Int64Value());
  return info.Env().Undefined();
}

/** (handle, lr, beta1, beta2, eps, weightDecay, maxGradNorm, t) → [norm, taken] */
Napi::Value step(const Napi::CallbackInfo& info) {
  const auto t = trainerOf(info[0]);
  auto number = [&](int i) { return info[i].As<Napi::Number>().DoubleValue(); };
  bool taken = false;
  const double norm = t->step({number(1), number(2), number(3), number(4), number(5), number(6), static_cast<int64_t>(number(7))}, &taken);
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, norm);
  result.Set(1u, taken);
  return result;
}

Napi::Value memory(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(trainerOf(info[0])->arena.bytes()));
}

/** (handle, buffers): detaches the views and frees everything. Nothing happens the second time. */
Napi::Value close(const Napi::CallbackInfo& info) {
  Handle& handle = handleOf(info[0]);
  if (!handle.trainer) return info.Env().Undefined();
  const Napi::Array views = info[1].As<Napi::Array>();
  for (uint32_t i = 0; i < views.Length(); ++i) {
    Napi::ArrayBuffer buffer = views.Get(i).As<Napi::Float32Array>().ArrayBuffer();
    if (buffer.ByteLength() > 0) buffer.Detach();
  }
  handle.trainer->close();
  handle.trainer.reset();
  return info.Env().Undefined();
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  exports.Set("trainerCreate", Napi::Function::New<guarded<create>>(env));
  exports.Set("trainerParameters", Napi::Function::New<guarded<parameters>>(env));
  exports.Set("trainerBuffers", Napi::Function::New<guarded<buffers>>(env));
  exports.Set("trainerRefresh", Napi::Function::New<guarded<refresh>>(env));
  exports.Set("trainerForward", Napi::Function::New<guarded<forward>>(env));
  exports.Set("trainerBackward", Napi::Function::New<guarded<backward>>(env));
  exports.Set("trainerDiscard", Napi::Function::New<guarded<discard>>(env));
  exports.Set("trainerStep", Napi::Function::New<guarded<step>>(env));
  exports.Set("trainerMemory", Napi::Function::New<guarded<memory>>(env));
  exports.Set("trainerClose", Napi::Function::New<guarded<close>>(env));
});

}  // namespace

std::shared_ptr<Trainer> trainerOf(const Napi::Value& handle) {
  const Handle& h = handleOf(handle);
  if (!h.trainer) throw Napi::Error::New(handle.Env(), "this model is closed");
  return h.trainer;
}

std::shared_ptr<Model> modelOf(const Napi::Value& handle) { return trainerOf(handle)->model; }

}  // namespace petrel
