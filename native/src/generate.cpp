#include "generate.h"

#include <algorithm>
#include <map>
#include <stdexcept>

namespace petrel {

namespace {

// Positions of prompts and prefixes run in one step, so that decoding samples do not wait long for their next token.
constexpr int kPrefillPerStep = 512;
// Rows of logits held at a time.
constexpr int64_t kHeadRows = 64;
// Logits that are worth handing to another thread.
constexpr int64_t kWorthSharing = 2048;

KvShape kvShape(const Model& model) {
  const size_t elementBytes = model.options.compute == ComputeType::bf16 ? 2 : 4;
  const Attention& attention = model.layers.front().attention;  // all layers have these sizes: spec.cpp
  return {int(model.layers.size()), attention.kvHeads, attention.headDim, elementBytes};
}

}  // namespace

Generator::Generator(std::shared_ptr<const Model> model, int maxSeqs, int maxModelLen, int kvPages)
    : model_(std::move(model)),
      schedule_(kvShape(*model_), kvPages, maxSeqs, maxModelLen),
      forward_(*model_, maxModelLen),
      samplers_(size_t(model_->options.threads)) {}

std::string Generator::submit(RequestSpec request) {
  std::string refusal = schedule_.refuse(request);
  if (refusal.empty()) schedule_.submit(std::move(request));
  return refusal;
}

DecodedTokens Generator::step() {
  try {
    return decode();
  } catch (...) {
    schedule_.clear();
    throw;
  }
}

DecodedTokens Generator::decode() {
  useThreads(model_->options.threads);
  schedule_.admit();
  std::vector<Draw> draws = advance(schedule_.plan(kPrefillPerStep));
  startSamples(draws);
  std::vector<SampledToken> results;
  sampleRows(draws, results);
  DecodedTokens decoded = record(draws, results);
  schedule_.sweep();
  return decoded;
}

// Runs the spans; samples at their end can draw, prompts at their end keep their last hidden state.
std::vector<Generator::Draw> Generator::advance(const std::vector<Span>& spans) {
  std::vector<Draw> draws;
  hidden_.clear();
  if (spans.empty()) return draws;
  forward_.run(spans, schedule_.pool(), hidden_);
  const int64_t width = model_->hidden;
  int64_t row = 0;
  for (const Span& span : spans) {
    (span.sample ? span.sample->cached : span.trunk->cached) += span.count;
    if (!span.sample || span.count > 1) prefilled_ += span.count;
    if (!span.last) continue;
    if (span.sample) draws.push_back({span.sample, row});
    else span.trunk->hidden.assign(hidden_.begin() + row * width, hidden_.begin() + (row + 1) * width);
    row++;
  }
  return draws;
}

// Samples whose prompt is ready now draw their first token from the prompt's last hidden state: one row for all of
// them.
void Generator::startSamples(std::vector<Draw>& draws) {
  std::map<const Trunk*, int64_t> rows;
  for (LiveSample* sample : schedule_.start()) {
    const std::vector<float>& hidden = sample->trunk->hidden;
    const auto [entry, fresh] = rows.try_emplace(sample->trunk.get(), int64_t(hidden_.size() / hidden.size()));
    if (fresh) hidden_.insert(hidden_.end(), hidden.begin(), hidden.end());
    draws.push_back({sample, entry->second});
  }
}

// Logits of the rows that are drawn from, at most kHeadRows at a time, and a token for every draw.
void Generator::sampleRows(const std::vector<Draw>& draws, std::vector<SampledToken>& results) {
  results.resize(draws.size());
  std::vector<size_t> order(draws.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return draws[a].row < draws[b].row; });
  const int64_t width = model_->hidden, vocab = model_->vocab;
  logits_.resize(size_t(std::min<int64_t>(kHeadRows, int64_t(draws.size())) * vocab));
  for (size_t begin = 0; begin < order.size();) {
    const int64_t first = draws[order[begin]].row;
    size_t end = begin;
    while (end < order.size() && draws[order[end]].row < first + kHeadRows) end++;
    const int64_t rows = draws[order[end - 1]].row - first + 1;
    if (logits_.size() < size_t(rows * vocab)) logits_.resize(size_t(rows * vocab));
    forward_.head(hidden_.data() + first * width, rows, logits_.data());
    shareOut(int64_t(end - begin), std::max<int64_t>(1, kWorthSharing / vocab), [&](int64_t i, int worker) {
      const size_t at = order[begin + size_t(i)];
      const float* logits = logits_.data() + (draws[at].row - first) * vocab;
      results[at] = sampleOne(*draws[at].sample, logits, samplers_[size_t(worker)]);
    });
    begin = end;
  }
}

SampledToken Generator::sampleOne(const LiveSample& sample, const float* logits, RowSampler& sampler) const {
  const SamplingSettings& settings = sample.trunk->sampling;
  std::vector<int> seen;
  if (settings.repetitionPenalty != 1) {
    seen = sample.trunk->prompt;
    seen.insert(seen.end(), sample.response.begin(), sample.response.end());
  }
  const SampleSpec& spec = sample.spec;
  const PhiloxCounter counter{spec.draw, spec.sample, spec.turn, uint32_t(sample.response.size())};
  const double u = philoxUniform(philox4x32(counter, spec.seed));
  return sampler.sample(logits, int(model_->vocab), settings, seen.data(), seen.size(), u);
}

DecodedTokens Generator::record(const std::vector<Draw>& draws, const std::vector<SampledToken>& results) {
  DecodedTokens decoded;
  for (size_t i = 0; i < draws.size(); i++) {
    const SampledToken& result = results[i];
    if (result.token < 0) {
      schedule_.reset();
      schedule_.pool().wipe();
      throw std::runtime_error("the model's logits are not finite");
    }
    decoded.keys.push_back(draws[i].sample->spec.key);
    decoded.tokens.push_back(result.token);
    decoded.logProbs.push_back(result.logProb);
    decoded.samplingLogProbs.push_back(result.samplingLogProb);
    decoded.finish.push_back(uint8_t(schedule_.append(*draws[i].sample, result.token)));
  }
  decoded_ += int64_t(draws.size());
  return decoded;
}

}  // namespace petrel
