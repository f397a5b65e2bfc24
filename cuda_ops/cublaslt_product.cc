// SPDX-License-Identifier: Apache-2.0
#include "cuda_ops/cublaslt_product.h"

#include <algorithm>
#include <string>
#include <utility>

namespace onnxtrain {
namespace {

constexpr size_t kMostWorkspace = size_t{32} << 20;  // what the library wants on Hopper

#define RETURN_IF_CUBLAS_ERROR(call)                                                        \
  do {                                                                                      \
    const cublasStatus_t cublas_status_ = (call);                                           \
    if (cublas_status_ != CUBLAS_STATUS_SUCCESS) return CublasError(cublas_status_, #call); \
  } while (false)

cudaDataType_t DataTypeOf(DType dtype) {
  return dtype == DType::kBfloat16 ? CUDA_R_16BF : dtype == DType::kFloat16 ? CUDA_R_16F : CUDA_R_32F;
}

// A matrix that is stored row by row, as the library's column-major one: rows and columns change places.
Status MakeLayout(cublasLtMatrixLayout_t* layout, DType dtype, int64_t stored_rows, int64_t stored_columns,
                  int64_t leading, int64_t batch, int64_t batch_stride) {
  // A single row may have any stride, but the library wants one that could hold it.
  const int64_t ld = std::max({leading, stored_columns, int64_t{1}});
  RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutCreate(layout, DataTypeOf(dtype), static_cast<uint64_t>(stored_columns),
                                                    static_cast<uint64_t>(stored_rows), ld));
  const int32_t count = static_cast<int32_t>(batch);
  RETURN_IF_CUBLAS_ERROR(
      cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)));
  RETURN_IF_CUBLAS_ERROR(cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                          &batch_stride, sizeof(batch_stride)));
  return OkStatus();
}

// The last batch axis is the library's.
int64_t LastOf(const std::vector<int64_t>& list, int64_t fallback) { return list.empty() ? fallback : list.back(); }

}  // namespace

Status CublasError(cublasStatus_t status, const char* call) {
  const std::string text(call);
  return InternalError(text.substr(0, text.find('(')) + ": " + cublasLtGetStatusName(status) + ", " +
                       cublasLtGetStatusString(status));
}

StatusOr<std::unique_ptr<CublasLtProduct>> CublasLtProduct::Create(const CudaContext& context, ProductShape shape,
                                                                   const Options& options) {
  std::unique_ptr<CublasLtProduct> product(new CublasLtProduct(context, options));
  shape = Simplified(std::move(shape));
  const auto result = StoredAs(shape.c, shape.rows, shape.columns);
  if (result && result->transposed) {
    if (options.bias_row) return InvalidModelError("a product into a transposed matrix takes no row of bias");
    SwapOperands(shape);
    product->swapped_ = true;
  }
  RETURN_IF_ERROR(product->Describe(shape));
  product->SetOffsets(shape);
  RETURN_IF_ERROR(product->ChooseAlgorithm());
  return product;
}

CublasLtProduct::~CublasLtProduct() {
  for (const cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
    if (layout != nullptr) (void)cublasLtMatrixLayoutDestroy(layout);
  }
  if (operation_ != nullptr) (void)cublasLtMatmulDescDestroy(operation_);
}

Status CublasLtProduct::Describe(const ProductShape& shape) {
  const auto a = StoredAs(shape.a, shape.rows, shape.depth);
  const auto b = StoredAs(shape.b, shape.depth, shape.columns);
  const auto c = StoredAs(shape.c, shape.rows, shape.columns);
  if (!a || !b || !c || c->transposed) {
    return InvalidModelError("neither rows nor columns of a matrix lie densely; insert a Transpose before the product");
  }
  const int64_t batch = LastOf(shape.batch, 1);
  const auto make = [&](cublasLtMatrixLayout_t* layout, const StoredMatrix& stored, int64_t rows, int64_t columns,
                        const MatrixLayout& matrix) {
    if (stored.transposed) std::swap(rows, columns);
    return MakeLayout(layout, layout == &c_ ? result_dtype() : options_.dtype, rows, columns, stored.leading, batch,
                      LastOf(matrix.batch, 0));
  };
  RETURN_IF_ERROR(make(&a_, *a, shape.rows, shape.depth, shape.a));
  RETURN_IF_ERROR(make(&b_, *b, shape.depth, shape.columns, shape.b));
  RETURN_IF_ERROR(make(&c_, *c, shape.rows, shape.columns, shape.c));
  return DescribeOperation(a->transposed, b->transposed);
}

Status CublasLtProduct::DescribeOperation(bool transpose_a, bool transpose_b) {
  const bool tf32 = options_.dtype == DType::kFloat && context_.tf32;
  RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmulDescCreate(&operation_, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
  // B^T comes first.
  const cublasOperation_t first = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first)));
  RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second)));
  if (!options_.bias_row) return OkStatus();
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  RETURN_IF_CUBLAS_ERROR(
      cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
  return OkStatus();
}

Status CublasLtProduct::ChooseAlgorithm() {
  cublasLtMatmulPreference_t preference = nullptr;
  RETURN_IF_CUBLAS_ERROR(cublasLtMatmulPreferenceCreate(&preference));
  const size_t most = kMostWorkspace;
  cublasStatus_t status =
      cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof(most));
  for (const auto& [attribute, offset] : {std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &Offsets::b),
                                          std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &Offsets::a),
                                          std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &Offsets::c),
                                          std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &Offsets::c)}) {
    uint32_t alignment = 256;  // of every tensor of a plan
    for (const Offsets& offsets : calls_) {
      while (offsets.*offset % alignment != 0) alignment /= 2;
    }
    if (status != CUBLAS_STATUS_SUCCESS) break;
    status = cublasLtMatmulPreferenceSetAttribute(preference, attribute, &alignment, sizeof(alignment));
  }
  cublasLtMatmulHeuristicResult_t result = {};
  int found = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = cublasLtMatmulAlgoGetHeuristic(context_.matmul_handle, operation_, b_, a_, c_, c_, preference, 1, &result,
                                            &found);
  }
  (void)cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS) return CublasError(status, "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) return InternalError("cublasLtMatmulAlgoGetHeuristic: no algorithm serves this product");
  algorithm_ = result.algo;
  workspace_bytes_ = result.workspaceSize;
  return OkStatus();
}

void CublasLtProduct::SetOffsets(const ProductShape& shape) {
  const size_t axes = shape.batch.empty() ? 0 : shape.batch.size() - 1;
  int64_t count = 1;
  for (size_t axis = 0; axis < axes; ++axis) count *= shape.batch[axis];
  const size_t bytes = SizeOf(options_.dtype);
  const size_t result_bytes = SizeOf(result_dtype());
  for (int64_t call = 0; call < count; ++call) {
    Offsets offsets;
    int64_t rest = call;
    for (size_t axis = axes; axis-- > 0; rest /= shape.batch[axis]) {
      const auto coordinate = static_cast<size_t>(rest % shape.batch[axis]);
      offsets.a += coordinate * bytes * static_cast<size_t>(shape.a.batch[axis]);
      offsets.b += coordinate * bytes * static_cast<size_t>(shape.b.batch[axis]);
      offsets.c += coordinate * result_bytes * static_cast<size_t>(shape.c.batch[axis]);
    }
    calls_.push_back(offsets);
  }
}

Status CublasLtProduct::Run(const void* a, const void* b, void* c, const void* bias, void* workspace,
                            cudaStream_t stream) {
  if (swapped_) std::swap(a, b);
  const float alpha = static_cast<float>(options_.alpha);
  const float beta = static_cast<float>(options_.beta);
  if (options_.bias_row) {
    RETURN_IF_CUBLAS_ERROR(
        cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)));
  }
  for (const Offsets& offsets : calls_) {
    std::byte* const into = static_cast<std::byte*>(c) + offsets.c;
    RETURN_IF_CUBLAS_ERROR(cublasLtMatmul(context_.matmul_handle, operation_, &alpha,
                                          static_cast<const std::byte*>(b) + offsets.b, b_,
                                          static_cast<const std::byte*>(a) + offsets.a, a_, &beta, into, c_, into, c_,
                                          &algorithm_, workspace, workspace_bytes_, stream));
  }
  return OkStatus();
}

}  // namespace onnxtrain
