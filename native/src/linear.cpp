// Chooses the back end of a product with weights, and adds biases, which are the same for all.
#include "linear.h"

#include "kernels.h"
#include "linear_bf16.h"
#include "linear_fixed.h"
#include "team.h"

namespace petrel {
namespace {

bool isBf16(const Model& model) { return model.options.compute == ComputeType::bf16; }

void addBias(const Model& model, const Linear& linear, int64_t n, float* y, int64_t ldy) {
  forEachRow(n, [&](int64_t i) {
    for (const LinearPart& part : linear.parts) {
      if (part.bias >= 0) kernels().addInto(y + i * ldy + part.column, model.at(part.bias), part.rows);
    }
  });
}

void biasGradient(const Linear& linear, Arena& arena, const float* dy, int64_t ldy, int64_t n, float* grads) {
  for (const LinearPart& part : linear.parts) {
    if (part.bias < 0) continue;
    Loan<float> partials(arena, 32 * part.rows);
    sumOverRows(n, part.rows, partials, grads + part.bias,
                [&](int64_t i, float* partial) { kernels().addInto(partial, dy + i * ldy + part.column, part.rows); });
  }
}

}  // namespace

void linearForward(const Model& model, Arena& arena, const Linear& linear, const float* x, int64_t ldx, int64_t n,
                   float* y, int64_t ldy, bool accumulate) {
  if (n == 0) return;
  if (isBf16(model)) bf16Forward(arena, linear, x, ldx, n, y, ldy, accumulate);
  else fixedForward(linear, x, ldx, n, y, ldy, accumulate);
  if (linear.hasBias) addBias(model, linear, n, y, ldy);
}

void linearBackwardInput(const Model& model, Arena& arena, const Linear& linear, const float* dy, int64_t ldy,
                         int64_t n, float* dx, int64_t ldx, bool accumulate) {
  if (n == 0) return;
  if (isBf16(model)) bf16BackwardInput(model, arena, linear, dy, ldy, n, dx, ldx, accumulate);
  else fixedBackwardInput(model, arena, linear, dy, ldy, n, dx, ldx, accumulate);
}

void linearBackwardWeight(const Model& model, Arena& arena, const Linear& linear, const float* dy, int64_t ldy,
                          const float* x, int64_t ldx, int64_t n, float* grads) {
  if (n == 0) return;
  if (isBf16(model)) bf16BackwardWeight(arena, linear, dy, ldy, x, ldx, n, grads);
  else fixedBackwardWeight(arena, linear, dy, ldy, x, ldx, n, grads);
  if (linear.hasBias) biasGradient(linear, arena, dy, ldy, n, grads);
}

}  // namespace petrel
