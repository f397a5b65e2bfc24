// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/matrix_product.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

std::vector<int64_t> RowMajorStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// A tensor seen as a stack of matrices: sizes and strides per axis.
struct View {
  Shape shape;
  std::vector<int64_t> strides;
};

View Permuted(const Shape& shape, const std::vector<int64_t>& permutation) {
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  if (permutation.empty()) return {shape, strides};
  View view;
  for (int64_t axis : permutation) {
    view.shape.push_back(shape[axis]);
    view.strides.push_back(strides[axis]);
  }
  return view;
}

// The layout of `view` under the batch axes of the result, to which it broadcasts.
MatrixLayout LayoutOf(const View& view, size_t batch_axes) {
  const size_t own = view.shape.size() - 2;
  MatrixLayout layout{view.strides[own], view.strides[own + 1], std::vector<int64_t>(batch_axes, 0)};
  for (size_t i = 0; i < own; ++i) {
    if (view.shape[i] != 1) layout.batch[batch_axes - own + i] = view.strides[i];
  }
  return layout;
}

// `y` is seen through the inverse of perm_y, so that its last two axes are the product's rows and columns.
ProductShape ShapeOf(const View& a, const View& b, const View& y) {
  const size_t batch_axes = y.shape.size() - 2;
  ProductShape shape;
  shape.rows = y.shape[batch_axes];
  shape.columns = y.shape[batch_axes + 1];
  shape.depth = a.shape.back();
  shape.batch.assign(y.shape.begin(), y.shape.end() - 2);
  shape.a = LayoutOf(a, batch_axes);
  shape.b = LayoutOf(b, batch_axes);
  shape.c = LayoutOf(y, batch_axes);
  return shape;
}

// What a product is added to: beta * bias, broadcast over the result.
struct Bias {
  double beta = 1;
  int64_t row = 0;  // strides in the bias; zero repeats it
  int64_t column = 0;
};

template <typename T>
class BiasFill {
 public:
  BiasFill(const ProductShape& shape, Bias bias, int threads)
      : rows_(shape.rows),
        columns_(shape.columns),
        batch_(shape.batch),
        c_(shape.c),
        bias_(bias),
        beta_(static_cast<T>(bias.beta)),
        threads_(threads) {}

  void Run(const T* bias, T* c) const {
    const int64_t lines = ElementsOf(batch_) * rows_;
    ParallelFor(threads_, lines, 1 + 16384 / std::max<int64_t>(columns_, 1), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        FillRow(bias + line % rows_ * bias_.row, c + OffsetOf(line / rows_) + line % rows_ * c_.row);
      }
    });
  }

 private:
  int64_t OffsetOf(int64_t index) const {
    int64_t offset = 0;
    for (size_t axis = batch_.size(); axis-- > 0; index /= batch_[axis])
      offset += index % batch_[axis] * c_.batch[axis];
    return offset;
  }

  void FillRow(const T* from, T* to) const {
    if (c_.column == 1 && bias_.column == 1 && beta_ == 1) {
      std::memcpy(to, from, columns_ * sizeof(T));
      return;
    }
    for (int64_t j = 0; j < columns_; ++j) to[j * c_.column] = beta_ * from[j * bias_.column];
  }

  const int64_t rows_;
  const int64_t columns_;
  const std::vector<int64_t> batch_;
  const MatrixLayout c_;
  const Bias bias_;
  const T beta_;
  const int threads_;
};

template <typename T>
class ProductKernel : public Kernel {
 public:
  ProductKernel(std::unique_ptr<MatrixProduct> product, std::unique_ptr<BiasFill<T>> bias)
      : product_(std::move(product)), bias_(std::move(bias)) {}
  size_t workspace_bytes() const override { return product_->workspace_bytes(); }
  Status Launch(const LaunchArgs& args) override {
    if (bias_ != nullptr) bias_->Run(args.input<T>(2), args.output<T>(0));
    return product_->Run(args.inputs[0], args.inputs[1], args.outputs[0], args.workspace);
  }

 private:
  const std::unique_ptr<MatrixProduct> product_;
  const std::unique_ptr<BiasFill<T>> bias_;  // null: none
};

template <typename T>
StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelContext& context, const ProductShape& shape, double alpha,
                                              const Bias* bias) {
  ASSIGN_OR_RETURN(auto product,
                   MatrixProduct::Create(context.output_type(0).dtype, shape, alpha, bias != nullptr, context.threads));
  std::unique_ptr<BiasFill<T>> fill;
  if (bias != nullptr) fill = std::make_unique<BiasFill<T>>(shape, *bias, context.threads);
  return std::unique_ptr<Kernel>(new ProductKernel<T>(std::move(product), std::move(fill)));
}

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, const ProductShape& shape, double alpha,
                                       const Bias* bias) {
  switch (context.output_type(0).dtype) {
    case DType::kFloat:
      return MakeProduct<float>(context, shape, alpha, bias);
    case DType::kDouble:
      return MakeProduct<double>(context, shape, alpha, bias);
    default:
      return UnsupportedTypes(context);
  }
}

StatusOr<std::unique_ptr<Kernel>> MakeMatMul(const KernelContext& context) {
  Shape a = context.input_type(0).shape;
  Shape b = context.input_type(1).shape;
  Shape y = context.output_type(0).shape;
  if (b.size() == 1) {
    b.push_back(1);
    y.push_back(1);
  }
  if (a.size() == 1) {
    a.insert(a.begin(), 1);
    y.insert(y.end() - 1, 1);
  }
  return Make(context, ShapeOf(Permuted(a, {}), Permuted(b, {}), Permuted(y, {})), 1, nullptr);
}

StatusOr<std::unique_ptr<Kernel>> MakePermutedMatMul(const KernelContext& context) {
  const Attributes& attributes = context.node.attributes();
  const std::vector<int64_t> perm_y = attributes.Ints("perm_y");
  std::vector<int64_t> inverse(perm_y.size());
  for (size_t i = 0; i < perm_y.size(); ++i) inverse[perm_y[i]] = static_cast<int64_t>(i);
  const ProductShape shape = ShapeOf(Permuted(context.input_type(0).shape, attributes.Ints("perm_a")),
                                     Permuted(context.input_type(1).shape, attributes.Ints("perm_b")),
                                     Permuted(context.output_type(0).shape, inverse));
  const Bias bias{1, 0, 1};
  return Make(context, shape, DecimalValue(attributes.Float("alpha", 1)),
              context.node.input(2) != nullptr ? &bias : nullptr);
}

// Strides of C, which broadcasts to [rows, columns].
Bias GemmBias(const Shape& c, double beta) {
  const int64_t columns = c.empty() ? 1 : c.back();
  const int64_t rows = c.size() < 2 ? 1 : c[c.size() - 2];
  return {beta, rows == 1 ? 0 : columns, columns == 1 ? 0 : 1};
}

StatusOr<std::unique_ptr<Kernel>> MakeGemm(const KernelContext& context) {
  const Attributes& attributes = context.node.attributes();
  const std::vector<int64_t> transposed = {1, 0};
  const std::vector<int64_t> as_it_is = {};
  const ProductShape shape =
      ShapeOf(Permuted(context.input_type(0).shape, attributes.Int("transA", 0) != 0 ? transposed : as_it_is),
              Permuted(context.input_type(1).shape, attributes.Int("transB", 0) != 0 ? transposed : as_it_is),
              Permuted(context.output_type(0).shape, {}));
  const double beta = DecimalValue(attributes.Float("beta", 1));
  const double alpha = DecimalValue(attributes.Float("alpha", 1));
  if (context.node.input(2) == nullptr || beta == 0) return Make(context, shape, alpha, nullptr);
  const Bias bias = GemmBias(context.input_type(2).shape, beta);
  return Make(context, shape, alpha, &bias);
}

}  // namespace

void AddMatMulKernels(KernelRegistry& registry) {
  registry.Add("MatMul", MakeMatMul);
  registry.Add("Gemm", MakeGemm);
  registry.Add("onnxtrain.MatMul", MakePermutedMatMul);
}

}  // namespace onnxtrain
