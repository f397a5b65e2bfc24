// SPDX-License-Identifier: Apache-2.0
// MatMul, Gemm and onnxtrain.MatMul. A row of bias goes into the epilogue; any other bias is written into the result
// first, to which the product is added.
#include "cuda_ops/cublaslt_product.h"
#include "cuda_ops/kernels/strided_copy.h"
#include "cuda_ops/ops/all_ops.h"
#include "cuda_ops/ops/element_types.h"
#include "cuda_ops/ops/launch_kernel.h"
#include "cuda_ops/ops/loops.h"

namespace onnxtrain {
namespace {

class ProductKernel : public Kernel {
 public:
  // `fill`: the bias into the result; count 0 without.
  ProductKernel(std::unique_ptr<CublasLtProduct> product, bool bias_row, const StridedLoop<2>& fill,
                size_t element_bytes)
      : product_(std::move(product)), bias_row_(bias_row), fill_(fill), element_bytes_(element_bytes) {}

  size_t workspace_bytes() const override { return product_->workspace_bytes(); }

  Status Launch(const LaunchArgs& args) override {
    const auto stream = static_cast<cudaStream_t>(args.native_stream);
    const std::byte* const bias = args.input<std::byte>(2);
    if (!bias_row_ && bias != nullptr) {
      RETURN_IF_CUDA_ERROR(LaunchStridedCopy(bias, args.outputs[0], fill_, element_bytes_, stream));
    }
    return product_->Run(args.inputs[0], args.inputs[1], args.outputs[0], bias_row_ ? bias : nullptr, args.workspace,
                         stream);
  }

 private:
  const std::unique_ptr<CublasLtProduct> product_;
  const bool bias_row_;
  const StridedLoop<2> fill_;
  const size_t element_bytes_;
};

// The bias as the result walks.
StatusOr<StridedLoop<2>> FillLoop(const KernelContext& context, const ProductNode& node) {
  Shape shape = node.shape.batch;
  std::vector<int64_t> from(shape.size(), 0), to = node.shape.c.batch;
  shape.insert(shape.end(), {node.shape.rows, node.shape.columns});
  from.insert(from.end(), {node.bias->row, node.bias->column});
  to.insert(to.end(), {node.shape.c.row, node.shape.c.column});
  return LoopFor<2>(context, shape, {from, to});
}

// A sum over nothing: zero, or the bias.
StatusOr<std::unique_ptr<Kernel>> MakeEmpty(const KernelContext& context, const ProductNode& node) {
  const TensorType& y = context.output_type(0);
  const size_t bytes = SizeOf(y.dtype);
  if (!node.bias) {
    return MakeLaunchKernel(context, [count = y.elements(), bytes](const LaunchArgs& args, cudaStream_t stream) {
      return LaunchFill(args.outputs[0], 0, count, bytes, stream);
    });
  }
  if (node.bias->beta != 1) {
    return InvalidModelError(context.node.Describe() +
                             " sums over no terms and scales its C: served where beta is 1; scale C before the node");
  }
  ASSIGN_OR_RETURN(const StridedLoop<2> fill, FillLoop(context, node));
  return MakeLaunchKernel(context, [fill, bytes](const LaunchArgs& args, cudaStream_t stream) {
    return LaunchStridedCopy(args.inputs[2], args.outputs[0], fill, bytes, stream);
  });
}

StatusOr<std::unique_ptr<Kernel>> Make(const KernelContext& context, const CudaContext& cuda) {
  const DType dtype = context.output_type(0).dtype;
  const bool types_fit = (IsDeviceFloat(dtype) || dtype == DType::kDouble) && context.input_type(0).dtype == dtype &&
                         context.input_type(1).dtype == dtype;
  if (!types_fit) return UnsupportedTypes(context);
  const ProductNode node = ProductNodeOf(context.node);
  if (context.output_type(0).elements() == 0) return MakeNoKernel(context);
  if (node.shape.depth == 0) return MakeEmpty(context, node);
  CublasLtProduct::Options options;
  options.dtype = dtype;
  options.alpha = node.alpha;
  // The epilogue adds to rows of the result as it lies in memory, and not in double.
  const auto stored = StoredAs(node.shape.c, node.shape.rows, node.shape.columns);
  options.bias_row = node.bias && node.bias->row == 0 && node.bias->column == 1 && node.bias->beta == 1 && stored &&
                     !stored->transposed && dtype != DType::kDouble;
  StridedLoop<2> fill;
  if (node.bias && !options.bias_row) {
    options.beta = node.bias->beta;
    ASSIGN_OR_RETURN(fill, FillLoop(context, node));
  }
  auto product = CublasLtProduct::Create(cuda, node.shape, options);
  if (!product.ok()) return product.status().Prepend(context.node.Describe());
  return std::unique_ptr<Kernel>(
      std::make_unique<ProductKernel>(*std::move(product), options.bias_row, fill, SizeOf(dtype)));
}

}  // namespace

void AddMatMulOps(KernelRegistry& registry, const CudaContext& context) {
  for (const char* op : {"MatMul", "Gemm", "onnxtrain.MatMul"}) {
    registry.Add(op, [&context](const KernelContext& kernel) { return Make(kernel, context); });
  }
}

}  // namespace onnxtrain
