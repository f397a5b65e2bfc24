// SPDX-License-Identifier: Apache-2.0
// Kernels that are one call of a launcher: shapes, types and attributes are read when the kernel is made and bound into
// the call.
#ifndef ONNXTRAIN_CUDA_OPS_OPS_LAUNCH_KERNEL_H_
#define ONNXTRAIN_CUDA_OPS_OPS_LAUNCH_KERNEL_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cuda_ops/cuda_error.h"
#include "runtime/kernel.h"

namespace onnxtrain {

// Enqueues on `stream`; returns what the launch returned.
using LaunchCall = std::function<cudaError_t(const LaunchArgs& args, cudaStream_t stream)>;

class LaunchKernel : public Kernel {
 public:
  // `node` names the kernel in errors.
  LaunchKernel(std::string node, LaunchCall call, size_t workspace_bytes)
      : node_(std::move(node)), call_(std::move(call)), workspace_bytes_(workspace_bytes) {}
  size_t workspace_bytes() const override { return workspace_bytes_; }
  Status Launch(const LaunchArgs& args) override {
    const cudaError_t error = call_(args, static_cast<cudaStream_t>(args.native_stream));
    return error == cudaSuccess ? OkStatus() : CudaError(error, "launch of " + node_);
  }

 private:
  const std::string node_;
  const LaunchCall call_;
  const size_t workspace_bytes_;
};

inline StatusOr<std::unique_ptr<Kernel>> MakeLaunchKernel(const KernelContext& context, LaunchCall call,
                                                          size_t workspace_bytes = 0) {
  return std::unique_ptr<Kernel>(
      std::make_unique<LaunchKernel>(context.node.Describe(), std::move(call), workspace_bytes));
}

// For outputs that are views, or empty: nothing to do.
inline StatusOr<std::unique_ptr<Kernel>> MakeNoKernel(const KernelContext& context) {
  return MakeLaunchKernel(context, [](const LaunchArgs&, cudaStream_t) { return cudaSuccess; });
}

}  // namespace onnxtrain

#endif  // ONNXTRAIN_CUDA_OPS_OPS_LAUNCH_KERNEL_H_
