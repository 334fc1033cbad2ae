// Flat functions over a trainer's handle, for native/trainer.ts: its weights as bytes that samplers load.
#include <algorithm>

#include "addon.h"
#include "block_digests.h"
#include "trainer.h"

namespace petrel {
namespace {

struct Publication {
  std::shared_ptr<Trainer> trainer;
  const Published& published;
  float* weights() const { return trainer->model->weights.as<float>(); }
};

/** (handle, format: 'F32' or 'BF16', …) */
Publication publicationOf(const Napi::CallbackInfo& info) {
  auto trainer = trainerOf({info, 0, "handle"});
  const Argument format(info, 1, "format");
  const std::string name = textOf(format);
  const Model& model = *trainer->model;
  const bool inBf16 = model.options.compute == ComputeType::bf16;
  if (name == "BF16" && inBf16) return {std::move(trainer), model.inBf16};
  if (name == "F32") return {std::move(trainer), model.inFp32};
  refuseRange(format, inBf16 ? "F32 or BF16" : "F32 for a model that computes in fp32", name.substr(0, 40));
}

/** The first of `length` bytes, which must lie in the publication. */
int64_t firstByte(const Napi::CallbackInfo& info, const Published& published, size_t length) {
  const Argument a(info, 2, "firstByte");
  const int64_t first = integerOf(a, 0, published.bytes());
  if (length > size_t(published.bytes() - first))
    refuseRange(a, "at least " + std::to_string(length) + " bytes before the end", std::to_string(first));
  return first;
}

/** (handle, format, first byte, into: Uint8Array): copies bytes. */
void read(const Napi::CallbackInfo& info) {
  const Publication p = publicationOf(info);
  const View<uint8_t> into = bytesOf({info, 3, "into"});
  p.published.read(p.weights(), firstByte(info, p.published, into.length), int64_t(into.length), into.data);
}

/** (handle, format, first byte, bytes: Uint8Array): replaces the values that these bytes are. */
void write(const Napi::CallbackInfo& info) {
  const Publication p = publicationOf(info);
  const View<uint8_t> bytes = bytesOf({info, 3, "bytes"});
  p.published.write(p.weights(), firstByte(info, p.published, bytes.length), int64_t(bytes.length), bytes.data);
}

/** (handle, format, first block, blockBytes, digests: Uint8Array [blocks][32]): BLAKE3 of each block. */
void digests(const Napi::CallbackInfo& info) {
  const Publication p = publicationOf(info);
  const int64_t block = integerOf({info, 3, "blockBytes"}, 64, int64_t(1) << 40);
  const int64_t size = p.published.bytes(), all = (size + block - 1) / block;
  const int64_t first = integerOf({info, 2, "block"}, 0, all);
  const Argument into(info, 4, "digests");
  const View<uint8_t> digests = bytesOf(into);
  const int64_t blocks = std::min(int64_t(digests.length) / kDigestBytes, all - first);
  ofLength(into, digests, size_t(blocks * kDigestBytes));
  useThreads(p.trainer->model->options.threads);
  const int64_t from = first * block;
  p.published.digests(p.weights(), from, std::min(blocks * block, size - from), block, digests.data);
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<read>(env, exports, "publishedRead");
  expose<write>(env, exports, "publishedWrite");
  expose<digests>(env, exports, "publishedDigests");
});

}  // namespace
}  // namespace petrel
