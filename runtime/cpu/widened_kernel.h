// SPDX-License-Identifier: Apache-2.0
// Operators in bfloat16 and float16 on the CPU: the kernel for float, between copies of its inputs in float and its
// outputs rounded to nearest even. So every operator that float has serves 16 bits too, with sums in float. Kernels
// that only move elements, matrix products and Cast have native code, which is asked first.
#ifndef ONNXTRAIN_RUNTIME_CPU_WIDENED_KERNEL_H_
#define ONNXTRAIN_RUNTIME_CPU_WIDENED_KERNEL_H_

#include "runtime/kernel.h"

namespace onnxtrain {

// `native`, and where it refuses a node with 16-bit inputs or outputs, its kernel for float in between copies. The
// copies lie in the kernel's workspace: 4 bytes an element of each 16-bit tensor. Fails as `native` does.
KernelFactory ServeHalfTypes(KernelFactory native);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_WIDENED_KERNEL_H_
