// SPDX-License-Identifier: Apache-2.0
// Strided loops of nodes (cuda_ops/kernels/strided_loop.h), or the reason why there is none.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_LOOPS_H_
#define ONNXTRAIN_CUDA_OPS_OPS_LOOPS_H_

#include <array>
#include <string>
#include <vector>

#include "cuda_ops/kernels/strided_loop.h"
#include "runtime/kernel.h"

namespace onnxtrain {

template <int N>
StatusOr<StridedLoop<N>> LoopFor(const KernelContext& context, const Shape& shape,
                                 const std::array<std::vector<int64_t>, N>& strides,
                                 const std::array<int64_t, N>& start = {}) {
  StridedLoop<N> loop;
  if (MakeStridedLoop<N>(shape, strides, start, &loop)) return loop;
  return InvalidModelError(context.node.Describe() + " walks more than " + std::to_string(kMaxLoopAxes) +
                           " axes that cannot be joined; the CUDA kernels have no more");
}

// The first N-1 inputs are broadcast to output 0, which comes last.
template <int N>
StatusOr<StridedLoop<N>> BroadcastLoop(const KernelContext& context) {
  const Shape& y = context.output_type(0).shape;
  std::array<std::vector<int64_t>, N> strides;
  for (size_t i = 0; i + 1 < N; ++i) strides[i] = BroadcastLoopStrides(context.input_type(i).shape, y);
  strides[N - 1] = DenseLoopStrides(y);
  return LoopFor<N>(context, y, strides);
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_LOOPS_H_
