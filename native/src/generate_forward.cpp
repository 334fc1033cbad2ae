#include "generate_forward.h"

#include <algorithm>
#include <cstring>

#include "kernels.h"
#include "ops/heads.h"
#include "ops/norm.h"

namespace petrel {

namespace {

// Products of a query's and a key's element that are worth handing to another thread.
constexpr int64_t kWorthSharing = 16384;

}  // namespace

SpanForward::SpanForward(const Model& model, int maxModelLen) : model_(model) {
  rope_.reserve(model.config, maxModelLen);
}

void SpanForward::layOut(const std::vector<Span>& spans) {
  rows_.clear();
  tiles_.clear();
  const int perTile = positionsPerTile(model_.config);
  for (const Span& span : spans) {
    for (int i = 0; i < span.count; i += perTile)
      tiles_.push_back({&span.pages(), int64_t(rows_.size()) + i, span.start + i, std::min(perTile, span.count - i)});
    for (int i = 0; i < span.count; i++) rows_.push_back({&span, span.start + i});
  }
  // The dearest first, so that the threads end together.
  std::stable_sort(tiles_.begin(), tiles_.end(),
                   [](const QueryRows& a, const QueryRows& b) { return a.position > b.position; });
}

void SpanForward::run(const std::vector<Span>& spans, const PagePool& pool, KernelVector<float>& hidden) {
  layOut(spans);
  const DecoderConfig& c = model_.config;
  const int64_t n = int64_t(rows_.size()), width = c.hidden, query = c.queryWidth(), qkvWidth = query + 2 * c.kvWidth();
  Loan<float> x(arena_, size_t(n * width)), normed(arena_, size_t(n * width)), qkv(arena_, size_t(n * qkvWidth));
  Loan<float> mixed(arena_, size_t(n * query)), gateUp(arena_, size_t(n * 2 * c.ffn)), gated(arena_, size_t(n * c.ffn));
  const auto norm = [&](int64_t weight) { normForward(x, model_.at(weight), n, width, c.normEps, normed); };
  for (int64_t r = 0; r < n; r++) {
    const Row& row = rows_[size_t(r)];
    const int64_t token = row.span->token(row.position);
    std::memcpy(x + r * width, model_.at(model_.embedding) + token * width, size_t(width) * sizeof(float));
  }
  for (int layer = 0; layer < c.layers; layer++) {
    const Layer& l = model_.layers[size_t(layer)];
    norm(l.inputNorm);
    linearForward(model_, arena_, l.qkv, normed, width, n, qkv, qkvWidth, false);
    attend(layer, pool, qkv, mixed);
    linearForward(model_, arena_, l.out, mixed, query, n, x, width, true);
    norm(l.postNorm);
    linearForward(model_, arena_, l.gateUp, normed, width, n, gateUp, 2 * c.ffn, false);
    forEachRow(n, [&](int64_t r) {
      const float* gate = gateUp + r * 2 * c.ffn;
      kernels().swiglu(gate, gate + c.ffn, c.ffn, gated + r * c.ffn);
    });
    linearForward(model_, arena_, l.down, gated, c.ffn, n, x, width, true);
  }
  hidden.clear();
  int64_t end = 0;
  for (const Span& span : spans) {
    end += span.count;
    if (!span.last) continue;
    hidden.resize(hidden.size() + size_t(width));
    kernels().rmsNorm(x + (end - 1) * width, model_.at(model_.finalNorm), width, c.normEps,
                      hidden.data() + hidden.size() - size_t(width));
  }
}

void SpanForward::head(const float* hidden, int64_t n, float* logits) {
  const DecoderConfig& c = model_.config;
  linearForward(model_, arena_, model_.head, hidden, c.hidden, n, logits, c.vocab, false);
}

// Norm (qwen3) and rotation of the query and key heads of one row [q | k | v], in place.
void SpanForward::normAndRotate(const Layer& layer, int position, float* qkv) const {
  const DecoderConfig& c = model_.config;
  for (int h = 0; h < c.heads + c.kvHeads; h++) {
    const int64_t norm = h < c.heads ? layer.qNorm : layer.kNorm;
    float* head = qkv + int64_t(h) * c.headDim;
    headForward(c, norm < 0 ? nullptr : model_.at(norm), rope_, position, head, head);
  }
}

void SpanForward::attend(int layer, const PagePool& pool, float* qkv, float* out) {
  const DecoderConfig& c = model_.config;
  const int64_t n = int64_t(rows_.size()), stride = c.queryWidth() + 2 * c.kvWidth();
  int longest = 0;
  int64_t keys = 0;
  for (const QueryRows& tile : tiles_) {
    longest = std::max(longest, tile.position + tile.count);
    keys += int64_t(tile.position + 1) * tile.count;
  }
  const int64_t scratchSize = (pagedAttentionScratch(c, longest) + 15) / 16 * 16;
  Loan<float> scratch(arena_, size_t(scratchSize * teamSize()));
  const int64_t jobs = int64_t(tiles_.size()) * c.kvHeads;
  pages_.resize(size_t(teamSize()));
  forEachRow(n, [&](int64_t r) {
    const Row& row = rows_[size_t(r)];
    float* q = qkv + r * stride;
    const float* k = q + c.queryWidth();
    normAndRotate(model_.layers[size_t(layer)], row.position, q);
    const int page = row.span->pages()[size_t(row.position / kPagePositions)];
    writePage(c, pool, layer, page, row.position % kPagePositions, k, k + c.kvWidth());
  });
  const int64_t perJob = std::max<int64_t>(1, keys * c.queryWidth() / jobs);
  shareOut(jobs, std::max<int64_t>(1, kWorthSharing / perJob), [&](int64_t job, int worker) {
    attendPages(c, pool, layer, int(job % c.kvHeads), tiles_[size_t(job / c.kvHeads)], qkv, out,
                scratch + scratchSize * worker, pages_[size_t(worker)]);
  });
}

}  // namespace petrel
