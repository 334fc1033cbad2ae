// The values of all parameters as one string of bytes, in canonical order and without gaps: all in fp32, or as a model
// that computes in bf16 reads them, which is bf16 for the matrices that products round, and fp32 for the rest.
#pragma once
#include <cstdint>
#include <vector>

namespace petrel {

class Published {
 public:
  /** The next `elements` of the weights. */
  void add(int64_t elements, bool isRounded);
  int64_t bytes() const { return bytes_; }
  /** Bytes [from, from + bytes) of it. */
  void read(const float* weights, int64_t from, int64_t bytes, uint8_t* into) const;
  /** Replaces them. A value may come in parts; a value that was rounded has zeros in its lower half. */
  void write(float* weights, int64_t from, int64_t bytes, const uint8_t* data) const;
  /** digests[blocks][32], BLAKE3 of each `block` bytes in [from, from + bytes), on the team of threads. */
  void digests(const float* weights, int64_t from, int64_t bytes, int64_t block, uint8_t* digests) const;

 private:
  /** Parameters that lie behind each other and have one type. */
  struct Stretch {
    int64_t byte, element;
    bool isRounded;
  };
  /** Calls f(stretch, first byte in it, bytes, bytes before) for what lies in [from, from + bytes). */
  template <class F>
  void forEachStretch(int64_t from, int64_t bytes, F&& f) const;

  std::vector<Stretch> stretches_;
  int64_t bytes_ = 0, elements_ = 0;
};

}  // namespace petrel
