// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective_kernels.h"

#include "runtime/communicator.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

StatusOr<ReduceOp> ReduceOpOf(const KernelContext& context) {
  const std::string op = context.node.attributes().String("op", "sum");
  if (op == "sum") return ReduceOp::kSum;
  if (op == "max") return ReduceOp::kMax;
  return InvalidModelError("attribute op = \"" + op + "\" of " + context.node.Describe() +
                           ": expected \"sum\" or \"max\"");
}

// What all collective kernels remember of their node.
struct CollectiveShape {
  DType dtype = DType::kUndefined;
  int64_t count = 0;  // elements of the smaller side
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
};

template <Status (*Call)(const CollectiveShape&, const LaunchArgs&)>
class CollectiveKernel : public Kernel {
 public:
  explicit CollectiveKernel(const CollectiveShape& shape) : shape_(shape) {}
  Status Launch(const LaunchArgs& args) override {
    CHECK_WITH(args.communicator != nullptr, "a collective needs a communicator");
    return Call(shape_, args);
  }

 private:
  const CollectiveShape shape_;
};

Status AllReduce(const CollectiveShape& shape, const LaunchArgs& args) {
  return args.communicator->AllReduce(args.inputs[0], args.outputs[0], shape.count, shape.dtype, shape.op,
                                      args.native_stream);
}

Status ReduceScatter(const CollectiveShape& shape, const LaunchArgs& args) {
  return args.communicator->ReduceScatter(args.inputs[0], args.outputs[0], shape.count, shape.dtype, shape.op,
                                          args.native_stream);
}

Status AllGather(const CollectiveShape& shape, const LaunchArgs& args) {
  return args.communicator->AllGather(args.inputs[0], args.outputs[0], shape.count, shape.dtype, args.native_stream);
}

Status Broadcast(const CollectiveShape& shape, const LaunchArgs& args) {
  return args.communicator->Broadcast(args.inputs[0], args.outputs[0], shape.count, shape.dtype, shape.root,
                                      args.native_stream);
}

template <Status (*Call)(const CollectiveShape&, const LaunchArgs&)>
StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  CollectiveShape shape;
  const TensorType& in = context.input_type(0);
  const TensorType& out = context.output_type(0);
  shape.dtype = in.dtype;
  shape.count = std::min(in.elements(), out.elements());
  shape.root = static_cast<int>(context.node.attributes().Int("root", 0));
  ASSIGN_OR_RETURN(shape.op, ReduceOpOf(context));
  const int64_t world = context.node.attributes().Int("world_size", context.world_size);
  if (world != context.world_size) {
    return InternalError(context.node.Describe() + " was built for " + std::to_string(world) + " ranks and runs on " +
                         std::to_string(context.world_size));
  }
  return std::unique_ptr<Kernel>(std::make_unique<CollectiveKernel<Call>>(shape));
}

}  // namespace

void AddCommunicatorKernels(KernelRegistry& registry) {
  registry.Add("onnxtrain.AllReduce", Make<AllReduce>);
  registry.Add("onnxtrain.ReduceScatter", Make<ReduceScatter>);
  registry.Add("onnxtrain.AllGather", Make<AllGather>);
  registry.Add("onnxtrain.Broadcast", Make<Broadcast>);
}

}  // namespace onnxtrain
