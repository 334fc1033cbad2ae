// SHA-256 (FIPS 180-4) by the processor's own instructions, several messages at a time: one message waits for its own
// last round, so two in turn take little longer than one.
#pragma once
#include <stdint.h>

namespace petrel {

constexpr int kShaAtOnce = 2;

/** Whether this processor has the SHA instructions. */
bool hasSha();

namespace sha {
/** digests[count][32] of `count` ≤ kShaAtOnce messages of the same length. Only where hasSha(). */
void hash(const uint8_t* const* messages, int count, int64_t bytes, uint8_t* digests);
}  // namespace sha

}  // namespace petrel
