#include "executor.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "linear.h"
#include "ops/attention.h"
#include "ops/gated.h"
#include "ops/heads.h"
#include "ops/norm.h"

namespace petrel {
namespace {

/** A layer of a pass, and the rows that go on after its attention: all, or in the last layer the wanted ones. */
struct LayerPass {
  const Pass& pass;
  const Model& model;
  Arena& arena;
  const Layer& layer;
  int64_t n, hidden;
  bool picks;  // whether not simply all rows go on
  int64_t after;

  LayerPass(const Pass& p, size_t index)
      : pass(p),
        model(p.model),
        arena(p.arena),
        layer(p.model.layers[index]),
        n(p.n),
        hidden(p.model.hidden),
        picks(index + 1 == p.model.layers.size() && p.wanted.at != nullptr),
        after(picks ? p.wanted.count : p.n) {}

  const Attention& attention() const { return layer.attention; }
  const GatedUnit& gated() const { return layer.gated; }
  bool isBf16() const { return model.options.compute == ComputeType::bf16; }
  Loan<float> rows(int64_t count, int64_t width) const { return Loan<float>(arena, count * width); }
  Loan<float> normed(const Norm& norm, const float* x, int64_t count) const {
    Loan<float> h = rows(count, hidden);
    normForward(model, norm, x, count, hidden, h);
    return h;
  }
};

void copyRows(float* to, const float* from, int64_t n, int64_t width) {
  forEachRow(n, [&](int64_t i) { std::memcpy(to + i * width, from + i * width, width * sizeof(float)); });
}

/** The rows that go on, side by side. */
Loan<float> gathered(const LayerPass& p, const float* x, int64_t width) {
  Loan<float> some = p.rows(p.after, width);
  forEachRow(p.after,
             [&](int64_t i) { std::memcpy(some + i * width, x + p.pass.wanted.at[i] * width, width * sizeof(float)); });
  return some;
}

/** The other way; rows that do not go on are 0, and one that goes on several times gets the sum. */
Loan<float> scattered(const LayerPass& p, const float* some, int64_t width) {
  const int32_t* at = p.pass.wanted.at;
  Loan<float> x = p.rows(p.n, width);
  forEachRow(p.n, [&](int64_t i) { std::memset(x + i * width, 0, width * sizeof(float)); });
  std::vector<int32_t> order(size_t(p.after));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return at[a] < at[b]; });
  forEachRow(p.after, [&](int64_t i) {
    const int32_t to = at[order[size_t(i)]];
    if (i > 0 && at[order[size_t(i - 1)]] == to) return;  // the first one of a row adds them all
    float* row = x + to * width;
    std::memcpy(row, some + order[size_t(i)] * width, width * sizeof(float));
    for (int64_t j = i + 1; j < p.after && at[order[size_t(j)]] == to; ++j)
      kernels().addInto(row, some + order[size_t(j)] * width, width);
  });
  return x;
}

/** x for a block that adds to it: a copy when x is kept. */
Loan<float> stream(const LayerPass& p, Loan<float>& x, bool keep) {
  if (!keep) return std::move(x);
  Loan<float> copy = p.rows(p.after, p.hidden);
  copyRows(copy, x, p.after, p.hidden);
  return copy;
}

/** stream += norm(linear(x)), or + linear(x) where no norm follows. Returns the norm's input. */
Loan<float> addBlock(const LayerPass& p, const Linear& linear, const Norm& norm, const float* x, float* stream) {
  if (!norm.isPresent()) {
    linearForward(p.model, p.arena, linear, x, linear.in, p.after, stream, p.hidden, true);
    return {};
  }
  Loan<float> output = p.rows(p.after, p.hidden);
  linearForward(p.model, p.arena, linear, x, linear.in, p.after, output, p.hidden, false);
  normAdded(p.model, p.arena, norm, output, p.after, p.hidden, stream);
  return output;
}

/** The stream between the blocks, [after][hidden]. */
Loan<float> attentionForward(const LayerPass& p, size_t index, Loan<float> x, KeyView& keys, SavedLayer* saved) {
  const Attention& a = p.attention();
  Loan<float> qkv = p.rows(p.n, a.qkvWidth());
  {
    Loan<float> h = p.normed(p.layer.beforeAttention, x, p.n);
    linearForward(p.model, p.arena, a.qkv, h, p.hidden, p.n, qkv, a.qkvWidth(), false);
  }
  Loan<float> att = p.rows(p.n, a.queryWidth()), lse;
  if (saved != nullptr) lse = p.rows(p.n, a.heads);
  keys.attend(static_cast<int>(index), qkv, att, lse);
  Loan<float> middle = p.picks ? gathered(p, x, p.hidden) : stream(p, x, saved != nullptr);
  Loan<float> some;
  if (p.picks) some = gathered(p, att, a.queryWidth());
  Loan<float> mixed = addBlock(p, a.out, p.layer.afterAttention, p.picks ? some : att, middle);
  if (saved != nullptr) {
    saved->x = std::move(x);
    saved->qkv = std::move(qkv);
    saved->att = std::move(att);
    saved->lse = std::move(lse);
    saved->mixed = std::move(mixed);
  }
  return middle;
}

/** The layer's output, [after][hidden]. */
Loan<float> gatedForward(const LayerPass& p, Loan<float> middle, SavedLayer* saved) {
  const GatedUnit& unit = p.gated();
  Loan<float> gateUp = p.rows(p.after, 2 * unit.width);
  {
    Loan<float> h = p.normed(p.layer.beforeGated, middle, p.after);
    linearForward(p.model, p.arena, unit.gateUp, h, p.hidden, p.after, gateUp, 2 * unit.width, false);
  }
  Loan<float> act = p.rows(p.after, unit.width);
  Loan<uint16_t> rounded;
  if (saved != nullptr && p.isBf16()) rounded = Loan<uint16_t>(p.arena, p.after * 2 * unit.width);
  gateForward(unit, gateUp, p.after, act, rounded);
  Loan<float> output = stream(p, middle, saved != nullptr);
  Loan<float> fed = addBlock(p, unit.down, p.layer.afterGated, act, output);
  if (saved != nullptr) {
    saved->middle = std::move(middle);
    if (!p.isBf16()) saved->gateUp = std::move(gateUp);
    saved->gateUpRounded = std::move(rounded);
    saved->fed = std::move(fed);
  }
  return output;
}

/** Gradient of what a block's last product gave, from dx: through the norm that follows it, where there is one. */
Loan<float> beforeNorm(const LayerPass& p, const Norm& norm, const float* output, const float* dx, float* grads) {
  if (!norm.isPresent()) return {};
  Loan<float> d = p.rows(p.after, p.hidden);
  forEachRow(p.after, [&](int64_t i) { std::memset(d + i * p.hidden, 0, p.hidden * sizeof(float)); });
  normBackward(p.model, p.arena, norm, output, p.after, p.hidden, dx, d, grads);
  return d;
}

void gatedBackward(const LayerPass& p, SavedLayer& s, float* dx, float* grads) {
  const GatedUnit& unit = p.gated();
  if (p.isBf16()) s.gateUp = p.rows(p.after, 2 * unit.width);
  {
    Loan<float> normed = beforeNorm(p, p.layer.afterGated, s.fed, dx, grads);
    const float* dy = normed.data() == nullptr ? dx : normed.data();
    Loan<float> dAct = p.rows(p.after, unit.width), act = p.rows(p.after, unit.width);
    linearBackwardInput(p.model, p.arena, unit.down, dy, p.hidden, p.after, dAct, unit.width, false);
    gateBackward(unit, s.gateUpRounded, s.gateUp, dAct, p.after, act);
    linearBackwardWeight(p.model, p.arena, unit.down, dy, p.hidden, act, unit.width, p.after, grads);
  }
  Loan<float> h = p.normed(p.layer.beforeGated, s.middle, p.after);
  linearBackwardWeight(p.model, p.arena, unit.gateUp, s.gateUp, 2 * unit.width, h, p.hidden, p.after, grads);
  linearBackwardInput(p.model, p.arena, unit.gateUp, s.gateUp, 2 * unit.width, p.after, h, p.hidden, false);
  normBackward(p.model, p.arena, p.layer.beforeGated, s.middle, p.after, p.hidden, h, dx, grads);
}

/** Gradient of attention's output [n][query] from dx, which on return has all n rows too. */
Loan<float> attentionOutputBackward(const LayerPass& p, const SavedLayer& s, Loan<float>& dx, float* grads) {
  const Attention& a = p.attention();
  const int64_t query = a.queryWidth();
  Loan<float> normed = beforeNorm(p, p.layer.afterAttention, s.mixed, dx, grads);
  const float* dy = normed.data() == nullptr ? dx.data() : normed.data();
  Loan<float> dAtt = p.rows(p.after, query), some;
  if (p.picks) some = gathered(p, s.att, query);
  linearBackwardInput(p.model, p.arena, a.out, dy, p.hidden, p.after, dAtt, query, false);
  linearBackwardWeight(p.model, p.arena, a.out, dy, p.hidden, p.picks ? some : s.att, query, p.after, grads);
  if (!p.picks) return dAtt;
  dx = scattered(p, dx, p.hidden);
  return scattered(p, dAtt, query);
}

void attentionBlockBackward(const LayerPass& p, const Batch& batch, const RopeTable& rope, SavedLayer& s,
                            Loan<float>& dx, float* grads) {
  const Attention& a = p.attention();
  Loan<float> dqkv = p.rows(p.n, a.qkvWidth());
  {
    Loan<float> dAtt = attentionOutputBackward(p, s, dx, grads), qk = p.rows(p.n, a.queryWidth() + a.kvWidth());
    headsForward(p.model, a, rope, batch, s.qkv, qk);
    attentionBackward(a, p.arena, batch, qk, s.qkv, s.att, s.lse, dAtt, dqkv);
  }
  headsBackward(p.model, p.arena, a, rope, batch, s.qkv, dqkv, grads);
  Loan<float> h = p.normed(p.layer.beforeAttention, s.x, p.n);
  linearBackwardWeight(p.model, p.arena, a.qkv, dqkv, a.qkvWidth(), h, p.hidden, p.n, grads);
  linearBackwardInput(p.model, p.arena, a.qkv, dqkv, a.qkvWidth(), p.n, h, p.hidden, false);
  normBackward(p.model, p.arena, p.layer.beforeAttention, s.x, p.n, p.hidden, h, dx, grads);
}

}  // namespace

WantedRows::WantedRows(const std::vector<int32_t>& rows, int64_t n) : count(int64_t(rows.size())), at(rows.data()) {
  bool all = count == n;
  for (int64_t i = 0; all && i < n; ++i) all = rows[size_t(i)] == i;
  if (all) at = nullptr;
}

Loan<float> forwardLayers(const Pass& pass, Loan<float> x, KeyView& keys, std::vector<SavedLayer>* saved) {
  for (size_t i = 0; i < pass.model.layers.size(); ++i) {
    const LayerPass p(pass, i);
    SavedLayer* const kept = saved == nullptr ? nullptr : &saved->emplace_back();
    Loan<float> middle = attentionForward(p, i, std::move(x), keys, kept);
    x = gatedForward(p, std::move(middle), kept);
  }
  return x;
}

Loan<float> finalNormed(const Pass& pass, const float* stream) {
  Loan<float> h(pass.arena, pass.wanted.count * pass.model.hidden);
  normForward(pass.model, pass.model.finalNorm, stream, pass.wanted.count, pass.model.hidden, h);
  return h;
}

void backwardLayers(const Pass& pass, const Batch& batch, const RopeTables& ropes, std::vector<SavedLayer>& saved,
                    Loan<float>& dx, float* grads) {
  for (size_t i = pass.model.layers.size(); i-- > 0; saved.pop_back()) {
    const LayerPass p(pass, i);
    gatedBackward(p, saved[i], dx, grads);
    attentionBlockBackward(p, batch, ropes.of(p.attention()), saved[i], dx, grads);
  }
}

}  // namespace petrel
