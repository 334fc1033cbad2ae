#include "declare.h"

namespace petrel::PETREL_ISA_NAMESPACE {

extern const Kernels table;
const Kernels table = {
    gemm,           attention, packRows,      packColumns,    rmsNorm,         rmsNormBackward, rope,       swiglu,
    swigluBackward, geglu,     gegluBackward, softcap,        softcapBackward, addInto,         axpy,       dot,
    toBf16,         fromBf16,  softmaxSums,   softmaxSquares, softmaxBackward, attentionGrad,   sumSquares, adamw,
    blake3,         blake3Of,
};

}  // namespace petrel::PETREL_ISA_NAMESPACE
