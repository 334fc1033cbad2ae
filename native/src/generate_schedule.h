// Who is live, who waits, and which pages each sequence has. Bookkeeping only: no arithmetic of the model here.
//
// A request is one prompt and its samples. The prompt is prefilled once into the request's *trunk*; its whole pages are
// shared by the samples, its last, partly filled page is copied for each of them. A sample is admitted when a slot and
// pages for its longest possible course are free, so nothing that runs can ever wait for a page. Strictly first in,
// first out: only the oldest request may be admitted in part, so at most one trunk is kept for samples that still wait.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "kv.h"
#include "philox.h"
#include "sampling.h"

namespace petrel {

struct SampleSpec {
  int key;
  PhiloxKey seed;
  uint32_t draw, sample, turn;
  std::vector<int> prefix;  // tokens already generated
};

struct RequestSpec {
  std::vector<int> prompt;
  std::vector<SampleSpec> samples;
  SamplingSettings sampling;
  int maxNewTokens;
  std::vector<int> stopTokens;
};

enum class Finish : uint8_t { none = 0, stop = 1, length = 2 };

// The part that all samples of a request have in common.
struct Trunk {
  std::vector<int> prompt;
  SamplingSettings sampling;
  int maxNewTokens;
  std::vector<int> stopTokens;

  std::deque<SampleSpec> waiting;
  int unstarted = 0;          // admitted, but the prompt was not ready yet
  std::vector<int> pages;     // empty before the first admission and after the last start
  int cached = 0;             // prompt positions whose keys and values are in the pages
  std::vector<float> hidden;  // final hidden state of the last prompt position, once the prompt is cached

  int length() const { return int(prompt.size()); }
  bool ready() const { return !hidden.empty(); }
};

struct LiveSample {
  SampleSpec spec;
  std::shared_ptr<Trunk> trunk;
  std::vector<int> pages;     // page of position p is pages[p / 16]; the first ones are the trunk's
  std::vector<int> response;  // prefix and new tokens
  int cached = 0;             // positions in the cache
  bool started = false;       // has the prompt's keys and values
  bool ended = false;

  int length() const { return trunk->length() + int(response.size()); }
  int token(int position) const {
    return position < trunk->length() ? trunk->prompt[size_t(position)] : response[size_t(position - trunk->length())];
  }
};

// Positions [start, start + count) of one sequence, to be run through the model.
struct Span {
  Trunk* trunk;        // either a trunk …
  LiveSample* sample;  // … or a sample
  int start, count;
  bool last;  // reaches the end of what is known: its last hidden state gives logits

  const std::vector<int>& pages() const { return sample ? sample->pages : trunk->pages; }
  int token(int position) const { return sample ? sample->token(position) : trunk->prompt[size_t(position)]; }
};

class Schedule {
 public:
  Schedule(KvShape shape, int pages, int maxSeqs, int maxModelLen);
  ~Schedule();

  // Why the request can't be served, in words; empty when it can.
  std::string refuse(const RequestSpec& request) const;
  void submit(RequestSpec request);
  void abort(int key);
  void reset();
  // As reset, from any state that an exception left behind. Does not throw.
  void clear() noexcept;

  // Moves waiting samples into free slots while pages last.
  void admit();
  // What to run now: one position of every decoding sample, and at most `prefillBudget` positions of prompts and
  // prefixes.
  std::vector<Span> plan(int prefillBudget) const;
  // Samples of ready prompts get their copy of the last page. Returns those that may decode at once (no prefix).
  std::vector<LiveSample*> start();
  // Adds a token and says whether it was the last; the sample then goes with the next sweep.
  Finish append(LiveSample& sample, int token);
  // Drops samples that ended. Pointers to samples are valid until then.
  void sweep();

  int live() const { return int(live_.size()); }
  int waiting() const;
  int maxSeqs() const { return maxSeqs_; }
  PagePool& pool() { return pool_; }
  const PagePool& pool() const { return pool_; }
  const std::vector<std::unique_ptr<LiveSample>>& samples() const { return live_; }

 private:
  bool fits(const Trunk& trunk) const;
  void freePages(std::vector<int>& pages);
  void settle(Trunk& trunk);
  void leave(LiveSample& sample);

  PagePool pool_;
  int maxSeqs_, maxModelLen_;
  std::unordered_set<int> keys_;                   // of waiting and live samples
  std::deque<std::shared_ptr<Trunk>> queue_;       // requests with waiting samples, oldest first
  std::vector<std::shared_ptr<Trunk>> trunks_;     // requests with pages, oldest first
  std::vector<std::unique_ptr<LiveSample>> live_;  // in order of admission
};

}  // namespace petrel
