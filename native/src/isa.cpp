#include "isa.h"

#include <cstdlib>
#include <stdexcept>

namespace petrel {
namespace {

Isa probe() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
    throw std::runtime_error(
        "the native engine needs a processor with AVX2, FMA and F16C (x86-64-v3); this one lacks them");
  }
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512) return Isa::avx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
}

Isa choose() {
  const Isa best = probe();
  const char* wanted = std::getenv("PETREL_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  for (Isa candidate : {Isa::avx2, Isa::avx512, Isa::avx512_bf16}) {
    if (std::string(wanted) != isaName(candidate)) continue;
    if (candidate <= best) return candidate;
    throw std::runtime_error(std::string("PETREL_ISA=") + wanted + ", but this processor goes up to " + isaName(best));
  }
  throw std::runtime_error(std::string("PETREL_ISA=") + wanted + " is unknown; it may be avx2, avx512 or avx512_bf16");
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

const char* isaName(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512_bf16: return "avx512_bf16";
  }
  return "?";
}

}  // namespace petrel
