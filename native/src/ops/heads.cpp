#include "heads.h"

#include <cstring>

#include "../team.h"

namespace petrel {
namespace {

/** Gradient through the norm of one head, in place: dHead becomes the gradient of the unnormed head. */
void headNormBackward(const Model& model, const Norm& norm, int headDim, const float* head, float* dHead,
                      float* partial, float* scratch) {
  const float rstd =
      1.0f / __builtin_sqrtf(kernels().dot(head, head, headDim) / static_cast<float>(headDim) + norm.eps);
  std::memcpy(scratch, dHead, headDim * sizeof(float));
  std::memset(dHead, 0, headDim * sizeof(float));
  kernels().rmsNormBackward(head, model.at(norm.weight), norm.offset, rstd, scratch, headDim, dHead, partial);
}

}  // namespace

void prepareHead(const Model& model, const Norm& norm, int headDim, const RopeTable& rope, int64_t position,
                 const float* from, float* to) {
  if (norm.isPresent()) {
    kernels().rmsNorm(from, model.at(norm.weight), norm.offset, headDim, norm.eps, to);
  } else if (from != to) {
    std::memcpy(to, from, headDim * sizeof(float));
  }
  kernels().rope(to, rope.dimensions(), rope.cosine(position), rope.sine(position), 1.0f);
}

void headsForward(const Model& model, const Attention& a, const RopeTable& rope, const Batch& batch, const float* qkv,
                  float* dst) {
  const int64_t in = a.qkvWidth(), out = a.queryWidth() + a.kvWidth();
  forEachRow(batch.n, [&](int64_t i) {
    for (int h = 0; h < a.heads + a.kvHeads; ++h) {
      prepareHead(model, h < a.heads ? a.queryNorm : a.keyNorm, a.headDim, rope, batch.position[i],
                  qkv + i * in + h * a.headDim, dst + i * out + h * a.headDim);
    }
  });
}

void headsBackward(const Model& model, Arena& arena, const Attention& a, const RopeTable& rope, const Batch& batch,
                   const float* qkv, float* dqkv, float* grads) {
  const int64_t ld = a.qkvWidth(), width = 3 * a.headDim;  // partial: [dQueryNorm | dKeyNorm | scratch]
  Loan<float> partials(arena, 32 * width), total(arena, width);
  std::memset(total, 0, width * sizeof(float));
  sumOverRows(batch.n, width, partials, total, [&](int64_t i, float* partial) {
    float* scratch = partial + 2 * a.headDim;
    for (int h = 0; h < a.heads + a.kvHeads; ++h) {
      const bool query = h < a.heads;
      float* d = dqkv + i * ld + h * a.headDim;
      kernels().rope(d, rope.dimensions(), rope.cosine(batch.position[i]), rope.sine(batch.position[i]), -1.0f);
      const Norm& norm = query ? a.queryNorm : a.keyNorm;
      if (!norm.isPresent()) continue;
      headNormBackward(model, norm, a.headDim, qkv + i * ld + h * a.headDim, d, partial + (query ? 0 : a.headDim),
                       scratch);
    }
  });
  if (a.queryNorm.isPresent()) kernels().addInto(grads + a.queryNorm.weight, total, a.headDim);
  if (a.keyNorm.isPresent()) kernels().addInto(grads + a.keyNorm.weight, total + a.headDim, a.headDim);
}

}  // namespace petrel
