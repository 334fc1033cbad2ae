// Functions on plain arrays: conversions, file mapping, and the optimiser's arithmetic for tests against references.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "addon.h"
#include "kernels.h"
#include "optimizer.h"

namespace petrel {
namespace {

/** (src: Uint8Array of bf16, dst: Float32Array) */
void convertBf16(const Napi::CallbackInfo& info) {
  const auto src = info[0].As<Napi::Uint8Array>();
  auto dst = info[1].As<Napi::Float32Array>();
  // The source may begin at an odd byte of a mapped file.
  const uint8_t* from = src.Data();
  float* to = dst.Data();
  for (size_t i = 0; i < dst.ElementLength(); ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[2 * i]) << 16 | static_cast<uint32_t>(from[2 * i + 1]) << 24;
    std::memcpy(to + i, &bits, sizeof bits);
  }
}

Napi::Value roundBf16(const Napi::CallbackInfo& info) {
  const auto src = info[0].As<Napi::Float32Array>();
  auto dst = Napi::Uint16Array::New(info.Env(), src.ElementLength());
  kernels().toBf16(src.Data(), static_cast<int64_t>(src.ElementLength()), dst.Data());
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
  return static_cast<uint16_t>(sign | (base == 0 ? static_cast<uint32_t>(units) : base + static_cast<uint32_t>(units) - 1024));
}

void convertFp16(const Napi::CallbackInfo& info) {
  const uint8_t* from = info[0].As<Napi::Uint8Array>().Data();
  auto dst = info[1].As<Napi::Float32Array>();
  for (size_t i = 0; i < dst.ElementLength(); ++i) {
    dst.Data()[i] = fromHalf(static_cast<uint16_t>(from[2 * i] | from[2 * i + 1] << 8));
  }
}

Napi::Value roundFp16(const Napi::CallbackInfo& info) {
  const auto src = info[0].As<Napi::Float32Array>();
  auto dst = Napi::Uint16Array::New(info.Env(), src.ElementLength());
  for (size_t i = 0; i < src.ElementLength(); ++i) dst.Data()[i] = toHalf(src.Data()[i]);
  return dst;
}

/** (path) → Uint8Array over a private read-only mapping, unmapped when collected. An empty file gives an empty array. */
Napi::Value mapFile(const Napi::CallbackInfo& info) {
  const std::string path = info[0].As<Napi::String>();
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) {
    const std::string reason = std::strerror(errno);
    if (file >= 0) close(file);
    throw Napi::Error::New(info.Env(), "cannot open " + path + ": " + reason);
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
  auto buffer = Napi::ArrayBuffer::New(info.Env(), data, bytes,
                                       [](Napi::Env, void* mapped, void* size) { munmap(mapped, reinterpret_cast<size_t>(size)); },
                                       reinterpret_cast<void*>(bytes));
  return Napi::Uint8Array::New(info.Env(), bytes, buffer, 0);
}

/** AMSGrad: the largest second moment so far in place of the present one. One plain loop: only small experiments use it. */
void amsgradStep(const StepSettings& s, float* p, float* g, float* m, float* v, float* vMax, int64_t n, double norm) {
  const double c1 = 1 - std::pow(s.beta1, s.step), c2 = 1 - std::pow(s.beta2, s.step), clip = clipCoefficient(norm, s.maxGradNorm);
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
  auto array = [&](int i) { return info[i].As<Napi::Float32Array>().Data(); };
  auto number = [&](int i) { return info[i].As<Napi::Number>().DoubleValue(); };
  bool taken = false;
  const StepSettings settings{number(4), number(5), number(6), number(7), number(8), number(9), static_cast<int64_t>(number(10))};
  const int64_t n = static_cast<int64_t>(info[0].As<Napi::Float32Array>().ElementLength());
  useThreads(1);
  double norm = gradientNorm(array(1), n);
  if (info[11].IsTypedArray() && std::isfinite(norm)) {
    amsgradStep(settings, array(0), array(1), array(2), array(3), array(11), n, norm);
    taken = true;
  } else {
    norm = adamStep(settings, array(0), array(1), array(2), array(3), n, &taken);
  }
  Napi::Array result = Napi::Array::New(info.Env(), 2);
  result.Set(0u, norm);
  result.Set(1u, taken);
  return result;
}

/** (grads, maxNorm) → norm; multiplies grads by min(1, maxNorm / (norm + 1e-6)), which is 0 or NaN for a norm that is not finite. */
Napi::Value clipGradients(const Napi::CallbackInfo& info) {
  auto grads = info[0].As<Napi::Float32Array>();
  const int64_t n = static_cast<int64_t>(grads.ElementLength());
  useThreads(1);
  const double norm = gradientNorm(grads.Data(), n);
  const double coefficient = info[1].As<Napi::Number>().DoubleValue() / (norm + 1e-6);
  const float scale = static_cast<float>(coefficient >= 1 ? 1.0 : coefficient);
  for (int64_t i = 0; i < n; ++i) grads.Data()[i] *= scale;
  return Napi::Number::New(info.Env(), norm);
}

const Register registration([](Napi::Env env, Napi::Object exports) {
  exports.Set("convertBf16", Napi::Function::New(env, convertBf16));
  exports.Set("roundBf16", Napi::Function::New(env, roundBf16));
  exports.Set("convertFp16", Napi::Function::New(env, convertFp16));
  exports.Set("roundFp16", Napi::Function::New(env, roundFp16));
  exports.Set("mapFile", Napi::Function::New(env, mapFile));
  exports.Set("adamw", Napi::Function::New(env, adamwOnArrays));
  exports.Set("clipGradients", Napi::Function::New(env, clipGradients));
});

}  // namespace
}  // namespace petrel
