// SPDX-License-Identifier: Apache-2.0
// Kernels of the CPU as work of a CUDA stream (--fallback cpu): inputs are copied to page-locked memory, a host function
// of the stream runs the kernel, outputs are copied back. The host that submits never waits, and a recorded step repeats
// it; the GPU waits for the copies and the kernel.
#ifndef ONNXTRAIN_CUDA_OPS_HOST_KERNEL_H_
#define ONNXTRAIN_CUDA_OPS_HOST_KERNEL_H_

#include <string>
#include <vector>

#include "runtime/kernel.h"

namespace onnxtrain {

// `native` (may be null), and what it refuses by `host`, which makes kernels of the CPU. `notes` gets a line for each
// node that will run on the host; it is borrowed and written while kernels are made, by one thread at a time. Fails as
// `native` does where `host` refuses, too. Kernels belong to the GPU that is current when they are made.
KernelFactory WithHostKernel(KernelFactory native, KernelFactory host, std::vector<std::string>* notes);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_HOST_KERNEL_H_
