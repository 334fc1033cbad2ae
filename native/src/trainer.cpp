#include "trainer.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "ops/attention.h"
#include "ops/embedding.h"
#include "ops/heads.h"
#include "ops/norm.h"
#include "optimizer.h"

namespace petrel {
namespace {

/** Keys and values of packed sequences: those of a layer live as long as its attention. */
class PackedKeys : public KeyView {
 public:
  PackedKeys(const Model& model, Arena& arena, const RopeTables& ropes, const Batch& batch)
      : model_(model), arena_(arena), ropes_(ropes), batch_(batch) {}

  void attend(int layer, float* qkv, float* att, float* lse) override {
    const Attention& a = model_.layers[size_t(layer)].attention;
    Loan<float> qk(arena_, batch_.n * (a.queryWidth() + a.kvWidth()));
    headsForward(model_, a, ropes_.of(a), batch_, qkv, qk);
    attentionForward(a, arena_, batch_, qk, qkv, att, lse);
  }

 private:
  const Model& model_;
  Arena& arena_;
  const RopeTables& ropes_;
  const Batch& batch_;
};

Pass passOf(Trainer& t, const Batch& b) { return {*t.model, t.arena, b.n, {b.scoredAt, b.n}}; }

}  // namespace

Trainer::Trainer(Decoder decoder, EngineOptions options, bool trainable)
    : model(std::make_shared<Model>(std::move(decoder), options)), trainable(trainable) {
  if (!trainable) return;
  const size_t bytes = static_cast<size_t>(model->size) * sizeof(float);
  grads = Mapping(bytes);
  m = Mapping(bytes);
  v = Mapping(bytes);
}

Trainer::~Trainer() { saved.clear(); }

int64_t Trainer::forward(Batch batch, float scale, bool keep, const Outputs& outputs) {
  useThreads(model->options.threads);
  ropes.reserve(*model, batch.longest);
  Saved s;
  s.batch = std::move(batch);
  s.scale = scale;
  const Pass pass = passOf(*this, s.batch);
  Loan<float> x(arena, pass.n * model->hidden);
  forEachRow(pass.n, [&](int64_t i) { embed(*model, s.batch.tokens[i], x + i * model->hidden); });
  PackedKeys keys(*model, arena, ropes, s.batch);
  s.last = forwardLayers(pass, std::move(x), keys, keep ? &s.layers : nullptr);
  if (keep && model->head.kind == HeadKind::tokens) s.scored.resize(s.batch.scored);
  Loan<float> h = finalNormed(pass, s.last);
  headForward(*model, arena, h, s.batch.scored, s.batch.targets.data(), scale, outputs,
              s.scored.empty() ? nullptr : s.scored.data());
  if (!keep) return 0;
  saved.emplace(nextHandle, std::move(s));
  return nextHandle++;
}

void Trainer::backward(int64_t handle, const OutputGradients& gradients) {
  const auto found = saved.find(handle);
  if (found == saved.end()) throw std::runtime_error("no forward pass with handle " + std::to_string(handle));
  useThreads(model->options.threads);
  Saved s = std::move(found->second);
  saved.erase(found);
  const Pass pass = passOf(*this, s.batch);
  const int64_t n = s.batch.scored, hidden = model->hidden;
  float* g = grads.as<float>();
  Loan<float> dx(arena, n * hidden);
  {
    Loan<float> h = finalNormed(pass, s.last), dh(arena, n * hidden);
    headBackward(*model, arena, h, n, s.batch.targets.data(), s.scale, s.scored.data(), gradients, dh, g);
    forEachRow(n, [&](int64_t i) { std::memset(dx + i * hidden, 0, hidden * sizeof(float)); });
    normBackward(*model, arena, model->finalNorm, s.last, n, hidden, dh, dx, g);
  }
  backwardLayers(pass, s.batch, ropes, s.layers, dx, g);
  embeddingBackward(*model, s.batch, dx, g);
}

void Trainer::close() {
  saved.clear();
  arena.release();
  for (Mapping* mapping : {&grads, &m, &v}) mapping->release();
  model.reset();
}

double Trainer::step(const StepSettings& settings, bool* taken) {
  useThreads(model->options.threads);
  const double norm = adamStep(settings, model->weights.as<float>(), grads.as<float>(), m.as<float>(), v.as<float>(),
                               model->size, taken);
  if (*taken) model->refresh();
  return norm;
}

}  // namespace petrel
