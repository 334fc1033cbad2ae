// The kernels of one instruction set, as kernels/table.cpp gathers them. What each does is said in ../kernels.h.
#pragma once
#include "../kernels.h"

namespace petrel::PETREL_ISA_NAMESPACE {

void gemm(const GemmBlock& block);
void attention(const AttentionTile& tile);
void packRows(const float* src, int64_t ld, int64_t k, int64_t n, float* dst);
void packColumns(const float* src, int64_t ld, int64_t k, int64_t n, float* dst);
float rmsNorm(const float* x, const float* w, float offset, int64_t n, float eps, float* y);
void rmsNormBackward(const float* x, const float* w, float offset, float rstd, const float* dy, int64_t n, float* dx,
                     float* dw);
void rope(float* head, int64_t headDim, const float* cosine, const float* sine, float sign);
void swiglu(const float* gate, const float* up, int64_t n, float* y);
void swigluBackward(const float* gate, const float* up, const float* dy, int64_t n, float* dGate, float* dUp, float* y);
void geglu(const float* gate, const float* up, int64_t n, float* y);
void gegluBackward(const float* gate, const float* up, const float* dy, int64_t n, float* dGate, float* dUp, float* y);
void softcap(float* z, int64_t n, float scale, float cap);
void softcapBackward(float* dz, const float* capped, int64_t n, float cap);
void addInto(float* y, const float* x, int64_t n);
void axpy(float* y, float a, const float* x, int64_t n);
float dot(const float* x, const float* y, int64_t n);
void toBf16(const float* src, int64_t n, uint16_t* dst);
void fromBf16(const uint16_t* src, int64_t n, float* dst);
SoftmaxSums softmaxSums(const float* z, int64_t n, float scale);
float softmaxSquares(const float* z, int64_t n, float scale, float max);
void softmaxBackward(float* z, int64_t n, float scale, float max, float logSum, float entropy, float c, float e);
void attentionGrad(float* s, float* dp, int64_t n, int64_t from, int64_t to, float scale, float softcap, float lse,
                   float delta);
double sumSquares(const float* g, int64_t n);
void blake3(const uint8_t* message, int64_t bytes, uint8_t* digest);
void blake3Of(const MessageSource& source, int64_t bytes, uint8_t* digest);
void adamw(float* p, float* g, float* m, float* v, int64_t n, const AdamScalars& s);

}  // namespace petrel::PETREL_ISA_NAMESPACE
