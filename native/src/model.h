// A decoder's shape and weights: fp32 masters in one flat buffer, in canonical order, and the copies that compute reads.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "crew.h"
#include "memory.h"

namespace petrel {

struct DecoderConfig {
  int layers, hidden, heads, kvHeads, headDim, ffn, vocab;
  float normEps;
  bool tied, qkvBias, outBias, mlpBias, qkNorm;
  std::vector<double> ropeInvFreq;  // headDim / 2
  std::vector<int> windows;         // per layer, 0 = full
  int64_t maxPositions;
  int queryWidth() const { return heads * headDim; }
  int kvWidth() const { return kvHeads * headDim; }
};

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

/** Offsets of a layer's vectors (−1: absent), and its matrices. Output columns: qkv = [q | k | v], gateUp = [gate | up]. */
struct Layer {
  int64_t inputNorm, postNorm, qNorm, kNorm;
  Linear qkv, out, gateUp, down;
};

struct Model {
  DecoderConfig config;
  EngineOptions options;
  std::vector<Parameter> parameters;
  int64_t size = 0;  // elements of every flat buffer
  Mapping weights;   // fp32 masters

  int64_t embedding, finalNorm;
  std::vector<Layer> layers;
  Linear head;  // tied: its only part is the embedding

  Model(DecoderConfig config, EngineOptions options);
  float* at(int64_t offset) const { return weights.as<float>() + offset; }
  /** Rebuilds the copies of all Linears from the masters. */
  void refresh();
};

/** cos and sin of position·invFreq, [positions][headDim/2] each; grown on demand (not thread-safe). */
class RopeTable {
 public:
  void reserve(const DecoderConfig& config, int64_t positions);
  const float* cosine(int64_t position) const { return cosine_.data() + position * half_; }
  const float* sine(int64_t position) const { return sine_.data() + position * half_; }

 private:
  int64_t half_ = 0, positions_ = 0;
  std::vector<float> cosine_, sine_;
};

}  // namespace petrel
