// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/device_code.h"
#include "cuda_ops/kernels/host_fault.h"

namespace onnxtrain {
namespace cuda_kernels {

__global__ void MergeFault(const uint64_t* host_word, uint64_t* status_word) {
  if (*host_word == 0) return;
  atomicCAS(reinterpret_cast<unsigned long long*>(status_word), 0ull, static_cast<unsigned long long>(*host_word));
}

}  // namespace cuda_kernels

cudaError_t LaunchMergeFault(const uint64_t* host_word, uint64_t* status_word, cudaStream_t stream) {
  return ONNXTRAIN_LAUNCH(cuda_kernels::MergeFault, 1, 1, 0, stream, host_word, status_word);
}

}  // namespace onnxtrain
