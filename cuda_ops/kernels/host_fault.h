// SPDX-License-Identifier: Apache-2.0
#ifndef ONNXTRAIN_CUDA_OPS_KERNELS_HOST_FAULT_H_
#define ONNXTRAIN_CUDA_OPS_KERNELS_HOST_FAULT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace onnxtrain {

// A fault that a kernel on the host reported, in mapped host memory, joins the status word of the device, unless that
// holds an earlier one.
cudaError_t LaunchMergeFault(const uint64_t* host_word, uint64_t* status_word, cudaStream_t stream);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_KERNELS_HOST_FAULT_H_
