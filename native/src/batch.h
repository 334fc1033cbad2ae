// Segments side by side (packed): where each begins, what comes before it, and which position each token has. A segment
// is a whole sequence, or continues another one: completions hang on one copy of their prompt.
#pragma once
#include <cstdint>
#include <vector>

namespace petrel {

struct Batch {
  int64_t n = 0, segments = 0, scored = 0;
  std::vector<int32_t> tokens;    // [n]
  std::vector<int32_t> starts;    // [segments + 1]
  std::vector<int32_t> parents;   // [segments] an earlier segment without a parent that comes before this one, or −1
  std::vector<int32_t> position;  // [n], from 0 in each sequence
  std::vector<int32_t> scoredAt;  // [scored] packed indices in any order, also several times
  std::vector<int32_t> targets;   // [scored]
  int64_t longest = 0;            // positions of the longest sequence

  int64_t length(int64_t s) const { return starts[s + 1] - starts[s]; }
  /** Positions before the segment. */
  int64_t offset(int64_t s) const { return parents[s] < 0 ? 0 : length(parents[s]); }
  /** Fills position, n, segments, scored and longest from the rest. */
  void finish() {
    n = static_cast<int64_t>(tokens.size());
    segments = static_cast<int64_t>(starts.size()) - 1;
    scored = static_cast<int64_t>(scoredAt.size());
    position.resize(tokens.size());
    for (int64_t s = 0; s < segments; ++s) {
      const int64_t before = offset(s);
      longest = longest > before + length(s) ? longest : before + length(s);
      for (int32_t i = starts[s]; i < starts[s + 1]; ++i) position[i] = static_cast<int32_t>(before) + i - starts[s];
    }
  }
};

}  // namespace petrel
