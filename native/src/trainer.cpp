#include "trainer.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "decoder.h"
#include "ops/embedding.h"
#include "ops/norm.h"
#include "optimizer.h"

namespace petrel {
namespace {

/** Rows of the scored positions after all layers; each keeps its part in saved.layers, or hands it back when nothing is kept. */
Loan<float> runLayers(Trainer& t, Saved& saved, bool keep) {
  Loan<float> x(t.arena, saved.batch.n * t.model->config.hidden);
  embeddingForward(saved.batch, t.model->at(t.model->embedding), t.model->config.hidden, x);
  for (int i = 0; i < t.model->config.layers; ++i) {
    SavedLayer layer;
    layer.x = std::move(x);
    x = layerForward(t, i, saved.batch, layer);
    if (keep) saved.layers.push_back(std::move(layer));
  }
  return x;
}

Loan<float> finalNormed(Trainer& t, const float* rows, int64_t n) {
  Loan<float> h(t.arena, n * t.model->config.hidden);
  normForward(rows, t.model->at(t.model->finalNorm), n, t.model->config.hidden, t.model->config.normEps, h);
  return h;
}

}  // namespace

Trainer::Trainer(DecoderConfig config, EngineOptions options, bool trainable)
    : model(std::make_shared<Model>(std::move(config), options)), trainable(trainable) {
  if (!trainable) return;
  const size_t bytes = static_cast<size_t>(model->size) * sizeof(float);
  grads = Mapping(bytes);
  m = Mapping(bytes);
  v = Mapping(bytes);
}

Trainer::~Trainer() { saved.clear(); }

int64_t Trainer::forward(Batch batch, float scale, bool keep, float* logProbs, float* entropy) {
  useThreads(model->options.threads);
  rope.reserve(model->config, batch.longest);
  Saved s;
  s.batch = std::move(batch);
  s.scale = scale;
  const int64_t n = s.batch.scored;
  s.last = runLayers(*this, s, keep);
  s.scored.resize(n);
  Loan<float> h = finalNormed(*this, s.last, n);
  headScores(*model, arena, h, n, s.batch.targets.data(), scale, logProbs, s.scored.data());
  for (int64_t i = 0; entropy != nullptr && i < n; ++i) entropy[i] = s.scored[i].entropy;
  if (!keep) return 0;
  saved.emplace(nextHandle, std::move(s));
  return nextHandle++;
}

void Trainer::backward(int64_t handle, const float* dLogProbs, const float* dEntropy) {
  const auto found = saved.find(handle);
  if (found == saved.end()) throw std::runtime_error("no forward pass with handle " + std::to_string(handle));
  useThreads(model->options.threads);
  Saved s = std::move(found->second);
  saved.erase(found);
  const int64_t n = s.batch.scored, hidden = model->config.hidden;
  float* g = grads.as<float>();
  Loan<float> dx(arena, n * hidden);
  {
    Loan<float> h = finalNormed(*this, s.last, n), dh(arena, n * hidden);
    headScoresBackward(*model, arena, h, n, s.batch.targets.data(), s.scale, s.scored.data(), dLogProbs, dEntropy, dh,
                       g);
    forEachRow(n, [&](int64_t i) { std::memset(dx + i * hidden, 0, hidden * sizeof(float)); });
    normBackward(arena, s.last, model->at(model->finalNorm), n, hidden, model->config.normEps, dh, dx,
                 g + model->finalNorm);
  }
  for (int i = model->config.layers - 1; i >= 0; --i) {
    layerBackward(*this, i, s.batch, s.layers[i], dx);
    s.layers.pop_back();
  }
  embeddingBackward(s.batch, dx, hidden, g + model->embedding);
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
