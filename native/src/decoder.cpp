#include "decoder.h"

#include <cstring>

#include "linear.h"
#include "ops/attention.h"
#include "ops/heads.h"
#include "ops/norm.h"

namespace petrel {
namespace {

struct Pass {  // What both directions of a layer need at hand
  Trainer& t;
  const Model& model;
  const DecoderConfig& c;
  const Layer& layer;
  const Batch& b;
  int64_t n, hidden, q, qkv, ffn;
  int window;
  Pass(Trainer& t, int i, const Batch& b)
      : t(t), model(*t.model), c(model.config), layer(model.layers[i]), b(b), n(b.n), hidden(c.hidden), q(c.queryWidth()),
        qkv(q + 2 * c.kvWidth()), ffn(c.ffn), window(c.windows[i]) {}
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

void attentionBlock(const Pass& p, SavedLayer& s) {
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
  s.middle = p.rows(p.hidden);
  p.copyRows(s.middle, s.x, p.hidden);
  linearForward(p.model, p.t.arena, p.layer.out, s.att, p.q, p.n, s.middle, p.hidden, true);
}

void gatedBlock(const Pass& p, SavedLayer& s, float* output) {
  s.gateUp = p.rows(2 * p.ffn);
  {
    Loan<float> h = p.normed(s.middle, p.layer.postNorm);
    linearForward(p.model, p.t.arena, p.layer.gateUp, h, p.hidden, p.n, s.gateUp, 2 * p.ffn, false);
  }
  Loan<float> act = p.rows(p.ffn);
  const float* gu = s.gateUp;
  forEachRow(p.n, [&](int64_t i) { kernels().swiglu(gu + i * 2 * p.ffn, gu + i * 2 * p.ffn + p.ffn, p.ffn, act + i * p.ffn); });
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
  normBackward(arena, s.middle, p.model.at(p.layer.postNorm), p.n, p.hidden, p.c.normEps, h, dx, grads + p.layer.postNorm);
}

void attentionBlockBackward(const Pass& p, SavedLayer& s, float* dx, float* grads) {
  Arena& arena = p.t.arena;
  Loan<float> dqkv = p.rows(p.qkv);
  {
    Loan<float> dAtt = p.rows(p.q), qk = p.rows(p.q + p.c.kvWidth());
    linearBackwardInput(p.model, arena, p.layer.out, dx, p.hidden, p.n, dAtt, p.q, false);
    linearBackwardWeight(p.model, arena, p.layer.out, dx, p.hidden, s.att, p.q, p.n, grads);
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

void layerForward(Trainer& t, int index, const Batch& batch, SavedLayer& saved, float* output) {
  const Pass pass(t, index, batch);
  attentionBlock(pass, saved);
  gatedBlock(pass, saved, output);
}

void layerBackward(Trainer& t, int index, const Batch& batch, SavedLayer& saved, float* dx) {
  const Pass pass(t, index, batch);
  gatedBackward(pass, saved, dx, t.grads.as<float>());
  attentionBlockBackward(pass, saved, dx, t.grads.as<float>());
}

}  // namespace petrel
