// Flat functions over a trainer's handle, for native/trainer.ts.
#include "addon.h"
#include "trainer.h"

namespace petrel {
namespace {

struct Handle {
  std::shared_ptr<Trainer> trainer;
  std::vector<Napi::Reference<Napi::ArrayBuffer>> views;  // over the trainer's memory: detached before it is freed
};
constexpr napi_type_tag kTag = {0x70657472656c0001, 0x747261696e657231};

Handle& handleOf(const Argument& a) {
  if (!a.value.IsExternal() || !a.value.As<Napi::External<Handle>>().CheckTypeTag(&kTag))
    refuseType(a, "a handle of a model");
  return *a.value.As<Napi::External<Handle>>().Data();
}

std::shared_ptr<Trainer> trainerAt(const Napi::CallbackInfo& info) { return trainerOf({info, 0, "handle"}); }

int size(const Argument& object, const char* key) { return static_cast<int>(integerOf({object, key}, 1, kLargestInt)); }
bool flag(const Argument& object, const char* key) { return booleanOf({object, key}); }

std::vector<int> windowsOf(const Argument& a, int layers) {
  std::vector<int> windows;
  for (double window : numbersOf(a)) {
    windows.push_back(static_cast<int>(integerOf({Napi::Number::New(a.value.Env(), window), a.name}, 0, kLargestInt)));
  }
  if (static_cast<int64_t>(windows.size()) != layers) {
    refuseRange(a, "of " + std::to_string(layers) + " values, one per layer", std::to_string(windows.size()));
  }
  return windows;
}

constexpr int64_t kWidest = kLargestInt / 4;         // [q | k | v] and [gate | up] side by side are counted in ints
constexpr int64_t kMostElements = int64_t(1) << 44;  // four buffers of them fill the address space

/** Throws where a product of two sizes leaves the integers that the engine counts with. */
void checkSizes(const Argument& a, const DecoderConfig& c) {
  const int64_t query = int64_t(c.heads) * c.headDim;
  if (query > kWidest) refuseRange(a, "with heads * headDim up to " + std::to_string(kWidest), std::to_string(query));
  if (c.ffn > kWidest) refuseRange(a, "with ffn up to " + std::to_string(kWidest), std::to_string(c.ffn));
  int64_t elements;
  if (__builtin_mul_overflow((4 * query + 3 * int64_t(c.ffn) + 8) * c.layers + 2 * int64_t(c.vocab), int64_t(c.hidden),
                             &elements) ||
      elements > kMostElements) {
    refuseRange(a, "of at most " + std::to_string(kMostElements) + " parameters", "more");
  }
  if (c.heads % c.kvHeads != 0) {
    refuseRange(a, "with kvHeads that divide heads",
                std::to_string(c.heads) + " heads, " + std::to_string(c.kvHeads) + " kvHeads");
  }
  if (c.headDim % 2 != 0) refuseRange(a, "with an even headDim", std::to_string(c.headDim));
  if (c.ropeInvFreq.size() != static_cast<size_t>(c.headDim / 2)) {
    refuseRange(a, "with ropeInvFreq of headDim / 2 = " + std::to_string(c.headDim / 2) + " values",
                std::to_string(c.ropeInvFreq.size()));
  }
}

DecoderConfig configOf(const Argument& a) {
  DecoderConfig c;
  c.layers = size(a, "layers");
  c.hidden = size(a, "hidden");
  c.heads = size(a, "heads");
  c.kvHeads = size(a, "kvHeads");
  c.headDim = size(a, "headDim");
  c.ffn = size(a, "ffn");
  c.vocab = size(a, "vocab");
  c.normEps = static_cast<float>(finiteOf({a, "normEps"}));
  c.tied = flag(a, "tied");
  c.qkvBias = flag(a, "qkvBias");
  c.outBias = flag(a, "outBias");
  c.mlpBias = flag(a, "mlpBias");
  c.qkNorm = flag(a, "qkNorm");
  c.ropeInvFreq = numbersOf({a, "ropeInvFreq"});
  c.windows = windowsOf({a, "windows"}, c.layers);
  c.maxPositions = integerOf({a, "maxPositions"}, 1, kLargestInt);
  checkSizes(a, c);
  return c;
}

EngineOptions optionsOf(const Argument& a) {
  const Argument compute(a, "compute");
  const std::string name = textOf(compute);
  if (name != "fp32" && name != "bf16") refuseRange(compute, "fp32 or bf16", name.substr(0, 40));
  return {name == "bf16" ? ComputeType::bf16 : ComputeType::fp32, flag(a, "deterministic"),
          static_cast<int>(integerOf({a, "threads"}, 1, 1024))};
}

Napi::Value create(const Napi::CallbackInfo& info) {
  const Argument options(info, 1, "options");
  auto handle = std::make_unique<Handle>();
  handle->trainer =
      std::make_shared<Trainer>(configOf({info, 0, "config"}), optionsOf(options), flag(options, "trainable"));
  auto external = Napi::External<Handle>::New(info.Env(), handle.release(), [](Napi::Env, Handle* h) { delete h; });
  external.TypeTag(&kTag);
  return external;
}

Napi::Value parameters(const Napi::CallbackInfo& info) {
  const auto trainer = trainerAt(info);
  const std::vector<Parameter>& all = trainer->model->parameters;
  Napi::Array result = Napi::Array::New(info.Env(), all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Napi::Object p = Napi::Object::New(info.Env());
    Napi::Array shape = Napi::Array::New(info.Env(), all[i].shape.size());
    for (size_t d = 0; d < all[i].shape.size(); ++d)
      shape.Set(static_cast<uint32_t>(d), static_cast<double>(all[i].shape[d]));
    p.Set("name", all[i].name);
    p.Set("shape", shape);
    p.Set("offset", static_cast<double>(all[i].offset));
    p.Set("size", static_cast<double>(all[i].size));
    result.Set(static_cast<uint32_t>(i), p);
  }
  return result;
}

/** A view of a mapping that keeps the trainer alive. */
Napi::Value view(Napi::Env env, Handle& handle, const Mapping& mapping) {
  if (mapping.data() == nullptr) return Napi::Float32Array::New(env, 0);
  const size_t bytes = static_cast<size_t>(handle.trainer->model->size) * sizeof(float);
  auto* keep = new std::shared_ptr<Trainer>(handle.trainer);
  auto buffer = Napi::ArrayBuffer::New(
      env, mapping.data(), bytes, [](Napi::Env, void*, std::shared_ptr<Trainer>* kept) { delete kept; }, keep);
  handle.views.push_back(Napi::Weak(buffer));
  return Napi::Float32Array::New(env, bytes / sizeof(float), buffer, 0);
}

/** [weights, grads, m, v]; once per trainer, because two buffers over one memory are not allowed. */
Napi::Value buffers(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  Handle& handle = handleOf({info, 0, "handle"});
  if (!handle.views.empty())
    throw Napi::Error::New(info.Env(), "trainerBuffers: the buffers of this model were given out before");
  Napi::Array result = Napi::Array::New(info.Env(), 4);
  result.Set(0u, view(info.Env(), handle, t->model->weights));
  result.Set(1u, view(info.Env(), handle, t->grads));
  result.Set(2u, view(info.Env(), handle, t->m));
  result.Set(3u, view(info.Env(), handle, t->v));
  return result;
}

void refresh(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  useThreads(t->model->options.threads);
  t->model->refresh();
}

/** Throws unless the numbers rise from one to the next. */
void checkAscending(const Argument& a, const std::vector<int32_t>& values) {
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] <= values[i - 1]) {
      refuseRange(a, "ascending", std::to_string(values[i]) + " after " + std::to_string(values[i - 1]));
    }
  }
}

/** The arrays are copied first: another thread could change those of JavaScript between check and use. */
Batch batchOf(const Napi::CallbackInfo& info, int64_t vocab) {
  const Argument tokens(info, 1, "tokens"), starts(info, 2, "cuSeqlens"), scoredAt(info, 3, "positions"),
      targets(info, 4, "targets");
  Batch batch;
  batch.tokens = integersOf(tokens).copy();
  batch.starts = integersOf(starts).copy();
  batch.scoredAt = integersOf(scoredAt).copy();
  batch.targets = ofLength(targets, integersOf(targets), batch.scoredAt.size()).copy();
  const int64_t n = static_cast<int64_t>(batch.tokens.size());
  checkWithin(tokens, batch.tokens, 0, vocab - 1);
  checkAscending(starts, batch.starts);
  if (batch.starts.size() < 2 || batch.starts.front() != 0 || batch.starts.back() != n) {
    refuseRange(starts, "a list from 0 to the " + std::to_string(n) + " tokens",
                std::to_string(batch.starts.size()) + " values");
  }
  checkAscending(scoredAt, batch.scoredAt);
  checkWithin(scoredAt, batch.scoredAt, 0, n - 1);
  checkWithin(targets, batch.targets, 0, vocab - 1);
  batch.finish();
  return batch;
}

/** An array of `length` floats, or null where the argument is missing. */
float* optionalFloats(const Argument& a, size_t length) {
  return a.isMissing() ? nullptr : ofLength(a, floatsOf(a), length).data;
}

/** Throws for a model without gradients and moments. */
void needTrainable(const Argument& handle, const Trainer& t) {
  if (!t.trainable) refuseRange(handle, "of a trainable model", "one created with trainable: false");
}

/** (handle, tokens, cuSeqlens, positions, targets, scale, keep, logProbs, entropy or undefined) → handle of what was kept */
Napi::Value forward(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  Batch batch = batchOf(info, t->model->config.vocab);
  const bool keep = booleanOf({info, 6, "keep"});
  if (keep) needTrainable({info, 0, "handle"}, *t);
  const Argument logProbs(info, 7, "logProbs");
  const size_t scored = batch.scoredAt.size();
  float* const entropy = optionalFloats({info, 8, "entropy"}, scored);
  float* const into = ofLength(logProbs, floatsOf(logProbs), scored).data;
  const int64_t kept =
      t->forward(std::move(batch), static_cast<float>(finiteOf({info, 5, "scale"})), keep, into, entropy);
  return Napi::Number::New(info.Env(), static_cast<double>(kept));
}

int64_t keptOf(const Napi::CallbackInfo& info) { return integerOf({info, 1, "kept"}, 0, int64_t(1) << 53); }

/** (handle, kept, dLogProbs, dEntropy or undefined) */
void backward(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  needTrainable({info, 0, "handle"}, *t);
  const auto found = t->saved.find(keptOf(info));
  if (found == t->saved.end())
    refuseRange({info, 1, "kept"}, "the handle of a forward pass that was kept", std::to_string(keptOf(info)));
  const size_t scored = found->second.batch.scoredAt.size();
  const Argument dLogProbs(info, 2, "dLogProbs");
  t->backward(found->first, ofLength(dLogProbs, floatsOf(dLogProbs), scored).data,
              optionalFloats({info, 3, "dEntropy"}, scored));
}

void discard(const Napi::CallbackInfo& info) { trainerAt(info)->saved.erase(keptOf(info)); }

/** (handle, lr, beta1, beta2, eps, weightDecay, maxGradNorm, t) → [norm, taken] */
Napi::Value step(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  needTrainable({info, 0, "handle"}, *t);
  const StepSettings settings{finiteOf({info, 1, "lr"}),
                              finiteOf({info, 2, "beta1"}),
                              finiteOf({info, 3, "beta2"}),
                              finiteOf({info, 4, "eps"}),
                              finiteOf({info, 5, "weightDecay"}),
                              finiteOf({info, 6, "maxGradNorm"}),
                              integerOf({info, 7, "step"}, 1, int64_t(1) << 53)};
  bool taken = false;
  const double norm = t->step(settings, &taken);
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, norm);
  result.Set(1u, taken);
  return result;
}

Napi::Value memory(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(trainerAt(info)->arena.bytes()));
}

/** (handle): detaches the views and frees everything. Nothing happens the second time. */
void close(const Napi::CallbackInfo& info) {
  Handle& handle = handleOf({info, 0, "handle"});
  if (!handle.trainer) return;
  for (const auto& view : handle.views) {
    Napi::ArrayBuffer buffer = view.Value();
    if (!buffer.IsEmpty() && buffer.ByteLength() > 0) buffer.Detach();
  }
  handle.views.clear();
  handle.trainer->close();
  handle.trainer.reset();
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<create>(env, exports, "trainerCreate");
  expose<parameters>(env, exports, "trainerParameters");
  expose<buffers>(env, exports, "trainerBuffers");
  expose<refresh>(env, exports, "trainerRefresh");
  expose<forward>(env, exports, "trainerForward");
  expose<backward>(env, exports, "trainerBackward");
  expose<discard>(env, exports, "trainerDiscard");
  expose<step>(env, exports, "trainerStep");
  expose<memory>(env, exports, "trainerMemory");
  expose<close>(env, exports, "trainerClose");
});

}  // namespace

std::shared_ptr<Trainer> trainerOf(const Argument& argument) {
  const Handle& h = handleOf(argument);
  if (!h.trainer) throw Napi::Error::New(argument.value.Env(), argument.name + ": this model is closed");
  return h.trainer;
}

std::shared_ptr<Model> modelOf(const Argument& handle) { return trainerOf(handle)->model; }

}  // namespace petrel
