#include "model.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "copies.h"
#include "names.h"

namespace petrel {
namespace {

LinearPart part(const Names& names, const std::string& name, int64_t rows, int64_t column) {
  return {rows, column, names.offset(name + ".weight"), names.offsetOrNone(name + ".bias")};
}

Linear linear(int64_t in, std::vector<LinearPart> parts) {
  Linear l;
  l.in = in;
  for (const LinearPart& p : parts) {
    l.out += p.rows;
    l.hasBias = l.hasBias || p.bias >= 0;
  }
  l.parts = std::move(parts);
  return l;
}

Layer layer(const DecoderConfig& c, const Names& names, int index) {
  const std::string at = "model.layers." + std::to_string(index) + ".";
  const int64_t q = c.queryWidth(), kv = c.kvWidth();
  Layer l;
  l.inputNorm = names.offset(at + "input_layernorm.weight");
  l.postNorm = names.offset(at + "post_attention_layernorm.weight");
  l.qNorm = names.offsetOrNone(at + "self_attn.q_norm.weight");
  l.kNorm = names.offsetOrNone(at + "self_attn.k_norm.weight");
  l.qkv = linear(c.hidden, {part(names, at + "self_attn.q_proj", q, 0), part(names, at + "self_attn.k_proj", kv, q),
                            part(names, at + "self_attn.v_proj", kv, q + kv)});
  l.out = linear(q, {part(names, at + "self_attn.o_proj", c.hidden, 0)});
  l.gateUp =
      linear(c.hidden, {part(names, at + "mlp.gate_proj", c.ffn, 0), part(names, at + "mlp.up_proj", c.ffn, c.ffn)});
  l.down = linear(c.ffn, {part(names, at + "mlp.down_proj", c.hidden, 0)});
  return l;
}

}  // namespace

Model::Model(DecoderConfig wanted, EngineOptions o) : config(std::move(wanted)), options(o) {
  const Names names(config);
  parameters = names.parameters();
  size = names.size();
  weights = Mapping(static_cast<size_t>(size) * sizeof(float));
  embedding = names.offset("model.embed_tokens.weight");
  finalNorm = names.offset("model.norm.weight");
  for (int i = 0; i < config.layers; ++i) layers.push_back(layer(config, names, i));
  head = linear(config.hidden, {{config.vocab, 0, config.tied ? embedding : names.offset("lm_head.weight"), -1}});
  forEachLinear(*this, [&](Linear& l) { allocateCopies(options, l); });
}

void Model::refresh() {
  forEachLinear(*this, [&](Linear& l) { refreshCopies(*this, l); });
}

void RopeTable::reserve(const DecoderConfig& config, int64_t positions) {
  half_ = config.headDim / 2;
  if (positions <= positions_) return;
  positions = std::max(positions, 2 * positions_);
  cosine_.resize(positions * half_);
  sine_.resize(positions * half_);
  for (int64_t t = positions_; t < positions; ++t) {
    for (int64_t i = 0; i < half_; ++i) {
      const double angle = static_cast<double>(t) * config.ropeInvFreq[i];
      cosine_[t * half_ + i] = static_cast<float>(std::cos(angle));
      sine_[t * half_ + i] = static_cast<float>(std::sin(angle));
    }
  }
  positions_ = positions;
}

}  // namespace petrel
