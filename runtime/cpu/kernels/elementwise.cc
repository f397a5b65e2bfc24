// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/kernel.h"

namespace onnxtrain {

void AddElementwiseKernels(KernelRegistry&) {}

}  // namespace onnxtrain
