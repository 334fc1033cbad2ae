#include "linear_bf16.h"

#include <algorithm>

#include "kernels_bf16.h"
#include "team.h"

namespace petrel {
namespace {

int64_t half(int64_t n) { return (n + 1) / 2; }

/** Rows of x as pairs [n][half(width)]. */
Loan<uint32_t> pairsOfRows(Arena& arena, const float* x, int64_t ld, int64_t n, int64_t width) {
  const int64_t pairs = half(width);
  Loan<uint32_t> result(arena, n * pairs);
  forEachRow(n, [&](int64_t i) { bf16Kernels().pairsOfRow(x + i * ld, width, result + i * pairs); });
  return result;
}

/** W^T's other side: panels [ceil(in/16)][half(out)][16], made on the spot. A pair never spans two parts of odd height. */
Loan<uint32_t> panelsOfRows(const Model& model, Arena& arena, const Linear& l) {
  const int64_t panels = (l.in + kPanel - 1) / kPanel, pairs = half(l.out);
  Loan<uint32_t> packed(arena, panels * pairs * kPanel);
  auto row = [&](int64_t r) -> const float* {
    for (const LinearPart& part : l.parts) {
      if (r >= part.column && r < part.column + part.rows) return model.at(part.weight) + (r - part.column) * l.in;
    }
    return nullptr;
  };
  // Blocks of pairs, so that rows of W are read whole while they are near.
  constexpr int64_t kBlock = 8;
  forEachRow((pairs + kBlock - 1) / kBlock, [&](int64_t b) {
    for (int64_t q = b * kBlock; q < std::min(pairs, (b + 1) * kBlock); ++q) {
      const float *first = row(2 * q), *second = row(2 * q + 1);
      for (int64_t p = 0; p < panels; ++p) {
        const int64_t columns = std::min<int64_t>(kPanel, l.in - p * kPanel);
        uint32_t* to = packed + (p * pairs + q) * kPanel;
        for (int64_t j = columns; j < kPanel; ++j) to[j] = 0;
        bf16Kernels().interleave(first + p * kPanel, second == nullptr ? nullptr : second + p * kPanel, columns, to);
      }
    }
  });
  return packed;
}

}  // namespace

void bf16Forward(Arena& arena, const Linear& l, const float* x, int64_t ldx, int64_t n, float* y, int64_t ldy,
                 bool accumulate) {
  const int64_t pairs = half(l.in);
  Loan<uint32_t> a = pairsOfRows(arena, x, ldx, n, l.in);
  gemmPairsOnTeam({n, l.out, pairs, a, pairs, 1, l.pairs.as<uint32_t>(), y, ldy, accumulate});
}

void bf16BackwardInput(const Model& model, Arena& arena, const Linear& l, const float* dy, int64_t ldy, int64_t n,
                       float* dx, int64_t ldx, bool accumulate) {
  const int64_t pairs = half(l.out);
  Loan<uint32_t> a = pairsOfRows(arena, dy, ldy, n, l.out), b = panelsOfRows(model, arena, l);
  gemmPairsOnTeam({n, l.in, pairs, a, pairs, 1, b, dx, ldx, accumulate});
}

/** Blocks of 512 tokens; a block of rows of the weight belongs to one thread, which pairs its columns of dy by itself. */
void bf16BackwardWeight(Arena& arena, const Linear& l, const float* dy, int64_t ldy, const float* x, int64_t ldx,
                        int64_t n, float* grads) {
  constexpr int64_t kTokens = 512;
  const Bf16Kernels& kernels = bf16Kernels();
  const int64_t rowsOfBlock = kernels.tiles ? 64 : 48;
  const int64_t panels = (l.in + kPanel - 1) / kPanel, longest = half(std::min(n, kTokens));
  Loan<uint32_t> packed(arena, panels * kPanel * longest), blocks(arena, teamSize() * rowsOfBlock * longest);
  Loan<uint32_t> turned(arena, kernels.tiles ? teamSize() * rowsOfBlock * longest : 0);
  for (int64_t t = 0; t < n; t += kTokens) {
    const int64_t tokens = std::min(kTokens, n - t), pairs = half(tokens);
    forEachRow(panels, [&](int64_t p) {
      kernels.panelsFromRows(x + t * ldx + p * kPanel, ldx, tokens, std::min<int64_t>(kPanel, l.in - p * kPanel),
                             packed + p * kPanel * pairs);
    });
    for (const LinearPart& part : l.parts) {
      shareOut((part.rows + rowsOfBlock - 1) / rowsOfBlock, 1, [&](int64_t block, int worker) {
        const int64_t r = block * rowsOfBlock, rows = std::min(rowsOfBlock, part.rows - r);
        uint32_t* a = blocks + worker * rowsOfBlock * longest;
        const float* from = dy + t * ldy + part.column + r;
        for (int64_t q = 0; q < pairs; ++q) {
          kernels.interleave(from + 2 * q * ldy, 2 * q + 1 < tokens ? from + (2 * q + 1) * ldy : nullptr, rows,
                             a + q * rowsOfBlock);
        }
        float* gradient = grads + part.weight + r * l.in;
        if (kernels.tiles) {
          uint32_t* rowsOfPairs = turned + worker * rowsOfBlock * longest;
          kernels.transpose(a, rowsOfBlock, pairs, rows, rowsOfPairs, pairs);
          kernels.gemm({rows, l.in, pairs, rowsOfPairs, pairs, 1, packed, gradient, l.in, true});
        } else {
          kernels.gemm({rows, l.in, pairs, a, 1, rowsOfBlock, packed, gradient, l.in, true});
        }
      });
    }
  }
}

}  // namespace petrel
