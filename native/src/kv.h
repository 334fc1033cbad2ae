// Paged keys and values. A page holds 16 consecutive positions of one sequence for every layer and KV head, and may be
// shared by sequences with a common prefix: it is reference-counted.
//
// Per page, layer and KV head (hd = head_dim, which is even):
//   fp32: K [hd][16], V [16][hd]          keys side by side: one vector of 16 scores per step over hd
//   bf16: K [hd/2][16][2], V [8][hd][2]   the same in pairs, as dot-product instructions want them
// Memory that was never written is zero, and what is written is finite: attention may read past the end of a sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory.h"

namespace petrel {

constexpr int kPagePositions = 16;

struct KvShape {
  int layers, kvHeads, headDim;
  size_t elementBytes;  // 4 = fp32, 2 = bf16

  // Keys of one head, and as many bytes of values; a multiple of 64.
  size_t keyBytes() const { return size_t(kPagePositions) * size_t(headDim) * elementBytes; }
  size_t headBytes() const { return 2 * keyBytes(); }
  size_t pageBytes() const { return headBytes() * size_t(layers) * size_t(kvHeads); }
};

// A fixed number of pages in one reserved range of memory; a page that was never written costs nothing.
class PagePool {
 public:
  PagePool(KvShape shape, int pages);

  const KvShape& shape() const { return shape_; }
  int total() const { return int(references_.size()); }
  int free() const { return int(free_.size()); }

  // A page with one reference. The caller has looked at free() first; throws std::logic_error when there is none.
  int take();
  void retain(int page);
  void release(int page);
  // Takes back every page, whatever holds it. Does not throw.
  void releaseAll() noexcept;
  void copy(int from, int to);
  // Makes all memory zero again, whatever was in it.
  void wipe();

  std::byte* keys(int page, int layer, int kvHead) const {
    const size_t head = size_t(layer) * size_t(shape_.kvHeads) + size_t(kvHead);
    return memory_.as<std::byte>() + size_t(page) * pageBytes_ + head * shape_.headBytes();
  }
  std::byte* values(int page, int layer, int kvHead) const { return keys(page, layer, kvHead) + shape_.keyBytes(); }

 private:
  KvShape shape_;
  size_t pageBytes_;
  Mapping memory_;
  std::vector<int> references_;
  std::vector<int> free_;
};

}  // namespace petrel
