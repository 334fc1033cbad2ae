#include "scalar.h"

#include <cmath>

namespace petrel {
namespace {

/** A number as a sum of two, the second far smaller. */
struct Pair {
  double high, low;
};

Pair sum(double a, double b) {
  const double high = a + b, ofB = high - a;
  return {high, (a - (high - ofB)) + (b - ofB)};
}

/** The upper 26 bits and the rest (Veltkamp). */
Pair halves(double x) {
  const double scaled = 134217729.0 * x, high = scaled - (scaled - x);
  return {high, x - high};
}

/** The exact product (Dekker). */
Pair product(double a, double b) {
  const Pair x = halves(a), y = halves(b);
  const double high = a * b;
  return {high, ((x.high * y.high - high) + x.high * y.low + x.low * y.high) + x.low * y.low};
}

constexpr double kTwoOverPi = 6.36619772367581382433e-01;
// π/2 as a sum of three doubles.
constexpr double kHalfPi[] = {1.57079632679489655800e+00, 6.12323399573676603587e-17, -1.49738490485916983000e-33};

/** angle − n·π/2 in two doubles. */
Pair without(double angle, double n) {
  const Pair first = product(n, kHalfPi[0]), second = product(n, kHalfPi[1]);
  const Pair a = sum(angle - first.high, -first.low), b = sum(a.high, -second.high);
  return sum(b.high, a.low + b.low - second.low - n * kHalfPi[2]);
}

// The polynomials of fdlibm 5.3 (Sun Microsystems, 1993) for |x| ≤ π/4.
double sineNearZero(Pair x) {
  const double z = x.high * x.high, cube = z * x.high;
  double r = 1.58969099521155010221e-10;
  r = -2.50507602534068634195e-08 + z * r;
  r = 2.75573137070700676789e-06 + z * r;
  r = -1.98412698298579493134e-04 + z * r;
  r = 8.33333333332248946124e-03 + z * r;
  return x.high - ((z * (0.5 * x.low - cube * r) - x.low) - cube * -1.66666666666666324348e-01);
}

double cosineNearZero(Pair x) {
  const double z = x.high * x.high;
  double r = -1.13596475577881948265e-11;
  r = 2.08757232129817482790e-09 + z * r;
  r = -2.75573143513906633035e-07 + z * r;
  r = 2.48015872894767294178e-05 + z * r;
  r = -1.38888888888741095749e-03 + z * r;
  r = 4.16666666666666019037e-02 + z * r;
  const double half = 0.5 * z, rounded = 1 - half;
  return rounded + (((1 - rounded) - half) + (z * (z * r) - x.high * x.low));
}

}  // namespace

SineCosine sineCosine(double angle) {
  if (angle < 0) {
    const SineCosine mirrored = sineCosine(-angle);
    return {-mirrored.sine, mirrored.cosine};
  }
  if (!(angle <= 2147483648.0)) return {NAN, NAN};
  const int64_t n = static_cast<int64_t>(angle * kTwoOverPi + 0.5);
  const Pair rest = without(angle, static_cast<double>(n));
  const double s = sineNearZero(rest), c = cosineNearZero(rest);
  switch (n & 3) {
    case 0: return {s, c};
    case 1: return {c, -s};
    case 2: return {-s, -c};
    default: return {-c, s};
  }
}

double exponential(double x) {
  if (std::isnan(x) || x > 709) return x + INFINITY;
  if (x < -708) return 0;
  const int k = static_cast<int>(x * 1.44269504088896338700 + (x < 0 ? -0.5 : 0.5));
  const double high = x - k * 6.93147180369123816490e-01, low = k * 1.90821492927058770002e-10, r = high - low;
  const double t = r * r;
  double p = 4.13813679705723846039e-08;
  p = -1.65339022054652515390e-06 + t * p;
  p = 6.61375632143793436117e-05 + t * p;
  p = -2.77777777770155933842e-03 + t * p;
  p = 1.66666666666666019037e-01 + t * p;
  const double c = r - t * p;
  return std::ldexp(1 - ((low - r * c / (2 - c)) - high), k);
}

double power(double x, int64_t n) {
  double result = 1;
  for (; n > 0; n >>= 1, x *= x) {
    if (n & 1) result *= x;
  }
  return result;
}

}  // namespace petrel
