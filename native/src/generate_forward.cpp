#include "generate_forward.h"

#include <algorithm>

#include "kernels.h"
#include "ops/embedding.h"
#include "ops/head.h"
#include "ops/heads.h"

namespace petrel {

namespace {

// Products of a query's and a key's element that are worth handing to another thread.
constexpr int64_t kWorthSharing = 16384;

}  // namespace

SpanForward::SpanForward(const Model& model, int maxModelLen) : model_(model) { ropes_.reserve(model, maxModelLen); }

void SpanForward::layOut(const std::vector<Span>& spans) {
  rows_.clear();
  wanted_.clear();
  tiles_.clear();
  const int perTile = positionsPerTile(model_.layers.front().attention);
  for (const Span& span : spans) {
    for (int i = 0; i < span.count; i += perTile)
      tiles_.push_back({&span.pages(), int64_t(rows_.size()) + i, span.start + i, std::min(perTile, span.count - i)});
    for (int i = 0; i < span.count; i++) rows_.push_back({&span, span.start + i});
    if (span.last) wanted_.push_back(int32_t(rows_.size()) - 1);
  }
  // The dearest first, so that the threads end together.
  std::stable_sort(tiles_.begin(), tiles_.end(),
                   [](const QueryRows& a, const QueryRows& b) { return a.position > b.position; });
}

void SpanForward::run(const std::vector<Span>& spans, const PagePool& pool, KernelVector<float>& hidden) {
  layOut(spans);
  pool_ = &pool;
  const int64_t n = int64_t(rows_.size()), width = model_.hidden, wanted = int64_t(wanted_.size());
  Loan<float> x(arena_, size_t(n * width));
  for (int64_t r = 0; r < n; r++) {
    const Row& row = rows_[size_t(r)];
    embed(model_, row.span->token(row.position), x + r * width);
  }
  const Pass pass{model_, arena_, n, {wanted_, n}};
  const Loan<float> stream = forwardLayers(pass, std::move(x), *this, nullptr);
  const Loan<float> normed = finalNormed(pass, stream);
  hidden.assign(normed.data(), normed.data() + wanted * width);
}

void SpanForward::head(const float* hidden, int64_t n, float* logits) { headLogits(model_, arena_, hidden, n, logits); }

// Norms and rotation of the query and key heads of one row [q | k | v], in place.
void SpanForward::normAndRotate(const Attention& a, int position, float* qkv) const {
  const RopeTable& rope = ropes_.of(a);
  for (int h = 0; h < a.heads + a.kvHeads; h++) {
    float* head = qkv + int64_t(h) * a.headDim;
    prepareHead(model_, h < a.heads ? a.queryNorm : a.keyNorm, a.headDim, rope, position, head, head);
  }
}

void SpanForward::attend(int layer, float* qkv, float* out, float*) {
  const Attention& a = model_.layers[size_t(layer)].attention;
  const PagePool& pool = *pool_;
  const int64_t n = int64_t(rows_.size()), stride = a.qkvWidth();
  int longest = 0;
  int64_t keys = 0;
  for (const QueryRows& tile : tiles_) {
    longest = std::max(longest, tile.position + tile.count);
    keys += int64_t(tile.position + 1) * tile.count;
  }
  const int64_t scratchSize = (pagedAttentionScratch(a, longest) + 15) / 16 * 16;
  Loan<float> scratch(arena_, size_t(scratchSize * teamSize()));
  const int64_t jobs = int64_t(tiles_.size()) * a.kvHeads;
  pages_.resize(size_t(teamSize()));
  forEachRow(n, [&](int64_t r) {
    const Row& row = rows_[size_t(r)];
    float* q = qkv + r * stride;
    const float* k = q + a.queryWidth();
    normAndRotate(a, row.position, q);
    const int page = row.span->pages()[size_t(row.position / kPagePositions)];
    writePage(a, pool, layer, page, row.position % kPagePositions, k, k + a.kvWidth());
  });
  const int64_t perJob = std::max<int64_t>(1, keys * a.queryWidth() / jobs);
  shareOut(jobs, std::max<int64_t>(1, kWorthSharing / perJob), [&](int64_t job, int worker) {
    attendPages(a, pool, layer, int(job % a.kvHeads), tiles_[size_t(job / a.kvHeads)], qkv, out,
                scratch + scratchSize * worker, pages_[size_t(worker)]);
  });
}

}  // namespace petrel
