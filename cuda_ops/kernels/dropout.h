// SPDX-License-Identifier: Apache-2.0
// Launchers of dropping and of its gradient. A draw depends on its address alone (runtime/math/philox.h), so a GPU drops
// what the CPU drops.
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_DROPOUT_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_DROPOUT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "graph/dtype.h"

namespace onnxtrain {

struct DropoutArguments {
  const void* x = nullptr;           // gradient: dy
  const int64_t* attempt = nullptr;  // device memory: the attempted step
  void* y = nullptr;                 // gradient: dx; may be x
  uint8_t* mask = nullptr;           // 1 where kept; forward: may be null
  int64_t count = 0;
  float scale = 1;
  uint64_t seed = 0;
  uint32_t draw_id = 0;
  uint32_t slice = 0;      // rank * accumulation + micro-batch
  uint32_t threshold = 0;  // kept where the word is at least this: ratio * 2^32
  DType dtype = DType::kFloat;
};
cudaError_t LaunchDropout(const DropoutArguments& arguments, cudaStream_t stream);
cudaError_t LaunchDropoutGradient(const DropoutArguments& arguments, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_DROPOUT_H_
