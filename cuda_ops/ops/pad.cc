// SPDX-License-Identifier: Apache-2.0
// Pad in all modes, negative pads included, and the adjoint of the modes that repeat elements. A constant is written
// everywhere, then what is left of the data in its place; what repeats elements reads, and its adjoint adds, at indices
// that need no tensor.
#include <algorithm>
#include <string>

#include "cuda_ops/kernels/gather.h"
#include "cuda_ops/kernels/index_sort.h"
#include "cuda_ops/kernels/scatter.h"
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

StatusOr<PadMode> PadModeOf(const Node& node) {
  const std::string mode = node.attributes().String("mode", "constant");
  if (mode == "edge") return PadMode::kEdge;
  if (mode == "reflect") return PadMode::kReflect;
  if (mode == "wrap") return PadMode::kWrap;
  return InvalidModelError("mode '" + mode + "' of " + node.Describe() +
                           "; constant, edge, reflect and wrap are defined");
}

PadPlaces::Axis PadAxis(PadMode mode, int64_t inner, int64_t padded, int64_t before, int64_t stride) {
  PadPlaces::Axis axis{Divisor(padded), {}, -before, inner, stride};
  if (mode == PadMode::kEdge) return axis;
  const int64_t period = mode == PadMode::kWrap || inner == 1 ? inner : 2 * inner - 2;
  axis.period = Divisor(period);
  axis.lift += (std::max<int64_t>(0, before) + period - 1) / period * period;
  return axis;
}

StatusOr<PadPlaces> PlacesOf(const KernelContext& context, const Shape& inner, const Shape& padded) {
  PadPlaces places;
  ASSIGN_OR_RETURN(places.mode, PadModeOf(context.node));
  if (inner.size() > kMaxLoopAxes) {
    return InvalidModelError(context.node.Describe() + " has more than " + std::to_string(kMaxLoopAxes) +
                             " axes; the CUDA kernel has no more");
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> before, PadsBefore(context.node, static_cast<int64_t>(inner.size())));
  const std::vector<int64_t> strides = DenseLoopStrides(inner);
  places.axes = static_cast<int>(inner.size());
  for (size_t axis = 0; axis < inner.size(); ++axis) {
    if (inner[axis] == 0 && padded[axis] > 0) {
      return InvalidModelError(context.node.Describe() + " cannot repeat elements of an empty axis");
    }
    places.axis[axis] =
        PadAxis(places.mode, std::max<int64_t>(inner[axis], 1), padded[axis], before[axis], strides[axis]);
  }
  return places;
}

StatusOr<std::unique_ptr<Kernel>> MakeRepeatingPad(const KernelContext& context) {
  const TensorType& x = context.input_type(0);
  const TensorType& y = context.output_type(0);
  ASSIGN_OR_RETURN(const PadPlaces places, PlacesOf(context, x.shape, y.shape));
  GatherArguments constants{nullptr, nullptr, 1, x.elements(), 1, y.elements(), {}};
  return MakeLaunchKernel(context, [=, bytes = SizeOf(x.dtype)](const LaunchArgs& args, cudaStream_t stream) {
    GatherArguments a = constants;
    a.data = args.inputs[0];
    a.result = args.outputs[0];
    return LaunchGather(a, places, bytes, stream);
  });
}

// dy, pads, -, axes -> dx
StatusOr<std::unique_ptr<Kernel>> MakePadGrad(const KernelContext& context) {
  const TensorType& dy = context.input_type(0);
  const TensorType& dx = context.output_type(0);
  if (!IsDeviceFloat(dy.dtype) && dy.dtype != DType::kDouble) return UnsupportedTypes(context);
  if (dy.elements() > kMostSortedKeys) {
    return InvalidModelError(context.node.Describe() + " adds " + std::to_string(dy.elements()) +
                             " elements; the CUDA kernel serves up to " + std::to_string(kMostSortedKeys));
  }
  ASSIGN_OR_RETURN(const PadPlaces places, PlacesOf(context, dx.shape, dy.shape));
  const ScatterArguments constants{
      nullptr, nullptr, 1, dx.elements(), 1, dy.elements(), dy.dtype, ScatterReduction::kAdd, {}};
  const LaunchCall call = [=](const LaunchArgs& args, cudaStream_t stream) {
    ScatterArguments a = constants;
    a.updates = args.inputs[0];
    a.result = args.outputs[0];
    const cudaError_t error = LaunchFill(a.result, 0, a.size, SizeOf(a.dtype), stream);
    return error == cudaSuccess ? LaunchScatter(a, places, args.workspace, stream) : error;
  };
  return MakeLaunchKernel(context, call, ScatterBytes(constants.count));
}

StatusOr<std::unique_ptr<Kernel>> MakePad(const KernelContext& context) {
  const TensorType& x = context.input_type(0);
  const TensorType& y = context.output_type(0);
  if (!IsMovable(x.dtype)) return UnsupportedTypes(context);
  if (context.node.attributes().String("mode", "constant") != "constant") return MakeRepeatingPad(context);
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

void AddPadOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("Pad", MakePad);
  registry.Add("onnxtrain.PadGrad", MakePadGrad);
}

}  // namespace onnxtrain
