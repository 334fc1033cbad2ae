#include "generate_schedule.h"

#include <algorithm>

namespace petrel {

namespace {

int ceilPages(int positions) { return (positions + kPagePositions - 1) / kPagePositions; }
int wholePages(int positions) { return positions / kPagePositions; }

// Pages of its own that a sample may come to need. The last token made is never run, so its position needs none.
int samplePages(int promptLength, int maxNewTokens) {
  return ceilPages(promptLength + maxNewTokens - 1) - wholePages(promptLength);
}

template <class Container, class Condition>
size_t eraseIf(Container& container, Condition condition) {
  const auto end = std::remove_if(container.begin(), container.end(), condition);
  const size_t count = size_t(container.end() - end);
  container.erase(end, container.end());
  return count;
}

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Schedule::Schedule(KvShape shape, int pages, int maxSeqs, int maxModelLen)
    : pool_(shape, pages), maxSeqs_(maxSeqs), maxModelLen_(maxModelLen) {}

Schedule::~Schedule() = default;

std::string Schedule::refuse(const RequestSpec& request) const {
  const int prompt = int(request.prompt.size());
  const auto number = [](int value) { return std::to_string(value); };
  if (int64_t(prompt) + request.maxNewTokens > maxModelLen_)
    return "prompt of " + number(prompt) + " tokens + maxNewTokens " + number(request.maxNewTokens) +
           " exceeds maxModelLen " + number(maxModelLen_);
  const int pages = ceilPages(prompt) + samplePages(prompt, request.maxNewTokens);
  if (pages > pool_.total())
    return "one sample may need " + number(pages) + " KV pages of " + number(kPagePositions) +
           " positions, kvPages is " + number(pool_.total());
  std::unordered_set<int> keys;
  for (const SampleSpec& sample : request.samples) {
    if (keys_.count(sample.key) > 0 || !keys.insert(sample.key).second)
      return "sample key " + number(sample.key) + " is already in use";
    if (int(sample.prefix.size()) >= request.maxNewTokens)
      return "the prefix of sample " + number(sample.key) + " has " + number(int(sample.prefix.size())) +
             " tokens, maxNewTokens " + number(request.maxNewTokens) + " leaves nothing to generate";
    for (int token : sample.prefix)
      if (contains(request.stopTokens, token))
        return "the prefix of sample " + number(sample.key) + " contains stop token " + number(token) +
               ": it has already ended";
  }
  return {};
}

void Schedule::submit(RequestSpec request) {
  auto trunk = std::make_shared<Trunk>();
  trunk->prompt = std::move(request.prompt);
  trunk->sampling = request.sampling;
  trunk->maxNewTokens = request.maxNewTokens;
  trunk->stopTokens = std::move(request.stopTokens);
  for (SampleSpec& sample : request.samples) {
    keys_.insert(sample.key);
    trunk->waiting.push_back(std::move(sample));
  }
  if (!trunk->waiting.empty()) queue_.push_back(std::move(trunk));
}

bool Schedule::fits(const Trunk& trunk) const {
  const int own = samplePages(trunk.length(), trunk.maxNewTokens);
  return pool_.free() >= own + (trunk.pages.empty() ? ceilPages(trunk.length()) : 0);
}

void Schedule::admit() {
  while (!queue_.empty() && live() < maxSeqs_ && fits(*queue_.front())) {
    const std::shared_ptr<Trunk> trunk = queue_.front();
    if (trunk->pages.empty()) {
      for (int i = 0; i < ceilPages(trunk->length()); i++) trunk->pages.push_back(pool_.take());
      trunks_.push_back(trunk);
    }
    auto sample = std::make_unique<LiveSample>();
    sample->spec = std::move(trunk->waiting.front());
    trunk->waiting.pop_front();
    sample->trunk = trunk;
    sample->response = sample->spec.prefix;
    for (int i = 0; i < wholePages(trunk->length()); i++) {
      pool_.retain(trunk->pages[size_t(i)]);
      sample->pages.push_back(trunk->pages[size_t(i)]);
    }
    for (int i = 0; i < samplePages(trunk->length(), trunk->maxNewTokens); i++) sample->pages.push_back(pool_.take());
    trunk->unstarted++;
    live_.push_back(std::move(sample));
    if (trunk->waiting.empty()) queue_.pop_front();
  }
}

std::vector<Span> Schedule::plan(int prefillBudget) const {
  std::vector<Span> spans;
  for (const auto& sample : live_)
    if (sample->started && sample->length() - sample->cached == 1)
      spans.push_back({nullptr, sample.get(), sample->cached, 1, true});
  const auto prefill = [&](Trunk* trunk, LiveSample* sample, int cached, int length) {
    const int count = std::min(length - cached, prefillBudget);
    if (count <= 0) return;
    spans.push_back({trunk, sample, cached, count, cached + count == length});
    prefillBudget -= count;
  };
  for (const auto& sample : live_)
    if (sample->started && sample->length() - sample->cached > 1)
      prefill(nullptr, sample.get(), sample->cached, sample->length());
  for (const auto& trunk : trunks_) prefill(trunk.get(), nullptr, trunk->cached, trunk->length());
  return spans;
}

std::vector<LiveSample*> Schedule::start() {
  std::vector<LiveSample*> decoding;
  for (const auto& sample : live_) {
    Trunk& trunk = *sample->trunk;
    if (sample->started || !trunk.ready()) continue;
    if (trunk.length() % kPagePositions != 0) {
      const size_t last = size_t(wholePages(trunk.length()));
      pool_.copy(trunk.pages[last], sample->pages[last]);
    }
    sample->started = true;
    sample->cached = trunk.length();
    if (sample->response.empty()) decoding.push_back(sample.get());
    trunk.unstarted--;
  }
  for (size_t i = trunks_.size(); i-- > 0;) settle(*trunks_[i]);
  return decoding;
}

Finish Schedule::append(LiveSample& sample, int token) {
  sample.response.push_back(token);
  const bool full = int(sample.response.size()) >= sample.trunk->maxNewTokens;
  const Finish finish = contains(sample.trunk->stopTokens, token) ? Finish::stop : full ? Finish::length : Finish::none;
  sample.ended = finish != Finish::none;
  return finish;
}

void Schedule::freePages(std::vector<int>& pages) {
  for (int page : pages) pool_.release(page);
  pages.clear();
}

// Gives a trunk's own pages back once no sample needs them any more.
void Schedule::settle(Trunk& trunk) {
  if (!trunk.waiting.empty() || trunk.unstarted > 0 || trunk.pages.empty()) return;
  freePages(trunk.pages);
  const auto same = [&](const std::shared_ptr<Trunk>& other) { return other.get() == &trunk; };
  trunks_.erase(std::find_if(trunks_.begin(), trunks_.end(), same));
}

void Schedule::leave(LiveSample& sample) {
  const std::shared_ptr<Trunk> trunk = sample.trunk;
  freePages(sample.pages);
  keys_.erase(sample.spec.key);
  if (!sample.started) trunk->unstarted--;
  settle(*trunk);
}

void Schedule::sweep() {
  eraseIf(live_, [&](const std::unique_ptr<LiveSample>& sample) {
    if (!sample->ended) return false;
    leave(*sample);
    return true;
  });
}

void Schedule::abort(int key) {
  for (const auto& sample : live_) sample->ended |= sample->spec.key == key;
  sweep();
  for (size_t i = 0; i < queue_.size(); i++) {
    const std::shared_ptr<Trunk> trunk = queue_[i];
    const auto named = [&](const SampleSpec& sample) { return sample.key == key; };
    if (eraseIf(trunk->waiting, named) == 0) continue;
    keys_.erase(key);
    if (trunk->waiting.empty()) queue_.erase(queue_.begin() + std::ptrdiff_t(i));
    settle(*trunk);
    return;
  }
}

void Schedule::reset() {
  for (const auto& trunk : queue_) trunk->waiting.clear();
  queue_.clear();
  keys_.clear();
  for (const auto& sample : live_) sample->ended = true;
  sweep();
  while (!trunks_.empty()) settle(*trunks_.back());
}

void Schedule::clear() noexcept {
  live_.clear();
  queue_.clear();
  trunks_.clear();
  keys_.clear();
  pool_.releaseAll();
}

int Schedule::waiting() const {
  int count = 0;
  for (const auto& trunk : queue_) count += int(trunk->waiting.size());
  return count;
}

}  // namespace petrel
