#include "heads.h"

#include <cstring>

#include "../team.h"

namespace petrel {
namespace {

/** Gradient through the norm of one head, in place: dHead becomes the gradient of the unnormed head. */
void headNormBackward(const DecoderConfig& c, const float* head, const float* w, float* dHead, float* partial,
                      float* scratch) {
  const float rstd =
      1.0f / __builtin_sqrtf(kernels().dot(head, head, c.headDim) / static_cast<float>(c.headDim) + c.normEps);
  std::memcpy(scratch, dHead, c.headDim * sizeof(float));
  std::memset(dHead, 0, c.headDim * sizeof(float));
  kernels().rmsNormBackward(head, w, rstd, scratch, c.headDim, dHead, partial);
}

}  // namespace

void headForward(const DecoderConfig& c, const float* norm, const RopeTable& rope, int64_t position, const float* from,
                 float* to) {
  if (norm != nullptr) {
    kernels().rmsNorm(from, norm, c.headDim, c.normEps, to);
  } else if (from != to) {
    std::memcpy(to, from, c.headDim * sizeof(float));
  }
  kernels().rope(to, c.headDim, rope.cosine(position), rope.sine(position), 1.0f);
}

void headsForward(const Model& model, const Layer& layer, const RopeTable& rope, const Batch& batch, const float* qkv,
                  float* dst) {
  const DecoderConfig& c = model.config;
  const int64_t in = c.queryWidth() + 2 * c.kvWidth(), out = c.queryWidth() + c.kvWidth();
  const float* qNorm = layer.qNorm < 0 ? nullptr : model.at(layer.qNorm);
  const float* kNorm = layer.kNorm < 0 ? nullptr : model.at(layer.kNorm);
  forEachRow(batch.n, [&](int64_t i) {
    for (int h = 0; h < c.heads + c.kvHeads; ++h) {
      headForward(c, h < c.heads ? qNorm : kNorm, rope, batch.position[i], qkv + i * in + h * c.headDim,
                  dst + i * out + h * c.headDim);
    }
  });
}

void headsBackward(const Model& model, Arena& arena, const Layer& layer, const RopeTable& rope, const Batch& batch,
                   const float* qkv, float* dqkv, float* grads) {
  const DecoderConfig& c = model.config;
  const int64_t ld = c.queryWidth() + 2 * c.kvWidth(), width = 3 * c.headDim;  // partial: [dqNorm | dkNorm | scratch]
  Loan<float> partials(arena, 32 * width), total(arena, width);
  std::memset(total, 0, width * sizeof(float));
  sumOverRows(batch.n, width, partials, total, [&](int64_t i, float* partial) {
    float* scratch = partial + 2 * c.headDim;
    for (int h = 0; h < c.heads + c.kvHeads; ++h) {
      const bool query = h < c.heads;
      float* d = dqkv + i * ld + h * c.headDim;
      kernels().rope(d, c.headDim, rope.cosine(batch.position[i]), rope.sine(batch.position[i]), -1.0f);
      const int64_t norm = query ? layer.qNorm : layer.kNorm;
      if (norm < 0) continue;
      headNormBackward(c, qkv + i * ld + h * c.headDim, model.at(norm), d, partial + (query ? 0 : c.headDim), scratch);
    }
  });
  if (layer.qNorm >= 0) kernels().addInto(grads + layer.qNorm, total, c.headDim);
  if (layer.kNorm >= 0) kernels().addInto(grads + layer.kNorm, total + c.headDim, c.headDim);
}

}  // namespace petrel
