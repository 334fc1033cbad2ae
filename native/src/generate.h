// Continuous batching over one model: admits, prefills, decodes, samples.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "generate_forward.h"
#include "generate_schedule.h"
#include "sampling.h"

namespace petrel {

// Tokens of one step: decoding samples in order of admission, then those that drew their first token.
struct DecodedTokens {
  std::vector<int32_t> keys, tokens;
  std::vector<float> logProbs, samplingLogProbs;
  std::vector<uint8_t> finish;
};

class Generator {
 public:
  Generator(std::shared_ptr<const Model> model, int maxSeqs, int maxModelLen, int kvPages);

  // Empty when the request was taken; otherwise why it can't be served.
  std::string submit(RequestSpec request);
  // Throws std::runtime_error when logits are not finite. Nothing is live after any exception.
  DecodedTokens step();
  void abort(int key) { schedule_.abort(key); }
  void reset() { schedule_.reset(); }

  int vocab() const { return int(model_->vocab); }
  const Schedule& schedule() const { return schedule_; }
  int64_t decodedTokens() const { return decoded_; }
  int64_t prefilledTokens() const { return prefilled_; }

 private:
  // A live sample whose next token can be drawn from row `row` of the hidden states.
  struct Draw {
    LiveSample* sample;
    int64_t row;
  };

  DecodedTokens decode();
  std::vector<Draw> advance(const std::vector<Span>& spans);
  void startSamples(std::vector<Draw>& draws);
  void sampleRows(const std::vector<Draw>& draws, std::vector<SampledToken>& results);
  SampledToken sampleOne(const LiveSample& sample, const float* logits, RowSampler& sampler) const;
  DecodedTokens record(const std::vector<Draw>& draws, const std::vector<SampledToken>& results);

  std::shared_ptr<const Model> model_;
  Schedule schedule_;
  SpanForward forward_;
  std::vector<RowSampler> samplers_;  // one per thread
  KernelVector<float> hidden_;        // rows that give logits in this step
  KernelVector<float> logits_;
  int64_t decoded_ = 0, prefilled_ = 0;
};

}  // namespace petrel
