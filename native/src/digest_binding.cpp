// SHA-256 of the blocks of an array, on the team of threads: the leaves of a state's digest.
#include <cpuid.h>

#include <algorithm>

#include "addon.h"
#include "crew.h"
#include "kernels_sha.h"

namespace petrel {

bool hasSha() {
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & 1u << 29) != 0;
  }();
  return has;
}

namespace {

constexpr size_t kDigestBytes = 32;

/** (src: Float32Array, blockBytes, threads, digests: Uint8Array [blocks][32]) → false, with nothing done, where the processor cannot. */
Napi::Value sha256Blocks(const Napi::CallbackInfo& info) {
  const Argument src(info, 0, "src"), into(info, 3, "digests");
  const View<float> values = floatsOf(src);
  const int64_t block = integerOf({info, 1, "blockBytes"}, 64, int64_t(1) << 40);
  const int threads = static_cast<int>(integerOf({info, 2, "threads"}, 1, 1024));
  const int64_t bytes = static_cast<int64_t>(values.length * sizeof(float)), blocks = (bytes + block - 1) / block;
  uint8_t* const digests = ofLength(into, bytesOf(into), size_t(blocks) * kDigestBytes).data;
  if (!hasSha()) return Napi::Boolean::New(info.Env(), false);
  useThreads(threads);
  const uint8_t* const data = reinterpret_cast<const uint8_t*>(values.data);
  const int64_t items = (blocks + kShaAtOnce - 1) / kShaAtOnce;
  shareOut(items, 1, [&](int64_t item, int) {
    for (int64_t i = item * kShaAtOnce; i < std::min(blocks, (item + 1) * kShaAtOnce);) {
      const int64_t length = std::min(block, bytes - i * block);
      const bool pair = i % kShaAtOnce == 0 && (i + 2) * block <= bytes;
      const uint8_t* const messages[kShaAtOnce] = {data + i * block, data + (pair ? i + 1 : i) * block};
      sha::hash(messages, pair ? kShaAtOnce : 1, length, digests + i * int64_t(kDigestBytes));
      i += pair ? kShaAtOnce : 1;
    }
  });
  return Napi::Boolean::New(info.Env(), true);
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<sha256Blocks>(env, exports, "sha256Blocks");
});

}  // namespace
}  // namespace petrel
