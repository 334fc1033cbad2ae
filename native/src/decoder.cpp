#include "decoder.h"

#include <cstring>

#include "linear.h"
#include "ops/attention.h"
#include "ops/heads.h"
#include "ops/norm.h"

namespace petrel {
namespace {

struct Pass {  // What both directions of a layer need at hand, for n rows
  Trainer& t;
  const Model& model;
  const DecoderConfig& c;
  const Layer& layer;
  const Batch& b;
  int64_t n, hidden, q, qkv, ffn;
  int window;
  Pass(Trainer& t, int i, const Batch& b, int64_t n)
      : t(t),
        model(*t.model),
        c(model.config),
        layer(model.layers[i]),
        b(b),
        n(n),
        hidden(c.hidden),
        q(c.queryWidth()),
        qkv(q + 2 * c.kvWidth()),
        ffn(c.ffn),
        window(c.windows[i]) {}
  Loan<float> rows(int64_t width) const { return Loan<float>(t.arena, n * width); }
  Loan<float> normed(const float* x, int64_t weight) const {
    Loan<float> h = rows(hidden);
    normForward(x, model.at(weight), n, hidden, c.normEps, h);
    return h;
  }
  void copyRows(float* to, const float* from, int64_t width) const {
    forEachRow(n, [&](int64_t i) { std::memcpy(to + i * width, from + i * width, width * sizeof(float)); });
  }
};

/** The rows that go on after attention: all, but in the last layer those of scored positions. */
Pass afterAttention(Trainer& t, int i, const Batch& b) {
  return {t, i, b, i + 1 < t.model->config.layers ? b.n : b.scored};
}

/** Rows of the scored positions, side by side. */
void gather(const Batch& b, const float* x, int64_t width, float* rows) {
  forEachRow(b.scored,
             [&](int64_t i) { std::memcpy(rows + i * width, x + b.scoredAt[i] * width, width * sizeof(float)); });
}

/** The other way; rows of positions that are not scored are 0. */
Loan<float> scattered(Arena& arena, const Batch& b, const float* rows, int64_t width) {
  Loan<float> x(arena, b.n * width);
  forEachRow(b.n, [&](int64_t i) { std::memset(x + i * width, 0, width * sizeof(float)); });
  forEachRow(b.scored,
             [&](int64_t i) { std::memcpy(x + b.scoredAt[i] * width, rows + i * width, width * sizeof(float)); });
  return x;
}

void attentionBlock(const Pass& p, const Pass& after, SavedLayer& s) {
  s.qkv = p.rows(p.qkv);
  {
    Loan<float> h = p.normed(s.x, p.layer.inputNorm);
    linearForward(p.model, p.t.arena, p.layer.qkv, h, p.hidden, p.n, s.qkv, p.qkv, false);
  }
  Loan<float> qk = p.rows(p.q + p.c.kvWidth());
  headsForward(p.model, p.layer, p.t.rope, p.b, s.qkv, qk);
  s.att = p.rows(p.q);
  s.lse = p.rows(p.c.heads);
  attentionForward(p.model, p.t.arena, p.window, p.b, qk, s.qkv, s.att, s.lse);
  s.middle = after.rows(p.hidden);
  Loan<float> some;
  if (after.n < p.n) {
    some = after.rows(p.q);
    gather(p.b, s.att, p.q, some);
    gather(p.b, s.x, p.hidden, s.middle);
  } else {
    p.copyRows(s.middle, s.x, p.hidden);
  }
  linearForward(p.model, p.t.arena, p.layer.out, after.n < p.n ? some : s.att, p.q, after.n, s.middle, p.hidden, true);
}

void gatedBlock(const Pass& p, SavedLayer& s, float* output) {
  s.gateUp = p.rows(2 * p.ffn);
  {
    Loan<float> h = p.normed(s.middle, p.layer.postNorm);
    linearForward(p.model, p.t.arena, p.layer.gateUp, h, p.hidden, p.n, s.gateUp, 2 * p.ffn, false);
  }
  Loan<float> act = p.rows(p.ffn);
  const float* gu = s.gateUp;
  forEachRow(p.n, [&](int64_t i) {
    kernels().swiglu(gu + i * 2 * p.ffn, gu + i * 2 * p.ffn + p.ffn, p.ffn, act + i * p.ffn);
  });
  p.copyRows(output, s.middle, p.hidden);
  linearForward(p.model, p.t.arena, p.layer.down, act, p.ffn, p.n, output, p.hidden, true);
}

void gatedBackward(const Pass& p, SavedLayer& s, float* dx, float* grads) {
  Arena& arena = p.t.arena;
  {
    Loan<float> dAct = p.rows(p.ffn), act = p.rows(p.ffn);
    linearBackwardInput(p.model, arena, p.layer.down, dx, p.hidden, p.n, dAct, p.ffn, false);
    forEachRow(p.n, [&](int64_t i) {
      float* gate = s.gateUp + i * 2 * p.ffn;
      kernels().swigluBackward(gate, gate + p.ffn, dAct + i * p.ffn, p.ffn, gate, gate + p.ffn, act + i * p.ffn);
    });
    linearBackwardWeight(p.model, arena, p.layer.down, dx, p.hidden, act, p.ffn, p.n, grads);
  }
  Loan<float> h = p.normed(s.middle, p.layer.postNorm);
  linearBackwardWeight(p.model, arena, p.layer.gateUp, s.gateUp, 2 * p.ffn, h, p.hidden, p.n, grads);
  linearBackwardInput(p.model, arena, p.layer.gateUp, s.gateUp, 2 * p.ffn, p.n, h, p.hidden, false);
  normBackward(arena, s.middle, p.model.at(p.layer.postNorm), p.n, p.hidden, p.c.normEps, h, dx,
               grads + p.layer.postNorm);
}

/** Gradient of attention's output [n][query] from dx, which on return has all n rows too. */
Loan<float> attentionOutputBackward(const Pass& p, const Pass& after, const SavedLayer& s, Loan<float>& dx,
                                    float* grads) {
  Arena& arena = p.t.arena;
  Loan<float> dAtt = after.rows(p.q), some;
  if (after.n < p.n) {
    some = after.rows(p.q);
    gather(p.b, s.att, p.q, some);
  }
  linearBackwardInput(p.model, arena, p.layer.out, dx, p.hidden, after.n, dAtt, p.q, false);
  linearBackwardWeight(p.model, arena, p.layer.out, dx, p.hidden, after.n < p.n ? some : s.att, p.q, after.n, grads);
  if (after.n == p.n) return dAtt;
  dx = scattered(arena, p.b, dx, p.hidden);
  return scattered(arena, p.b, dAtt, p.q);
}

void attentionBlockBackward(const Pass& p, const Pass& after, SavedLayer& s, Loan<float>& dx, float* grads) {
  Arena& arena = p.t.arena;
  Loan<float> dqkv = p.rows(p.qkv);
  {
    Loan<float> dAtt = attentionOutputBackward(p, after, s, dx, grads), qk = p.rows(p.q + p.c.kvWidth());
    headsForward(p.model, p.layer, p.t.rope, p.b, s.qkv, qk);
    attentionBackward(p.model, arena, p.window, p.b, qk, s.qkv, s.att, s.lse, dAtt, dqkv);
  }
  headsBackward(p.model, arena, p.layer, p.t.rope, p.b, s.qkv, dqkv, grads);
  Loan<float> h = p.normed(s.x, p.layer.inputNorm);
  linearBackwardWeight(p.model, arena, p.layer.qkv, dqkv, p.qkv, h, p.hidden, p.n, grads);
  linearBackwardInput(p.model, arena, p.layer.qkv, dqkv, p.qkv, p.n, h, p.hidden, false);
  normBackward(arena, s.x, p.model.at(p.layer.inputNorm), p.n, p.hidden, p.c.normEps, h, dx, grads + p.layer.inputNorm);
}

}  // namespace

Loan<float> layerForward(Trainer& t, int index, const Batch& batch, SavedLayer& saved) {
  const Pass pass(t, index, batch, batch.n), after = afterAttention(t, index, batch);
  attentionBlock(pass, after, saved);
  Loan<float> output = after.rows(after.hidden);
  gatedBlock(after, saved, output);
  return output;
}

void layerBackward(Trainer& t, int index, const Batch& batch, SavedLayer& saved, Loan<float>& dx) {
  const Pass pass(t, index, batch, batch.n), after = afterAttention(t, index, batch);
  gatedBackward(after, saved, dx, t.grads.as<float>());
  attentionBlockBackward(pass, after, saved, dx, t.grads.as<float>());
}

}  // namespace petrel
