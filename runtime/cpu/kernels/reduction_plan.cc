// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/kernels/reduction_plan.h"

#include <algorithm>

namespace onnxtrain {

void AxisCounter::Add(int64_t size, int64_t stride) {
  count_ *= size;
  sizes_.push_back(size);
  strides_.push_back(stride);
}

int64_t AxisCounter::Offset(int64_t index) const {
  int64_t offset = 0;
  for (size_t axis = sizes_.size(); axis-- > 1;) {
    offset += index % sizes_[axis] * strides_[axis];
    index /= sizes_[axis];
  }
  return sizes_.empty() ? 0 : offset + index * strides_[0];
}

ReductionPlan::ReductionPlan(const Shape& shape, const std::vector<int64_t>& axes) {
  struct Run {
    int64_t size;
    bool reduced;
  };
  std::vector<Run> runs;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const bool is_reduced = std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(axis));
    if (is_reduced) reduced_count *= shape[axis];
    if (shape[axis] == 1) continue;
    if (!runs.empty() && runs.back().reduced == is_reduced) {
      runs.back().size *= shape[axis];
    } else {
      runs.push_back({shape[axis], is_reduced});
    }
  }
  if (runs.empty()) return;
  inner = runs.back().size;
  inner_reduced = runs.back().reduced;
  runs.pop_back();
  std::vector<int64_t> strides(runs.size());
  int64_t stride = inner;
  for (size_t i = runs.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= runs[i].size;
  }
  for (size_t i = 0; i < runs.size(); ++i) (runs[i].reduced ? reduced : kept).Add(runs[i].size, strides[i]);
}

}  // namespace onnxtrain
