// SPDX-License-Identifier: Apache-2.0
// Launchers of reductions over any axes. Sums are taken in float over parts of at most kReductionPart elements, the
// parts in double, in a fixed order.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_REDUCTION_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_REDUCTION_H_

#include <cuda_runtime_api.h>

#include "cuda_ops/kernels/strided_loop.h"
#include "graph/dtype.h"

namespace onnxtrain {

enum class ReduceFunction : uint8_t { kSum, kMean, kMax, kMin, kSumSquare, kL2, kL1, kLogSum, kLogSumExp };

struct ReductionArguments {
  const void* x = nullptr;
  void* y = nullptr;              // dense, in the order of `kept`
  double* partial = nullptr;      // ReductionPartials(...) of them
  StridedLoop<1> kept;            // where the first element of each result lies in x
  StridedLoop<1> reduced;         // offsets of the others from it
  bool rows = false;              // neighbours in `reduced` are neighbours in memory: a warp or block takes a result
  DType dtype = DType::kFloat;    // of x: float, bfloat16, float16
  DType y_dtype = DType::kFloat;  // of y, the same choice
  ReduceFunction function = ReduceFunction::kSum;
};

inline constexpr int64_t kReductionPart = 256;
// Words of `partial`; 0 where one pass does.
int64_t ReductionPartials(const ReductionArguments& arguments);
cudaError_t LaunchReduction(const ReductionArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_REDUCTION_H_
