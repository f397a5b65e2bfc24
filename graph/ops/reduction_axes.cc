// SPDX-License-Identifier: Apache-2.0
#include "graph/ops/reduction_axes.h"

#include <algorithm>

#include "graph/ops/op_rules.h"

namespace onnxtrain {

StatusOr<std::vector<int64_t>> ReducedAxes(const Node& node) {
  const int64_t rank = node.input(0)->type().rank();
  std::vector<int64_t> axes;
  if (node.input(1) != nullptr) {
    ASSIGN_OR_RETURN(axes, ConstantInts(node, 1));
  }
  if (axes.empty() && node.attributes().Int("noop_with_empty_axes", 0) == 0) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  for (int64_t& axis : axes) axis = NonNegativeAxis(axis, rank);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  if (!axes.empty() && (axes.front() < 0 || axes.back() >= rank)) {
    return InvalidModelError("axes of " + node.Describe() + " must lie in 0.." + std::to_string(rank - 1));
  }
  return axes;
}

}  // namespace onnxtrain
