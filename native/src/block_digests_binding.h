#pragma once
#include "arguments.h"
#include "block_digests.h"

namespace petrel {

/** `sha256` or `blake3`. */
BlockHash blockHashOf(const Argument& argument);

}  // namespace petrel
