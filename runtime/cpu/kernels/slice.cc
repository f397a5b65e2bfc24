// SPDX-License-Identifier: Apache-2.0
// Operators that copy between strided views: Slice and its adjoint, Split, Concat, Expand, Tile.
#include "graph/ops/op_rules.h"
#include "graph/ops/slice_ranges.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/strided_copy.h"

namespace onnxtrain {
namespace {

// One copy from input 0 to output 0.
template <typename Bits>
class CopyKernel : public Kernel {
 public:
  CopyKernel(const KernelContext& context, StridedRows<2> rows) : rows_(std::move(rows)), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    CopyStrided(rows_, threads_, args.input<Bits>(0), args.output<Bits>(0));
    return OkStatus();
  }

 private:
  StridedRows<2> rows_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeCopy(const KernelContext& context, const StridedRows<2>& rows) {
  return ForElementSize(context.input_type(0).dtype, context,
                        [&](auto tag) { return new CopyKernel<typename decltype(tag)::type>(context, rows); });
}

StatusOr<std::unique_ptr<Kernel>> MakeExpand(const KernelContext& context) {
  const Shape& y = context.output_type(0).shape;
  return MakeCopy(context, {y, {BroadcastStrides(context.input_type(0).shape, y), DenseStrides(y)}});
}

// Each axis of size d repeated r times is two axes, r and d; reading does not move along the first.
StatusOr<std::unique_ptr<Kernel>> MakeTile(const KernelContext& context) {
  const Shape& x = context.input_type(0).shape;
  const Shape& y = context.output_type(0).shape;
  const Strides x_strides = DenseStrides(x);
  const Strides y_strides = DenseStrides(y);
  Shape shape;
  Strides from, to;
  for (size_t axis = 0; axis < x.size(); ++axis) {
    const int64_t size = x[axis];
    shape.insert(shape.end(), {size == 0 ? 0 : y[axis] / size, size});
    from.insert(from.end(), {0, x_strides[axis]});
    to.insert(to.end(), {size * y_strides[axis], y_strides[axis]});
  }
  return MakeCopy(context, {shape, {from, to}});
}

// Strides and first element of a slice of a dense tensor.
struct SlicedView {
  Strides strides;
  int64_t start = 0;
};

SlicedView ViewOf(const Shape& whole, const std::vector<int64_t>& starts, const std::vector<int64_t>& steps) {
  SlicedView view{DenseStrides(whole), 0};
  for (size_t axis = 0; axis < whole.size(); ++axis) {
    view.start += starts[axis] * view.strides[axis];
    view.strides[axis] *= steps[axis];
  }
  return view;
}

StatusOr<std::unique_ptr<Kernel>> MakeSlice(const KernelContext& context) {
  ASSIGN_OR_RETURN(SliceRanges ranges, SliceRangesOf(context.node));
  const SlicedView view = ViewOf(context.input_type(0).shape, ranges.starts, ranges.steps);
  const Shape& y = context.output_type(0).shape;
  if (y != ranges.lengths) {
    return InternalError(context.node.Describe() + " should give " + ToString(ranges.lengths) + ", not " + ToString(y));
  }
  return MakeCopy(context, {y, {view.strides, DenseStrides(y)}, {view.start, 0}});
}

// Zeros with dy in place of the slice.
template <typename Bits>
class SliceGradKernel : public Kernel {
 public:
  SliceGradKernel(const KernelContext& context, StridedRows<2> rows)
      : rows_(std::move(rows)), count_(context.output_type(0).elements()), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    FillParallel(threads_, args.output<Bits>(0), count_, Bits(0));
    CopyStrided(rows_, threads_, args.input<Bits>(0), args.output<Bits>(0));
    return OkStatus();
  }

 private:
  StridedRows<2> rows_;
  int64_t count_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeSliceGrad(const KernelContext& context) {
  const Attributes& attributes = context.node.attributes();
  const SlicedView view = ViewOf(context.output_type(0).shape, attributes.Ints("starts"), attributes.Ints("steps"));
  const Shape& dy = context.input_type(0).shape;
  const StridedRows<2> rows(dy, {DenseStrides(dy), view.strides}, {0, view.start});
  return ForElementSize(context.input_type(0).dtype, context,
                        [&](auto tag) { return new SliceGradKernel<typename decltype(tag)::type>(context, rows); });
}

// Parts that lie behind each other along one axis of a whole: one strided copy each. `whole` is output 0 (Concat) or
// input 0 (Split).
template <typename Bits, bool kConcat>
class PartsKernel : public Kernel {
 public:
  PartsKernel(const KernelContext& context, const TensorType& whole, const std::vector<TensorType>& parts, size_t axis)
      : threads_(context.threads) {
    const Strides whole_strides = DenseStrides(whole.shape);
    int64_t start = 0;
    for (const TensorType& part : parts) {
      const Strides strides = DenseStrides(part.shape);
      if (kConcat) {
        rows_.push_back({part.shape, {strides, whole_strides}, {0, start}});
      } else {
        rows_.push_back({part.shape, {whole_strides, strides}, {start, 0}});
      }
      start += part.shape[axis] * whole_strides[axis];
    }
  }

  Status Launch(const LaunchArgs& args) override {
    for (size_t i = 0; i < rows_.size(); ++i) {
      const Bits* from = args.input<Bits>(kConcat ? i : 0);
      Bits* to = args.output<Bits>(kConcat ? 0 : i);
      if (to != nullptr && from != to) CopyStrided(rows_[i], threads_, from, to);
    }
    return OkStatus();
  }

 private:
  std::vector<StridedRows<2>> rows_;
  int threads_;
};

size_t AxisOf(const KernelContext& context, int64_t rank) {
  return static_cast<size_t>(NonNegativeAxis(context.node.attributes().Int("axis", 0), rank));
}

StatusOr<std::unique_ptr<Kernel>> MakeConcat(const KernelContext& context) {
  std::vector<TensorType> parts;
  for (const Value* input : context.node.inputs()) parts.push_back(input->type());
  const TensorType& whole = context.output_type(0);
  return ForElementSize(whole.dtype, context, [&](auto tag) {
    return new PartsKernel<typename decltype(tag)::type, true>(context, whole, parts, AxisOf(context, whole.rank()));
  });
}

StatusOr<std::unique_ptr<Kernel>> MakeSplit(const KernelContext& context) {
  ASSIGN_OR_RETURN(std::vector<TensorType> parts, SplitTypes(context.node));
  const TensorType& whole = context.input_type(0);
  return ForElementSize(whole.dtype, context, [&](auto tag) {
    return new PartsKernel<typename decltype(tag)::type, false>(context, whole, parts, AxisOf(context, whole.rank()));
  });
}

}  // namespace

void AddSliceKernels(KernelRegistry& registry) {
  registry.Add("Slice", MakeSlice);
  registry.Add("onnxtrain.SliceGrad", MakeSliceGrad);
  registry.Add("Split", MakeSplit);
  registry.Add("Concat", MakeConcat);
  registry.Add("Expand", MakeExpand);
  registry.Add("Tile", MakeTile);
}

}  // namespace onnxtrain
