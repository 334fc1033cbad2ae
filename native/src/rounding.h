/** The processor's rounding mode, which belongs to a thread: other addons may have changed it. */
#pragma once
#include <immintrin.h>

namespace petrel {

/** While it lives, this thread rounds to nearest, keeps subnormal numbers and takes no floating-point traps. */
class UsualRounding {
 public:
  UsualRounding() : before_(_mm_getcsr()) {
    if (before_ != kUsual) _mm_setcsr(kUsual);
  }
  ~UsualRounding() {
    if (before_ != kUsual) _mm_setcsr(before_);
  }
  UsualRounding(const UsualRounding&) = delete;
  UsualRounding& operator=(const UsualRounding&) = delete;

 private:
  static constexpr unsigned kUsual = 0x1f80;
  const unsigned before_;
};

}  // namespace petrel
