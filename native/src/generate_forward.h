// Spans of positions through the model: the executor's forward with keys and values in pages instead of packed rows.
// One pass serves decoding (spans of one position) and prefill (longer ones) together.
#pragma once

#include <vector>

#include "executor.h"
#include "generate_attention.h"
#include "generate_schedule.h"

namespace petrel {

class SpanForward : private KeyView {
 public:
  SpanForward(const Model& model, int maxModelLen);

  // Writes the spans' keys and values into their pages and the final hidden state (after the last norm) of the last
  // position of each span with `last` set into rows of hidden, in order: [number of such spans][hidden].
  void run(const std::vector<Span>& spans, const PagePool& pool, KernelVector<float>& hidden);
  // logits[n][vocab] of n hidden states.
  void head(const float* hidden, int64_t n, float* logits);

 private:
  // One row of the batch: a position of a span.
  struct Row {
    const Span* span;
    int position;
  };

  void layOut(const std::vector<Span>& spans);
  void attend(int layer, float* qkv, float* att, float* lse) override;
  void normAndRotate(const Attention& attention, int position, float* qkv) const;

  const Model& model_;
  RopeTables ropes_;
  Arena arena_;
  const PagePool* pool_ = nullptr;  // while run works
  std::vector<Row> rows_;
  std::vector<int32_t> wanted_;  // rows that end a span with `last` set
  std::vector<QueryRows> tiles_;
  std::vector<std::vector<const void*>> pages_;  // scratch, one per thread
};

}  // namespace petrel
