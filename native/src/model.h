// A decoder's structure and weights: fp32 masters in one flat buffer, in canonical order, and the copies that compute
// reads. The structure comes from a DecoderSpec (native/model/spec.ts); no family of models is known here.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "crew.h"
#include "memory.h"
#include "published.h"

namespace petrel {

enum class ComputeType { fp32, bf16 };

struct EngineOptions {
  ComputeType compute;
  bool deterministic;
  int threads;
};

/** One parameter under its Hugging Face name; offset in elements into every flat buffer. */
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset, size;
  bool isRounded = false;  // only products read it, and they round it to bf16
};

/** A weight matrix [rows, in] of a Linear, with its place among the columns of the output. */
struct LinearPart {
  int64_t rows, column;
  int64_t weight;  // offset of [rows, in]
  int64_t bias;    // offset of [rows], or −1
};

/**
 * y[n, out] = x[n, in]·W^T + b, where W may be several parameters one below the other (q, k, v; gate, up).
 * The copies follow the masters after `Model::refresh`.
 */
struct Linear {
  int64_t in = 0, out = 0;
  std::vector<LinearPart> parts;
  bool hasBias = false;
  Mapping packed;  // fp32 compute: panels [ceil(out/16)][in][16]
  Mapping pairs;   // bf16 compute: panels [ceil(out/16)][ceil(in/2)][16] of pairs (kernels_bf16.h)
};

/** RMSNorm: y = x / sqrt(mean(x²) + eps) · (w + offset). */
struct Norm {
  int64_t weight = -1;  // offset of [width], or −1: no norm
  float eps = 0, offset = 0;
  bool isPresent() const { return weight >= 0; }
};

/** Causal attention with grouped heads. Output columns of qkv: [q | k | v]. */
struct Attention {
  int heads, kvHeads, headDim;
  int window;            // 0: full
  float scale, softcap;  // of scores; softcap 0: none
  int rope;              // which of Decoder::ropes
  Norm queryNorm, keyNorm;
  Linear qkv, out;
  int64_t queryWidth() const { return int64_t(heads) * headDim; }
  int64_t kvWidth() const { return int64_t(kvHeads) * headDim; }
  int64_t qkvWidth() const { return queryWidth() + 2 * kvWidth(); }
  int group() const { return heads / kvHeads; }
};

enum class Activation { silu, geluTanh };

/** down(activation(gate)·up). Output columns of gateUp: [gate | up]. */
struct GatedUnit {
  int64_t width;
  Activation activation;
  Linear gateUp, down;
};

/**
 * x += afterAttention(attention(beforeAttention(x))); x += afterGated(gated(beforeGated(x))). The norms after may be
 * absent.
 */
struct Layer {
  Norm beforeAttention, afterAttention, beforeGated, afterGated;
  Attention attention;
  GatedUnit gated;
};

/**
 * tokens: logits of the next token. rows: `linear` of the last hidden state as it is: a value per position, scores per
 * sequence.
 */
enum class HeadKind { tokens, rows };

struct Head {
  HeadKind kind;
  Linear linear;  // a tied head's only part is the embedding
  float softcap;  // of logits; 0: none
};

/** What a DecoderSpec says, with offsets in the place of names. */
struct Decoder {
  int64_t hidden, vocab;
  std::vector<Parameter> parameters;
  int64_t size = 0;  // elements of every flat buffer
  int64_t embedding;
  float embeddingScale;
  std::vector<std::vector<double>> ropes;  // inverse frequencies; twice as many leading dimensions of a head turn
  std::vector<Layer> layers;
  Norm finalNorm;
  Head head;
};

struct Model : Decoder {
  EngineOptions options;
  Mapping weights;           // fp32 masters
  Published inFp32, inBf16;  // inBf16: where the model computes in bf16

  Model(Decoder decoder, EngineOptions options);
  float* at(int64_t offset) const { return weights.as<float>() + offset; }
  /** Rebuilds the copies of all Linears from the masters. */
  void refresh();
};

/** cos and sin of position·(inverse frequency), [positions][half] each. */
class RopeTable {
 public:
  void reserve(const std::vector<double>& inverseFrequencies, int64_t positions);
  /** Leading dimensions of a head that turn. */
  int64_t dimensions() const { return 2 * half_; }
  const float* cosine(int64_t position) const { return cosine_.data() + position * half_; }
  const float* sine(int64_t position) const { return sine_.data() + position * half_; }

 private:
  int64_t half_ = 0, positions_ = 0;
  std::vector<float> cosine_, sine_;
};

/** The tables of a decoder, one per entry of `ropes`; grown on demand (not thread-safe). */
class RopeTables {
 public:
  void reserve(const Decoder& decoder, int64_t positions);
  const RopeTable& of(const Attention& attention) const { return tables_[size_t(attention.rope)]; }

 private:
  std::vector<RopeTable> tables_;
};

}  // namespace petrel
