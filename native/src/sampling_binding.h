#pragma once
#include "arguments.h"
#include "sampling.h"

namespace petrel {

// From [temperature, topK, topP, minP, repetitionPenalty].
inline SamplingSettings samplingSettings(const Argument& argument) {
  const double* s = ofLength(argument, doublesOf(argument), 5).data;
  const double temperature = s[0], topK = s[1];
  if (!(temperature >= 0)) refuseRange(argument, "a list with a temperature of 0 or more", std::to_string(temperature));
  if (!(topK >= 0 && topK <= double(kLargestInt)))
    refuseRange(argument, "a list with a topK of 0 or more", std::to_string(topK));
  const double minP = s[3];
  if (!(minP <= 1))
    refuseRange(argument, "a list with a minP up to 1: no token passes a larger one", std::to_string(minP));
  return {temperature, int(topK), s[2], minP, s[4]};
}

}  // namespace petrel
