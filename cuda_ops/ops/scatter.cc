// SPDX-License-Identifier: Apache-2.0
// Writing and joining at indices: data, indices, updates -> y.
#include "cuda_ops/kernels/scatter.h"

#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/indexing.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "runtime/scatter_reduction.h"

namespace onnxtrain {
namespace {

template <typename Places>
StatusOr<std::unique_ptr<Kernel>> MakeWriting(const KernelContext& context, const Indexed<Places>& indexed,
                                              ScatterReduction reduction) {
  RETURN_IF_ERROR(CheckSortable(context, indexed));
  ScatterArguments constants{nullptr, nullptr, 1, indexed.size, indexed.inner, indexed.count, {}, reduction, {}};
  constants.dtype = context.input_type(0).dtype;
  constants.fault.node_index = context.node_index;
  const LaunchCall call = [constants, places = indexed.places, bytes = context.input_type(0).bytes()](
                              const LaunchArgs& args, cudaStream_t stream) {
    ScatterArguments a = constants;
    a.updates = args.inputs[2];
    a.result = args.outputs[0];
    a.fault.status_word = args.status_word;
    Places at = places;
    SetIndices(args.inputs[1], &at);
    if (bytes != 0 && args.inputs[0] != args.outputs[0]) {
      const cudaError_t error = cudaMemcpyAsync(a.result, args.inputs[0], bytes, cudaMemcpyDeviceToDevice, stream);
      if (error != cudaSuccess) return error;
    }
    return LaunchScatter(a, at, args.workspace, stream);
  };
  return MakeLaunchKernel(context, call, ScatterBytes(indexed.count));
}

StatusOr<std::unique_ptr<Kernel>> MakeScatterElements(const KernelContext& context) {
  ASSIGN_OR_RETURN(const ScatterReduction reduction, ScatterReductionOf(context.node));
  if (!ScatterServes(reduction, context.input_type(0).dtype) || !IsDeviceInteger(context.input_type(1).dtype))
    return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const auto indexed, IndexedElements(context, context.input_type(0).shape, context.input_type(1)));
  return MakeWriting(context, indexed, reduction);
}

StatusOr<std::unique_ptr<Kernel>> MakeScatterND(const KernelContext& context) {
  ASSIGN_OR_RETURN(const ScatterReduction reduction, ScatterReductionOf(context.node));
  if (!ScatterServes(reduction, context.input_type(0).dtype)) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const auto indexed,
                   IndexedTuples(context, context.input_type(0).shape, context.input_type(1).shape, 0));
  return MakeWriting(context, indexed, reduction);
}

}  // namespace

void AddScatterOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("ScatterElements", MakeScatterElements);
  registry.Add("ScatterND", MakeScatterND);
}

}  // namespace onnxtrain
