// SPDX-License-Identifier: Apache-2.0
// Kernels of one vector loop over all elements: y = f(x), and dx = g(p, dy).
#ifndef ONNXTRAIN_RUNTIME_CPU_KERNELS_UNARY_KERNEL_H_
#define ONNXTRAIN_RUNTIME_CPU_KERNELS_UNARY_KERNEL_H_

#include <memory>

#include "runtime/cpu/isa/unary_loops.h"
#include "runtime/kernel.h"

namespace onnxtrain {

struct UnaryKernelOptions {
  UnaryFunction function;
  double alpha = 0;
  double beta = 0;
  int64_t grain;  // runtime/cpu/pieces.h
};

// float and double. The gradient kernel reads inputs (p, dy).
StatusOr<std::unique_ptr<Kernel>> MakeUnaryKernel(const KernelContext& context, const UnaryKernelOptions& options);
StatusOr<std::unique_ptr<Kernel>> MakeUnaryGradientKernel(const KernelContext& context,
                                                          const UnaryKernelOptions& options);

}  // namespace onnxtrain

#endif  // ONNXTRAIN_RUNTIME_CPU_KERNELS_UNARY_KERNEL_H_
