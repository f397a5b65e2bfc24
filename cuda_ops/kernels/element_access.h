// SPDX-License-Identifier: Apache-2.0
// Elements of floating tensors as float, whatever their type: kernels compute in float and round once. Device code.
//
// The type is an argument, not a template's: it is the same for all threads, so the branch costs nothing beside the
// memory, and a formula is compiled once for all types.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_ELEMENT_ACCESS_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_ELEMENT_ACCESS_H_

#include "cuda_ops/device_code.h"
#include "graph/dtype.h"

namespace onnxtrain::cuda_kernels {

__device__ inline float LoadFloat(const void* data, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kBfloat16:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[index]);
    case DType::kFloat16:
      return __half2float(static_cast<const __half*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}

__device__ inline void StoreFloat(void* data, DType dtype, int64_t index, float value) {
  switch (dtype) {
    case DType::kBfloat16:
      static_cast<__nv_bfloat16*>(data)[index] = __float2bfloat16(value);
      return;
    case DType::kFloat16:
      static_cast<__half*>(data)[index] = __float2half(value);
      return;
    default:
      static_cast<float*>(data)[index] = value;
  }
}

// The first index of a grid-wide loop over elements, and its step.
__device__ inline int64_t FirstElement() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ inline int64_t ElementStride() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

// runtime/status_word.h for device code: the first report stands.
__device__ inline void ReportFault(uint64_t* status_word, uint32_t fault, int node_index) {
  if (status_word == nullptr) return;
  const unsigned long long word =
      static_cast<unsigned long long>(fault) << 32 | (static_cast<uint32_t>(node_index) + 1);
  atomicCAS(reinterpret_cast<unsigned long long*>(status_word), 0ull, word);
}

}  // namespace onnxtrain::cuda_kernels

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_ELEMENT_ACCESS_H_
