// SPDX-License-Identifier: Apache-2.0
// BucketPack, BucketUnpack and Shard. Where the planner placed the parts inside the bucket, nothing is moved.
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "runtime/collective_kernels.h"

namespace onnxtrain {
namespace {

struct Part {
  size_t offset = 0;  // bytes inside the bucket
  size_t bytes = 0;
};

std::vector<Part> PartsOf(const KernelContext& context, const std::vector<Value*>& values) {
  const std::vector<int64_t> offsets = context.node.attributes().Ints("offsets");
  CHECK_WITH(offsets.size() == values.size(), context.node.Describe());
  std::vector<Part> parts;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == nullptr) {
      parts.push_back({});
      continue;
    }
    const TensorType& type = values[i]->type();
    parts.push_back({static_cast<size_t>(offsets[i]) * SizeOf(type.dtype), type.bytes()});
  }
  return parts;
}

cudaError_t Move(std::byte* to, const std::byte* from, size_t bytes, cudaStream_t stream) {
  if (to == nullptr || to == from || bytes == 0) return cudaSuccess;
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

StatusOr<std::unique_ptr<Kernel>> MakePack(const KernelContext& context) {
  const std::vector<Part> parts = PartsOf(context, context.node.inputs());
  return MakeLaunchKernel(context, [parts](const LaunchArgs& args, cudaStream_t stream) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const cudaError_t error = Move(args.outputs[0] + parts[i].offset, args.inputs[i], parts[i].bytes, stream);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeUnpack(const KernelContext& context) {
  const std::vector<Part> parts = PartsOf(context, context.node.outputs());
  return MakeLaunchKernel(context, [parts](const LaunchArgs& args, cudaStream_t stream) {
    for (size_t i = 0; i < parts.size(); ++i) {
      const cudaError_t error = Move(args.outputs[i], args.inputs[0] + parts[i].offset, parts[i].bytes, stream);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

// This rank's equal slice of a flat tensor that every rank holds.
StatusOr<std::unique_ptr<Kernel>> MakeShard(const KernelContext& context) {
  const size_t bytes = context.output_type(0).bytes();
  const size_t offset = bytes * static_cast<size_t>(context.rank);
  return MakeLaunchKernel(context, [bytes, offset](const LaunchArgs& args, cudaStream_t stream) {
    return Move(args.outputs[0], args.inputs[0] + offset, bytes, stream);
  });
}

}  // namespace

void AddCollectiveOps(KernelRegistry& registry, const CudaContext&) {
  AddCommunicatorKernels(registry);
  registry.Add("onnxtrain.BucketPack", MakePack);
  registry.Add("onnxtrain.BucketUnpack", MakeUnpack);
  registry.Add("onnxtrain.Shard", MakeShard);
}

}  // namespace onnxtrain
