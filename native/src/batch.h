// Sequences side by side (packed): where each begins, and which position each token has.
#pragma once
#include <cstdint>
#include <vector>

namespace petrel {

struct Batch {
  int64_t n = 0, sequences = 0, scored = 0;
  std::vector<int32_t> tokens;    // [n]
  std::vector<int32_t> starts;    // [sequences + 1]
  std::vector<int32_t> position;  // [n], from 0 in each sequence
  std::vector<int32_t> scoredAt;  // [scored] packed indices, ascending
  std::vector<int32_t> targets;   // [scored]
  int64_t longest = 0;

  int64_t length(int64_t s) const { return starts[s + 1] - starts[s]; }
  /** Fills position, n, sequences, scored and longest from the rest. */
  void finish() {
    n = static_cast<int64_t>(tokens.size());
    sequences = static_cast<int64_t>(starts.size()) - 1;
    scored = static_cast<int64_t>(scoredAt.size());
    position.resize(tokens.size());
    for (int64_t s = 0; s < sequences; ++s) {
      longest = longest > length(s) ? longest : length(s);
      for (int32_t i = starts[s]; i < starts[s + 1]; ++i) position[i] = i - starts[s];
    }
  }
};

}  // namespace petrel
