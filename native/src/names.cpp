#include "names.h"

#include <stdexcept>

namespace petrel {
namespace {

using Shape = std::vector<int64_t>;

void add(std::map<std::string, Parameter>& all, const std::string& name, Shape shape) {
  int64_t size = 1;
  for (int64_t n : shape) size *= n;
  all[name] = {name, std::move(shape), 0, size};
}

void addLinear(std::map<std::string, Parameter>& all, const std::string& name, int64_t out, int64_t in, bool bias) {
  add(all, name + ".weight", {out, in});
  if (bias) add(all, name + ".bias", {out});
}

void addLayer(std::map<std::string, Parameter>& all, const DecoderConfig& c, const std::string& at) {
  const int64_t q = c.queryWidth(), kv = c.kvWidth();
  add(all, at + "input_layernorm.weight", {c.hidden});
  add(all, at + "post_attention_layernorm.weight", {c.hidden});
  addLinear(all, at + "self_attn.q_proj", q, c.hidden, c.qkvBias);
  addLinear(all, at + "self_attn.k_proj", kv, c.hidden, c.qkvBias);
  addLinear(all, at + "self_attn.v_proj", kv, c.hidden, c.qkvBias);
  addLinear(all, at + "self_attn.o_proj", c.hidden, q, c.outBias);
  if (c.qkNorm) {
    add(all, at + "self_attn.q_norm.weight", {c.headDim});
    add(all, at + "self_attn.k_norm.weight", {c.headDim});
  }
  addLinear(all, at + "mlp.gate_proj", c.ffn, c.hidden, c.mlpBias);
  addLinear(all, at + "mlp.up_proj", c.ffn, c.hidden, c.mlpBias);
  addLinear(all, at + "mlp.down_proj", c.hidden, c.ffn, c.mlpBias);
}

}  // namespace

Names::Names(const DecoderConfig& c) {
  add(byName_, "model.embed_tokens.weight", {c.vocab, c.hidden});
  add(byName_, "model.norm.weight", {c.hidden});
  if (!c.tied) add(byName_, "lm_head.weight", {c.vocab, c.hidden});
  for (int i = 0; i < c.layers; ++i) addLayer(byName_, c, "model.layers." + std::to_string(i) + ".");
  for (auto& entry : byName_) {  // A std::map of ASCII names iterates by code unit.
    entry.second.offset = size_;
    size_ += entry.second.size;
  }
}

std::vector<Parameter> Names::parameters() const {
  std::vector<Parameter> all;
  for (const auto& entry : byName_) all.push_back(entry.second);
  return all;
}

int64_t Names::offset(const std::string& name) const {
  const int64_t at = offsetOrNone(name);
  if (at < 0) throw std::runtime_error("no parameter " + name);
  return at;
}

int64_t Names::offsetOrNone(const std::string& name) const {
  const auto found = byName_.find(name);
  return found == byName_.end() ? -1 : found->second.offset;
}

}  // namespace petrel
