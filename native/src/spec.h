// Reads a DecoderSpec (native/model/spec.ts) with checks: what crosses the border fits together before anything is
// allocated.
#pragma once
#include "arguments.h"
#include "model.h"

namespace petrel {

/** Throws a JavaScript error that names the field. */
Decoder decoderOf(const Argument& spec);

}  // namespace petrel
