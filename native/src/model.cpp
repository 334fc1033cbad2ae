#include "model.h"

#include <algorithm>

#include "copies.h"
#include "scalar.h"

namespace petrel {
namespace {

/** A tied head's matrix is the embedding, which is read in fp32 besides. */
void markRounded(Model& model) {
  forEachLinear(model, [&](Linear& l) {
    for (const LinearPart& part : l.parts) {
      for (Parameter& p : model.parameters) {
        if (p.offset == part.weight && p.offset != model.embedding) p.isRounded = true;
      }
    }
  });
}

}  // namespace

Model::Model(Decoder decoder, EngineOptions o) : Decoder(std::move(decoder)), options(o) {
  weights = Mapping(static_cast<size_t>(size) * sizeof(float));
  forEachLinear(*this, [&](Linear& l) { allocateCopies(options, l); });
  inFp32.add(size, false);
  if (options.compute != ComputeType::bf16) return;
  markRounded(*this);
  for (const Parameter& p : parameters) inBf16.add(p.size, p.isRounded);
}

void Model::refresh() {
  forEachLinear(*this, [&](Linear& l) { refreshCopies(*this, l); });
}

void RopeTable::reserve(const std::vector<double>& inverseFrequencies, int64_t positions) {
  half_ = static_cast<int64_t>(inverseFrequencies.size());
  if (positions <= positions_) return;
  positions = std::max(positions, 2 * positions_);
  cosine_.resize(positions * half_);
  sine_.resize(positions * half_);
  for (int64_t t = positions_; t < positions; ++t) {
    for (int64_t i = 0; i < half_; ++i) {
      const SineCosine at = sineCosine(static_cast<double>(t) * inverseFrequencies[i]);
      cosine_[t * half_ + i] = static_cast<float>(at.cosine);
      sine_[t * half_ + i] = static_cast<float>(at.sine);
    }
  }
  positions_ = positions;
}

void RopeTables::reserve(const Decoder& decoder, int64_t positions) {
  tables_.resize(decoder.ropes.size());
  for (size_t i = 0; i < tables_.size(); ++i) tables_[i].reserve(decoder.ropes[i], positions);
}

}  // namespace petrel
