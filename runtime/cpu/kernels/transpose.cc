// SPDX-License-Identifier: Apache-2.0
// Transpose. Where the innermost axis stays, rows are copied whole ([B,T,H,D] <-> [B,H,T,D]); otherwise the innermost
// axes of input and output span matrices that are transposed in blocks.
#include "graph/ops/permutation.h"
#include "runtime/cpu/isa/transpose_loops.h"
#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/kernels/element_types.h"
#include "runtime/cpu/kernels/strided_copy.h"

namespace onnxtrain {
namespace {

template <typename Bits>
void PlainTranspose(const Bits* x, int64_t x_stride, Bits* y, int64_t y_stride, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) y[r * y_stride + c] = x[c * x_stride + r];
  }
}

template <typename Bits>
TransposeLoop<Bits> LoopOf() {
  if constexpr (sizeof(Bits) == 4) return ONNXTRAIN_SELECT_ISA(Transpose4);
  if constexpr (sizeof(Bits) == 8) return ONNXTRAIN_SELECT_ISA(Transpose8);
  return &PlainTranspose<Bits>;
}

// Axes of the output with the strides of the input along them, neighbours joined where both walk alike.
struct PermutedAxes {
  Shape sizes;
  Strides from;

  explicit PermutedAxes(const Node& node) {
    const Strides dense = DenseStrides(node.input(0)->type().shape);
    for (int64_t axis : PermutationOf(node)) {
      const int64_t size = node.input(0)->type().shape[static_cast<size_t>(axis)];
      const int64_t stride = dense[static_cast<size_t>(axis)];
      if (size == 1) continue;
      if (!sizes.empty() && from.back() == stride * size) {
        sizes.back() *= size;
        from.back() = stride;
      } else {
        sizes.push_back(size);
        from.push_back(stride);
      }
    }
  }
};

template <typename Bits>
class RowsKernel : public Kernel {
 public:
  RowsKernel(const KernelContext& context, const PermutedAxes& axes)
      : rows_(axes.sizes, {axes.from, DenseStrides(axes.sizes)}), threads_(context.threads) {}

  Status Launch(const LaunchArgs& args) override {
    CopyStrided(rows_, threads_, args.input<Bits>(0), args.output<Bits>(0));
    return OkStatus();
  }

 private:
  StridedRows<2> rows_;
  int threads_;
};

// The matrix: rows along the output axis that is innermost in the input, columns along the innermost of the output.
template <typename Bits>
class MatrixKernel : public Kernel {
 public:
  MatrixKernel(const KernelContext& context, const PermutedAxes& axes) : threads_(context.threads) {
    const Strides to = DenseStrides(axes.sizes);
    const size_t last = axes.sizes.size() - 1;
    size_t row_axis = 0;
    while (axes.from[row_axis] != 1) ++row_axis;
    matrix_rows_ = axes.sizes[row_axis];
    columns_ = axes.sizes[last];
    x_stride_ = axes.from[last];
    y_stride_ = to[row_axis];
    bands_ = (matrix_rows_ + kBand - 1) / kBand;
    CollectOthers(axes, to, row_axis);
  }

  Status Launch(const LaunchArgs& args) override {
    const Bits* x = args.input<Bits>(0);
    Bits* y = args.output<Bits>(0);
    const int64_t band_elements = std::max<int64_t>(1, std::min(kBand, matrix_rows_) * columns_);
    ParallelFor(threads_, matrices_ * bands_, std::max<int64_t>(1, kMoveGrain / band_elements),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) Band(i / bands_, i % bands_ * kBand, x, y);
                });
    return OkStatus();
  }

 private:
  static constexpr int64_t kBand = 64;  // rows that one piece of work transposes

  void CollectOthers(const PermutedAxes& axes, const Strides& to, size_t row_axis) {
    for (size_t axis = 0; axis + 1 < axes.sizes.size(); ++axis) {
      if (axis == row_axis) continue;
      matrices_ *= axes.sizes[axis];
      others_.push_back({axes.sizes[axis], axes.from[axis], to[axis]});
    }
  }

  void Band(int64_t matrix, int64_t row, const Bits* x, Bits* y) const {
    for (size_t axis = others_.size(); axis-- > 0;) {
      const int64_t index = matrix % others_[axis].size;
      matrix /= others_[axis].size;
      x += index * others_[axis].from;
      y += index * others_[axis].to;
    }
    loop_(x + row, x_stride_, y + row * y_stride_, y_stride_, std::min(kBand, matrix_rows_ - row), columns_);
  }

  struct Axis {
    int64_t size, from, to;
  };
  TransposeLoop<Bits> loop_ = LoopOf<Bits>();
  std::vector<Axis> others_;
  int64_t matrices_ = 1;
  int64_t matrix_rows_;
  int64_t columns_;
  int64_t x_stride_;
  int64_t y_stride_;
  int64_t bands_;
  int threads_;
};

StatusOr<std::unique_ptr<Kernel>> MakeTranspose(const KernelContext& context) {
  const PermutedAxes axes(context.node);
  const bool empty = context.output_type(0).elements() == 0;
  return ForElementSize(context.input_type(0).dtype, context, [&](auto tag) -> Kernel* {
    using Bits = typename decltype(tag)::type;
    if (empty || axes.sizes.empty() || axes.from.back() == 1) return new RowsKernel<Bits>(context, axes);
    return new MatrixKernel<Bits>(context, axes);
  });
}

}  // namespace

void AddTransposeKernels(KernelRegistry& registry) { registry.Add("Transpose", MakeTranspose); }

}  // namespace onnxtrain
