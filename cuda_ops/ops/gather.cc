// SPDX-License-Identifier: Apache-2.0
// Reading at indices, and the gradients that no standard operator expresses.
#include "cuda_ops/kernels/gather.h"

#include "cuda_ops/kernels/scatter.h"
#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/indexing.h"
#include "cuda_ops/ops/launch_kernel.h"

namespace onnxtrain {
namespace {

// data, indices -> y
template <typename Places>
StatusOr<std::unique_ptr<Kernel>> MakeReading(const KernelContext& context, const Indexed<Places>& indexed) {
  GatherArguments constants{nullptr, nullptr, indexed.outer, indexed.size, indexed.inner, indexed.count, {}};
  constants.fault.node_index = context.node_index;
  return MakeLaunchKernel(context, [constants, places = indexed.places, bytes = SizeOf(context.input_type(0).dtype)](
                                       const LaunchArgs& args, cudaStream_t stream) {
    GatherArguments a = constants;
    a.data = args.inputs[0];
    a.result = args.outputs[0];
    a.fault.status_word = args.status_word;
    Places at = places;
    SetIndices(args.inputs[1], &at);
    return LaunchGather(a, at, bytes, stream);
  });
}

// indices, dy -> dx
template <typename Places>
StatusOr<std::unique_ptr<Kernel>> MakeAdding(const KernelContext& context, const Indexed<Places>& indexed) {
  RETURN_IF_ERROR(CheckSortable(context, indexed));
  ScatterArguments constants{
      nullptr, nullptr, indexed.outer, indexed.size, indexed.inner, indexed.count, {}, ScatterReduction::kAdd, {}};
  constants.dtype = context.input_type(1).dtype;
  constants.fault.node_index = context.node_index;
  const LaunchCall call = [constants, places = indexed.places](const LaunchArgs& args, cudaStream_t stream) {
    ScatterArguments a = constants;
    a.updates = args.inputs[1];
    a.result = args.outputs[0];
    a.fault.status_word = args.status_word;
    Places at = places;
    SetIndices(args.inputs[0], &at);
    const cudaError_t error = LaunchFill(a.result, 0, a.outer * a.size * a.inner, SizeOf(a.dtype), stream);
    return error == cudaSuccess ? LaunchScatter(a, at, args.workspace, stream) : error;
  };
  return MakeLaunchKernel(context, call, ScatterBytes(indexed.count));
}

bool AddsInGradients(DType dtype) { return IsDeviceFloat(dtype) || dtype == DType::kDouble; }

StatusOr<std::unique_ptr<Kernel>> MakeGather(const KernelContext& context) {
  if (!IsMovable(context.input_type(0).dtype) || !IsDeviceInteger(context.input_type(1).dtype))
    return UnsupportedTypes(context);
  return MakeReading(context, IndexedAlongAxis(context.node, context.input_type(0).shape, context.input_type(1)));
}

StatusOr<std::unique_ptr<Kernel>> MakeGatherGrad(const KernelContext& context) {
  if (!AddsInGradients(context.input_type(1).dtype) || !IsDeviceInteger(context.input_type(0).dtype))
    return UnsupportedTypes(context);
  return MakeAdding(context, IndexedAlongAxis(context.node, context.output_type(0).shape, context.input_type(0)));
}

StatusOr<std::unique_ptr<Kernel>> MakeGatherElements(const KernelContext& context) {
  if (!IsMovable(context.input_type(0).dtype) || !IsDeviceInteger(context.input_type(1).dtype))
    return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const auto indexed, IndexedElements(context, context.input_type(0).shape, context.input_type(1)));
  return MakeReading(context, indexed);
}

StatusOr<Indexed<TuplePlaces>> Tuples(const KernelContext& context, const Shape& data, const Shape& indices) {
  return IndexedTuples(context, data, indices, context.node.attributes().Int("batch_dims", 0));
}

StatusOr<std::unique_ptr<Kernel>> MakeGatherND(const KernelContext& context) {
  if (!IsMovable(context.input_type(0).dtype)) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const auto indexed, Tuples(context, context.input_type(0).shape, context.input_type(1).shape));
  return MakeReading(context, indexed);
}

StatusOr<std::unique_ptr<Kernel>> MakeGatherNDGrad(const KernelContext& context) {
  if (!AddsInGradients(context.input_type(1).dtype)) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const auto indexed, Tuples(context, context.output_type(0).shape, context.input_type(0).shape));
  return MakeAdding(context, indexed);
}

}  // namespace

void AddGatherOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("Gather", MakeGather);
  registry.Add("onnxtrain.GatherGrad", MakeGatherGrad);
  registry.Add("GatherElements", MakeGatherElements);
  registry.Add("GatherND", MakeGatherND);
  registry.Add("onnxtrain.GatherNDGrad", MakeGatherNDGrad);
}

}  // namespace onnxtrain
