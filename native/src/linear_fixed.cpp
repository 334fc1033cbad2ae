#include "linear_fixed.h"

#include <algorithm>
#include <cstring>

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
void fixedBackwardInput(const Model& model, Arena& arena, const Linear& l, const float* dy, int64_t ldy, int64_t n,
                        float* dx, int64_t ldx, bool accumulate) {
  const int64_t panels = (l.in + kPanel - 1) / kPanel, panel = l.out * kPanel;
  Loan<float> packed(arena, static_cast<size_t>(panels * panel));
  forEachRow(panels, [&](int64_t p) {
    for (const LinearPart& part : l.parts) {
      kernels().packRows(model.at(part.weight) + p * kPanel, l.in, part.rows,
                         std::min<int64_t>(kPanel, l.in - p * kPanel), packed + p * panel + part.column * kPanel);
    }
  });
  GemmBlock g{};
  g.m = n, g.n = l.in, g.k = l.out;
  g.a = dy, g.aRow = ldy, g.aK = 1;
  g.b = packed, g.bPanel = panel, g.bRow = kPanel;
  g.c = dx, g.ldc = ldx, g.accumulate = accumulate;
  gemmOnTeam(g);
}

/**
 * Blocks of 256 tokens in turn: the accumulators rest in `grads` in between, so that the order of the sum stays the
 * tokens'. A block of 48 rows of the weight belongs to one thread, which copies its columns of dy side by side (their
 * stride may be a power of two).
 */
void fixedBackwardWeight(Arena& arena, const Linear& l, const float* dy, int64_t ldy, const float* x, int64_t ldx,
                         int64_t n, float* grads) {
  constexpr int64_t kTokens = 256, kRows = 48;
  const int64_t panels = (l.in + kPanel - 1) / kPanel, longest = std::min(n, kTokens);
  Loan<float> packed(arena, static_cast<size_t>(panels * kPanel * longest)),
      blocks(arena, teamSize() * kRows * longest);
  for (int64_t t = 0; t < n; t += kTokens) {
    const int64_t tokens = std::min(kTokens, n - t);
    forEachRow(panels, [&](int64_t p) {
      kernels().packRows(x + t * ldx + p * kPanel, ldx, tokens, std::min<int64_t>(kPanel, l.in - p * kPanel),
                         packed + p * kPanel * tokens);
    });
    for (const LinearPart& part : l.parts) {
      shareOut((part.rows + kRows - 1) / kRows, 1, [&](int64_t block, int worker) {
        const int64_t r = block * kRows, rows = std::min(kRows, part.rows - r);
        float* a = blocks + worker * kRows * longest;
        const float* from = dy + t * ldy + part.column + r;
        for (int64_t k = 0; k < tokens; ++k) std::memcpy(a + k * kRows, from + k * ldy, rows * sizeof(float));
        kernels().gemm({rows, l.in, tokens, a, 1, kRows, packed, tokens * kPanel, kPanel, nullptr,
                        grads + part.weight + r * l.in, l.in, true});
      });
    }
  }
}

}  // namespace petrel
