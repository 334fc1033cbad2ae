// BLAKE3 (O'Connor, Aumasson, Neves, Wilcox-O'Hearn: "BLAKE3: one function, fast everywhere", 2020), its plain hash. A
// message is cut into chunks of 1 KiB, the leaves of a binary tree; chunks, and parents of one level, are compressed
// kWords at a time.
#include <string.h>

#include "declare.h"
#include "words.h"

namespace petrel::PETREL_ISA_NAMESPACE {
namespace {

constexpr int kBlockBytes = 64, kChunkBytes = 1024, kRounds = 7;
constexpr int kBlocks = kChunkBytes / kBlockBytes;
/** Blocks between the one that is read and the one that is fetched into the cache. */
constexpr int kAhead = 8;
/** Most chunks of a subtree whose nodes lie on the stack. A power of two. */
constexpr int kSubtree = 512;

constexpr uint32_t kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8;

constexpr uint32_t kStart[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
/** Which word of the block each place of a round takes: the paper's permutation, applied round after round. */
constexpr uint8_t kOrder[kRounds][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8},
    {3, 4, 10, 12, 13, 2, 7, 14, 6, 5, 9, 0, 11, 15, 8, 1}, {10, 7, 12, 9, 14, 3, 13, 15, 4, 0, 11, 2, 5, 8, 1, 6},
    {12, 13, 9, 11, 15, 10, 14, 8, 7, 2, 5, 3, 0, 1, 6, 4}, {9, 14, 11, 5, 8, 12, 15, 1, 13, 3, 0, 10, 2, 6, 4, 7},
    {11, 15, 5, 0, 1, 9, 8, 6, 14, 10, 2, 12, 3, 4, 7, 13}};

/** A node's chaining value. */
struct Value {
  uint32_t words[8];
};

// A single compression runs through the same rounds as kWords at a time.
struct One {
  uint32_t x;
};
inline One add(One a, One b) { return {a.x + b.x}; }
inline One bitXor(One a, One b) { return {a.x ^ b.x}; }
template <int n>
inline One rotateRight(One a) {
  return {a.x >> n | a.x << (32 - n)};
}

template <class Word>
inline __attribute__((always_inline)) void mix(Word& a, Word& b, Word& c, Word& d, Word x, Word y) {
  a = add(add(a, x), b);
  d = rotateRight<16>(bitXor(d, a));
  c = add(c, d);
  b = rotateRight<12>(bitXor(b, c));
  a = add(add(a, y), b);
  d = rotateRight<8>(bitXor(d, a));
  c = add(c, d);
  b = rotateRight<7>(bitXor(b, c));
}

/** value = compression of a block with the value before it; state[8…15] is set by the caller. */
template <class Word>
inline __attribute__((always_inline)) void compress(Word (&value)[8], const Word (&m)[16], Word (&v)[16]) {
  for (int i = 0; i < 8; ++i) v[i] = value[i];
#pragma GCC unroll 7
  for (int round = 0; round < kRounds; ++round) {
    const uint8_t* s = kOrder[round];
    mix(v[0], v[4], v[8], v[12], m[s[0]], m[s[1]]);
    mix(v[1], v[5], v[9], v[13], m[s[2]], m[s[3]]);
    mix(v[2], v[6], v[10], v[14], m[s[4]], m[s[5]]);
    mix(v[3], v[7], v[11], v[15], m[s[6]], m[s[7]]);
    mix(v[0], v[5], v[10], v[15], m[s[8]], m[s[9]]);
    mix(v[1], v[6], v[11], v[12], m[s[10]], m[s[11]]);
    mix(v[2], v[7], v[8], v[13], m[s[12]], m[s[13]]);
    mix(v[3], v[4], v[9], v[14], m[s[14]], m[s[15]]);
  }
  for (int i = 0; i < 8; ++i) value[i] = bitXor(v[i], v[i + 8]);
}

void compressOne(Value& value, const uint8_t* block, uint64_t counter, uint32_t bytes, uint32_t flags) {
  One h[8], m[16], v[16];
  memcpy(h, value.words, sizeof h);
  memcpy(m, block, sizeof m);
  for (int i = 0; i < 4; ++i) v[8 + i] = {kStart[i]};
  v[12] = {uint32_t(counter)};
  v[13] = {uint32_t(counter >> 32)};
  v[14] = {bytes};
  v[15] = {flags};
  compress(h, m, v);
  memcpy(value.words, h, sizeof h);
}

/**
 * values[kWords] of messages of `blocks` whole blocks each, `stride` bytes apart. `counter`: that of the first one; the
 * others follow, or have the same where `step` is 0. The first and the last block of each message have flags of their
 * own besides.
 */
void compressMany(const uint8_t* messages, int64_t stride, int blocks, uint64_t counter, int step, uint32_t flags,
                  uint32_t first, uint32_t last, Value* values) {
  uint32_t low[kWords], high[kWords];
  for (int i = 0; i < kWords; ++i) {
    low[i] = uint32_t(counter + uint64_t(i * step));
    high[i] = uint32_t((counter + uint64_t(i * step)) >> 32);
  }
  words h[8];
  for (int i = 0; i < 8; ++i) h[i] = broadcast(kStart[i]);
  for (int block = 0; block < blocks; ++block) {
    // The processor does not expect that the next block of a message is far from this one: after the last one comes the
    // first of another message, kWords further.
    const int64_t ahead =
        block + kAhead < blocks ? kAhead * kBlockBytes : kWords * stride + (kAhead - blocks) * kBlockBytes;
    words r[kWords], m[16], v[16];
    for (int part = 0; part < 16 / kWords; ++part) {
      for (int i = 0; i < kWords; ++i) {
        const uint8_t* at = messages + i * stride + block * kBlockBytes + part * int(sizeof(words));
        _mm_prefetch((const char*)at + ahead, _MM_HINT_T0);
        r[i] = loadWords(at);
      }
      transpose(r);
      for (int i = 0; i < kWords; ++i) m[part * kWords + i] = r[i];
    }
    for (int i = 0; i < 4; ++i) v[8 + i] = broadcast(kStart[i]);
    v[12] = loadWords(low);
    v[13] = loadWords(high);
    v[14] = broadcast(kBlockBytes);
    v[15] = broadcast(flags | (block == 0 ? first : 0) | (block == blocks - 1 ? last : 0));
    compress(h, m, v);
  }
  // Back to one value per message.
  for (int i = 0; i < 8; ++i) {
    uint32_t lane[kWords];
    storeWords(lane, h[i]);
    for (int j = 0; j < kWords; ++j) values[j].words[i] = lane[j];
  }
}

/** Hashes a chunk of at most 1 KiB. `root`: it is the whole message. */
Value chunk(const uint8_t* message, int64_t bytes, uint64_t counter, bool root) {
  Value value;
  memcpy(value.words, kStart, sizeof value.words);
  uint32_t flags = kChunkStart;
  for (; bytes > kBlockBytes; message += kBlockBytes, bytes -= kBlockBytes, flags = 0)
    compressOne(value, message, counter, kBlockBytes, flags);
  uint8_t block[kBlockBytes] = {};
  if (bytes > 0) memcpy(block, message, size_t(bytes));
  compressOne(value, block, counter, uint32_t(bytes), flags | kChunkEnd | (root ? kRoot : 0));
  return value;
}

Value parent(const Value (&children)[2], uint32_t root) {
  Value value;
  memcpy(value.words, kStart, sizeof value.words);
  compressOne(value, (const uint8_t*)children, 0, kBlockBytes, kParent | root);
  return value;
}

/** values[(n + 1) / 2] of the parents of n nodes, in place; a last node without a partner goes up as it is. */
int64_t pairUp(Value* values, int64_t n) {
  const int64_t pairs = n / 2;
  int64_t i = 0;
  for (; i + kWords <= pairs; i += kWords) {
    Value made[kWords];
    compressMany((const uint8_t*)(values + 2 * i), kBlockBytes, 1, 0, 0, kParent, 0, 0, made);
    memcpy(values + i, made, sizeof made);
  }
  for (; i < pairs; ++i) {
    const Value children[2] = {values[2 * i], values[2 * i + 1]};
    values[i] = parent(children, 0);
  }
  if (n % 2 == 1) values[pairs] = values[n - 1];
  return pairs + n % 2;
}

/** A message in memory. */
struct Whole {
  const uint8_t* message;
  const uint8_t* at(int64_t from, int64_t) const { return message + from; }
};

/** A message that is made piece by piece, so that no memory holds it whole. */
struct Made {
  const MessageSource& source;
  uint8_t* piece;
  const uint8_t* at(int64_t from, int64_t bytes) const {
    source.read(source.of, from, bytes, piece);
    return piece;
  }
};

/** The two children of the node over `bytes` of a message, more than one chunk, from chunk `counter` on. */
template <class Message>
void childrenOf(const Message& message, int64_t bytes, uint64_t counter, Value (&children)[2]) {
  const int64_t first = int64_t(counter) * kChunkBytes;
  const int64_t chunks = (bytes + kChunkBytes - 1) / kChunkBytes;
  if (chunks > kSubtree) {
    int64_t left = kSubtree;
    while (2 * left < chunks) left *= 2;
    Value below[2];
    childrenOf(message, left * kChunkBytes, counter, below);
    children[0] = parent(below, 0);
    const int64_t rest = bytes - left * kChunkBytes;
    if (rest <= kChunkBytes) {
      children[1] = chunk(message.at(first + left * kChunkBytes, rest), rest, counter + uint64_t(left), false);
      return;
    }
    childrenOf(message, rest, counter + uint64_t(left), below);
    children[1] = parent(below, 0);
    return;
  }
  Value values[kSubtree];
  int64_t i = 0;
  for (; (i + kWords) * kChunkBytes <= bytes; i += kWords)
    compressMany(message.at(first + i * kChunkBytes, kWords * kChunkBytes), kChunkBytes, kBlocks, counter + uint64_t(i),
                 1, 0, kChunkStart, kChunkEnd, values + i);
  for (; i < chunks; ++i) {
    const int64_t rest = bytes - i * kChunkBytes, length = rest < kChunkBytes ? rest : kChunkBytes;
    values[i] = chunk(message.at(first + i * kChunkBytes, length), length, counter + uint64_t(i), false);
  }
  int64_t n = chunks;
  while (n > 2) n = pairUp(values, n);
  children[0] = values[0];
  children[1] = values[1];
}

template <class Message>
void digestOf(const Message& message, int64_t bytes, uint8_t* digest) {
  Value value;
  if (bytes <= kChunkBytes) {
    value = chunk(message.at(0, bytes), bytes, 0, true);
  } else {
    Value children[2];
    childrenOf(message, bytes, 0, children);
    value = parent(children, kRoot);
  }
  memcpy(digest, value.words, sizeof value.words);
}

}  // namespace

void blake3(const uint8_t* message, int64_t bytes, uint8_t* digest) { digestOf(Whole{message}, bytes, digest); }

void blake3Of(const MessageSource& source, int64_t bytes, uint8_t* digest) {
  alignas(64) uint8_t piece[kWords * kChunkBytes];
  digestOf(Made{source, piece}, bytes, digest);
}

}  // namespace petrel::PETREL_ISA_NAMESPACE
