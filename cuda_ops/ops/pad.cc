// SPDX-License-Identifier: Apache-2.0
// Pad with a constant, negative pads included: the value everywhere, then what is left of the data in its place.
#include <algorithm>

#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"
#include "graph/ops/op_rules.h"

namespace onnxtrain {
namespace {

// Elements before the first of each axis; negative where elements are cropped.
StatusOr<std::vector<int64_t>> PadsBefore(const Node& node, int64_t rank) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> pads, ConstantInts(node, 1));
  std::vector<int64_t> axes;
  if (node.input(3) != nullptr) {
    ASSIGN_OR_RETURN(axes, ConstantInts(node, 3));
  } else {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (pads.size() != 2 * axes.size()) {
    return InvalidModelError("pads of " + node.Describe() + " must be two numbers an axis");
  }
  std::vector<int64_t> before(static_cast<size_t>(rank), 0);
  for (size_t i = 0; i < axes.size(); ++i) before[static_cast<size_t>(NonNegativeAxis(axes[i], rank))] = pads[i];
  return before;
}

StatusOr<std::unique_ptr<Kernel>> MakePad(const KernelContext& context) {
  const TensorType& x = context.input_type(0);
  const TensorType& y = context.output_type(0);
  if (!IsMovable(x.dtype)) return UnsupportedTypes(context);
  if (context.node.attributes().String("mode", "constant") != "constant") {
    return InvalidModelError(context.node.Describe() + ": the CUDA kernel pads with a constant only");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> before, PadsBefore(context.node, x.rank()));
  const std::vector<int64_t> from = DenseLoopStrides(x.shape), to = DenseLoopStrides(y.shape);
  Shape kept;
  std::array<int64_t, 2> start = {0, 0};
  for (size_t axis = 0; axis < x.shape.size(); ++axis) {
    const int64_t first = std::max<int64_t>(0, -before[axis]);  // of the data
    const int64_t place = std::max<int64_t>(0, before[axis]);   // in the result
    kept.push_back(std::max<int64_t>(0, std::min(x.shape[axis] - first, y.shape[axis] - place)));
    start[0] += first * from[axis];
    start[1] += place * to[axis];
  }
  ASSIGN_OR_RETURN(const StridedLoop<2> loop, LoopFor<2>(context, kept, {from, to}, start));
  ASSIGN_OR_RETURN(const StridedLoop<2> value,
                   LoopFor<2>(context, {y.elements()}, {std::vector<int64_t>{0}, std::vector<int64_t>{1}}));
  const size_t bytes = SizeOf(x.dtype);
  return MakeLaunchKernel(context, [=, count = y.elements()](const LaunchArgs& args, cudaStream_t stream) {
    const std::byte* const constant = args.input<std::byte>(2);
    const cudaError_t error = constant == nullptr ? LaunchFill(args.outputs[0], 0, count, bytes, stream)
                                                  : LaunchStridedCopy(constant, args.outputs[0], value, bytes, stream);
    return error != cudaSuccess ? error : LaunchStridedCopy(args.inputs[0], args.outputs[0], loop, bytes, stream);
  });
}

}  // namespace

void AddPadOps(KernelRegistry& registry, const CudaContext&) { registry.Add("Pad", MakePad); }

}  // namespace onnxtrain
