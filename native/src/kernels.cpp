#include "kernels.h"

#include <cmath>
#include <cstring>

#include "isa.h"

namespace petrel {
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}

const Kernels& kernels() { return pick(avx2::table, avx512::table); }

float fixedLog(float x) {
  if (!(x > 0) || std::isinf(x)) return x == 0 ? -INFINITY : (x > 0 ? x : NAN);
  int exponent;
  double m = std::frexp(static_cast<double>(x), &exponent);  // [0.5, 1)
  if (m < 0.70710678118654752) {
    m *= 2;
    exponent -= 1;
  }
  // log m = 2·(s + s³/3 + s⁵/5 + …), s = (m − 1)/(m + 1), |s| < 0.172
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double sum = 0;
  for (int k = 25; k >= 1; k -= 2) sum = sum * s2 + 1.0 / k;
  return static_cast<float>(2 * s * sum + exponent * 0.69314718055994531);
}

}  // namespace petrel
