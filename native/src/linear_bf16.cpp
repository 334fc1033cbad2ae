#include "linear_bf16.h"

#include <algorithm>

#include "kernels_bf16.h"
#include "team.h"

namespace petrel {
namespace {

int64_t half(int64_t n) { return (n + 1) / 2; }

/** Rows that are packed together: they are read whole while a part of each panel is written whole. */
constexpr int64_t kBlock = 16;

int64_t roundedUp(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/** A of a product. */
struct Pairs {
  Loan<uint32_t> a;
  int64_t aRow;
};

/** Rows of x as pairs, [n][half(width)] or in tiles. */
Pairs pairsOfRows(Arena& arena, const float* x, int64_t ld, int64_t n, int64_t width) {
  if (!bf16Kernels().tiles) {
    const int64_t pairs = half(width);
    Loan<uint32_t> rows(arena, n * pairs);
    forEachRow(n, [&](int64_t i) { bf16Kernels().pairsOfRow(x + i * ld, width, rows + i * pairs, kPanel); });
    return {std::move(rows), pairs};
  }
  constexpr int64_t kTile = kPanel * kPanel;
  const int64_t pairs = roundedUp(half(width), kPanel);
  Loan<uint32_t> tiles(arena, roundedUp(n, kPanel) * pairs);
  forEachRow(n, [&](int64_t i) {
    bf16Kernels().pairsOfRow(x + i * ld, width, tiles + i / kPanel * kPanel * pairs + i % kPanel * kPanel, kTile);
  });
  return {std::move(tiles), pairs};
}

/**
 * W^T's other side: panels [ceil(in/16)][half(out)][16], made on the spot. A pair never spans two parts of odd height.
 */
Loan<uint32_t> panelsOfRows(const Model& model, Arena& arena, const Linear& l) {
  const int64_t panels = (l.in + kPanel - 1) / kPanel, pairs = half(l.out);
  Loan<uint32_t> packed(arena, panels * pairs * kPanel);
  auto row = [&](int64_t r) -> const float* {
    for (const LinearPart& part : l.parts) {
      if (r >= part.column && r < part.column + part.rows) return model.at(part.weight) + (r - part.column) * l.in;
    }
    return nullptr;
  };
  forEachRow((2 * pairs + kBlock - 1) / kBlock, [&](int64_t b) {
    for (int64_t q = b * kBlock / 2; q < std::min(pairs, (b + 1) * kBlock / 2); ++q) {
      const float *first = row(2 * q), *second = row(2 * q + 1);
      bf16Kernels().interleave(first, second, l.in, packed + q * kPanel, pairs * kPanel);
    }
  });
  return packed;
}

}  // namespace

void bf16Forward(Arena& arena, const Linear& l, const float* x, int64_t ldx, int64_t n, float* y, int64_t ldy,
                 bool accumulate) {
  const Pairs rows = pairsOfRows(arena, x, ldx, n, l.in);
  gemmPairsOnTeam({n, l.out, half(l.in), rows.a, rows.aRow, 1, l.pairs.as<uint32_t>(), y, ldy, accumulate});
}

void bf16BackwardInput(const Model& model, Arena& arena, const Linear& l, const float* dy, int64_t ldy, int64_t n,
                       float* dx, int64_t ldx, bool accumulate) {
  const Pairs rows = pairsOfRows(arena, dy, ldy, n, l.out);
  Loan<uint32_t> b = panelsOfRows(model, arena, l);
  gemmPairsOnTeam({n, l.in, half(l.out), rows.a, rows.aRow, 1, b, dx, ldx, accumulate});
}

/** Blocks of tokens; a block of rows of the weight belongs to one thread, which pairs its columns of dy by itself. */
void bf16BackwardWeight(Arena& arena, const Linear& l, const float* dy, int64_t ldy, const float* x, int64_t ldx,
                        int64_t n, float* grads) {
  const Bf16Kernels& kernels = bf16Kernels();
  const int64_t mostTokens = kernels.tiles ? 2048 : 512, rowsOfBlock = kernels.tiles ? 128 : 48;
  const int64_t panels = (l.in + kPanel - 1) / kPanel, longest = half(std::min(n, mostTokens));
  const int64_t room = rowsOfBlock * roundedUp(longest, kPanel);
  Loan<uint32_t> packed(arena, panels * kPanel * longest), blocks(arena, teamSize() * room);
  for (int64_t t = 0; t < n; t += mostTokens) {
    const int64_t tokens = std::min(mostTokens, n - t), pairs = half(tokens);
    forEachRow((tokens + kBlock - 1) / kBlock, [&](int64_t block) {
      const int64_t from = block * kBlock;
      kernels.panelsFromRows(x + (t + from) * ldx, ldx, std::min(kBlock, tokens - from), l.in,
                             packed + from / 2 * kPanel, pairs * kPanel);
    });
    for (const LinearPart& part : l.parts) {
      shareOut((part.rows + rowsOfBlock - 1) / rowsOfBlock, 1, [&](int64_t item, int worker) {
        const int64_t r = item * rowsOfBlock, rows = std::min(rowsOfBlock, part.rows - r);
        uint32_t* a = blocks + worker * room;
        const float* from = dy + t * ldy + part.column + r;
        GemmPairs product{rows, l.in, pairs, a, 1, rowsOfBlock, packed, grads + part.weight + r * l.in, l.in, true};
        if (kernels.tiles) {
          kernels.tilesFromColumns(from, ldy, tokens, rows, a);
          product.aRow = roundedUp(pairs, kPanel);
        } else {
          for (int64_t q = 0; q < pairs; ++q) {
            const float* first = from + 2 * q * ldy;
            kernels.interleave(first, 2 * q + 1 < tokens ? first + ldy : nullptr, rows, a + q * rowsOfBlock, kPanel);
          }
        }
        kernels.gemm(product);
      });
    }
  }
}

}  // namespace petrel
