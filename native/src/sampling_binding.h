#pragma once
#include <napi.h>

#include "sampling.h"

namespace petrel {

// From [temperature, topK, topP, minP, repetitionPenalty].
inline SamplingSettings samplingSettings(const Napi::Value& value) {
  const double* s = value.As<Napi::Float64Array>().Data();
  return {s[0], int(s[1]), s[2], s[3], s[4]};
}

}  // namespace petrel
