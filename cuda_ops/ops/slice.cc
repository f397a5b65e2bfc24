// SPDX-License-Identifier: Apache-2.0
// Operators that copy between strided views: Slice and its adjoint, Split, Concat, Expand, Tile, Transpose.
#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"
#include "graph/ops/permutation.h"
#include "graph/ops/slice_ranges.h"

namespace onnxtrain {
namespace {

// One copy from input 0 to output 0.
StatusOr<std::unique_ptr<Kernel>> MakeCopy(const KernelContext& context, const StridedLoop<2>& loop) {
  if (!IsMovable(context.input_type(0).dtype)) return UnsupportedTypes(context);
  const size_t bytes = SizeOf(context.input_type(0).dtype);
  return MakeLaunchKernel(context, [loop, bytes](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchStridedCopy(args.inputs[0], args.outputs[0], loop, bytes, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeExpand(const KernelContext& context) {
  ASSIGN_OR_RETURN(const StridedLoop<2> loop, BroadcastLoop<2>(context));
  return MakeCopy(context, loop);
}

// Each axis of size d repeated r times is two axes, r and d; reading does not move along the first.
StatusOr<std::unique_ptr<Kernel>> MakeTile(const KernelContext& context) {
  const Shape& x = context.input_type(0).shape;
  const Shape& y = context.output_type(0).shape;
  const std::vector<int64_t> x_strides = DenseLoopStrides(x);
  const std::vector<int64_t> y_strides = DenseLoopStrides(y);
  Shape shape;
  std::vector<int64_t> from, to;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const int64_t size = x[axis];
    shape.insert(shape.end(), {size == 0 ? 0 : y[axis] / size, size});
    from.insert(from.end(), {0, x_strides[axis]});
    to.insert(to.end(), {size * y_strides[axis], y_strides[axis]});
  }
  ASSIGN_OR_RETURN(const StridedLoop<2> loop, LoopFor<2>(context, shape, {from, to}));
  return MakeCopy(context, loop);
}

StatusOr<std::unique_ptr<Kernel>> MakeTranspose(const KernelContext& context) {
  const std::vector<int64_t> dense = DenseLoopStrides(context.input_type(0).shape);
  std::vector<int64_t> from;
  for (const int64_t axis : PermutationOf(context.node)) from.push_back(dense[static_cast<size_t>(axis)]);
  const Shape& y = context.output_type(0).shape;
  ASSIGN_OR_RETURN(const StridedLoop<2> loop, LoopFor<2>(context, y, {from, DenseLoopStrides(y)}));
  return MakeCopy(context, loop);
}

// Strides and first element of a slice of a dense tensor.
struct SlicedView {
  std::vector<int64_t> strides;
  int64_t start = 0;
};

SlicedView ViewOf(const Shape& whole, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps) {
  SlicedView view{DenseLoopStrides(whole), 0};
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    view.start += starts[axis] * view.strides[axis];
    view.strides[axis] *= steps[axis];
  }
  return view;
}

StatusOr<std::unique_ptr<Kernel>> MakeSlice(const KernelContext& context) {
  ASSIGN_OR_RETURN(const SliceRanges ranges, SliceRangesOf(context.node));
  const SlicedView view = ViewOf(context.input_type(0).shape, ranges.starts, ranges.steps);
  const Shape& y = context.output_type(0).shape;
  ASSIGN_OR_RETURN(const StridedLoop<2> loop,
                   LoopFor<2>(context, y, {view.strides, DenseLoopStrides(y)}, {view.start, 0}));
  return MakeCopy(context, loop);
}

// Zeros with dy in place of the slice.
StatusOr<std::unique_ptr<Kernel>> MakeSliceGrad(const KernelContext& context) {
  const Attributes& attributes = context.node.attributes();
  const TensorType& whole = context.output_type(0);
  const SlicedView view = ViewOf(whole.shape, attributes.Ints("starts"), attributes.Ints("steps"));
  const Shape& dy = context.input_type(0).shape;
  if (!IsMovable(whole.dtype)) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const StridedLoop<2> loop,
                   LoopFor<2>(context, dy, {DenseLoopStrides(dy), view.strides}, {0, view.start}));
  const size_t bytes = SizeOf(whole.dtype);
  return MakeLaunchKernel(
      context, [loop, bytes, count = whole.elements()](const LaunchArgs& args, cudaStream_t stream) {
        const cudaError_t error = LaunchFill(args.outputs[0], 0, count, bytes, stream);
        return error != cudaSuccess ? error : LaunchStridedCopy(args.inputs[0], args.outputs[0], loop, bytes, stream);
      });
}

// Parts that lie behind each other along one axis of a whole: one strided copy each.
StatusOr<std::vector<StridedLoop<2>>> PartLoops(const KernelContext& context, const TensorType& whole,
                                                const std::vector<TensorType>& parts, bool concat) {
  int64_t axis = context.node.attributes().Int("axis", 0);
  if (axis < 0) axis += whole.rank();
  const std::vector<int64_t> whole_strides = DenseLoopStrides(whole.shape);
  std::vector<StridedLoop<2>> loops;
  int64_t start = 0;
  for (const TensorType& part : parts) {
    const std::vector<int64_t> strides = DenseLoopStrides(part.shape);
    ASSIGN_OR_RETURN(const StridedLoop<2> loop,
                     concat ? LoopFor<2>(context, part.shape, {strides, whole_strides}, {0, start})
                            : LoopFor<2>(context, part.shape, {whole_strides, strides}, {start, 0}));
    loops.push_back(loop);
    start += part.shape[static_cast<size_t>(axis)] * whole_strides[static_cast<size_t>(axis)];
  }
  return loops;
}

StatusOr<std::unique_ptr<Kernel>> MakeParts(const KernelContext& context, const TensorType& whole,
                                            const std::vector<TensorType>& parts, bool concat) {
  if (!IsMovable(whole.dtype)) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(const std::vector<StridedLoop<2>> loops, PartLoops(context, whole, parts, concat));
  const size_t bytes = SizeOf(whole.dtype);
  return MakeLaunchKernel(context, [=](const LaunchArgs& args, cudaStream_t stream) {
    for (size_t i = 0; i < loops.size(); ++i) {
      const std::byte* from = args.inputs[concat ? i : 0];
      std::byte* to = args.outputs[concat ? 0 : i];
      if (to == nullptr || from == to) continue;
      const cudaError_t error = LaunchStridedCopy(from, to, loops[i], bytes, stream);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeConcat(const KernelContext& context) {
  std::vector<TensorType> parts;
  for (const Value* input : context.node.inputs()) parts.push_back(input->type());
  return MakeParts(context, context.output_type(0), parts, true);
}

StatusOr<std::unique_ptr<Kernel>> MakeSplit(const KernelContext& context) {
  ASSIGN_OR_RETURN(const std::vector<TensorType> parts, SplitTypes(context.node));
  return MakeParts(context, context.input_type(0), parts, false);
}

}  // namespace

void AddSliceOps(KernelRegistry& registry, const CudaContext&) {
  registry.Add("Slice", MakeSlice);
  registry.Add("onnxtrain.SliceGrad", MakeSliceGrad);
  registry.Add("Split", MakeSplit);
  registry.Add("Concat", MakeConcat);
  registry.Add("Expand", MakeExpand);
  registry.Add("Tile", MakeTile);
  registry.Add("Transpose", MakeTranspose);
}

}  // namespace onnxtrain
