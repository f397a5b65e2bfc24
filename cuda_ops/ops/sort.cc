// SPDX-License-Identifier: Apache-2.0
// What is decided by comparing along an axis: ArgMax, ArgMin, TopK; and OneHot, which undoes ArgMax.
#include <string>

#include "cuda_ops/kernels/index_sort.h"
#include "cuda_ops/kernels/one_hot.h"
#include "cuda_ops/kernels/top_k.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

bool IsCompared(DType dtype) { return IsDeviceFloat(dtype) || IsDeviceInteger(dtype) || dtype == DType::kDouble; }

struct Lines {
  int64_t outer, length, inner;

  Lines(const KernelContext& context, const Shape& shape, int64_t default_axis) {
    int64_t axis = context.node.attributes().Int("axis", default_axis);
    if (axis < 0) axis += static_cast<int64_t>(shape.size());
    const std::span<const int64_t> sizes(shape);
    outer = ElementsOf(sizes.first(static_cast<size_t>(axis)));
    length = sizes[static_cast<size_t>(axis)];
    inner = ElementsOf(sizes.subspan(static_cast<size_t>(axis) + 1));
  }
};

StatusOr<std::unique_ptr<Kernel>> MakeArgExtremum(const KernelContext& context) {
  const TensorType& type = context.input_type(0);
  if (!IsCompared(type.dtype)) return UnsupportedTypes(context);
  const Lines lines(context, type.shape, 0);
  ArgExtremumArguments constants{nullptr, nullptr, lines.outer, lines.length, lines.inner, false, false, type.dtype};
  constants.largest = context.node.op() == "ArgMax";
  constants.last = context.node.attributes().Int("select_last_index", 0) != 0;
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    ArgExtremumArguments a = constants;
    a.x = args.inputs[0];
    a.y = args.output<int64_t>(0);
    return LaunchArgExtremum(a, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeTopK(const KernelContext& context) {
  const TensorType& type = context.input_type(0);
  if (!IsCompared(type.dtype)) return UnsupportedTypes(context);
  if (type.elements() > kMostSortedKeys) {
    return InvalidModelError(context.node.Describe() + " sorts " + std::to_string(type.elements()) +
                             " elements; the CUDA kernel serves up to " + std::to_string(kMostSortedKeys));
  }
  const Lines lines(context, type.shape, -1);
  const size_t given = context.node.output(0) != nullptr ? 0 : 1;
  TopKArguments constants;
  constants.outer = lines.outer;
  constants.length = lines.length;
  constants.inner = lines.inner;
  constants.kept = Lines(context, context.output_type(given).shape, -1).length;
  constants.largest = context.node.attributes().Int("largest", 1) != 0;
  constants.dtype = type.dtype;
  const LaunchCall call = [constants](const LaunchArgs& args, cudaStream_t stream) {
    TopKArguments a = constants;
    a.x = args.inputs[0];
    a.values = args.output<std::byte>(0);
    a.indices = args.output<int64_t>(1);
    return LaunchTopK(a, args.workspace, stream);
  };
  return MakeLaunchKernel(context, call, TopKBytes(constants));
}

StatusOr<std::unique_ptr<Kernel>> MakeOneHot(const KernelContext& context) {
  const DType index = context.input_type(0).dtype;
  const DType value = context.input_type(2).dtype;
  const bool served =
      IsDeviceInteger(index) || index == DType::kFloat || index == DType::kDouble || index == DType::kUint8;
  if (!served || !IsMovable(value)) return UnsupportedTypes(context);
  const Lines lines(context, context.output_type(0).shape, -1);
  const OneHotArguments constants{nullptr, nullptr, nullptr, lines.outer, lines.length, lines.inner, index};
  return MakeLaunchKernel(context, [constants, bytes = SizeOf(value)](const LaunchArgs& args, cudaStream_t stream) {
    OneHotArguments a = constants;
    a.indices = args.inputs[0];
    a.values = args.inputs[2];
    a.y = args.outputs[0];
    return LaunchOneHot(a, bytes, stream);
  });
}

}  // namespace

void AddSortOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("ArgMax", MakeArgExtremum);
  registry.Add("ArgMin", MakeArgExtremum);
  registry.Add("TopK", MakeTopK);
  registry.Add("OneHot", MakeOneHot);
}

}  // namespace onnxtrain
