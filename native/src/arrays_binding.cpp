// Functions on plain arrays: conversions, file mapping, and the optimiser's arithmetic for tests against references.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "addon.h"
#include "kernels.h"
#include "optimizer.h"
#include "scalar.h"

namespace petrel {
namespace {

/** Two bytes per value of `dst`, wherever in a mapped file they begin. */
struct Widening {
  const uint8_t* from;
  View<float> to;
};

Widening wideningOf(const Napi::CallbackInfo& info) {
  const Argument src(info, 0, "src"), dst(info, 1, "dst");
  const View<float> to = floatsOf(dst);
  return {ofLength(src, bytesOf(src), 2 * to.length).data, to};
}

/** (src: Uint8Array of bf16, dst: Float32Array) */
void convertBf16(const Napi::CallbackInfo& info) {
  const auto [from, to] = wideningOf(info);
  for (size_t i = 0; i < to.length; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[2 * i]) << 16 | static_cast<uint32_t>(from[2 * i + 1]) << 24;
    std::memcpy(to.data + i, &bits, sizeof bits);
  }
}

Napi::Value roundBf16(const Napi::CallbackInfo& info) {
  const View<float> src = floatsOf({info, 0, "src"});
  auto dst = Napi::Uint16Array::New(info.Env(), src.length);
  kernels().toBf16(src.data, static_cast<int64_t>(src.length), dst.Data());
  return dst;
}

/** Exact, by arithmetic: value = mantissa·2^(exponent − 25). */
float fromHalf(uint16_t h) {
  const int exponent = h >> 10 & 31, mantissa = h & 1023;
  float value;
  if (exponent == 31) value = mantissa != 0 ? NAN : INFINITY;
  else if (exponent == 0) value = std::ldexp(static_cast<float>(mantissa), -24);
  else value = std::ldexp(static_cast<float>(mantissa + 1024), exponent - 25);
  return h >> 15 ? -value : value;
}

uint16_t toHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size >= 65520.0f) return sign | 0x7c00;
  // Steps of the result's last bit: 2^-24 for subnormals, else 2^(exponent − 10). nearbyint rounds to even.
  int exponent;
  std::frexp(size, &exponent);
  const int last = size < 6.103515625e-5f ? -24 : exponent - 11;
  const float units = std::nearbyint(std::ldexp(size, -last));
  const uint32_t base = size < 6.103515625e-5f ? 0 : static_cast<uint32_t>(exponent + 14) << 10;
  return static_cast<uint16_t>(sign |
                               (base == 0 ? static_cast<uint32_t>(units) : base + static_cast<uint32_t>(units) - 1024));
}

void convertFp16(const Napi::CallbackInfo& info) {
  const auto [from, to] = wideningOf(info);
  for (size_t i = 0; i < to.length; ++i)
    to.data[i] = fromHalf(static_cast<uint16_t>(from[2 * i] | from[2 * i + 1] << 8));
}

Napi::Value roundFp16(const Napi::CallbackInfo& info) {
  const View<float> src = floatsOf({info, 0, "src"});
  auto dst = Napi::Uint16Array::New(info.Env(), src.length);
  for (size_t i = 0; i < src.length; ++i) dst.Data()[i] = toHalf(src.data[i]);
  return dst;
}

/**
 * (path) → Uint8Array over a private read-only mapping, unmapped when collected. An empty file gives an empty array.
 */
Napi::Value mapFile(const Napi::CallbackInfo& info) {
  const Argument argument(info, 0, "path");
  const std::string path = textOf(argument);
  if (path.find('\0') != std::string::npos) refuseRange(argument, "a path without a zero byte", "one with it");
  // Without O_NONBLOCK a pipe would wait for its writer.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (file < 0 || syscall(SYS_fstat, file, &status) != 0) {  // fstat itself is a symbol of glibc 2.33
    const std::string reason = std::strerror(errno);
    if (file >= 0) close(file);
    throw Napi::Error::New(info.Env(), "cannot open " + path + ": " + reason);
  }
  if (!S_ISREG(status.st_mode)) {
    close(file);
    throw Napi::Error::New(info.Env(), "cannot map " + path + ": it is not a regular file");
  }
  const size_t bytes = static_cast<size_t>(status.st_size);
  if (bytes == 0) {
    close(file);
    return Napi::Uint8Array::New(info.Env(), 0);
  }
  // Copy-on-write, so that a stray write in JavaScript neither crashes nor reaches the file.
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
  const std::string reason = std::strerror(errno);
  close(file);
  if (data == MAP_FAILED) throw Napi::Error::New(info.Env(), "cannot map " + path + ": " + reason);
  auto buffer = Napi::ArrayBuffer::New(
      info.Env(), data, bytes,
      [](Napi::Env, void* mapped, void* size) { munmap(mapped, reinterpret_cast<size_t>(size)); },
      reinterpret_cast<void*>(bytes));
  return Napi::Uint8Array::New(info.Env(), bytes, buffer, 0);
}

/**
 * AMSGrad: the largest second moment so far in place of the present one. One plain loop: only small experiments use it.
 */
void amsgradStep(const StepSettings& s, float* p, float* g, float* m, float* v, float* vMax, int64_t n, double norm) {
  const double c1 = 1 - power(s.beta1, s.step), c2 = 1 - power(s.beta2, s.step),
               clip = clipCoefficient(norm, s.maxGradNorm);
  for (int64_t i = 0; i < n; ++i) {
    const double grad = g[i] * clip;
    m[i] = static_cast<float>(s.beta1 * m[i] + (1 - s.beta1) * grad);
    v[i] = static_cast<float>(s.beta2 * v[i] + (1 - s.beta2) * grad * grad);
    vMax[i] = std::fmax(vMax[i], v[i]);
    const double update = s.lr / c1 * m[i] / (std::sqrt(vMax[i] / c2) + s.eps);
    p[i] = static_cast<float>(p[i] * (1 - s.lr * s.weightDecay) - update);
    g[i] = 0;
  }
}

/** (params, grads, m, v, lr, beta1, beta2, eps, weightDecay, maxGradNorm, t, vMax or undefined) → [norm, taken] */
Napi::Value adamwOnArrays(const Napi::CallbackInfo& info) {
  const View<float> params = floatsOf({info, 0, "params"});
  const auto array = [&](size_t i, const char* name) {
    const Argument a(info, i, name);
    return ofLength(a, floatsOf(a), params.length).data;
  };
  float *const grads = array(1, "grads"), *const m = array(2, "m"), *const v = array(3, "v");
  float* const vMax = Argument(info, 11, "vMax").isMissing() ? nullptr : array(11, "vMax");
  const StepSettings settings{numberOf({info, 4, "lr"}),
                              numberOf({info, 5, "beta1"}),
                              numberOf({info, 6, "beta2"}),
                              numberOf({info, 7, "eps"}),
                              numberOf({info, 8, "weightDecay"}),
                              numberOf({info, 9, "maxGradNorm"}),
                              integerOf({info, 10, "step"}, 1, int64_t(1) << 53)};
  const int64_t n = static_cast<int64_t>(params.length);
  bool taken = false;
  useThreads(1);
  double norm = gradientNorm(grads, n);
  if (vMax != nullptr && std::isfinite(norm)) {
    amsgradStep(settings, params.data, grads, m, v, vMax, n, norm);
    taken = true;
  } else {
    norm = adamStep(settings, params.data, grads, m, v, n, &taken);
  }
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, norm);
  result.Set(1u, taken);
  return result;
}

/**
 * (grads, maxNorm) → norm; multiplies grads by min(1, maxNorm / (norm + 1e-6)), which is 0 or NaN for a norm that is
 * not finite.
 */
Napi::Value clipGradients(const Napi::CallbackInfo& info) {
  const View<float> grads = floatsOf({info, 0, "grads"});
  const double maxNorm = numberOf({info, 1, "maxNorm"});
  const int64_t n = static_cast<int64_t>(grads.length);
  useThreads(1);
  const double norm = gradientNorm(grads.data, n);
  const double coefficient = maxNorm / (norm + 1e-6);
  const float scale = static_cast<float>(coefficient >= 1 ? 1.0 : coefficient);
  for (int64_t i = 0; i < n; ++i) grads.data[i] *= scale;
  return Napi::Number::New(info.Env(), norm);
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  expose<convertBf16>(env, exports, "convertBf16");
  expose<roundBf16>(env, exports, "roundBf16");
  expose<convertFp16>(env, exports, "convertFp16");
  expose<roundFp16>(env, exports, "roundFp16");
  expose<mapFile>(env, exports, "mapFile");
  expose<adamwOnArrays>(env, exports, "adamw");
  expose<clipGradients>(env, exports, "clipGradients");
});

}  // namespace
}  // namespace petrel
