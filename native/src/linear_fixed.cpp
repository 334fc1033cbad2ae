#include "linear_fixed.h"

#include <algorithm>

#include "team.h"

namespace petrel {

void fixedForward(const Linear& l, const float* x, int64_t ldx, int64_t n, float* y, int64_t ldy, bool accumulate) {
  GemmBlock g{};
  g.m = n, g.n = l.out, g.k = l.in;
  g.a = x, g.aRow = ldx, g.aK = 1;
  g.b = l.packed.as<float>(), g.bPanel = l.in * kPanel, g.bRow = kPanel;
  g.c = y, g.ldc = ldy, g.accumulate = accumulate;
  gemmOnTeam(g);
}

/** Panels [ceil(in/16)][out][16] of W are made on the spot: small beside the product. */
void fixedBackwardInput(const Model& model, Arena& arena, const Linear& l, const float* dy, int64_t ldy, int64_t n, float* dx,
                        int64_t ldx, bool accumulate) {
  const int64_t panels = (l.in + kPanel - 1) / kPanel, panel = l.out * kPanel;
  Loan<float> packed(arena, static_cast<size_t>(panels * panel));
  forEachRow(panels, [&](int64_t p) {
    for (const LinearPart& part : l.parts) {
      kernels().packRows(model.at(part.weight) + p * kPanel, l.in, part.rows, std::min<int64_t>(kPanel, l.in - p * kPanel),
                         packed + p * panel + part.column * kPanel);
    }
  });
  GemmBlock g{};
  g.m = n, g.n = l.in, g.k = l.out;
  g.a = dy, g.aRow = ldy, g.aK = 1;
  g.b = packed, g.bPanel = panel, g.bRow = kPanel;
  g.c = dx, g.ldc = ldx, g.accumulate = accumulate;
  gemmOnTeam(g);
}

/** Blocks of 256 tokens in turn: the accumulators rest in `grads` in between, so that the order of the sum stays the tokens'. */
void fixedBackwardWeight(Arena& arena, const Linear& l, const float* dy, int64_t ldy, const float* x, int64_t ldx, int64_t n,
                         float* grads) {
  constexpr int64_t kTokens = 256;
  const int64_t panels = (l.in + kPanel - 1) / kPanel;
  Loan<float> packed(arena, static_cast<size_t>(panels * kPanel * std::min(n, kTokens)));
  for (int64_t t = 0; t < n; t += kTokens) {
    const int64_t tokens = std::min(kTokens, n - t);
    forEachRow(panels, [&](int64_t p) {
      kernels().packRows(x + t * ldx + p * kPanel, ldx, tokens, std::min<int64_t>(kPanel, l.in - p * kPanel),
                         packed + p * kPanel * tokens);
    });
    for (const LinearPart& part : l.parts) {
      GemmBlock g{};
      g.m = part.rows, g.n = l.in, g.k = tokens;
      g.a = dy + t * ldy + part.column, g.aRow = 1, g.aK = ldy;
      g.b = packed, g.bPanel = tokens * kPanel, g.bRow = kPanel;
      g.c = grads + part.weight, g.ldc = l.in, g.accumulate = true;
      gemmOnTeam(g);
    }
  }
}

}  // namespace petrel
