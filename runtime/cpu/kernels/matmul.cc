// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "runtime/cpu/kernels/all_kernels.h"
#include "runtime/cpu/matrix_product.h"
#include "runtime/cpu/parallel_for.h"
#include "runtime/kernel.h"

namespace onnxtrain {
namespace {

template <typename T>
class BiasFill {
 public:
  BiasFill(const ProductShape& shape, ProductBias bias, int threads)
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
    for (int64_t j = 0; j < columns_; ++j) to[j * c_.column] = static_cast<T>(beta_ * from[j * bias_.column]);
  }

  const int64_t rows_;
  const int64_t columns_;
  const std::vector<int64_t> batch_;
  const MatrixLayout c_;
  const ProductBias bias_;
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
StatusOr<std::unique_ptr<Kernel>> MakeProduct(const KernelContext& context, const ProductNode& node) {
  const bool biased = node.bias.has_value();
  if (std::is_same_v<T, uint16_t> && biased && node.bias->beta != 1) return UnsupportedTypes(context);
  ASSIGN_OR_RETURN(auto product, MatrixProduct::Create(context.output_type(0).dtype, node.shape, node.alpha, biased,
                                                       context.threads));
  std::unique_ptr<BiasFill<T>> fill;
  if (biased) fill = std::make_unique<BiasFill<T>>(node.shape, *node.bias, context.threads);
  return std::unique_ptr<Kernel>(new ProductKernel<T>(std::move(product), std::move(fill)));
}

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context) {
  const ProductNode node = ProductNodeOf(context.node);
  switch (context.output_type(0).dtype) {
    case DType::kFloat:
      return MakeProduct<float>(context, node);
    case DType::kDouble:
      return MakeProduct<double>(context, node);
    case DType::kBfloat16:
      return MakeProduct<uint16_t>(context, node);  // elements are only copied here: beta is 1
    default:
      return UnsupportedTypes(context);
  }
}

}  // namespace

void AddMatMulKernels(KernelRegistry& registry) {
  registry.Add("MatMul", Make);
  registry.Add("Gemm", Make);
  registry.Add("onnxtrain.MatMul", Make);
}

}  // namespace onnxtrain
