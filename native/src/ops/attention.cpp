#include "attention.h"

#include <algorithm>
#include <cstring>

#include "../team.h"

namespace petrel {
namespace {

/**
 * Keys and values of all segments as pages of 16 positions: [kvHead][page] blocks of 16·hd floats per segment. The
 * pages of a segment that continues another begin with the page of its first position, and hold the positions before it
 * in that page again.
 */
struct Pages {
  std::vector<int64_t> first;  // per segment, in pages of one head
  int64_t total = 0;
  explicit Pages(const Batch& b) {
    for (int64_t s = 0; s < b.segments; ++s) {
      first.push_back(total);
      total += count(b, s);
    }
  }
  /** Positions before the segment in its first page. */
  static int64_t shared(const Batch& b, int64_t s) { return b.offset(s) % kPanel; }
  static int64_t count(const Batch& b, int64_t s) { return (shared(b, s) + b.length(s) + kPanel - 1) / kPanel; }
  /** Offset in floats of the first page of a head of a segment. */
  int64_t offset(const Batch& b, const Attention& c, int64_t s, int h) const {
    return (first[s] * c.kvHeads + h * count(b, s)) * kPanel * c.headDim;
  }
};

/** Rows (position·group + head of the group) of one key head. */
struct Item {
  int64_t s;
  int h;
  int64_t row;
};

constexpr int64_t kRowsPerItem = 4 * kAttentionRows;

std::vector<Item> itemsOf(const Batch& b, const Attention& c) {
  std::vector<Item> items;
  for (int64_t s = 0; s < b.segments; ++s) {
    for (int h = 0; h < c.kvHeads; ++h) {
      for (int64_t row = 0; row < b.length(s) * c.group(); row += kRowsPerItem) items.push_back({s, h, row});
    }
  }
  return items;
}

void packPages(const Attention& c, Arena& arena, const Batch& b, const Pages& pages, const float* qk, const float* qkv,
               float* k, float* v) {
  const int64_t ldk = c.queryWidth() + c.kvWidth(), ldv = ldk + c.kvWidth(), hd = c.headDim;
  Loan<float> gathered(arena, teamSize() * (b.longest + kPanel) * hd);
  shareOut(b.segments * c.kvHeads, 1, [&](int64_t i, int worker) {
    const int64_t s = i / c.kvHeads, start = b.starts[s], length = b.length(s), shared = Pages::shared(b, s),
                  at = pages.offset(b, c, s, static_cast<int>(i % c.kvHeads)), head = i % c.kvHeads * hd;
    const float* keys = qk + start * ldk + c.queryWidth() + head;
    if (shared == 0) {
      kernels().packColumns(keys, ldk, hd, length, k + at);
    } else {
      float* rows = gathered + worker * (b.longest + kPanel) * hd;
      const int64_t tail = b.starts[b.parents[s] + 1] - shared;  // the parent's last positions
      for (int64_t t = 0; t < shared; ++t) {
        std::memcpy(rows + t * hd, qk + (tail + t) * ldk + c.queryWidth() + head, hd * sizeof(float));
        std::memcpy(v + at + t * hd, qkv + (tail + t) * ldv + ldk + head, hd * sizeof(float));
      }
      for (int64_t t = 0; t < length; ++t) std::memcpy(rows + (shared + t) * hd, keys + t * ldk, hd * sizeof(float));
      kernels().packColumns(rows, hd, hd, shared + length, k + at);
    }
    for (int64_t t = 0; t < length; ++t) {
      std::memcpy(v + at + (shared + t) * hd, qkv + (start + t) * ldv + ldk + head, hd * sizeof(float));
    }
  });
}

/** Pointers to all pages that a segment of a head sees: those of its parent before its own. */
void pagesOf(const Attention& c, const Batch& b, const Pages& pages, int64_t s, int h, const float* k, const float* v,
             const float** kPages, const float** vPages) {
  const int64_t pageFloats = int64_t(kPanel) * c.headDim, before = b.offset(s) / kPanel;
  const auto list = [&](int64_t segment, int64_t count, int64_t to) {
    const int64_t at = pages.offset(b, c, segment, h);
    for (int64_t p = 0; p < count; ++p) {
      kPages[to + p] = k + at + p * pageFloats;
      vPages[to + p] = v + at + p * pageFloats;
    }
  };
  if (before > 0) list(b.parents[s], before, 0);
  list(s, Pages::count(b, s), before);
}

}  // namespace

void attentionForward(const Attention& c, Arena& arena, const Batch& b, const float* qk, const float* qkv, float* out,
                      float* lse) {
  const Pages pages(b);
  const int group = c.group();
  const int64_t hd = c.headDim, ldk = c.queryWidth() + c.kvWidth(), pageFloats = kPanel * hd;
  Loan<float> k(arena, pages.total * c.kvHeads * pageFloats), v(arena, pages.total * c.kvHeads * pageFloats);
  packPages(c, arena, b, pages, qk, qkv, k, v);
  const int64_t scratchFloats = attentionScratch(c.headDim, b.longest),
                longestPages = (b.longest + kPanel - 1) / kPanel;
  Loan<float> scratch(arena, teamSize() * scratchFloats);
  const std::vector<Item> items = itemsOf(b, c);
  std::vector<const float*> pointers(2 * longestPages * teamSize());
  shareOut(static_cast<int64_t>(items.size()), 4, [&](int64_t i, int worker) {
    const Item& item = items[i];
    const float** kPages = pointers.data() + 2 * longestPages * worker;
    const float** vPages = kPages + longestPages;
    const int64_t start = b.starts[item.s], rows = b.length(item.s) * group;
    const int32_t before = static_cast<int32_t>(b.offset(item.s));
    pagesOf(c, b, pages, item.s, item.h, k, v, kPages, vPages);
    for (int64_t row = item.row; row < std::min(rows, item.row + kRowsPerItem); row += kAttentionRows) {
      const float* q[kAttentionRows];
      float* o[kAttentionRows];
      int32_t position[kAttentionRows];
      float sums[kAttentionRows];
      const int count = static_cast<int>(std::min<int64_t>(kAttentionRows, rows - row));
      for (int r = 0; r < count; ++r) {
        const int64_t t = (row + r) / group, head = item.h * group + (row + r) % group;
        position[r] = before + static_cast<int32_t>(t);
        q[r] = qk + (start + t) * ldk + head * hd;
        o[r] = out + (start + t) * c.queryWidth() + head * hd;
      }
      AttentionTile tile{count,    c.headDim, c.window, c.scale, c.softcap, q,
                         position, o,         sums,     kPages,  vPages,    scratch + worker * scratchFloats};
      kernels().attention(tile);
      for (int r = 0; lse != nullptr && r < count; ++r)
        lse[(start + (row + r) / group) * c.heads + item.h * group + (row + r) % group] = sums[r];
    }
  });
}

}  // namespace petrel
