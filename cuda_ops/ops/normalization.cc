// SPDX-License-Identifier: Apache-2.0
// LayerNormalization and RMSNormalization.
#include "cuda_ops/kernels/normalization.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "graph/attributes.h"

namespace onnxtrain {
namespace {

struct Rows {
  int64_t count;
  int64_t length;
};

Rows RowsOf(const KernelContext& context, size_t x) {
  const Shape& shape = context.input_type(x).shape;
  int64_t axis = context.node.attributes().Int("axis", -1);
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  const std::span<const int64_t> sizes(shape);
  return {ElementsOf(sizes.first(static_cast<size_t>(axis))), ElementsOf(sizes.subspan(static_cast<size_t>(axis)))};
}

float EpsilonOf(const KernelContext& context) { return context.node.attributes().Float("epsilon", 1e-5f); }

StatusOr<std::unique_ptr<Kernel>> MakeForward(const KernelContext& context, bool rms) {
  for (const size_t index : {size_t{1}, size_t{2}}) {
    const Value* statistics = context.node.output(index);
    if (statistics != nullptr && statistics->type().dtype != DType::kFloat) return UnsupportedTypes(context);
  }
  RowNormalizationArguments constants;
  const Rows rows = RowsOf(context, 0);
  constants.rows = rows.count;
  constants.length = rows.length;
  constants.dtype = context.input_type(0).dtype;
  constants.parameter_dtype = context.input_type(1).dtype;
  constants.epsilon = EpsilonOf(context);
  constants.rms = rms;
  if (!IsDeviceFloat(constants.dtype) || !IsDeviceFloat(constants.parameter_dtype)) return UnsupportedTypes(context);
  return MakeLaunchKernel(context, [constants](const LaunchArgs& args, cudaStream_t stream) {
    RowNormalizationArguments a = constants;
    a.x = args.inputs[0];
    a.scale = args.inputs[1];
    a.bias = args.input<std::byte>(2);
    a.y = args.outputs[0];
    a.mean = args.output<float>(1);
    a.factor = args.output<float>(2);
    return LaunchRowNormalization(a, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeGradient(const KernelContext& context) {
  RowNormalizationGradientArguments constants;
  const Rows rows = RowsOf(context, 1);
  constants.rows = rows.count;
  constants.length = rows.length;
  constants.dtype = context.input_type(1).dtype;
  constants.parameter_dtype = context.input_type(2).dtype;
  constants.epsilon = EpsilonOf(context);
  constants.rms = context.node.attributes().Int("rms", 0) != 0;
  if (!IsDeviceFloat(constants.dtype) || !IsDeviceFloat(constants.parameter_dtype)) return UnsupportedTypes(context);
  const auto launch = [constants](const LaunchArgs& args, cudaStream_t stream) {
    RowNormalizationGradientArguments a = constants;
    a.dy = args.inputs[0];
    a.x = args.inputs[1];
    a.scale = args.inputs[2];
    a.dx = args.outputs[0];
    a.dscale = args.output<std::byte>(1);
    a.dbias = args.output<std::byte>(2);
    a.workspace = reinterpret_cast<float*>(args.workspace);
    return LaunchRowNormalizationGradient(a, stream);
  };
  const int64_t floats = RowNormalizationGradientFloats(rows.count, rows.length);
  return MakeLaunchKernel(context, launch, static_cast<size_t>(floats) * sizeof(float));
}

}  // namespace

void AddNormalizationOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("LayerNormalization", [](const KernelContext& context) { return MakeForward(context, false); });
  registry.Add("RMSNormalization", [](const KernelContext& context) { return MakeForward(context, true); });
  registry.Add("onnxtrain.LayerNormalizationGrad", MakeGradient);
}

}  // namespace onnxtrain
