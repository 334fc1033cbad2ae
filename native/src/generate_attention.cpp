#include "generate_attention.h"

#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "kernels/page_attention.h"

namespace petrel {

namespace {

static_assert(kAttentionRows == kPageAttentionRows && kPanel == kPagePositions);

constexpr size_t kBf16Bytes = 2;

void writeFloats(int headDim, int slot, const float* k, const float* v, float* keys, float* values) {
  for (int d = 0; d < headDim; d++) keys[d * kPagePositions + slot] = k[d];
  std::memcpy(values + slot * headDim, v, size_t(headDim) * sizeof(float));
}

void writePairs(int headDim, int slot, const float* k, const float* v, uint16_t* keys, uint16_t* values) {
  constexpr int kChunk = 64;
  uint16_t rounded[kChunk];
  for (int from = 0; from < headDim; from += kChunk) {
    const int count = std::min(kChunk, headDim - from);
    kernels().toBf16(k + from, count, rounded);
    for (int d = 0; d < count; d++) keys[(from + d) / 2 * 32 + slot * 2 + d % 2] = rounded[d];
    kernels().toBf16(v + from, count, rounded);
    for (int d = 0; d < count; d++) values[(slot / 2 * headDim + from + d) * 2 + slot % 2] = rounded[d];
  }
}

// What all tiles of one call have in common; pages: `count` of keys, then as many of values.
template <class Tile, class Element>
Tile tileOf(const Attention& c, const std::vector<const void*>& pages, size_t count, float* scratch) {
  Tile tile{};
  tile.headDim = c.headDim;
  tile.window = c.window;
  tile.scale = c.scale;
  tile.softcap = c.softcap;
  tile.kPages = reinterpret_cast<const Element* const*>(pages.data());
  tile.vPages = reinterpret_cast<const Element* const*>(pages.data() + count);
  tile.scratch = scratch;
  return tile;
}

}  // namespace

int positionsPerTile(const Attention& c) { return std::max(1, kAttentionRows / c.group()); }

int64_t pagedAttentionScratch(const Attention& c, int longest) {
  return std::max(attentionScratch(c.headDim, longest), pageAttentionScratch(c.headDim, longest));
}

void writePage(const Attention& c, const PagePool& pool, int layer, int page, int slot, const float* k,
               const float* v) {
  for (int h = 0; h < c.kvHeads; h++, k += c.headDim, v += c.headDim) {
    std::byte* keys = pool.keys(page, layer, h);
    std::byte* values = pool.values(page, layer, h);
    if (pool.shape().elementBytes == kBf16Bytes)
      writePairs(c.headDim, slot, k, v, reinterpret_cast<uint16_t*>(keys), reinterpret_cast<uint16_t*>(values));
    else writeFloats(c.headDim, slot, k, v, reinterpret_cast<float*>(keys), reinterpret_cast<float*>(values));
  }
}

void attendPages(const Attention& c, const PagePool& pool, int layer, int kvHead, const QueryRows& rows,
                 const float* qkv, float* out, float* scratch, std::vector<const void*>& pages) {
  const int group = c.group();
  const int64_t query = c.queryWidth(), stride = c.qkvWidth();
  const size_t count = size_t((rows.position + rows.count - 1) / kPagePositions) + 1;
  pages.resize(2 * count);
  for (size_t i = 0; i < count; i++) {
    pages[i] = pool.keys((*rows.pages)[i], layer, kvHead);
    pages[count + i] = pool.values((*rows.pages)[i], layer, kvHead);
  }
  const float* q[kAttentionRows];
  float* o[kAttentionRows];
  int32_t position[kAttentionRows];
  const auto run = [&](auto tile, auto kernel) {
    tile.q = q;
    tile.position = position;
    tile.out = o;
    // A group larger than a tile goes in parts.
    for (int first = 0; first < rows.count * group; first += kAttentionRows) {
      tile.rows = std::min(kAttentionRows, rows.count * group - first);
      for (int r = 0; r < tile.rows; r++) {
        const int64_t i = (first + r) / group, head = kvHead * group + (first + r) % group;
        q[r] = qkv + (rows.row + i) * stride + head * c.headDim;
        o[r] = out + (rows.row + i) * query + head * c.headDim;
        position[r] = rows.position + int32_t(i);
      }
      kernel(tile);
    }
  };
  if (pool.shape().elementBytes == kBf16Bytes)
    run(tileOf<PageAttentionTile, uint16_t>(c, pages, count, scratch), avx512_bf16::pageAttention);
  else run(tileOf<AttentionTile, float>(c, pages, count, scratch), kernels().attention);
}

}  // namespace petrel
