// Digests of the blocks of an array, for native/block-digests.ts.
#include "block_digests_binding.h"

#include "addon.h"
#include "crew.h"
#include "kernels_sha.h"

namespace petrel {

BlockHash blockHashOf(const Argument& argument) {
  const std::string name = textOf(argument);
  if (name == "sha256") return BlockHash::sha256;
  if (name == "blake3") return BlockHash::blake3;
  refuseRange(argument, "sha256 or blake3", name.substr(0, 40));
}

namespace {

/**
 * (bytes: Uint8Array, blockBytes, digests: Uint8Array [blocks][32], hash, threads) → false, with nothing done, where
 * the processor has no instructions for SHA-256.
 */
Napi::Value digestBlocks(const Napi::CallbackInfo& info) {
  const View<uint8_t> bytes = bytesOf({info, 0, "bytes"});
  const int64_t length = int64_t(bytes.length), block = integerOf({info, 1, "blockBytes"}, 64, int64_t(1) << 40);
  const Argument into(info, 2, "digests");
  const View<uint8_t> digests = ofLength(into, bytesOf(into), size_t((length + block - 1) / block * kDigestBytes));
  const BlockHash hash = blockHashOf({info, 3, "hash"});
  const int threads = int(integerOf({info, 4, "threads"}, 1, 1 << 16));
  if (hash == BlockHash::sha256 && !hasSha()) return Napi::Boolean::New(info.Env(), false);
  useThreads(threads);
  blockDigests(hash, bytes.data, length, block, digests.data);
  return Napi::Boolean::New(info.Env(), true);
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<digestBlocks>(env, exports, "blockDigests");
});

}  // namespace
}  // namespace petrel
