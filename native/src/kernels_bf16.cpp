#include "kernels_bf16.h"

#include <stdexcept>

#include "isa.h"

namespace petrel {
namespace avx512_bf16 {
extern const Bf16Kernels table;
}

const Bf16Kernels& bf16Kernels() {
  if (isa() != Isa::avx512_bf16)
    throw std::runtime_error("compute bf16 needs AVX512_BF16; the path in use is " + std::string(isaName(isa())));
  return avx512_bf16::table;
}

}  // namespace petrel
