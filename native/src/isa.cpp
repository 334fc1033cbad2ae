#include "isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

namespace petrel {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/** AMX with bf16. Linux gives the tile registers only to a process that asks for them. */
bool hasTiles() {
#ifdef PETREL_AMX_KERNELS
  unsigned a, b, c, features = 0;
  constexpr unsigned kTiles = 1u << 24, kTilesOfBf16 = 1u << 22;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &features) == 0) return false;
  if ((features & kTiles) == 0 || (features & kTilesOfBf16) == 0) return false;
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

/** clang 14 does not know it by name. */
bool hasHalfConversions() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & 1u << 29) != 0;
}

Isa probe() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !hasHalfConversions()) {
    throw std::runtime_error(
        "the native engine needs a processor with AVX2, FMA and F16C (x86-64-v3); this one lacks them");
  }
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512) return Isa::avx2;
  if (!__builtin_cpu_supports("avx512bf16")) return Isa::avx512;
  return hasTiles() ? Isa::amx : Isa::avx512_bf16;
}

bool wantsEmulatedTiles() {
  const std::string wanted = variable("PETREL_TILES");
  if (wanted.empty() || wanted == "emulated") return !wanted.empty();
  throw std::runtime_error("PETREL_TILES=" + wanted + " is unknown; it may be emulated");
}

Isa choose() {
  const Isa best = probe();
  const std::string wanted = variable("PETREL_ISA");
  if (wanted.empty()) return best;
  for (Isa candidate : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx}) {
    if (wanted != isaName(candidate)) continue;
    const bool emulated = candidate == Isa::amx && best == Isa::avx512_bf16 && wantsEmulatedTiles();
    if (candidate <= best || emulated) return candidate;
    throw std::runtime_error("PETREL_ISA=" + wanted + ", but this processor goes up to " + isaName(best));
  }
  throw std::runtime_error("PETREL_ISA=" + wanted + " is unknown; it may be avx2, avx512, avx512_bf16 or amx");
}

}  // namespace

Isa isa() {
  static const Isa chosen = choose();
  return chosen;
}

bool tilesAreEmulated() {
  static const bool emulated = isa() == Isa::amx && wantsEmulatedTiles();
  return emulated;
}

const char* isaName(Isa isa) {
  switch (isa) {
    case Isa::avx2: return "avx2";
    case Isa::avx512: return "avx512";
    case Isa::avx512_bf16: return "avx512_bf16";
    case Isa::amx: return "amx";
  }
  return "?";
}

}  // namespace petrel
