// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/cast.h"
#include "cuda_ops/kernels/element_access.h"
#include "cuda_ops/kernels/grid.h"

namespace onnxtrain {
namespace cuda_kernels {

__device__ bool IsWhole(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUint8 || dtype == DType::kBool;
}

__device__ int64_t LoadWhole(const void* data, DType dtype, int64_t index) {
  switch (dtype) {
    case DType::kInt32:
      return static_cast<const int32_t*>(data)[index];
    case DType::kInt64:
      return static_cast<const int64_t*>(data)[index];
    default:
      return static_cast<const uint8_t*>(data)[index];
  }
}

__device__ double LoadReal(const void* data, DType dtype, int64_t index) {
  return dtype == DType::kDouble ? static_cast<const double*>(data)[index] : LoadFloat(data, dtype, index);
}

__device__ void StoreWhole(void* data, DType dtype, int64_t index, int64_t value) {
  switch (dtype) {
    case DType::kInt32:
      static_cast<int32_t*>(data)[index] = static_cast<int32_t>(value);
      return;
    case DType::kInt64:
      static_cast<int64_t*>(data)[index] = value;
      return;
    default:
      static_cast<uint8_t*>(data)[index] = static_cast<uint8_t>(value);
  }
}

// Between whole numbers no digit is lost; everything else passes through double.
__global__ void __launch_bounds__(kBlockThreads)
    CastElements(const void* x, DType from, void* y, DType to, int64_t count) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) {
    if (IsWhole(from) && IsWhole(to)) {
      const int64_t value = LoadWhole(x, from, i);
      StoreWhole(y, to, i, to == DType::kBool ? value != 0 : value);
      continue;
    }
    const double value = IsWhole(from) ? static_cast<double>(LoadWhole(x, from, i)) : LoadReal(x, from, i);
    if (to == DType::kBool) {
      static_cast<bool*>(y)[i] = value != 0;
    } else if (IsWhole(to)) {
      StoreWhole(y, to, i, static_cast<int64_t>(value));
    } else if (to == DType::kDouble) {
      static_cast<double*>(y)[i] = value;
    } else {
      StoreFloat(y, to, i, static_cast<float>(value));
    }
  }
}

// The casts of mixed precision, without the detour.
__global__ void __launch_bounds__(kBlockThreads)
    CastFloats(const void* x, DType from, void* y, DType to, int64_t count) {
  for (int64_t i = FirstElement(); i < count; i += ElementStride()) StoreFloat(y, to, i, LoadFloat(x, from, i));
}

}  // namespace cuda_kernels

bool CanCast(DType dtype) {
  switch (dtype) {
    case DType::kFloat:
    case DType::kBfloat16:
    case DType::kFloat16:
    case DType::kDouble:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint8:
    case DType::kBool:
      return true;
    default:
      return false;
  }
}

cudaError_t LaunchCast(const void* x, DType from, void* y, DType to, int64_t count, cudaStream_t stream) {
  if (count == 0) return cudaSuccess;
  const auto narrow = [](DType dtype) {
    return dtype == DType::kFloat || dtype == DType::kBfloat16 || dtype == DType::kFloat16;
  };
  const unsigned blocks = ElementBlocks(count);
  if (narrow(from) && narrow(to)) {
    return ONNXTRAIN_LAUNCH(cuda_kernels::CastFloats, blocks, kBlockThreads, 0, stream, x, from, y, to, count);
  }
  return ONNXTRAIN_LAUNCH(cuda_kernels::CastElements, blocks, kBlockThreads, 0, stream, x, from, y, to, count);
}

}  // namespace onnxtrain
