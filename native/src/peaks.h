// The machine's own peak, measured by the loops of kernels_peak.h on a team of threads.
#pragma once
#include <cstdint>

namespace petrel {

/** The class of instructions that products use: avx2 or avx512 in fp32, avx512_bf16 or amx in bf16. */
const char* peakClass(bool bf16);

/** `repeats` products [m, n] over k, handed out whole to `threads` threads. */
struct PeakRun {
  int64_t m, n, k, repeats;
  bool bf16;
  int threads;
};

/** Seconds of the run. Throws std::runtime_error when a sum is wrong, or the processor has no bf16 products. */
double peakProductSeconds(const PeakRun& run);

constexpr int64_t kReadItem = 64 * 1024;  // floats that a thread reads at a time

/** Seconds in which `threads` threads read `count` floats, which are all 1; count is a multiple of kReadItem. */
double readSeconds(const float* ones, int64_t count, int threads);

}  // namespace petrel
