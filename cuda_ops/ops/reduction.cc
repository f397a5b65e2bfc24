// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/kernels/reduction.h"

#include <algorithm>

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"
#include "graph/ops/reduction_axes.h"

namespace onnxtrain {
namespace {

StatusOr<ReductionArguments> Constants(const KernelContext& context, ReduceFunction function) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> axes, ReducedAxes(context.node));
  const Shape& x = context.input_type(0).shape;
  const std::vector<int64_t> dense = DenseLoopStrides(x);
  Shape kept_sizes, reduced_sizes;
  std::vector<int64_t> kept_strides, reduced_strides;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const bool reduced = std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    (reduced ? reduced_sizes : kept_sizes).push_back(x[axis]);
    (reduced ? reduced_strides : kept_strides).push_back(dense[axis]);
  }
  ReductionArguments a;
  ASSIGN_OR_RETURN(a.kept, LoopFor<1>(context, kept_sizes, {kept_strides}));
  ASSIGN_OR_RETURN(a.reduced, LoopFor<1>(context, reduced_sizes, {reduced_strides}));
  a.dtype = context.input_type(0).dtype;
  a.y_dtype = context.output_type(0).dtype;
  a.function = function;
  // Neighbours in memory: along the innermost axis, if that is reduced.
  a.rows = a.reduced.axes == 0 || a.reduced.strides[0][a.reduced.axes - 1] == 1;
  return a;
}

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, ReduceFunction function) {
  if (!IsDeviceFloat(context.input_type(0).dtype) || !IsDeviceFloat(context.output_type(0).dtype))
    return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const ReductionArguments constants, Constants(context, function));
  const size_t workspace = static_cast<size_t>(ReductionPartials(constants)) * sizeof(double);
  const auto launch = [constants](const LaunchArgs& args, cudaStream_t stream) {
    ReductionArguments a = constants;
    a.x = args.inputs[0];
    a.y = args.outputs[0];
    a.partial = reinterpret_cast<double*>(args.workspace);
    return LaunchReduction(a, stream);
  };
  return MakeLaunchKernel(context, launch, workspace);
}

void Add(KernelRegistry& registry, const char* op, ReduceFunction function) {
  registry.Add(op, [function](const KernelContext& context) { return Make(context, function); });
}

}  // namespace

void AddReductionOps(KernelRegistry& registry, const CudaContext&) {
  Add(registry, "ReduceSum", ReduceFunction::kSum);
  Add(registry, "ReduceMean", ReduceFunction::kMean);
  Add(registry, "ReduceMax", ReduceFunction::kMax);
  Add(registry, "ReduceMin", ReduceFunction::kMin);
  Add(registry, "ReduceSumSquare", ReduceFunction::kSumSquare);
  Add(registry, "ReduceL1", ReduceFunction::kL1);
  Add(registry, "ReduceL2", ReduceFunction::kL2);
  Add(registry, "ReduceLogSum", ReduceFunction::kLogSum);
  Add(registry, "ReduceLogSumExp", ReduceFunction::kLogSumExp);
}

}  // namespace onnxtrain
