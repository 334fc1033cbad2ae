// Keys and values into pages, and attention over them, in the format of the pool: fp32 (the trainer's kernel, bit for
// bit) or bf16 (bf16 compute: half the memory traffic).
#pragma once

#include <vector>

#include "kv.h"
#include "model.h"

namespace petrel {

// Consecutive positions of one sequence; `pages` is its page table.
struct QueryRows {
  const std::vector<int>* pages;
  int64_t row;  // of the first position, among the rows of the batch
  int position, count;
};

// Positions whose query heads of one group make at most one tile.
int positionsPerTile(const Attention& attention);

int64_t pagedAttentionScratch(const Attention& attention, int longest);

// k and v: [kvHeads][headDim] of one position, rope applied.
void writePage(const Attention& attention, const PagePool& pool, int layer, int page, int slot, const float* k,
               const float* v);

// One group of query heads (those of kvHead). qkv: rows [q | k | v]; out: rows [queryWidth]. At most positionsPerTile.
void attendPages(const Attention& attention, const PagePool& pool, int layer, int kvHead, const QueryRows& rows,
                 const float* qkv, float* out, float* scratch, std::vector<const void*>& pages);

}  // namespace petrel
