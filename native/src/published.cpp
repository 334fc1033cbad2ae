#include "published.h"

#include <algorithm>
#include <cstring>

#include "block_digests.h"
#include "crew.h"
#include "kernels.h"
#include "kernels_bf16.h"

namespace petrel {
namespace {

constexpr int64_t kHalf = 2;  // bytes of a bf16 value
/** Values that are rounded at once, on the stack. */
constexpr int64_t kAtOnce = 1024;

/** Bytes [from, from + bytes) of `values` in bf16, rounded by the instruction that rounds them for products. */
void readRounded(const float* values, int64_t from, int64_t bytes, uint8_t* into) {
  uint32_t pairs[kAtOnce / 2];
  while (bytes > 0) {
    const int64_t value = from / kHalf, skip = from % kHalf;
    const int64_t count = std::min(kAtOnce, (skip + bytes + kHalf - 1) / kHalf);
    bf16Kernels().pairsOfRow(values + value, count, pairs, kPanel);
    const int64_t taken = std::min(bytes, count * kHalf - skip);
    std::memcpy(into, reinterpret_cast<const uint8_t*>(pairs) + skip, size_t(taken));
    from += taken;
    into += taken;
    bytes -= taken;
  }
}

/** One byte of a bf16 value: the upper half of the fp32 value. */
void writeByte(float* values, int64_t at, uint8_t byte) {
  uint8_t* value = reinterpret_cast<uint8_t*>(values + at / kHalf);
  value[0] = value[1] = 0;
  value[kHalf + at % kHalf] = byte;
}

void writeRounded(float* values, int64_t from, int64_t bytes, const uint8_t* data) {
  if (bytes > 0 && from % kHalf != 0) {
    writeByte(values, from, *data);
    ++from, ++data, --bytes;
  }
  float* to = values + from / kHalf;
  const int64_t count = bytes / kHalf;
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = uint32_t(data[kHalf * i]) << 16 | uint32_t(data[kHalf * i + 1]) << 24;
    std::memcpy(to + i, &bits, sizeof bits);
  }
  if (bytes % kHalf != 0) writeByte(values, from + count * kHalf, data[count * kHalf]);
}

}  // namespace

void Published::add(int64_t elements, bool isRounded) {
  if (stretches_.empty() || stretches_.back().isRounded != isRounded)
    stretches_.push_back({bytes_, elements_, isRounded});
  elements_ += elements;
  bytes_ += elements * (isRounded ? kHalf : int64_t(sizeof(float)));
}

template <class F>
void Published::forEachStretch(int64_t from, int64_t bytes, F&& f) const {
  const int64_t end = from + bytes;
  auto stretch = std::upper_bound(stretches_.begin(), stretches_.end(), from,
                                  [](int64_t byte, const Stretch& one) { return byte < one.byte; });
  for (int64_t at = from; at < end; ++stretch) {
    const Stretch& found = *(stretch - 1);
    const int64_t to = std::min(end, stretch == stretches_.end() ? bytes_ : stretch->byte);
    f(found, at - found.byte, to - at, at - from);
    at = to;
  }
}

void Published::read(const float* weights, int64_t from, int64_t bytes, uint8_t* into) const {
  forEachStretch(from, bytes, [&](const Stretch& s, int64_t first, int64_t count, int64_t before) {
    const float* values = weights + s.element;
    if (s.isRounded) readRounded(values, first, count, into + before);
    else std::memcpy(into + before, reinterpret_cast<const uint8_t*>(values) + first, size_t(count));
  });
}

void Published::write(float* weights, int64_t from, int64_t bytes, const uint8_t* data) const {
  forEachStretch(from, bytes, [&](const Stretch& s, int64_t first, int64_t count, int64_t before) {
    float* values = weights + s.element;
    if (s.isRounded) writeRounded(values, first, count, data + before);
    else std::memcpy(reinterpret_cast<uint8_t*>(values) + first, data + before, size_t(count));
  });
}

void Published::digests(const float* weights, int64_t from, int64_t bytes, int64_t block, uint8_t* digests) const {
  struct Block {
    const Published* published;
    const float* weights;
    int64_t from;
  };
  shareOut((bytes + block - 1) / block, 1, [&](int64_t i, int) {
    const Block one{this, weights, from + i * block};
    const auto read = [](const void* of, int64_t first, int64_t count, uint8_t* into) {
      const Block& b = *static_cast<const Block*>(of);
      b.published->read(b.weights, b.from + first, count, into);
    };
    kernels().blake3Of({read, &one}, std::min(block, bytes - i * block), digests + i * kDigestBytes);
  });
}

}  // namespace petrel
