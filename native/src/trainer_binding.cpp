// Flat functions over a trainer's handle, for native/trainer.ts.
#include <algorithm>
#include <cstring>

#include "addon.h"
#include "block_digests_binding.h"
#include "kernels_sha.h"
#include "spec.h"
#include "trainer.h"

namespace petrel {
namespace {

using Handle = std::shared_ptr<Trainer>;
constexpr napi_type_tag kTag = {0x70657472656c0001, 0x747261696e657231};

Handle& handleOf(const Argument& a) {
  if (!a.value.IsExternal() || !a.value.As<Napi::External<Handle>>().CheckTypeTag(&kTag))
    refuseType(a, "a handle of a model");
  return *a.value.As<Napi::External<Handle>>().Data();
}

std::shared_ptr<Trainer> trainerAt(const Napi::CallbackInfo& info) { return trainerOf({info, 0, "handle"}); }

bool flag(const Argument& object, const char* key) { return booleanOf({object, key}); }

EngineOptions optionsOf(const Argument& a) {
  const Argument compute(a, "compute");
  const std::string name = textOf(compute);
  if (name != "fp32" && name != "bf16") refuseRange(compute, "fp32 or bf16", name.substr(0, 40));
  return {name == "bf16" ? ComputeType::bf16 : ComputeType::fp32, flag(a, "deterministic"),
          static_cast<int>(integerOf({a, "threads"}, 1, 1024))};
}

Napi::Value create(const Napi::CallbackInfo& info) {
  const Argument options(info, 1, "options");
  auto handle = std::make_unique<Handle>(
      std::make_shared<Trainer>(decoderOf({info, 0, "spec"}), optionsOf(options), flag(options, "trainable")));
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
    p.Set("computed", all[i].isRounded ? "BF16" : "F32");
    result.Set(static_cast<uint32_t>(i), p);
  }
  return result;
}

/** Throws for a model without gradients and moments. */
void needTrainable(const Argument& handle, const Trainer& t) {
  if (!t.trainable) refuseRange(handle, "of a trainable model", "one created with trainable: false");
}

struct Part {
  uint8_t* data;
  int64_t bytes;
};

/** (handle, part, …): weights, grads, m or v. A model that is not trainable has only weights. */
Part partOf(const Napi::CallbackInfo& info, const Trainer& t) {
  const Argument a(info, 1, "part");
  const std::string name = textOf(a);
  const std::pair<const char*, const Mapping*> parts[] = {
      {"weights", &t.model->weights}, {"grads", &t.grads}, {"m", &t.m}, {"v", &t.v}};
  for (const auto& [known, mapping] : parts) {
    if (name != known) continue;
    if (mapping->data() == nullptr) needTrainable({info, 0, "handle"}, t);
    return {mapping->as<uint8_t>(), t.model->size * int64_t(sizeof(float))};
  }
  refuseRange(a, "weights, grads, m or v", name.substr(0, 40));
}

/** Address of `length` bytes from argument 2 on in the part. `unit`: bytes that the argument counts in. */
uint8_t* placeOf(const Napi::CallbackInfo& info, const Part& part, int64_t unit, size_t length) {
  const Argument a(info, 2, "start");
  const int64_t start = integerOf(a, 0, part.bytes / unit) * unit;
  if (length > size_t(part.bytes - start))
    refuseRange(a, "at least " + std::to_string(length) + " bytes before the end of the part",
                std::to_string(start / unit));
  return part.data + start;
}

/** (handle, part, start, into: Float32Array): copies elements. */
void readPart(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  const View<float> into = floatsOf({info, 3, "into"});
  const size_t bytes = into.length * sizeof(float);
  const uint8_t* from = placeOf(info, partOf(info, *t), sizeof(float), bytes);
  if (bytes > 0) std::memcpy(into.data, from, bytes);
}

/** (handle, part, first byte, bytes: Uint8Array): replaces bytes. */
void writePart(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  const View<uint8_t> bytes = bytesOf({info, 3, "bytes"});
  uint8_t* to = placeOf(info, partOf(info, *t), 1, bytes.length);
  if (bytes.length > 0) std::memcpy(to, bytes.data, bytes.length);
}

/** (handle, part) */
void zeroPart(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  const Part part = partOf(info, *t);
  std::memset(part.data, 0, size_t(part.bytes));
}

/**
 * (handle, part, first block, blockBytes, digests: Uint8Array [blocks][32], hash: 'sha256' or 'blake3') → false, with
 * nothing done, where the processor has no instructions for SHA-256.
 */
Napi::Value digestPart(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  const Part part = partOf(info, *t);
  const int64_t block = integerOf({info, 3, "blockBytes"}, 64, int64_t(1) << 40);
  const int64_t all = (part.bytes + block - 1) / block, first = integerOf({info, 2, "block"}, 0, all);
  const Argument into(info, 4, "digests");
  const View<uint8_t> digests = bytesOf(into);
  const int64_t blocks = int64_t(digests.length) / kDigestBytes;
  ofLength(into, digests, size_t(std::min(blocks, all - first) * kDigestBytes));
  const BlockHash hash = blockHashOf({info, 5, "hash"});
  if (hash == BlockHash::sha256 && !hasSha()) return Napi::Boolean::New(info.Env(), false);
  useThreads(t->model->options.threads);
  const int64_t from = first * block, bytes = std::min(blocks * block, part.bytes - from);
  blockDigests(hash, part.data + from, bytes, block, digests.data);
  return Napi::Boolean::New(info.Env(), true);
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

/** Throws unless each parent is −1 or an earlier segment whose own parent is −1. */
void checkParents(const Argument& a, const std::vector<int32_t>& parents) {
  for (size_t s = 0; s < parents.size(); ++s) {
    const int32_t parent = parents[s];
    if (parent == -1 || (parent >= 0 && size_t(parent) < s && parents[size_t(parent)] == -1)) continue;
    refuseRange(a, "-1 or an earlier segment without a parent",
                std::to_string(parent) + " at index " + std::to_string(s));
  }
}

/**
 * The arrays are copied first: another thread could change those of JavaScript between check and use. Targets may be
 * missing where no log-prob is wanted; token 0 stands in their place.
 */
Batch batchOf(const Napi::CallbackInfo& info, int64_t vocab) {
  const Argument tokens(info, 1, "tokens"), starts(info, 2, "cuSeqlens"), scoredAt(info, 3, "positions"),
      targets(info, 4, "targets");
  Batch batch;
  batch.tokens = integersOf(tokens).copy();
  batch.starts = integersOf(starts).copy();
  batch.scoredAt = integersOf(scoredAt).copy();
  const Argument parents(info, 11, "parents");
  if (parents.isMissing()) batch.parents.assign(batch.starts.empty() ? 0 : batch.starts.size() - 1, -1);
  else batch.parents = ofLength(parents, integersOf(parents), batch.starts.size() - 1).copy();
  if (targets.isMissing()) batch.targets.resize(batch.scoredAt.size());
  else batch.targets = ofLength(targets, integersOf(targets), batch.scoredAt.size()).copy();
  const int64_t n = static_cast<int64_t>(batch.tokens.size());
  checkWithin(tokens, batch.tokens, 0, vocab - 1);
  checkAscending(starts, batch.starts);
  if (batch.starts.size() < 2 || batch.starts.front() != 0 || batch.starts.back() != n) {
    refuseRange(starts, "a list from 0 to the " + std::to_string(n) + " tokens",
                std::to_string(batch.starts.size()) + " values");
  }
  checkParents(parents, batch.parents);
  checkWithin(scoredAt, batch.scoredAt, 0, n - 1);
  checkWithin(targets, batch.targets, 0, vocab - 1);
  batch.finish();
  return batch;
}

/** An array of `length` floats, or null where the argument is missing. */
float* optionalFloats(const Argument& a, size_t length) {
  return a.isMissing() ? nullptr : ofLength(a, floatsOf(a), length).data;
}

/** Throws where a model's head does not give an output. */
void needHead(const Argument& output, const Trainer& t, HeadKind kind) {
  if (output.isMissing() || t.model->head.kind == kind) return;
  refuseRange(output, "missing for this model's head", "an array");
}

/**
 * (…, logProbs, entropy, logits, rows, parents, topTokens, topLogProbs, top, sumPiSquared): outputs are arrays or
 * undefined.
 */
Outputs outputsOf(const Napi::CallbackInfo& info, const Trainer& t, size_t scored) {
  constexpr size_t first = 7;
  const Argument logProbs(info, first, "logProbs"), entropy(info, first + 1, "entropy"),
      logits(info, first + 2, "logits"), rows(info, first + 3, "rows");
  const Argument topTokens(info, 12, "topTokens"), topLogProbs(info, 13, "topLogProbs"),
      sumPiSquared(info, 15, "sumPiSquared");
  for (const Argument* a : {&logProbs, &entropy, &logits, &topTokens, &topLogProbs, &sumPiSquared})
    needHead(*a, t, HeadKind::tokens);
  needHead(rows, t, HeadKind::rows);
  if (!logProbs.isMissing() && Argument(info, 4, "targets").isMissing())
    refuseType({info, 4, "targets"}, "an Int32Array where logProbs are wanted");
  Outputs to;
  to.logProbs = optionalFloats(logProbs, scored);
  to.entropy = optionalFloats(entropy, scored);
  to.sumPiSquared = optionalFloats(sumPiSquared, scored);
  to.logits = optionalFloats(logits, scored * size_t(t.model->vocab));
  to.rows = optionalFloats(rows, scored * size_t(t.model->head.linear.out));
  if (topTokens.isMissing() && topLogProbs.isMissing()) return to;
  to.top = integerOf({info, 14, "top"}, 1, t.model->vocab);
  const size_t all = scored * size_t(to.top);
  if (!topTokens.isMissing()) to.topTokens = ofLength(topTokens, integersOf(topTokens), all).data;
  to.topLogProbs = optionalFloats(topLogProbs, all);
  return to;
}

/**
 * (handle, tokens, cuSeqlens, positions, targets, scale, keep, logProbs, entropy, logits, rows, parents, topTokens,
 * topLogProbs, top, sumPiSquared) → handle of what was kept. targets, the outputs and parents may be undefined.
 */
Napi::Value forward(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  Batch batch = batchOf(info, t->model->vocab);
  const bool keep = booleanOf({info, 6, "keep"});
  if (keep) needTrainable({info, 0, "handle"}, *t);
  const Outputs outputs = outputsOf(info, *t, batch.scoredAt.size());
  const int64_t kept = t->forward(std::move(batch), static_cast<float>(finiteOf({info, 5, "scale"})), keep, outputs);
  return Napi::Number::New(info.Env(), static_cast<double>(kept));
}

int64_t keptOf(const Napi::CallbackInfo& info) { return integerOf({info, 1, "kept"}, 0, int64_t(1) << 53); }

/** (handle, kept, dLogProbs, dEntropy, dRows); each gradient may be undefined. */
void backward(const Napi::CallbackInfo& info) {
  const auto t = trainerAt(info);
  needTrainable({info, 0, "handle"}, *t);
  const auto found = t->saved.find(keptOf(info));
  if (found == t->saved.end())
    refuseRange({info, 1, "kept"}, "the handle of a forward pass that was kept", std::to_string(keptOf(info)));
  const size_t scored = found->second.batch.scoredAt.size();
  const Argument dLogProbs(info, 2, "dLogProbs"), dEntropy(info, 3, "dEntropy"), dRows(info, 4, "dRows");
  for (const Argument* a : {&dLogProbs, &dEntropy}) needHead(*a, *t, HeadKind::tokens);
  needHead(dRows, *t, HeadKind::rows);
  t->backward(found->first, {optionalFloats(dLogProbs, scored), optionalFloats(dEntropy, scored),
                             optionalFloats(dRows, scored * size_t(t->model->head.linear.out))});
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

/** (handle): frees everything. Nothing happens the second time. */
void close(const Napi::CallbackInfo& info) {
  Handle& handle = handleOf({info, 0, "handle"});
  if (!handle) return;
  handle->close();
  handle.reset();
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<create>(env, exports, "trainerCreate");
  expose<parameters>(env, exports, "trainerParameters");
  expose<readPart>(env, exports, "trainerRead");
  expose<writePart>(env, exports, "trainerWrite");
  expose<zeroPart>(env, exports, "trainerZero");
  expose<digestPart>(env, exports, "trainerDigests");
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
  if (!h) throw Napi::Error::New(argument.value.Env(), argument.name + ": this model is closed");
  return h;
}

std::shared_ptr<Model> modelOf(const Argument& handle) { return trainerOf(handle)->model; }

}  // namespace petrel
