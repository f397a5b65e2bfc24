// SPDX-License-Identifier: Apache-2.0
// Views: nothing to do where the planner gave input and output the same bytes. And tensors made from shapes and
// numbers.
#include <algorithm>
#include <cstring>

#include "cuda_ops/kernels/matrix_part.h"
#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

StatusOr<std::unique_ptr<Kernel>> MakeView(const KernelContext& context) {
  const size_t bytes = context.output_type(0).bytes();
  return MakeLaunchKernel(context, [bytes](const LaunchArgs& args, cudaStream_t stream) {
    if (bytes == 0 || args.inputs[0] == args.outputs[0]) return cudaSuccess;
    return cudaMemcpyAsync(args.outputs[0], args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeConstantOfShape(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  if (!IsMovable(type.dtype)) return UnsupportedTypes(context);
  const AttributeValue* attribute = context.node.attributes().Find("value");
  const Tensor* value = attribute == nullptr ? nullptr : std::get_if<Tensor>(attribute);
  uint64_t bits = 0;
  if (value != nullptr) std::memcpy(&bits, value->data(), SizeOf(type.dtype));
  return MakeLaunchKernel(context, [bits, count = type.elements(), bytes = SizeOf(type.dtype)](const LaunchArgs& args,
                                                                                               cudaStream_t stream) {
    return LaunchFill(args.outputs[0], bits, count, bytes, stream);
  });
}

// Numbers that are known at creation: Shape, Size.
StatusOr<std::unique_ptr<Kernel>> MakeKnownInts(const KernelContext& context, std::vector<int64_t> values) {
  return MakeLaunchKernel(context, [values = std::move(values)](const LaunchArgs& args, cudaStream_t stream) {
    for (size_t i = 0; i < values.size(); ++i) {
      const cudaError_t error =
          LaunchFill(args.output<int64_t>(0) + i, static_cast<uint64_t>(values[i]), 1, sizeof(int64_t), stream);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeShape(const KernelContext& context) {
  const Shape& shape = context.input_type(0).shape;
  const int64_t rank = context.input_type(0).rank();
  const auto bound = [rank](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + rank : index, 0, rank); };
  const int64_t start = bound(context.node.attributes().Int("start", 0));
  const int64_t end = std::max(start, bound(context.node.attributes().Int("end", rank)));
  return MakeKnownInts(context, {shape.begin() + start, shape.begin() + end});
}

StatusOr<std::unique_ptr<Kernel>> MakeSize(const KernelContext& context) {
  return MakeKnownInts(context, {context.input_type(0).elements()});
}

StatusOr<std::unique_ptr<Kernel>> MakeRange(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  const DType dtype = type.dtype;
  const bool served = IsDeviceInteger(dtype) || dtype == DType::kFloat || dtype == DType::kDouble;
  if (!served) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [dtype, count = type.elements()](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchRange(args.inputs[0], args.inputs[2], args.outputs[0], count, dtype, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeEye(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  if (!IsMovable(type.dtype)) return UnsupportedTypes(context);
  Tensor one = Tensor::Scalar<float>(1).CastTo(type.dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, one.data(), SizeOf(type.dtype));
  const int64_t diagonal = context.node.attributes().Int("k", 0);
  return MakeLaunchKernel(context, [=, height = type.shape[0], width = type.shape[1], bytes = SizeOf(type.dtype)](
                                       const LaunchArgs& args, cudaStream_t stream) {
    return LaunchEye(args.outputs[0], height, width, diagonal, bits, bytes, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeTrilu(const KernelContext& context) {
  const TensorType& type = context.output_type(0);
  if (!IsMovable(type.dtype)) return UnsupportedTypes(context);
  TriangleArguments constants;
  constants.count = type.elements();
  constants.height = type.shape[type.shape.size() - 2];
  constants.width = type.shape.back();
  constants.upper = context.node.attributes().Int("upper", 1) != 0;
  return MakeLaunchKernel(context,
                          [constants, bytes = SizeOf(type.dtype)](const LaunchArgs& args, cudaStream_t stream) {
                            TriangleArguments a = constants;
                            a.x = args.inputs[0];
                            a.y = args.outputs[0];
                            a.diagonal = args.input<int64_t>(1);
                            return LaunchTriangle(a, bytes, stream);
                          });
}

}  // namespace

void AddShapeOps(KernelRegistry& registry, const CudaContext&) {
  for (const char* op : {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze"}) registry.Add(op, MakeView);
  registry.Add("ConstantOfShape", MakeConstantOfShape);
  registry.Add("Shape", MakeShape);
  registry.Add("Size", MakeSize);
  registry.Add("Range", MakeRange);
  registry.Add("EyeLike", MakeEye);
  registry.Add("Trilu", MakeTrilu);
}

}  // namespace onnxtrain
