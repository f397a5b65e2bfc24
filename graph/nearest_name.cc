// SPDX-License-Identifier: Apache-2.0
#include "graph/nearest_name.h"

#include <algorithm>
#include <numeric>

namespace onnxtrain {
namespace {

// Levenshtein's distance, one row of the table at a time. A '*' in `a` stands for any characters.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    if (a[i - 1] != '*') ++row[0];
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = a[i - 1] == '*' ? std::min(row[j], row[j - 1]) : std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::string NearestName(std::string_view given, const std::vector<std::string>& names) {
  std::string nearest;
  const size_t letters = given.size() - static_cast<size_t>(std::count(given.begin(), given.end(), '*'));
  size_t best = (letters + 1) / 2 + 1;
  for (const std::string& name : names) {
    const size_t distance = EditDistance(given, name);
    if (distance >= best) continue;
    best = distance;
    nearest = name;
  }
  return nearest;
}

std::string DidYouMean(std::string_view given, const std::vector<std::string>& names) {
  const std::string nearest = NearestName(given, names);
  return nearest.empty() ? "" : ", did you mean '" + nearest + "'?";
}

}  // namespace onnxtrain
