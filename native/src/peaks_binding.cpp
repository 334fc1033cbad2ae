// The machine's own peak, for the bench.
#include "addon.h"
#include "peaks.h"

namespace petrel {
namespace {

constexpr int64_t kMostThreads = 1024;

int threadsOf(const Argument& argument) { return static_cast<int>(integerOf(argument, 1, kMostThreads)); }

/** (bf16) → 'avx2', 'avx512', 'avx512_bf16' or 'amx' */
Napi::Value className(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), peakClass(booleanOf({info, 0, "bf16"})));
}

/** (m, n, k, bf16, threads, repeats) → seconds */
Napi::Value product(const Napi::CallbackInfo& info) {
  auto count = [&](size_t i, const char* name) { return integerOf({info, i, name}, 1, kLargestInt); };
  const PeakRun run{count(0, "m"),
                    count(1, "n"),
                    count(2, "k"),
                    count(5, "repeats"),
                    booleanOf({info, 3, "bf16"}),
                    threadsOf({info, 4, "threads"})};
  return Napi::Number::New(info.Env(), peakProductSeconds(run));
}

/** (ones: Float32Array, threads) → seconds */
Napi::Value read(const Napi::CallbackInfo& info) {
  const Argument argument(info, 0, "ones");
  const View<float> ones = floatsOf(argument);
  if (ones.length == 0 || ones.length % kReadItem != 0) {
    refuseRange(argument, "a multiple of " + std::to_string(kReadItem) + " values long", std::to_string(ones.length));
  }
  const int threads = threadsOf({info, 1, "threads"});
  return Napi::Number::New(info.Env(), readSeconds(ones.data, static_cast<int64_t>(ones.length), threads));
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<className>(env, exports, "peakClass");
  expose<product>(env, exports, "peakProductSeconds");
  expose<read>(env, exports, "peakReadSeconds");
});

}  // namespace
}  // namespace petrel
