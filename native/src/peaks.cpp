#include "peaks.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "crew.h"
#include "isa.h"
#include "kernels_peak.h"
#include "memory.h"

namespace petrel {
namespace {

using Loop = void (*)(const PeakProduct&);

constexpr float kOne = 1.0f;
constexpr uint32_t kPairOfOnes = 0x3f803f80;  // two bf16

/** Tiles in memory have no peak of their own. */
bool usesAmx() { return isa() == Isa::amx && !tilesAreEmulated(); }

Loop loopOf(bool bf16) {
  if (!bf16) return isa() == Isa::avx2 ? avx2::peakFp32 : avx512::peakFp32;
  if (isa() < Isa::avx512_bf16) {
    throw std::runtime_error(std::string("products in bf16 need AVX512_BF16; the path in use is ") + isaName(isa()));
  }
#ifdef PETREL_AMX_KERNELS
  if (usesAmx()) return amx::peakAmx;
#endif
  return avx512_bf16::peakBf16;
}

float unitOf(bool bf16) {
  float unit = kOne;
  if (bf16) __builtin_memcpy(&unit, &kPairOfOnes, sizeof unit);
  return unit;
}

/** k rounded up to whole units; tiles hold 16 pairs. */
int64_t stepsOf(const PeakRun& run) {
  if (!run.bf16) return run.k;
  const int64_t pairs = (run.k + 1) / 2;
  return usesAmx() ? (pairs + 15) / 16 * 16 : pairs;
}

template <class F>
double secondsOf(F&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/** All factors are 1, so each sum is the number of products in it. A thread that got no item has left its place 0. */
void check(const float* results, int threads, float expected) {
  bool worked = false;
  for (int worker = 0; worker < threads; ++worker) {
    const float* row = results + worker * kPeakResult;
    if (row[0] == 0) continue;
    worked = true;
    for (int i = 0; i < 16; ++i) {
      if (row[i] == expected) continue;
      throw std::runtime_error("a peak loop summed to " + std::to_string(row[i]) + ", expected " +
                               std::to_string(expected));
    }
  }
  if (!worked) throw std::runtime_error("a peak loop did no work");
}

}  // namespace

const char* peakClass(bool bf16) {
  if (!bf16) return isa() == Isa::avx2 ? "avx2" : "avx512";
  return usesAmx() ? "amx" : "avx512_bf16";
}

double peakProductSeconds(const PeakRun& run) {
  const Loop loop = loopOf(run.bf16);
  const int64_t steps = stepsOf(run);
  const Mapping memory((2 * kPeakOperand + run.threads * kPeakResult) * sizeof(float));
  float *a = memory.as<float>(), *b = a + kPeakOperand, *results = b + kPeakOperand;
  std::fill(a, results, unitOf(run.bf16));
  useThreads(run.threads);
  const int64_t chunk = std::max<int64_t>(1, run.repeats / (32 * run.threads));
  const double seconds = secondsOf([&] {
    shareOut(run.repeats, chunk,
             [&](int64_t, int worker) { loop({run.m, run.n, steps, a, b, results + worker * kPeakResult}); });
  });
  check(results, run.threads, static_cast<float>(run.bf16 ? 2 * steps : steps));
  return seconds;
}

double readSeconds(const float* ones, int64_t count, int threads) {
  const auto sum = isa() == Isa::avx2 ? avx2::readSum : avx512::readSum;
  std::vector<double> sums(static_cast<size_t>(count / kReadItem));
  useThreads(threads);
  const double seconds = secondsOf([&] {
    shareOut(count / kReadItem, 1,
             [&](int64_t i, int) { sums[static_cast<size_t>(i)] = sum(ones + i * kReadItem, kReadItem); });
  });
  double total = 0;
  for (const double part : sums) total += part;
  if (total != static_cast<double>(count)) throw std::runtime_error("the memory read was not all ones");
  return seconds;
}

}  // namespace petrel
