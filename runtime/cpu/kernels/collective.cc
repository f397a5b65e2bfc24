// SPDX-License-Identifier: Apache-2.0
// BucketPack, BucketUnpack and Shard on the CPU. Where the planner placed the parts inside the bucket, nothing is moved.
#include <cstring>

#include "runtime/collective_kernels.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/kernel.h"

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

void Move(std::byte* to, const std::byte* from, size_t bytes) {
  if (to != from && bytes != 0) std::memcpy(to, from, bytes);
}

class BucketPackKernel : public Kernel {
 public:
  explicit BucketPackKernel(const KernelContext& context) : parts_(PartsOf(context, context.node.inputs())) {}
  Status Launch(const LaunchArgs& args) override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      Move(args.outputs[0] + parts_[i].offset, args.inputs[i], parts_[i].bytes);
    }
    return OkStatus();
  }

 private:
  const std::vector<Part> parts_;
};

class BucketUnpackKernel : public Kernel {
 public:
  explicit BucketUnpackKernel(const KernelContext& context) : parts_(PartsOf(context, context.node.outputs())) {}
  Status Launch(const LaunchArgs& args) override {
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (args.outputs[i] != nullptr) Move(args.outputs[i], args.inputs[0] + parts_[i].offset, parts_[i].bytes);
    }
    return OkStatus();
  }

 private:
  const std::vector<Part> parts_;
};

// This rank's equal slice of a flat tensor that every rank holds.
class ShardKernel : public Kernel {
 public:
  explicit ShardKernel(const KernelContext& context)
      : bytes_(context.output_type(0).bytes()), offset_(bytes_ * static_cast<size_t>(context.rank)) {}
  Status Launch(const LaunchArgs& args) override {
    Move(args.outputs[0], args.inputs[0] + offset_, bytes_);
    return OkStatus();
  }

 private:
  const size_t bytes_;
  const size_t offset_;
};

template <typename K>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  return std::unique_ptr<Kernel>(std::make_unique<K>(context));
}

}  // namespace

void AddCollectiveKernels(KernelRegistry& registry) {
  AddCommunicatorKernels(registry);
  registry.Add("onnxtrain.BucketPack", Make<BucketPackKernel>);
  registry.Add("onnxtrain.BucketUnpack", Make<BucketUnpackKernel>);
  registry.Add("onnxtrain.Shard", Make<ShardKernel>);
}

}  // namespace onnxtrain
