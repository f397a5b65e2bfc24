// SPDX-License-Identifier: Apache-2.0
#include "graph/glob.h"

#include <limits>

namespace onnxtrain {

bool MatchesGlob(std::string_view pattern, std::string_view text) {
  constexpr size_t kNone = std::numeric_limits<size_t>::max();
  size_t p = 0;
  size_t t = 0;
  size_t star = kNone;  // the last '*' seen, and where its match ends so far
  size_t matched = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      matched = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != kNone) {
      p = star + 1;
      t = ++matched;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace onnxtrain
