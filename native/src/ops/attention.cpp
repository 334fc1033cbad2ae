#include "attention.h"

#include <algorithm>
#include <cstring>

#include "../team.h"

namespace petrel {
namespace {

/** Keys and values of all sequences as pages: sequence s begins at page firstPage[s]; [page][kvHead] blocks of 16·hd floats lie
 * head by head within a sequence, so that a head's pages are adjacent. */
struct Pages {
  std::vector<int64_t> first;  // per sequence, in pages of one head
  int64_t total = 0;
  explicit Pages(const Batch& b) {
    for (int64_t s = 0; s < b.sequences; ++s) {
      first.push_back(total);
      total += count(b, s);
    }
  }
  static int64_t count(const Batch& b, int64_t s) { return (b.length(s) + kPanel - 1) / kPanel; }
  /** Offset in floats of the first page of a head of a sequence. */
  int64_t offset(const Batch& b, const Attention& c, int64_t s, int h) const {
    return (first[s] * c.kvHeads + h * count(b, s)) * kPanel * c.headDim;
  }
};

struct Item {
  int64_t s;
  int h;
  int64_t row;
};  // Rows (position·group + head of the group) of one key head

constexpr int64_t kRowsPerItem = 4 * kAttentionRows;

std::vector<Item> itemsOf(const Batch& b, const Attention& c) {
  std::vector<Item> items;
  const int group = c.group();
  for (int64_t s = 0; s < b.sequences; ++s) {
    for (int h = 0; h < c.kvHeads; ++h) {
      for (int64_t row = 0; row < b.length(s) * group; row += kRowsPerItem) items.push_back({s, h, row});
    }
  }
  return items;
}

void packPages(const Attention& c, const Batch& b, const Pages& pages, const float* qk, const float* qkv, float* k,
               float* v) {
  const int64_t ldk = c.queryWidth() + c.kvWidth(), ldv = ldk + c.kvWidth(), hd = c.headDim;
  forEachRow(b.sequences * c.kvHeads, [&](int64_t i) {
    const int64_t s = i / c.kvHeads, start = b.starts[s], length = b.length(s),
                  at = pages.offset(b, c, s, static_cast<int>(i % c.kvHeads));
    const int64_t head = i % c.kvHeads * hd;
    kernels().packColumns(qk + start * ldk + c.queryWidth() + head, ldk, hd, length, k + at);
    for (int64_t t = 0; t < length; ++t) {
      std::memcpy(v + at + t * hd, qkv + (start + t) * ldv + ldk + head, hd * sizeof(float));
    }
  });
}

}  // namespace

void attentionForward(const Attention& c, Arena& arena, const Batch& b, const float* qk, const float* qkv, float* out,
                      float* lse) {
  const Pages pages(b);
  const int group = c.group();
  const int64_t hd = c.headDim, ldk = c.queryWidth() + c.kvWidth(), pageFloats = kPanel * hd;
  Loan<float> k(arena, pages.total * c.kvHeads * pageFloats), v(arena, pages.total * c.kvHeads * pageFloats);
  packPages(c, b, pages, qk, qkv, k, v);
  const int64_t scratchFloats = attentionScratch(c.headDim, b.longest),
                longestPages = (b.longest + kPanel - 1) / kPanel;
  Loan<float> scratch(arena, teamSize() * scratchFloats);
  const std::vector<Item> items = itemsOf(b, c);
  std::vector<const float*> pointers(2 * longestPages * teamSize());
  shareOut(static_cast<int64_t>(items.size()), 4, [&](int64_t i, int worker) {
    const Item& item = items[i];
    const float** kPages = pointers.data() + 2 * longestPages * worker;
    const float** vPages = kPages + longestPages;
    const int64_t start = b.starts[item.s], rows = b.length(item.s) * group, at = pages.offset(b, c, item.s, item.h);
    for (int64_t p = 0; p < Pages::count(b, item.s); ++p) {
      kPages[p] = k + at + p * pageFloats;
      vPages[p] = v + at + p * pageFloats;
    }
    for (int64_t row = item.row; row < std::min(rows, item.row + kRowsPerItem); row += kAttentionRows) {
      const float* q[kAttentionRows];
      float* o[kAttentionRows];
      int32_t position[kAttentionRows];
      float sums[kAttentionRows];
      const int count = static_cast<int>(std::min<int64_t>(kAttentionRows, rows - row));
      for (int r = 0; r < count; ++r) {
        position[r] = static_cast<int32_t>((row + r) / group);
        const int64_t head = item.h * group + (row + r) % group;
        q[r] = qk + (start + position[r]) * ldk + head * hd;
        o[r] = out + (start + position[r]) * c.queryWidth() + head * hd;
      }
      AttentionTile tile{count,    c.headDim, c.window, c.scale, c.softcap, q,
                         position, o,         sums,     kPages,  vPages,    scratch + worker * scratchFloats};
      kernels().attention(tile);
      for (int r = 0; lse != nullptr && r < count; ++r)
        lse[(start + position[r]) * c.heads + item.h * group + (row + r) % group] = sums[r];
    }
  });
}

}  // namespace petrel
