// SPDX-License-Identifier: Apache-2.0
// Launchers of comparisons, logic and selection, with broadcasting.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_COMPARISON_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_COMPARISON_H_

#include <cuda_runtime_api.h>

#include "cuda_ops/kernels/strided_loop.h"
#include "graph/dtype.h"

namespace onnxtrain {

enum class CompareFunction : uint8_t { kEqual, kGreater, kGreaterOrEqual, kLess, kLessOrEqual, kAnd, kOr, kXor };

struct CompareArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  bool* y = nullptr;
  StridedLoop<3> loop;          // a, b, y
  DType dtype = DType::kFloat;  // of a and b: float, bfloat16, float16, int32, int64, bool
};
cudaError_t LaunchCompare(CompareFunction function, const CompareArguments& arguments, cudaStream_t stream);

struct SelectArguments {
  const bool* condition = nullptr;
  const void* yes = nullptr;
  const void* no = nullptr;
  void* y = nullptr;
  StridedLoop<4> loop;       // condition, yes, no, y
  size_t element_bytes = 4;  // 1, 2, 4 or 8
};
cudaError_t LaunchSelect(const SelectArguments& arguments, cudaStream_t stream);

cudaError_t LaunchNot(const bool* x, bool* y, int64_t count, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_COMPARISON_H_
