// SPDX-License-Identifier: Apache-2.0
// Launchers of what is decided by row and column, and of numbers in a row.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_MATRIX_PART_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_MATRIX_PART_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

// Keeps the part of each [height, width] on one side of a diagonal, which belongs to it; the rest becomes zero.
// Elements of 1, 2, 4 or 8 bytes.
struct TriangleArguments {
  const void* x = nullptr;
  void* y = nullptr;                  // may be x
  const int64_t* diagonal = nullptr;  // device memory: column - row; null is 0
  int64_t count = 0;                  // elements
  int64_t height = 1;
  int64_t width = 1;
  bool upper = true;
};
cudaError_t LaunchTriangle(const TriangleArguments& arguments, size_t element_bytes, cudaStream_t stream);

// y [height, width] becomes `one` where column - row is `diagonal`, 0 elsewhere. Elements of 1, 2, 4 or 8 bytes.
cudaError_t LaunchEye(void* y, int64_t height, int64_t width, int64_t diagonal, uint64_t one, size_t element_bytes,
                      cudaStream_t stream);

// y[i] = start + i * delta, both one element in device memory. float, double, int32, int64.
cudaError_t LaunchRange(const void* start, const void* delta, void* y, int64_t count, DType dtype, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_MATRIX_PART_H_
