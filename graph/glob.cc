// SPDX-License-Identifier: Apache-2.0
#include "graph/glob.h"

#include <algorithm>
#include <limits>

namespace onnxtrain {
namespace {

// Levenshtein's distance, one row at a time.
size_t Edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

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

std::string ClosestName(std::string_view name, const std::vector<std::string>& candidates) {
  const auto closest = std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
    return Edits(name, a) < Edits(name, b);
  });
  return closest == candidates.end() ? std::string() : *closest;
}

}  // namespace onnxtrain
