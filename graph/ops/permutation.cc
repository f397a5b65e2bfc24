// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/permutation.h"

#include <numeric>

namespace onnxtrain {

std::vector<int64_t> PermutationOf(const Node& transpose) {
  std::vector<int64_t> permutation = transpose.attributes().Ints("perm");
  if (permutation.empty()) {
    permutation.resize(transpose.input(0)->type().shape.size());
    std::iota(permutation.rbegin(), permutation.rend(), 0);
  }
  return permutation;
}

}  // namespace onnxtrain
