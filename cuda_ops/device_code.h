// SPDX-License-Identifier: Apache-2.0
// The part of CUDA that our device code uses. nvcc compiles it for GPUs; the host compiler compiles the same files over
// a header that runs blocks on the CPU, for tests. Kernels live in namespace onnxtrain::cuda_kernels, never in an
// anonymous one: both builds find each other by mangled name.
#ifndef ONNXTRAIN_CUDA_OPS_DEVICE_CODE_H_
#define ONNXTRAIN_CUDA_OPS_DEVICE_CODE_H_

#if defined(__CUDACC__)

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// kernel<<<grid, block, shared_bytes, stream>>>(...), then the error of the launch. A kernel with several template
// arguments goes into parentheses.
#define ONNXTRAIN_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  (kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__), cudaGetLastError())

// `type* name` is the block's dynamic shared memory, aligned to 16 bytes.
#define ONNXTRAIN_DYNAMIC_SHARED(type, name)                    \
  extern __shared__ __align__(16) unsigned char name##_bytes[]; \
  type* const name = reinterpret_cast<type*>(name##_bytes)

#else

#include ONNXTRAIN_HOST_CUDA_HEADER  // of whoever compiles device code for the host

#define ONNXTRAIN_LAUNCH(kernel, grid, block, shared_bytes, stream, ...) \
  ((void)(stream), ::host_cuda::Launch<kernel>((grid), (block), (shared_bytes), __VA_ARGS__), cudaSuccess)

#define ONNXTRAIN_DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(::host_cuda::DynamicShared())

#endif

#endif  // ONNXTRAIN_CUDA_OPS_DEVICE_CODE_H_
