/**
 * Functions of one double, of our own: those of the C library round differently from one version to the next. Plain
 * sums and products in a written order, so that every compiler and processor gives the same bits.
 */
#pragma once
#include <cstdint>

namespace petrel {

struct SineCosine {
  double sine, cosine;
};

/** Both with an error below one unit in the last place, for |angle| ≤ 2^31; NaN beyond. */
SineCosine sineCosine(double angle);

/** e^x with an error below one unit in the last place; 0 below −708. */
double exponential(double x);

/** x^n by squaring, n ≥ 0. */
double power(double x, int64_t n);

}  // namespace petrel
