// SPDX-License-Identifier: Apache-2.0
// How a reduction walks its input: axes of one kind that lie together are joined; the innermost is either reduced (rows
// are summed) or kept (rows are added to each other).
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_REDUCTION_PLAN_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_REDUCTION_PLAN_H_

#include <cstdint>
#include <vector>

#include "graph/tensor.h"

namespace onnxtrain {

// Axes counted together; Offset(i) is where element i of their product lies in the input.
class AxisCounter {
 public:
  void Add(int64_t size, int64_t stride);
  int64_t count() const { return count_; }
  int64_t Offset(int64_t index) const;
  // The innermost axis: neighbours that are a fixed stride apart.
  int64_t last_size() const { return sizes_.empty() ? 1 : sizes_.back(); }
  int64_t last_stride() const { return strides_.empty() ? 0 : strides_.back(); }

 private:
  int64_t count_ = 1;
  std::vector<int64_t> sizes_;    // outermost first
  std::vector<int64_t> strides_;  // elements
};

struct ReductionPlan {
  AxisCounter kept;     // without the innermost axis
  AxisCounter reduced;  // without the innermost axis
  int64_t inner = 1;    // size of the innermost axis, stride 1
  bool inner_reduced = false;
  int64_t reduced_count = 1;  // elements of the input in one of the output

  // `axes` ascending, as ReducedAxes gives them.
  ReductionPlan(const Shape& shape, const std::vector<int64_t>& axes);
};

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_REDUCTION_PLAN_H_
