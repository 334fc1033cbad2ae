#include "spec.h"

#include <algorithm>
#include <map>
#include <set>

namespace petrel {
namespace {

using Shape = std::vector<int64_t>;

constexpr int64_t kWidest = kLargestInt / 4;         // [q | k | v] and [gate | up] side by side are counted in ints
constexpr int64_t kMostElements = int64_t(1) << 44;  // four buffers of them fill the address space

std::string shown(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

int64_t sizeOf(const Argument& object, const char* key, int64_t most = kLargestInt) {
  return integerOf({object, key}, 1, most);
}

float realOf(const Argument& object, const char* key) { return static_cast<float>(finiteOf({object, key})); }

/** The limit of elements: no list of a model is longer, and each element costs memory before it is checked. */
constexpr uint32_t kLongestList = 1 << 22;

std::vector<Argument> elementsOf(const Argument& a) {
  if (!a.value.IsArray()) refuseType(a, "an array");
  const Napi::Array array = a.value.As<Napi::Array>();
  if (array.Length() > kLongestList)
    refuseRange(a, "of at most " + std::to_string(kLongestList) + " elements", std::to_string(array.Length()));
  std::vector<Argument> elements;
  for (uint32_t i = 0; i < array.Length(); ++i)
    elements.emplace_back(array.Get(i), a.name + "[" + std::to_string(i) + "]");
  return elements;
}

/** The tensors of a spec by name, and which of them were read. */
class Tensors {
 public:
  explicit Tensors(const Argument& list) : list_(list) {
    for (const Argument& a : elementsOf(list)) add(a);
  }

  /** Offset of the tensor, which must have this shape. */
  int64_t offset(const Argument& name, const Shape& shape) {
    const auto found = byName_.find(textOf(name));
    if (found == byName_.end()) refuseRange(name, "the name of a tensor", textOf(name).substr(0, 100));
    const Parameter& p = parameters[found->second];
    if (p.shape != shape) refuseRange(name, "a tensor of shape " + shown(shape), p.name + " of " + shown(p.shape));
    read_.insert(found->second);
    return p.offset;
  }

  void refuseUnread() const {
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (read_.count(i) == 0) refuseRange(list_, "tensors that the layers read", parameters[i].name);
    }
  }

  std::vector<Parameter> parameters;
  int64_t size = 0;

 private:
  void add(const Argument& a) {
    Parameter p{textOf({a, "name"}), {}, size, 1};
    if (!parameters.empty() && p.name <= parameters.back().name)
      refuseRange(list_, "in ascending order of names", p.name + " after " + parameters.back().name);
    for (const Argument& length : elementsOf({a, "shape"})) {
      p.shape.push_back(integerOf(length, 1, kLargestInt));
      if (__builtin_mul_overflow(p.size, p.shape.back(), &p.size) || p.size > kMostElements) refuseSize();
    }
    size += p.size;
    if (size > kMostElements) refuseSize();
    byName_[p.name] = parameters.size();
    parameters.push_back(std::move(p));
  }

  [[noreturn]] void refuseSize() const {
    refuseRange(list_, "of at most " + std::to_string(kMostElements) + " parameters", "more");
  }

  const Argument& list_;
  std::map<std::string, size_t> byName_;
  std::set<size_t> read_;
};

Norm normOf(Tensors& tensors, const Argument& a, int64_t width) {
  Norm norm;
  norm.weight = tensors.offset({a, "weight"}, {width});
  norm.eps = realOf(a, "eps");
  norm.offset = realOf(a, "offset");
  return norm;
}

Norm normOrNone(Tensors& tensors, const Argument& a, int64_t width) {
  return a.isMissing() ? Norm{} : normOf(tensors, a, width);
}

Linear linearOf(Tensors& tensors, const Argument& a, int64_t in, int64_t out) {
  Linear linear;
  linear.in = in;
  for (const Argument& from : elementsOf(a)) {
    LinearPart part{sizeOf(from, "rows"), linear.out, -1, -1};
    part.weight = tensors.offset({from, "weight"}, {part.rows, in});
    const Argument bias(from, "bias");
    if (!bias.isMissing()) part.bias = tensors.offset(bias, {part.rows});
    linear.hasBias = linear.hasBias || part.bias >= 0;
    linear.out += part.rows;
    linear.parts.push_back(part);
  }
  if (linear.out != out) refuseRange(a, "of " + std::to_string(out) + " rows together", std::to_string(linear.out));
  return linear;
}

/** The place of these inverse frequencies among the decoder's. */
int ropeOf(Decoder& decoder, const Argument& a, int headDim) {
  std::vector<double> frequencies = numbersOf(a);
  if (frequencies.empty() || 2 * frequencies.size() > size_t(headDim)) {
    refuseRange(a, "of 1 to headDim / 2 = " + std::to_string(headDim / 2) + " values",
                std::to_string(frequencies.size()));
  }
  const auto found = std::find(decoder.ropes.begin(), decoder.ropes.end(), frequencies);
  const int index = int(found - decoder.ropes.begin());
  if (found == decoder.ropes.end()) decoder.ropes.push_back(std::move(frequencies));
  return index;
}

Attention attentionOf(Decoder& decoder, Tensors& tensors, const Argument& a) {
  if (textOf({a, "kind"}) != "gqa") refuseRange({a, "kind"}, "gqa", textOf({a, "kind"}).substr(0, 40));
  Attention c{};
  c.heads = static_cast<int>(sizeOf(a, "heads"));
  c.kvHeads = static_cast<int>(sizeOf(a, "kvHeads"));
  c.headDim = static_cast<int>(sizeOf(a, "headDim"));
  if (c.queryWidth() > kWidest)
    refuseRange(a, "with heads * headDim up to " + std::to_string(kWidest), std::to_string(c.queryWidth()));
  if (c.heads % c.kvHeads != 0) {
    refuseRange(a, "with kvHeads that divide heads",
                std::to_string(c.heads) + " heads, " + std::to_string(c.kvHeads) + " kvHeads");
  }
  if (c.headDim % 2 != 0) refuseRange(a, "with an even headDim", std::to_string(c.headDim));
  c.window = static_cast<int>(integerOf({a, "window"}, 0, kLargestInt));
  c.scale = realOf(a, "scale");
  c.softcap = realOf(a, "softcap");
  c.rope = ropeOf(decoder, {a, "rope"}, c.headDim);
  c.queryNorm = normOrNone(tensors, {a, "queryNorm"}, c.headDim);
  c.keyNorm = normOrNone(tensors, {a, "keyNorm"}, c.headDim);
  c.qkv = linearOf(tensors, {a, "qkv"}, decoder.hidden, c.qkvWidth());
  c.out = linearOf(tensors, {a, "out"}, c.queryWidth(), decoder.hidden);
  return c;
}

GatedUnit gatedOf(const Decoder& decoder, Tensors& tensors, const Argument& a) {
  if (textOf({a, "kind"}) != "glu") refuseRange({a, "kind"}, "glu", textOf({a, "kind"}).substr(0, 40));
  const std::string activation = textOf({a, "activation"});
  if (activation != "silu" && activation != "geluTanh")
    refuseRange({a, "activation"}, "silu or geluTanh", activation.substr(0, 40));
  GatedUnit unit{};
  unit.width = sizeOf(a, "width", kWidest);
  unit.activation = activation == "silu" ? Activation::silu : Activation::geluTanh;
  unit.gateUp = linearOf(tensors, {a, "gateUp"}, decoder.hidden, 2 * unit.width);
  unit.down = linearOf(tensors, {a, "down"}, unit.width, decoder.hidden);
  return unit;
}

Layer layerOf(Decoder& decoder, Tensors& tensors, const Argument& a) {
  const Argument norms(a, "norms");
  Layer layer;
  layer.beforeAttention = normOf(tensors, {norms, "beforeMixer"}, decoder.hidden);
  layer.afterAttention = normOrNone(tensors, {norms, "afterMixer"}, decoder.hidden);
  layer.beforeGated = normOf(tensors, {norms, "beforeFfn"}, decoder.hidden);
  layer.afterGated = normOrNone(tensors, {norms, "afterFfn"}, decoder.hidden);
  layer.attention = attentionOf(decoder, tensors, {a, "mixer"});
  layer.gated = gatedOf(decoder, tensors, {a, "ffn"});
  return layer;
}

/** A page of keys and values has one shape for all layers. */
void checkAlike(const Argument& layers, const Attention& first, const Attention& other) {
  if (first.kvHeads == other.kvHeads && first.headDim == other.headDim && first.heads == other.heads) return;
  refuseRange(layers, "with the same heads, kvHeads and headDim in every layer",
              std::to_string(other.heads) + ", " + std::to_string(other.kvHeads) + " and " +
                  std::to_string(other.headDim) + " after " + std::to_string(first.heads) + ", " +
                  std::to_string(first.kvHeads) + " and " + std::to_string(first.headDim));
}

Head headOf(const Decoder& decoder, Tensors& tensors, const Argument& a) {
  const Argument kind(a, "kind"), projection(a, "projection");
  const std::string name = textOf(kind);
  if (name != "tokens" && name != "values" && name != "scores")
    refuseRange(kind, "tokens, values or scores", name.substr(0, 40));
  Head head{};
  head.kind = name == "tokens" ? HeadKind::tokens : HeadKind::rows;
  head.softcap = name == "tokens" ? realOf(a, "softcap") : 0.0f;
  int64_t rows = decoder.vocab;
  if (name != "tokens") rows = name == "values" ? 1 : sizeOf(a, "labels", 1 << 20);
  head.linear = linearOf(tensors, projection, decoder.hidden, rows);
  return head;
}

}  // namespace

Decoder decoderOf(const Argument& a) {
  Decoder decoder{};
  decoder.hidden = sizeOf(a, "hidden");
  decoder.vocab = sizeOf(a, "vocab");
  const Argument list(a, "tensors"), embedding(a, "embedding"), layers(a, "layers");
  Tensors tensors(list);
  decoder.embedding = tensors.offset({embedding, "table"}, {decoder.vocab, decoder.hidden});
  decoder.embeddingScale = realOf(embedding, "scale");
  for (const Argument& layer : elementsOf(layers)) {
    decoder.layers.push_back(layerOf(decoder, tensors, layer));
    checkAlike(layers, decoder.layers.front().attention, decoder.layers.back().attention);
  }
  if (decoder.layers.empty()) refuseRange(layers, "a list of layers", "none");
  decoder.finalNorm = normOf(tensors, {a, "finalNorm"}, decoder.hidden);
  decoder.head = headOf(decoder, tensors, {a, "head"});
  tensors.refuseUnread();
  decoder.parameters = std::move(tensors.parameters);
  decoder.size = tensors.size;
  return decoder;
}

}  // namespace petrel
